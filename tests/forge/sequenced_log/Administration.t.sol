// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {SequencedLog} from "../../../contracts/base/SequencedLog.sol";
import {ISequencedLog} from "../../../contracts/interfaces/ISequencedLog.sol";
import {SequencedLogSuite} from "../support/SequencedLogSuite.sol";

abstract contract AdministrationTest is SequencedLogSuite {
    bytes32 internal constant OTHER_ROLE = keccak256("other role");

    /* PAUSING */

    function test_pause__admin__pausesAndEmitsWho() public {
        vm.expectEmit(address(log));
        emit ISequencedLog.Paused(admin);
        vm.prank(admin);
        log.pause();
        vm.assertTrue(log.paused());
        vm.assertFalse(_log(siblingKind).paused());
    }

    function test_pause__paused__reverts() public {
        _pause();
        vm.prank(admin);
        vm.expectRevert(abi.encodeWithSelector(ISequencedLog.EnforcedPause.selector));
        log.pause();
    }

    /// conforms: 2.2.2-7, 2.2.4-9
    function testFuzz_pause__anyOther__reverts(address account) public {
        vm.assume(account != admin);
        vm.prank(account);
        _expectNotAdmin(account);
        log.pause();
        vm.assertFalse(log.paused());
    }

    function test_unpause__admin__unpausesAndEmitsWho() public {
        _pause();
        vm.expectEmit(address(log));
        emit ISequencedLog.Unpaused(admin);
        vm.prank(admin);
        log.unpause();
        vm.assertFalse(log.paused());
    }

    function test_unpause__notPaused__reverts() public {
        vm.prank(admin);
        vm.expectRevert(abi.encodeWithSelector(ISequencedLog.ExpectedPause.selector));
        log.unpause();
    }

    /// conforms: 2.2.2-8, 2.2.4-10
    function testFuzz_unpause__anyOther__reverts(address account) public {
        vm.assume(account != admin);
        _pause();
        vm.prank(account);
        _expectNotAdmin(account);
        log.unpause();
        vm.assertTrue(log.paused());
    }

    function test_pause__bounds__stayAsTheyWere() public {
        _pause();
        _assertBounds(MIN_PAYLOAD_SIZE, MAX_PAYLOAD_SIZE);
        vm.prank(admin);
        log.setPayloadBounds(1, 2);
        vm.assertTrue(log.paused());
        _assertBounds(1, 2);
    }

    /* PAYLOAD BOUNDS */

    function testFuzz_setPayloadBounds__valid__areSetAndEmitted(uint32 minimum, uint32 maximum)
        public
    {
        maximum = uint32(_bound(maximum, 1, PAYLOAD_SIZE_CAP));
        minimum = uint32(_bound(minimum, 0, maximum));
        vm.expectEmit(address(log));
        emit ISequencedLog.PayloadBoundsSet(admin, minimum, maximum);
        vm.prank(admin);
        log.setPayloadBounds(minimum, maximum);
        _assertBounds(minimum, maximum);
    }

    function test_setPayloadBounds__widestAndNarrowest__areSet() public {
        vm.startPrank(admin);
        log.setPayloadBounds(0, PAYLOAD_SIZE_CAP);
        _assertBounds(0, PAYLOAD_SIZE_CAP);
        log.setPayloadBounds(PAYLOAD_SIZE_CAP, PAYLOAD_SIZE_CAP);
        _assertBounds(PAYLOAD_SIZE_CAP, PAYLOAD_SIZE_CAP);
        vm.stopPrank();
    }

    function test_setPayloadBounds__eachRuleBroken__reverts() public {
        _assertInvalidBounds(2, 1);
        _assertInvalidBounds(0, 0);
        _assertInvalidBounds(0, PAYLOAD_SIZE_CAP + 1);
        _assertInvalidBounds(type(uint32).max, type(uint32).max);
    }

    function testFuzz_setPayloadBounds__invalid__revertsWithWhatWasGiven(
        uint32 minimum,
        uint32 maximum
    ) public {
        vm.assume(minimum > maximum || maximum > PAYLOAD_SIZE_CAP);
        _assertInvalidBounds(minimum, maximum);
    }

    function testFuzz_setPayloadBounds__anyOther__reverts(address account) public {
        vm.assume(account != admin);
        vm.prank(account);
        _expectNotAdmin(account);
        log.setPayloadBounds(0, PAYLOAD_SIZE_CAP);
        _assertBounds(MIN_PAYLOAD_SIZE, MAX_PAYLOAD_SIZE);
    }

    /* ROLES */

    function testFuzz_grantRole__admin__addsAnotherWhoCanAct(address account) public {
        vm.assume(account != admin && account != address(0) && account != address(log));
        vm.expectEmit(address(log));
        emit IAccessControl.RoleGranted(DEFAULT_ADMIN_ROLE, account, admin);
        vm.prank(admin);
        log.grantRole(DEFAULT_ADMIN_ROLE, account);
        vm.assertEq(_members().length, 2);
        vm.prank(account);
        log.pause();
        vm.assertTrue(log.paused());
    }

    /// conforms: 2.2.2-4, 2.2.4-6
    function testFuzz_grantRole__anyOther__reverts(address account) public {
        vm.assume(account != admin);
        vm.prank(account);
        _expectNotAdmin(account);
        log.grantRole(DEFAULT_ADMIN_ROLE, account);
        vm.assertEq(_members().length, 1);
    }

    function test_grantRole__accountThatCannotAct__reverts() public {
        _assertInvalidAdmin(address(0));
        _assertInvalidAdmin(address(log));
    }

    function test_grantRole__otherRole__goesToAnyAccount() public {
        vm.startPrank(admin);
        log.grantRole(OTHER_ROLE, address(0));
        log.grantRole(OTHER_ROLE, address(log));
        vm.stopPrank();
        vm.assertEq(log.getRoleMemberCount(OTHER_ROLE), 2);
        vm.assertEq(_members().length, 1);
    }

    function test_revokeRole__oneOfTwo__leavesTheOther() public {
        _grantSecondAdmin();
        vm.expectEmit(address(log));
        emit IAccessControl.RoleRevoked(DEFAULT_ADMIN_ROLE, admin, secondAdmin);
        vm.prank(secondAdmin);
        log.revokeRole(DEFAULT_ADMIN_ROLE, admin);
        vm.assertEq(_members().length, 1);
        vm.assertEq(_members()[0], secondAdmin);
        vm.prank(admin);
        _expectNotAdmin(admin);
        log.pause();
    }

    function test_revokeRole__lastAdmin__reverts() public {
        vm.prank(admin);
        vm.expectRevert(abi.encodeWithSelector(ISequencedLog.LastAdmin.selector, admin));
        log.revokeRole(DEFAULT_ADMIN_ROLE, admin);
        vm.assertTrue(log.hasRole(DEFAULT_ADMIN_ROLE, admin));
    }

    function testFuzz_revokeRole__noAdmin__changesNothing(address account) public {
        vm.assume(account != admin);
        vm.prank(admin);
        log.revokeRole(DEFAULT_ADMIN_ROLE, account);
        vm.assertEq(_members().length, 1);
    }

    function test_revokeRole__lastOfAnotherRole__isAccepted() public {
        vm.startPrank(admin);
        log.grantRole(OTHER_ROLE, stranger);
        log.revokeRole(OTHER_ROLE, stranger);
        vm.stopPrank();
        vm.assertEq(log.getRoleMemberCount(OTHER_ROLE), 0);
    }

    /// conforms: 2.2.2-6, 2.2.4-8
    function testFuzz_revokeRole__anyOther__reverts(address account) public {
        vm.assume(account != admin);
        vm.prank(account);
        _expectNotAdmin(account);
        log.revokeRole(DEFAULT_ADMIN_ROLE, admin);
        vm.assertTrue(log.hasRole(DEFAULT_ADMIN_ROLE, admin));
    }

    function test_renounceRole__oneOfTwo__leavesTheOther() public {
        _grantSecondAdmin();
        vm.prank(admin);
        log.renounceRole(DEFAULT_ADMIN_ROLE, admin);
        vm.assertEq(_members().length, 1);
        vm.assertEq(_members()[0], secondAdmin);
    }

    function test_renounceRole__lastAdmin__reverts() public {
        vm.prank(admin);
        vm.expectRevert(abi.encodeWithSelector(ISequencedLog.LastAdmin.selector, admin));
        log.renounceRole(DEFAULT_ADMIN_ROLE, admin);
        vm.assertTrue(log.hasRole(DEFAULT_ADMIN_ROLE, admin));
    }

    function test_renounceRole__implementationWithoutAdmin__changesNothing() public {
        SequencedLog implementation = SequencedLog(_implementationOf(log));
        vm.prank(stranger);
        implementation.renounceRole(DEFAULT_ADMIN_ROLE, stranger);
        vm.assertEq(implementation.getRoleMemberCount(DEFAULT_ADMIN_ROLE), 0);
    }

    /// conforms: 2.2.2-5, 2.2.4-7
    function test_renounceRole__forAnother__reverts() public {
        _grantSecondAdmin();
        vm.prank(secondAdmin);
        vm.expectRevert(
            abi.encodeWithSelector(IAccessControl.AccessControlBadConfirmation.selector)
        );
        log.renounceRole(DEFAULT_ADMIN_ROLE, admin);
    }

    /* INTERNALS */

    function _pause() private {
        vm.prank(admin);
        log.pause();
    }

    function _assertBounds(uint32 minimum, uint32 maximum) private view {
        (uint32 actualMinimum, uint32 actualMaximum) = log.payloadBounds();
        vm.assertEq(actualMinimum, minimum);
        vm.assertEq(actualMaximum, maximum);
    }

    function _assertInvalidBounds(uint32 minimum, uint32 maximum) private {
        vm.expectRevert(
            abi.encodeWithSelector(
                ISequencedLog.InvalidPayloadBounds.selector, minimum, maximum, PAYLOAD_SIZE_CAP
            )
        );
        vm.prank(admin);
        log.setPayloadBounds(minimum, maximum);
        _assertBounds(MIN_PAYLOAD_SIZE, MAX_PAYLOAD_SIZE);
    }

    function _assertInvalidAdmin(address account) private {
        vm.expectRevert(abi.encodeWithSelector(ISequencedLog.InvalidAdmin.selector, account));
        vm.prank(admin);
        log.grantRole(DEFAULT_ADMIN_ROLE, account);
        vm.assertEq(_members().length, 1);
    }
}

contract GroupMessagesAdministrationTest is AdministrationTest {
    constructor() SequencedLogSuite(GROUP_MESSAGE) {}
}

contract IdentityUpdatesAdministrationTest is AdministrationTest {
    constructor() SequencedLogSuite(IDENTITY_UPDATE) {}
}
