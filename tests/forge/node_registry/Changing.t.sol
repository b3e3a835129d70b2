// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {IERC721Errors} from "@openzeppelin/contracts/interfaces/draft-IERC6093.sol";
import {INodeRegistry} from "../../../contracts/interfaces/INodeRegistry.sol";
import {NodeRegistrySuite} from "../support/NodeRegistrySuite.sol";

contract NodeRegistryChangingTest is NodeRegistrySuite {
    string internal constant NEW_HTTP_ADDRESS = "https://moved.example:5050";
    uint256 internal constant SECRET = 1;
    uint256 internal constant NODE_ID = 100;

    function setUp() public override {
        super.setUp();
        _add(operator, SECRET);
    }

    /* HEALTH */

    /// conforms: 2.2.1-12, 3.1.1-7, 3.1.1-9
    function testFuzz_updateHealth__owner__setsItAndEmitsWho(bool first, bool second) public {
        _updateHealthExpecting(first);
        _updateHealthExpecting(second);
    }

    /// conforms: 2.2.1-7, 3.1.1-11
    function testFuzz_updateHealth__anyOther__reverts(address account) public {
        vm.assume(account != owner);
        vm.prank(account);
        _expectNotOwner(account);
        registry.updateHealth(NODE_ID, false);
        vm.assertTrue(registry.getNode(NODE_ID).isHealthy);
    }

    /// conforms: 2.2.1-8
    function testFuzz_updateHealth__unknownNode__reverts(uint256 nodeId) public {
        vm.assume(nodeId != NODE_ID);
        vm.prank(owner);
        vm.expectRevert(_nonexistent(nodeId));
        registry.updateHealth(nodeId, true);
    }

    /* HTTP ADDRESS */

    function test_setHttpAddressUpdatesOpen__owner__setsItAndEmitsWho() public {
        vm.assertFalse(registry.httpAddressUpdatesOpen());
        _openExpecting(true);
        _openExpecting(false);
    }

    function testFuzz_setHttpAddressUpdatesOpen__anyOther__reverts(address account) public {
        vm.assume(account != owner);
        vm.prank(account);
        _expectNotOwner(account);
        registry.setHttpAddressUpdatesOpen(true);
        vm.assertFalse(registry.httpAddressUpdatesOpen());
    }

    function testFuzz_updateHttpAddress__holderAndOpen__setsItAndEmitsWho(
        uint256 seed,
        uint256 length
    ) public {
        _openExpecting(true);
        length = _bound(length, 1, MAX_HTTP_ADDRESS_LENGTH);
        string memory httpAddress = string(_payload(seed, length));
        INodeRegistry.Node memory expected = INodeRegistry.Node(_keyOf(SECRET), httpAddress, true);
        vm.expectEmit(address(registry));
        emit INodeRegistry.NodeHttpAddressUpdated(operator, NODE_ID, httpAddress);
        vm.expectEmit(address(registry));
        emit INodeRegistry.NodeUpdated(NODE_ID, expected);
        vm.prank(operator);
        registry.updateHttpAddress(NODE_ID, httpAddress);
        vm.assertEq(abi.encode(registry.getNode(NODE_ID)), abi.encode(expected));
    }

    /// conforms: 3.1.1-8
    function test_updateHttpAddress__closed__revertsForHolderAndOwner() public {
        bytes memory refusal =
            abi.encodeWithSelector(INodeRegistry.HttpAddressUpdatesClosed.selector, NODE_ID);
        _assertHttpAddressRefused(operator, NEW_HTTP_ADDRESS, refusal);
        _assertHttpAddressRefused(owner, NEW_HTTP_ADDRESS, refusal);
        _openExpecting(true);
        _openExpecting(false);
        _assertHttpAddressRefused(operator, NEW_HTTP_ADDRESS, refusal);
    }

    /// conforms: 2.2.1-6
    function testFuzz_updateHttpAddress__anyOther__reverts(address account) public {
        vm.assume(account != operator);
        _openExpecting(true);
        _assertHttpAddressRefused(
            account,
            NEW_HTTP_ADDRESS,
            abi.encodeWithSelector(INodeRegistry.NotNodeHolder.selector, NODE_ID, account)
        );
    }

    function testFuzz_updateHttpAddress__unknownNode__reverts(uint256 nodeId) public {
        vm.assume(nodeId != NODE_ID);
        _openExpecting(true);
        vm.prank(operator);
        vm.expectRevert(_nonexistent(nodeId));
        registry.updateHttpAddress(nodeId, NEW_HTTP_ADDRESS);
    }

    function test_updateHttpAddress__emptyOrTooLong__reverts() public {
        _openExpecting(true);
        _assertHttpAddressRefused(
            operator, "", abi.encodeWithSelector(INodeRegistry.EmptyHttpAddress.selector)
        );
        uint256 length = MAX_HTTP_ADDRESS_LENGTH + 1;
        _assertHttpAddressRefused(
            operator,
            string(new bytes(length)),
            abi.encodeWithSelector(
                INodeRegistry.HttpAddressTooLong.selector, length, MAX_HTTP_ADDRESS_LENGTH
            )
        );
    }

    function test_updateHttpAddress__formerHolder__reverts() public {
        _openExpecting(true);
        vm.prank(owner);
        registry.transferFrom(operator, secondOperator, NODE_ID);
        _assertHttpAddressRefused(
            operator,
            NEW_HTTP_ADDRESS,
            abi.encodeWithSelector(INodeRegistry.NotNodeHolder.selector, NODE_ID, operator)
        );
        vm.prank(secondOperator);
        registry.updateHttpAddress(NODE_ID, NEW_HTTP_ADDRESS);
        vm.assertEq(bytes(registry.getNode(NODE_ID).httpAddress), bytes(NEW_HTTP_ADDRESS));
    }

    /* INTERNALS */

    function _updateHealthExpecting(bool isHealthy) private {
        vm.expectEmit(address(registry));
        emit INodeRegistry.NodeHealthUpdated(owner, NODE_ID, isHealthy);
        vm.expectEmit(address(registry));
        emit INodeRegistry.NodeUpdated(NODE_ID, _node(SECRET, isHealthy));
        vm.prank(owner);
        registry.updateHealth(NODE_ID, isHealthy);
        vm.assertEq(abi.encode(registry.getNode(NODE_ID)), abi.encode(_node(SECRET, isHealthy)));
    }

    function _openExpecting(bool open) private {
        vm.expectEmit(address(registry));
        emit INodeRegistry.HttpAddressUpdatesOpenChanged(owner, open);
        vm.prank(owner);
        registry.setHttpAddressUpdatesOpen(open);
        vm.assertEq(registry.httpAddressUpdatesOpen(), open);
    }

    function _assertHttpAddressRefused(
        address account,
        string memory httpAddress,
        bytes memory refusal
    ) private {
        vm.prank(account);
        vm.expectRevert(refusal);
        registry.updateHttpAddress(NODE_ID, httpAddress);
        vm.assertEq(bytes(registry.getNode(NODE_ID).httpAddress), bytes(HTTP_ADDRESS));
    }

    function _nonexistent(uint256 nodeId) private pure returns (bytes memory refusal) {
        return abi.encodeWithSelector(IERC721Errors.ERC721NonexistentToken.selector, nodeId);
    }
}
