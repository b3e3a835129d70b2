// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {Ownable} from "@openzeppelin/contracts/access/Ownable.sol";
import {Ownable2Step} from "@openzeppelin/contracts/access/Ownable2Step.sol";
import {IERC721Errors} from "@openzeppelin/contracts/interfaces/draft-IERC6093.sol";
import {IERC721} from "@openzeppelin/contracts/token/ERC721/IERC721.sol";
import {NodeRegistry} from "../../../contracts/NodeRegistry.sol";
import {INodeRegistry} from "../../../contracts/interfaces/INodeRegistry.sol";
import {NodeHolder} from "../../solidity/NodeHolder.sol";
import {NodeRegistrySuite} from "../support/NodeRegistrySuite.sol";

contract NodeRegistryOwnershipTest is NodeRegistrySuite {
    uint256 internal constant NODE_ID = 100;
    bytes internal constant ATTACHED = "attached";

    function setUp() public override {
        super.setUp();
        _add(operator, 1);
    }

    /* TRANSFERS OF NODES */

    function testFuzz_transferFrom__owner__movesTheNodeAndEmitsWho(address to) public {
        vm.assume(to != address(0));
        vm.expectEmit(address(registry));
        emit IERC721.Transfer(operator, to, NODE_ID);
        vm.expectEmit(address(registry));
        emit INodeRegistry.NodeTransferred(owner, NODE_ID, to);
        vm.prank(owner);
        registry.transferFrom(operator, to, NODE_ID);
        vm.assertEq(registry.ownerOf(NODE_ID), to);
        vm.assertEq(registry.balanceOf(to), 1);
    }

    function test_safeTransferFrom__owner__movesTheNodeAndAsksTheContract() public {
        NodeHolder holder = new NodeHolder();
        vm.expectEmit(address(registry));
        emit INodeRegistry.NodeTransferred(owner, NODE_ID, address(holder));
        vm.prank(owner);
        registry.safeTransferFrom(operator, address(holder), NODE_ID, ATTACHED);
        vm.assertEq(registry.ownerOf(NODE_ID), address(holder));
        vm.assertEq(holder.lastOperator(), owner);
        vm.assertEq(holder.lastData(), ATTACHED);
    }

    function test_safeTransferFrom__contractThatTakesNone__reverts() public {
        NodeRegistry refusing = registry;
        vm.prank(owner);
        vm.expectRevert(
            abi.encodeWithSelector(IERC721Errors.ERC721InvalidReceiver.selector, refusing)
        );
        registry.safeTransferFrom(operator, address(refusing), NODE_ID);
        vm.assertEq(registry.ownerOf(NODE_ID), operator);
    }

    /// conforms: 2.2.1-5
    function testFuzz_transfer__anyOther__revertsOnEveryPath(address account, address to) public {
        vm.assume(account != owner);
        vm.startPrank(account);
        _expectNotOwner(account);
        registry.transferFrom(operator, to, NODE_ID);
        _expectNotOwner(account);
        registry.safeTransferFrom(operator, to, NODE_ID);
        _expectNotOwner(account);
        registry.safeTransferFrom(operator, to, NODE_ID, ATTACHED);
        vm.stopPrank();
        vm.assertEq(registry.ownerOf(NODE_ID), operator);
    }

    /// conforms: 2.2.1-5
    function test_transferFrom__holder__reverts() public {
        vm.prank(operator);
        _expectNotOwner(operator);
        registry.transferFrom(operator, secondOperator, NODE_ID);
    }

    function testFuzz_transferFrom__notFromItsHolder__reverts(address from) public {
        vm.assume(from != operator);
        vm.prank(owner);
        vm.expectRevert(
            abi.encodeWithSelector(
                IERC721Errors.ERC721IncorrectOwner.selector, from, NODE_ID, operator
            )
        );
        registry.transferFrom(from, secondOperator, NODE_ID);
    }

    function test_transferFrom__toNobody__reverts() public {
        vm.prank(owner);
        vm.expectRevert(
            abi.encodeWithSelector(IERC721Errors.ERC721InvalidReceiver.selector, address(0))
        );
        registry.transferFrom(operator, address(0), NODE_ID);
    }

    function testFuzz_transferFrom__unknownNode__reverts(uint256 nodeId) public {
        vm.assume(nodeId != NODE_ID);
        vm.prank(owner);
        vm.expectRevert(
            abi.encodeWithSelector(IERC721Errors.ERC721NonexistentToken.selector, nodeId)
        );
        registry.transferFrom(operator, secondOperator, nodeId);
    }

    /* APPROVALS */

    function testFuzz_approve__anyCaller__reverts(address account, address to, uint256 nodeId)
        public
    {
        bytes memory refusal = abi.encodeWithSelector(INodeRegistry.ApprovalsDisabled.selector, to);
        vm.startPrank(account);
        vm.expectRevert(refusal);
        registry.approve(to, nodeId);
        vm.expectRevert(refusal);
        registry.setApprovalForAll(to, true);
        vm.expectRevert(refusal);
        registry.setApprovalForAll(to, false);
        vm.stopPrank();
    }

    function test_approve__holder__reverts() public {
        vm.prank(operator);
        vm.expectRevert(abi.encodeWithSelector(INodeRegistry.ApprovalsDisabled.selector, stranger));
        registry.approve(stranger, NODE_ID);
        vm.assertEq(registry.getApproved(NODE_ID), address(0));
    }

    /* OWNERSHIP OF THE REGISTRY */

    function test_construct__zeroOwner__reverts() public {
        vm.expectRevert(abi.encodeWithSelector(Ownable.OwnableInvalidOwner.selector, address(0)));
        new NodeRegistry(address(0));
    }

    function test_construct__valid__belongsToTheOwnerAlone() public view {
        vm.assertEq(registry.owner(), owner);
        vm.assertEq(registry.pendingOwner(), address(0));
        vm.assertEq(bytes(registry.name()), "XMTP Node Operator");
        vm.assertEq(bytes(registry.symbol()), "XMTP");
    }

    function test_transferOwnership__untilAccepted__changesNothing() public {
        vm.expectEmit(address(registry));
        emit Ownable2Step.OwnershipTransferStarted(owner, newOwner);
        vm.prank(owner);
        registry.transferOwnership(newOwner);
        vm.assertEq(registry.owner(), owner);
        vm.assertEq(registry.pendingOwner(), newOwner);
        vm.prank(newOwner);
        _expectNotOwner(newOwner);
        registry.updateHealth(NODE_ID, false);
    }

    function test_acceptOwnership__named__takesItFromTheFormer() public {
        vm.prank(owner);
        registry.transferOwnership(newOwner);
        vm.expectEmit(address(registry));
        emit Ownable.OwnershipTransferred(owner, newOwner);
        vm.prank(newOwner);
        registry.acceptOwnership();
        vm.assertEq(registry.owner(), newOwner);
        vm.assertEq(registry.pendingOwner(), address(0));
        vm.prank(owner);
        _expectNotOwner(owner);
        registry.updateHealth(NODE_ID, false);
        vm.prank(newOwner);
        registry.updateHealth(NODE_ID, false);
        vm.assertFalse(registry.getNode(NODE_ID).isHealthy);
    }

    function testFuzz_acceptOwnership__anyOther__reverts(address account) public {
        vm.assume(account != newOwner);
        vm.prank(owner);
        registry.transferOwnership(newOwner);
        vm.prank(account);
        _expectNotOwner(account);
        registry.acceptOwnership();
        vm.assertEq(registry.owner(), owner);
    }

    function testFuzz_transferOwnership__anyOther__reverts(address account) public {
        vm.assume(account != owner);
        vm.prank(account);
        _expectNotOwner(account);
        registry.transferOwnership(account);
        vm.assertEq(registry.pendingOwner(), address(0));
    }

    function testFuzz_renounceOwnership__anyCaller__reverts(address account) public {
        vm.prank(account);
        vm.expectRevert(abi.encodeWithSelector(INodeRegistry.RenouncingDisabled.selector));
        registry.renounceOwnership();
        vm.prank(owner);
        vm.expectRevert(abi.encodeWithSelector(INodeRegistry.RenouncingDisabled.selector));
        registry.renounceOwnership();
        vm.assertEq(registry.owner(), owner);
    }
}
