// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {NodeRegistry} from "../../../contracts/NodeRegistry.sol";
import {INodeRegistry} from "../../../contracts/interfaces/INodeRegistry.sol";
import {InvariantTargets} from "../support/InvariantTargets.sol";
import {TestBase} from "../support/TestBase.sol";
import {NodeRegistryHandler} from "./NodeRegistryHandler.sol";

/// @title NodeRegistryInvariants
/// @notice What holds after any calls by anyone to the registry.
contract NodeRegistryInvariants is TestBase, InvariantTargets {
    uint256 internal constant NODE_INCREMENT = 100;
    uint256 internal constant SECRETS = 24;

    NodeRegistryHandler internal handler;
    NodeRegistry internal registry;

    function setUp() public {
        handler = new NodeRegistryHandler();
        registry = handler.registryUnderTest();
        _target(address(handler));
    }

    /* IDS */

    function invariant_nodeIds__inTheLogsAndTheListing__countUpByOneHundred() public view {
        uint256[] memory ids = handler.idsInLogs();
        INodeRegistry.NodeWithId[] memory nodes = registry.allNodes();
        vm.assertEq(nodes.length, ids.length, "a node was added without a log, or the reverse");
        for (uint256 index = 0; index < ids.length; ++index) {
            vm.assertEq(ids[index], (index + 1) * NODE_INCREMENT, "an id is not the next");
            vm.assertEq(nodes[index].nodeId, ids[index], "listed under another id");
        }
    }

    /* LISTINGS */

    function invariant_listings__whole__equalTheModel() public view {
        uint256 count = handler.modelCount();
        vm.assertEq(registry.nodeCount(), count, "another number of nodes");
        _assertSame(registry.allNodes(), handler.modelPage(0, count, false));
        _assertSame(registry.healthyNodes(), handler.modelPage(0, count, true));
    }

    function invariant_listings__anyPage__equalTheModel() public view {
        (uint256 offset, uint256 limit) = handler.page();
        _assertSame(registry.nodesPage(offset, limit), handler.modelPage(offset, limit, false));
        _assertSame(
            registry.healthyNodesPage(offset, limit), handler.modelPage(offset, limit, true)
        );
    }

    /* NODES */

    function invariant_nodes__eachById__equalTheModelAndHaveItsHolder() public view {
        for (uint256 number = 1; number <= handler.modelCount(); ++number) {
            uint256 nodeId = number * NODE_INCREMENT;
            bytes memory expected = abi.encode(handler.modelNode(nodeId).node);
            vm.assertEq(abi.encode(registry.getNode(nodeId)), expected, "another node");
            vm.assertEq(registry.ownerOf(nodeId), handler.modelHolder(nodeId), "another holder");
            vm.assertEq(registry.getApproved(nodeId), address(0), "somebody is approved");
        }
    }

    function invariant_keys__eachTried__belongToTheirOneNodeForEver() public view {
        uint256 found = 0;
        for (uint256 secret = 1; secret <= SECRETS; ++secret) {
            (bytes memory key, address keyAddress, uint256 nodeId) = handler.modelKey(secret);
            _assertKey(key, keyAddress, nodeId);
            if (nodeId != 0) ++found;
        }
        vm.assertEq(found, registry.nodeCount(), "two nodes have one key");
    }

    /* OWNERSHIP */

    function invariant_ownership__atAnyTime__isThatOfTheModelAndNeverNobodys() public view {
        (address owner_, address pendingOwner, bool open) = handler.modelOwnership();
        vm.assertTrue(registry.owner() != address(0), "nobody owns the registry");
        vm.assertEq(registry.owner(), owner_, "another owner");
        vm.assertEq(registry.pendingOwner(), pendingOwner, "another pending owner");
        vm.assertEq(registry.httpAddressUpdatesOpen(), open, "open by one of both only");
    }

    /* INTERNALS */

    function _assertSame(
        INodeRegistry.NodeWithId[] memory actual,
        INodeRegistry.NodeWithId[] memory expected
    ) private pure {
        vm.assertEq(abi.encode(actual), abi.encode(expected), "another listing");
    }

    function _assertKey(bytes memory key, address keyAddress, uint256 nodeId) private view {
        if (nodeId == 0) return _assertUnknown(key, keyAddress);
        bytes memory expected = abi.encode(handler.modelNode(nodeId));
        vm.assertEq(abi.encode(registry.nodeBySigningKey(key)), expected, "another by key");
        vm.assertEq(abi.encode(registry.nodeByKeyAddress(keyAddress)), expected, "by address");
    }

    function _assertUnknown(bytes memory key, address keyAddress) private view {
        bytes memory refusal =
            abi.encodeWithSelector(INodeRegistry.UnknownSigningKey.selector, keyAddress);
        _assertRefused(abi.encodeCall(INodeRegistry.nodeBySigningKey, (key)), refusal);
        _assertRefused(abi.encodeCall(INodeRegistry.nodeByKeyAddress, (keyAddress)), refusal);
    }

    function _assertRefused(bytes memory call, bytes memory refusal) private view {
        // solhint-disable-next-line avoid-low-level-calls
        (bool success, bytes memory answer) = address(registry).staticcall(call);
        vm.assertFalse(success, "a key that was never added is found");
        vm.assertEq(answer, refusal, "refused with another error");
    }
}
