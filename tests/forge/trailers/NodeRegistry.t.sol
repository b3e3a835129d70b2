// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {Ownable2Step} from "@openzeppelin/contracts/access/Ownable2Step.sol";
import {Ownable} from "@openzeppelin/contracts/access/Ownable.sol";
import {IERC721} from "@openzeppelin/contracts/token/ERC721/IERC721.sol";
import {INodeRegistry} from "../../../contracts/interfaces/INodeRegistry.sol";
import {NodeRegistrySuite} from "../support/NodeRegistrySuite.sol";
import {Trailers} from "../support/Trailers.sol";

/// @title NodeRegistryTrailersTest
/// @notice What a council calls in the registry, with and without a trailer.
/// forge-config: default.fuzz.runs = 64
contract NodeRegistryTrailersTest is NodeRegistrySuite, Trailers {
    uint256 internal constant NODES = 2;

    function setUp() public override {
        super.setUp();
        _readFunctions("NodeRegistry");
        _add(operator, 1);
        _add(operator, 2);
    }

    function test_functions__ofTheVectors__areAllThatACouncilCalls() public view {
        vm.assertEq(selectors.length, 7);
    }

    function testFuzz_call__anyTrailer__doesTheSame(
        uint256 seed,
        address anyone,
        bytes memory trailer
    ) public {
        _assertTrailerChangesNothing(address(registry), seed, anyone, trailer);
    }

    /* WHY THE ARGUMENTS MUST BE WHOLE */

    function test_call__argumentsCutOff__areCompletedByTheTrailer() public {
        bytes memory whole = abi.encodeCall(INodeRegistry.updateHealth, (NODE_INCREMENT, false));
        Call memory cut = Call(owner, _withoutLastWord(whole));
        vm.assertFalse(_outcomeOf(address(registry), cut, "").accepted);
        vm.assertTrue(_outcomeOf(address(registry), cut, abi.encode(true)).accepted);
    }

    /* INTERNALS */

    function _arranged(bytes4 selector, uint256 seed) internal override returns (Call memory call) {
        uint256 nodeId = _bound(seed, 1, NODES) * NODE_INCREMENT;
        address account = address(uint160(uint256(keccak256(abi.encode(seed)))));
        bool flag = seed % 3 == 0;
        if (selector == INodeRegistry.addNode.selector) return Call(owner, _adding(seed, account));
        if (selector == INodeRegistry.updateHealth.selector) {
            return Call(owner, abi.encodeCall(INodeRegistry.updateHealth, (nodeId, flag)));
        }
        if (selector == IERC721.transferFrom.selector) {
            return Call(owner, abi.encodeCall(IERC721.transferFrom, (operator, account, nodeId)));
        }
        if (selector == INodeRegistry.setHttpAddressUpdatesOpen.selector) {
            return Call(owner, abi.encodeCall(INodeRegistry.setHttpAddressUpdatesOpen, (flag)));
        }
        if (selector == INodeRegistry.updateHttpAddress.selector) {
            return Call(operator, _moving(seed, nodeId));
        }
        if (selector == Ownable.transferOwnership.selector) {
            return Call(owner, abi.encodeCall(Ownable.transferOwnership, (account)));
        }
        vm.assertTrue(selector == Ownable2Step.acceptOwnership.selector, "no arguments for it");
        vm.prank(owner);
        registry.transferOwnership(newOwner);
        return Call(newOwner, abi.encodeCall(Ownable2Step.acceptOwnership, ()));
    }

    function _adding(uint256 seed, address holder) private returns (bytes memory call) {
        bytes memory key = _keyOf(_bound(seed, NODES + 1, GROUP_ORDER - 1));
        string memory httpAddress = string(_payload(seed, _bound(seed, 1, MAX_HTTP_ADDRESS_LENGTH)));
        return abi.encodeCall(INodeRegistry.addNode, (holder, key, httpAddress));
    }

    /// @dev The holder may do it while the owner has opened updates.
    function _moving(uint256 seed, uint256 nodeId) private returns (bytes memory call) {
        vm.prank(owner);
        registry.setHttpAddressUpdatesOpen(true);
        string memory httpAddress = string(_payload(seed, _bound(seed, 1, MAX_HTTP_ADDRESS_LENGTH)));
        return abi.encodeCall(INodeRegistry.updateHttpAddress, (nodeId, httpAddress));
    }

    function _withoutLastWord(bytes memory call) private pure returns (bytes memory cut) {
        cut = new bytes(call.length - 32);
        for (uint256 index = 0; index < cut.length; ++index) {
            cut[index] = call[index];
        }
    }
}
