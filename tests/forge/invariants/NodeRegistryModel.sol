// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {IERC721Errors} from "@openzeppelin/contracts/interfaces/draft-IERC6093.sol";
import {NodeRegistry} from "../../../contracts/NodeRegistry.sol";
import {INodeRegistry} from "../../../contracts/interfaces/INodeRegistry.sol";
import {Attempts} from "../support/Attempts.sol";
import {SigningKeys} from "../support/SigningKeys.sol";

/// @title NodeRegistryModel
/// @notice A registry beside a model of it, which says of each call whether it is accepted, and if
/// not, with which error.
abstract contract NodeRegistryModel is Attempts, SigningKeys {
    /// @dev What the registry should say of a node by now; its place in the list gives its id.
    struct NodeModel {
        uint256 secret;
        string httpAddress;
        bool isHealthy;
        address holder;
    }

    /// @dev Few enough that the same key is tried again.
    uint256 internal constant SECRETS = 24;
    uint256 internal constant NODE_INCREMENT = 100;
    uint256 internal constant MAX_HTTP_ADDRESS_LENGTH = 512;

    NodeRegistry internal registry;

    NodeModel[] internal models;
    address internal modelOwner;
    address internal modelPendingOwner;
    bool internal modelOpen;

    mapping(uint256 secret => bytes) internal keys;
    mapping(uint256 secret => address) internal keyAddresses;
    mapping(uint256 secret => uint256 nodeId) internal nodeIdOfSecret;

    constructor() {
        registry = new NodeRegistry(owner);
        modelOwner = owner;
        for (uint256 secret = 1; secret <= SECRETS; ++secret) {
            keys[secret] = _keyOf(secret);
            keyAddresses[secret] = _keyAddressOf(secret);
        }
    }

    /* WHAT THE MODEL SAYS */

    function modelCount() external view returns (uint256 count) {
        return models.length;
    }

    function modelHolder(uint256 nodeId) external view returns (address holder) {
        return models[nodeId / NODE_INCREMENT - 1].holder;
    }

    function modelOwnership() external view returns (address, address pendingOwner, bool open) {
        return (modelOwner, modelPendingOwner, modelOpen);
    }

    /// @dev By the meaning of a page, node by node, without sums that could overflow.
    function modelPage(uint256 offset, uint256 limit, bool onlyHealthy)
        external
        view
        returns (INodeRegistry.NodeWithId[] memory page)
    {
        page = new INodeRegistry.NodeWithId[](_countInPage(offset, limit, onlyHealthy));
        uint256 found = 0;
        for (uint256 number = 1; number <= models.length; ++number) {
            if (_isInPage(number, offset, limit, onlyHealthy)) page[found++] = _modelNode(number);
        }
    }

    function modelNode(uint256 nodeId)
        external
        view
        returns (INodeRegistry.NodeWithId memory node)
    {
        return _modelNode(nodeId / NODE_INCREMENT);
    }

    function modelKey(uint256 secret)
        external
        view
        returns (bytes memory key, address keyAddress, uint256 nodeId)
    {
        return (keys[secret], keyAddresses[secret], nodeIdOfSecret[secret]);
    }

    function registryUnderTest() external view returns (NodeRegistry) {
        return registry;
    }

    /* INTERNALS */

    function _modelNode(uint256 number)
        internal
        view
        returns (INodeRegistry.NodeWithId memory node)
    {
        NodeModel storage model = models[number - 1];
        INodeRegistry.Node memory entry =
            INodeRegistry.Node(keys[model.secret], model.httpAddress, model.isHealthy);
        // There are no more nodes than secrets.
        // forge-lint: disable-next-line(unsafe-typecast)
        return INodeRegistry.NodeWithId(uint32(number * NODE_INCREMENT), entry);
    }

    function _countInPage(uint256 offset, uint256 limit, bool onlyHealthy)
        private
        view
        returns (uint256 count)
    {
        for (uint256 number = 1; number <= models.length; ++number) {
            if (_isInPage(number, offset, limit, onlyHealthy)) ++count;
        }
    }

    function _isInPage(uint256 number, uint256 offset, uint256 limit, bool onlyHealthy)
        private
        view
        returns (bool)
    {
        if (number <= offset || number - offset > limit) return false;
        return !onlyHealthy || models[number - 1].isHealthy;
    }

    /// @dev All that a call to the registry may change.
    function _fingerprint() internal view override returns (bytes32 digest) {
        bytes memory holders;
        for (uint256 number = 1; number <= models.length; ++number) {
            holders = abi.encodePacked(holders, registry.ownerOf(number * NODE_INCREMENT));
        }
        return keccak256(
            abi.encode(
                registry.allNodes(),
                registry.owner(),
                registry.pendingOwner(),
                registry.httpAddressUpdatesOpen(),
                holders
            )
        );
    }

    /* REFUSALS */

    function _httpAddressRefusal(uint256 length) internal pure returns (bytes memory refusal) {
        if (length == 0) return abi.encodeWithSelector(INodeRegistry.EmptyHttpAddress.selector);
        if (length <= MAX_HTTP_ADDRESS_LENGTH) return ACCEPTED;
        return abi.encodeWithSelector(
            INodeRegistry.HttpAddressTooLong.selector, length, MAX_HTTP_ADDRESS_LENGTH
        );
    }

    function _additionRefusal(uint256 secret, address to, uint256 httpAddressLength)
        internal
        view
        returns (bytes memory refusal)
    {
        refusal = _httpAddressRefusal(httpAddressLength);
        if (refusal.length > 0) return refusal;
        uint256 nodeId = nodeIdOfSecret[secret];
        if (nodeId != 0) {
            return abi.encodeWithSelector(INodeRegistry.SigningKeyAlreadyUsed.selector, nodeId);
        }
        return _receiverRefusal(to);
    }

    function _transferRefusal(address from, address to, uint256 nodeId)
        internal
        view
        returns (bytes memory refusal)
    {
        refusal = _receiverRefusal(to);
        if (refusal.length > 0) return refusal;
        if (!_exists(nodeId)) return _nonexistent(nodeId);
        address holder = models[nodeId / NODE_INCREMENT - 1].holder;
        if (from == holder) return ACCEPTED;
        return
            abi.encodeWithSelector(
                IERC721Errors.ERC721IncorrectOwner.selector, from, nodeId, holder
            );
    }

    function _updateRefusal(address actor, uint256 nodeId, uint256 httpAddressLength)
        internal
        view
        returns (bytes memory refusal)
    {
        if (!modelOpen) {
            return abi.encodeWithSelector(INodeRegistry.HttpAddressUpdatesClosed.selector, nodeId);
        }
        if (!_exists(nodeId)) return _nonexistent(nodeId);
        if (actor != models[nodeId / NODE_INCREMENT - 1].holder) {
            return abi.encodeWithSelector(INodeRegistry.NotNodeHolder.selector, nodeId, actor);
        }
        return _httpAddressRefusal(httpAddressLength);
    }

    function _receiverRefusal(address to) internal pure returns (bytes memory refusal) {
        if (to != address(0)) return ACCEPTED;
        return abi.encodeWithSelector(IERC721Errors.ERC721InvalidReceiver.selector, to);
    }

    function _nonexistent(uint256 nodeId) internal pure returns (bytes memory refusal) {
        return abi.encodeWithSelector(IERC721Errors.ERC721NonexistentToken.selector, nodeId);
    }

    function _exists(uint256 nodeId) internal view returns (bool) {
        bool isStep = nodeId > 0 && nodeId % NODE_INCREMENT == 0;
        return isStep && nodeId <= models.length * NODE_INCREMENT;
    }
}
