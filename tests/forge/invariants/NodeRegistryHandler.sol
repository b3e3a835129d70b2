// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {Ownable} from "@openzeppelin/contracts/access/Ownable.sol";
import {Ownable2Step} from "@openzeppelin/contracts/access/Ownable2Step.sol";
import {IERC721} from "@openzeppelin/contracts/token/ERC721/IERC721.sol";
import {INodeRegistry} from "../../../contracts/interfaces/INodeRegistry.sol";
import {Vm} from "../support/Vm.sol";
import {NodeRegistryModel} from "./NodeRegistryModel.sol";

/// @title NodeRegistryHandler
/// @notice What forge calls, in any order: each function lets some actor try something.
contract NodeRegistryHandler is NodeRegistryModel {
    uint256 internal constant TRANSFER_PATHS = 3;

    /// @dev Ids as the logs of the additions named them, in order. The model has no part in it.
    uint256[] internal addedIds;

    uint256 internal pageSeed;

    /* NODES */

    function addNode(
        uint256 actorSeed,
        uint256 holderSeed,
        uint256 secretSeed,
        uint256 httpAddressSeed
    ) external {
        uint256 secret = _bound(secretSeed, 1, SECRETS);
        address holder = _actorOrNobody(holderSeed);
        string memory httpAddress = _httpAddress(httpAddressSeed);
        bytes memory call =
            abi.encodeCall(INodeRegistry.addNode, (holder, keys[secret], httpAddress));
        bytes memory refusal = _additionRefusal(secret, holder, bytes(httpAddress).length);
        (bool accepted, Vm.Log[] memory logs) = _attemptAsOwner(actorSeed, call, refusal);
        if (!accepted) return;
        models.push(NodeModel(secret, httpAddress, true, holder));
        nodeIdOfSecret[secret] = models.length * NODE_INCREMENT;
        _observe(logs);
    }

    function updateHealth(uint256 actorSeed, uint256 nodeSeed, bool isHealthy) external {
        uint256 nodeId = _nodeIdNear(nodeSeed);
        bytes memory call = abi.encodeCall(INodeRegistry.updateHealth, (nodeId, isHealthy));
        bytes memory refusal = _exists(nodeId) ? ACCEPTED : _nonexistent(nodeId);
        (bool accepted,) = _attemptAsOwner(actorSeed, call, refusal);
        if (accepted) models[nodeId / NODE_INCREMENT - 1].isHealthy = isHealthy;
    }

    /* HTTP ADDRESSES */

    function setHttpAddressUpdatesOpen(uint256 actorSeed, bool open) external {
        bytes memory call = abi.encodeCall(INodeRegistry.setHttpAddressUpdatesOpen, (open));
        (bool accepted,) = _attemptAsOwner(actorSeed, call, ACCEPTED);
        if (accepted) modelOpen = open;
    }

    function updateHttpAddress(uint256 actorSeed, uint256 nodeSeed, uint256 httpAddressSeed)
        external
    {
        uint256 nodeId = _nodeIdNear(nodeSeed);
        address actor = _holderOrAnyone(nodeId, actorSeed);
        string memory httpAddress = _httpAddress(httpAddressSeed);
        bytes memory call = abi.encodeCall(INodeRegistry.updateHttpAddress, (nodeId, httpAddress));
        bytes memory refusal = _updateRefusal(actor, nodeId, bytes(httpAddress).length);
        (bool accepted,) = _attempt(actor, address(registry), call, refusal);
        if (accepted) models[nodeId / NODE_INCREMENT - 1].httpAddress = httpAddress;
    }

    /* HOLDERS */

    function transfer(uint256 actorSeed, uint256 fromSeed, uint256 toSeed, uint256 nodeSeed)
        external
    {
        uint256 nodeId = _nodeIdNear(nodeSeed);
        address from = _holderOrAnyone(nodeId, fromSeed);
        address to = _actorOrNobody(toSeed);
        bytes memory call = _transferCall(fromSeed / 2, from, to, nodeId);
        bytes memory refusal = _transferRefusal(from, to, nodeId);
        (bool accepted,) = _attemptAsOwner(actorSeed, call, refusal);
        if (accepted) models[nodeId / NODE_INCREMENT - 1].holder = to;
    }

    function approve(uint256 actorSeed, uint256 toSeed, uint256 nodeSeed, bool all, bool approved)
        external
    {
        uint256 nodeId = _nodeIdNear(nodeSeed);
        address to = _actorOrNobody(toSeed);
        bytes memory call = all
            ? abi.encodeCall(IERC721.setApprovalForAll, (to, approved))
            : abi.encodeCall(IERC721.approve, (to, nodeId));
        _attempt(
            _holderOrAnyone(nodeId, actorSeed),
            address(registry),
            call,
            abi.encodeWithSelector(INodeRegistry.ApprovalsDisabled.selector, to)
        );
    }

    /* OWNERSHIP */

    function transferOwnership(uint256 actorSeed, uint256 toSeed) external {
        address to = _actorOrNobody(toSeed);
        bytes memory call = abi.encodeCall(Ownable.transferOwnership, (to));
        (bool accepted,) = _attemptAsOwner(actorSeed, call, ACCEPTED);
        if (accepted) modelPendingOwner = to;
    }

    function acceptOwnership(uint256 actorSeed) external {
        address actor = actorSeed % 2 == 0 && modelPendingOwner != address(0)
            ? modelPendingOwner
            : _actorOf(actorSeed / 2);
        bytes memory refusal = actor == modelPendingOwner ? ACCEPTED : _notOwner(actor);
        bytes memory call = abi.encodeCall(Ownable2Step.acceptOwnership, ());
        (bool accepted,) = _attempt(actor, address(registry), call, refusal);
        if (accepted) (modelOwner, modelPendingOwner) = (actor, address(0));
    }

    function renounceOwnership(uint256 actorSeed) external {
        _attempt(
            _ownerOrAnyone(actorSeed),
            address(registry),
            abi.encodeCall(Ownable.renounceOwnership, ()),
            abi.encodeWithSelector(INodeRegistry.RenouncingDisabled.selector)
        );
    }

    /* PAGES */

    function shufflePages(uint256 seed) external {
        pageSeed = seed;
    }

    /// @notice The page that the invariants look at: another one after each attempt, mostly within
    /// what there is or just beyond.
    function page() external view returns (uint256 offset, uint256 limit) {
        uint256 seed = uint256(keccak256(abi.encode(pageSeed, attempts)));
        offset = uint256(keccak256(abi.encode(seed, "offset")));
        limit = uint256(keccak256(abi.encode(seed, "limit")));
        if (seed % 8 > 0) offset %= models.length + 2;
        if (seed % 8 > 1) limit %= models.length + 2;
    }

    function idsInLogs() external view returns (uint256[] memory ids) {
        return addedIds;
    }

    /* INTERNALS */

    function _attemptAsOwner(uint256 actorSeed, bytes memory call, bytes memory refusal)
        private
        returns (bool accepted, Vm.Log[] memory logs)
    {
        address actor = _ownerOrAnyone(actorSeed);
        if (actor != modelOwner) refusal = _notOwner(actor);
        return _attempt(actor, address(registry), call, refusal);
    }

    function _observe(Vm.Log[] memory logs) private {
        for (uint256 index = 0; index < logs.length; ++index) {
            if (logs[index].topics[0] != INodeRegistry.NodeAdded.selector) continue;
            addedIds.push(uint256(logs[index].topics[2]));
        }
    }

    function _transferCall(uint256 pathSeed, address from, address to, uint256 nodeId)
        private
        pure
        returns (bytes memory call)
    {
        uint256 path = pathSeed % TRANSFER_PATHS;
        if (path == 0) return abi.encodeCall(IERC721.transferFrom, (from, to, nodeId));
        if (path == 1) {
            return
                abi.encodeWithSignature(
                    "safeTransferFrom(address,address,uint256)", from, to, nodeId
                );
        }
        return abi.encodeWithSignature(
            "safeTransferFrom(address,address,uint256,bytes)", from, to, nodeId, "attached"
        );
    }

    /// @dev Half of the choices fall on the owner, so that something happens.
    function _ownerOrAnyone(uint256 seed) private view returns (address actor) {
        return seed % 2 == 0 ? modelOwner : _actorOf(seed / 2);
    }

    function _holderOrAnyone(uint256 nodeId, uint256 seed) private view returns (address actor) {
        if (seed % 2 == 1 || !_exists(nodeId)) return _actorOf(seed / 2);
        return models[nodeId / NODE_INCREMENT - 1].holder;
    }

    function _actorOrNobody(uint256 seed) private view returns (address account) {
        return seed % (actors.length + 1) == 0 ? address(0) : _actorOf(seed);
    }

    /// @dev An id that exists, the one after the last, 0, or one between two.
    function _nodeIdNear(uint256 seed) private view returns (uint256 nodeId) {
        nodeId = (seed % (models.length + 2)) * NODE_INCREMENT;
        return seed % 17 == 0 ? nodeId + 1 : nodeId;
    }

    /// @dev Rarely empty or too long.
    function _httpAddress(uint256 seed) private pure returns (string memory httpAddress) {
        if (seed % 16 == 0) return "";
        if (seed % 16 == 1) return string(new bytes(MAX_HTTP_ADDRESS_LENGTH + 1));
        return string.concat("https://", vm.toString(seed), ".example");
    }
}
