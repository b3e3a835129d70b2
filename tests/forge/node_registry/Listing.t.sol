// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {IERC721Errors} from "@openzeppelin/contracts/interfaces/draft-IERC6093.sol";
import {INodeRegistry} from "../../../contracts/interfaces/INodeRegistry.sol";
import {NodeRegistrySuite} from "../support/NodeRegistrySuite.sol";

contract NodeRegistryListingTest is NodeRegistrySuite {
    uint256 internal constant NODES = 7;

    function setUp() public override {
        super.setUp();
        for (uint256 secret = 1; secret <= NODES; ++secret) {
            _add(operator, secret);
        }
    }

    /* LISTINGS */

    function testFuzz_nodesPage__anyOffsetAndLimit__isThatPartOfTheNodes(
        uint256 disabled,
        uint256 offset,
        uint256 limit
    ) public {
        _disable(disabled);
        _assertPages(disabled, offset, limit);
        _assertPages(disabled, offset % (NODES + 2), limit);
        _assertPages(disabled, offset % (NODES + 2), limit % (NODES + 2));
    }

    /// conforms: 2.2.1-9, 2.2.1-10
    function testFuzz_allNodes__anyHealth__areTheWholePages(uint256 disabled) public {
        _disable(disabled);
        bytes memory everyNode = abi.encode(_expectedPage(disabled, 0, NODES, false));
        bytes memory everyHealthyNode = abi.encode(_expectedPage(disabled, 0, NODES, true));
        vm.assertEq(abi.encode(registry.allNodes()), everyNode);
        vm.assertEq(abi.encode(registry.healthyNodes()), everyHealthyNode);
    }

    function testFuzz_nodesPage__pageByPage__meetsEveryNodeOnce(uint256 disabled, uint256 limit)
        public
    {
        _disable(disabled);
        limit = _bound(limit, 1, NODES + 1);
        uint256 met = 0;
        uint256 metHealthy = 0;
        for (uint256 offset = 0; offset < NODES; offset += limit) {
            met += registry.nodesPage(offset, limit).length;
            metHealthy += registry.healthyNodesPage(offset, limit).length;
        }
        vm.assertEq(met, NODES);
        vm.assertEq(metHealthy, registry.healthyNodes().length);
    }

    function test_list__emptyRegistry__isEmpty() public {
        NodeRegistrySuite.setUp();
        vm.assertEq(registry.nodeCount(), 0);
        vm.assertEq(registry.allNodes().length, 0);
        vm.assertEq(registry.healthyNodes().length, 0);
        vm.assertEq(registry.nodesPage(0, type(uint256).max).length, 0);
        vm.assertEq(registry.healthyNodesPage(type(uint256).max, 1).length, 0);
    }

    /* LOOK-UPS */

    function testFuzz_nodeByKeyAddress__neverAdded__reverts(address keyAddress) public {
        for (uint256 secret = 1; secret <= NODES; ++secret) {
            vm.assume(keyAddress != _keyAddressOf(secret));
        }
        vm.expectRevert(_unknown(keyAddress));
        registry.nodeByKeyAddress(keyAddress);
    }

    function testFuzz_nodeBySigningKey__neverAdded__reverts(uint256 secret) public {
        secret = _bound(secret, NODES + 1, GROUP_ORDER - 1);
        bytes memory key = _keyOf(secret);
        vm.expectRevert(_unknown(_keyAddressOf(secret)));
        registry.nodeBySigningKey(key);
    }

    function test_nodeBySigningKey__disabledNode__isFoundAsDisabled() public {
        _disable(1);
        bytes memory expected = abi.encode(INodeRegistry.NodeWithId(100, _node(1, false)));
        vm.assertEq(abi.encode(registry.nodeBySigningKey(_keyOf(1))), expected);
        vm.assertEq(abi.encode(registry.nodeByKeyAddress(_keyAddressOf(1))), expected);
    }

    /// conforms: 2.2.1-11
    function testFuzz_getNode__unknown__reverts(uint256 nodeId) public {
        vm.assume(nodeId % NODE_INCREMENT != 0 || nodeId == 0 || nodeId > NODES * NODE_INCREMENT);
        vm.expectRevert(
            abi.encodeWithSelector(IERC721Errors.ERC721NonexistentToken.selector, nodeId)
        );
        registry.getNode(nodeId);
    }

    /// conforms: 2.2.1-11
    function test_getNode__eachNode__isItsOwn() public {
        for (uint256 secret = 1; secret <= NODES; ++secret) {
            bytes memory expected = abi.encode(_node(secret, true));
            vm.assertEq(abi.encode(registry.getNode(secret * NODE_INCREMENT)), expected);
        }
    }

    /* INTERNALS */

    /// @dev Bit n - 1 of `disabled` stands for the nth node, whose key is that of the secret n.
    function _disable(uint256 disabled) private {
        for (uint256 number = 1; number <= NODES; ++number) {
            vm.prank(owner);
            registry.updateHealth(number * NODE_INCREMENT, _isHealthy(disabled, number));
        }
    }

    function _isHealthy(uint256 disabled, uint256 number) private pure returns (bool) {
        return (disabled >> (number - 1)) & 1 == 0;
    }

    function _assertPages(uint256 disabled, uint256 offset, uint256 limit) private {
        bytes memory page = abi.encode(_expectedPage(disabled, offset, limit, false));
        bytes memory healthyPage = abi.encode(_expectedPage(disabled, offset, limit, true));
        vm.assertEq(abi.encode(registry.nodesPage(offset, limit)), page);
        vm.assertEq(abi.encode(registry.healthyNodesPage(offset, limit)), healthyPage);
    }

    /// @dev By the meaning of a page, node by node, without sums that could overflow.
    function _expectedPage(uint256 disabled, uint256 offset, uint256 limit, bool onlyHealthy)
        private
        returns (INodeRegistry.NodeWithId[] memory page)
    {
        INodeRegistry.NodeWithId[] memory found = new INodeRegistry.NodeWithId[](NODES);
        uint256 count = 0;
        for (uint256 number = 1; number <= NODES; ++number) {
            bool inPage = number > offset && number - offset <= limit;
            bool isHealthy = _isHealthy(disabled, number);
            if (!inPage || (onlyHealthy && !isHealthy)) continue;
            // The cast is safe because a number is at most NODES.
            // forge-lint: disable-next-line(unsafe-typecast)
            uint32 nodeId = uint32(number * NODE_INCREMENT);
            found[count++] = INodeRegistry.NodeWithId(nodeId, _node(number, isHealthy));
        }
        page = new INodeRegistry.NodeWithId[](count);
        for (uint256 index = 0; index < count; ++index) {
            page[index] = found[index];
        }
    }

    function _unknown(address keyAddress) private pure returns (bytes memory refusal) {
        return abi.encodeWithSelector(INodeRegistry.UnknownSigningKey.selector, keyAddress);
    }
}
