// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {OriginatorSequence} from "../../../contracts/OriginatorSequence.sol";
import {SequencedLog} from "../../../contracts/base/SequencedLog.sol";
import {InvariantTargets} from "../support/InvariantTargets.sol";
import {TestBase} from "../support/TestBase.sol";
import {SequencedLogsHandler} from "./SequencedLogsHandler.sol";

/// @title SequencedLogsInvariants
/// @notice What holds after any calls by anyone to the payload contracts and their sequence, with
/// upgrades in between.
contract SequencedLogsInvariants is TestBase, InvariantTargets {
    uint256 internal constant GROUP_MESSAGE = 0;
    uint256 internal constant IDENTITY_UPDATE = 2;
    uint32 internal constant PAYLOAD_SIZE_CAP = 1024 * 1024;

    SequencedLogsHandler internal handler;
    OriginatorSequence internal sequence;

    function setUp() public {
        handler = new SequencedLogsHandler();
        sequence = handler.sharedSequence();
        _target(address(handler));
    }

    /* SEQUENCE */

    function invariant_sequenceIds__ofBothContracts__areExactlyOneToTheLast() public view {
        SequencedLogsHandler.Publication[] memory seen = handler.observed();
        for (uint256 index = 0; index < seen.length; ++index) {
            vm.assertEq(seen[index].sequenceId, index + 1, "a sequence id is not the next");
        }
        vm.assertEq(sequence.last(), seen.length, "the sequence and the logs disagree");
        vm.assertEq(handler.logOf(GROUP_MESSAGE).lastSequenceId(), seen.length);
        vm.assertEq(handler.logOf(IDENTITY_UPDATE).lastSequenceId(), seen.length);
    }

    function invariant_publications__allThatWereAccepted__areInTheLogsUnchanged() public view {
        SequencedLogsHandler.Publication[] memory seen = handler.observed();
        SequencedLogsHandler.Publication[] memory requested = handler.requested();
        vm.assertEq(seen.length, requested.length, "accepted and not logged, or the reverse");
        for (uint256 index = 0; index < seen.length; ++index) {
            vm.assertEq(seen[index].kind, requested[index].kind, "another contract's log");
            vm.assertEq(seen[index].contentHash, requested[index].contentHash, "changed content");
        }
    }

    function invariant_pausedContract__whateverIsTried__neverEmits() public view {
        SequencedLogsHandler.Publication[] memory seen = handler.observed();
        for (uint256 index = 0; index < seen.length; ++index) {
            vm.assertFalse(seen[index].wasPaused, "a paused contract emitted");
        }
    }

    /* ADMINISTRATION */

    function invariant_administrators__atAnyTime__areThoseOfTheModelAndNeverNone() public view {
        _assertAdministrators(GROUP_MESSAGE);
        _assertAdministrators(IDENTITY_UPDATE);
    }

    function invariant_payloadBounds__atAnyTime__areValidAndThoseLastSet() public view {
        _assertBounds(GROUP_MESSAGE);
        _assertBounds(IDENTITY_UPDATE);
    }

    function invariant_pauseAndCode__atAnyTime__areThoseOfTheModel() public view {
        _assertPauseAndCode(GROUP_MESSAGE);
        _assertPauseAndCode(IDENTITY_UPDATE);
    }

    function invariant_sequenceAndKind__afterAnyUpgrade__stayForEver() public view {
        _assertIdentity(GROUP_MESSAGE);
        _assertIdentity(IDENTITY_UPDATE);
        vm.assertEq(sequence.groupMessages(), address(handler.logOf(GROUP_MESSAGE)));
        vm.assertEq(sequence.identityUpdates(), address(handler.logOf(IDENTITY_UPDATE)));
    }

    /* INTERNALS */

    function _assertAdministrators(uint256 kind) private view {
        SequencedLog log = handler.logOf(kind);
        address[] memory admins = handler.modelAdmins(kind);
        vm.assertGt(admins.length, 0, "nobody can administrate");
        vm.assertEq(log.getRoleMemberCount(DEFAULT_ADMIN_ROLE), admins.length, "other members");
        for (uint256 index = 0; index < admins.length; ++index) {
            vm.assertTrue(log.hasRole(DEFAULT_ADMIN_ROLE, admins[index]), "a member is missing");
        }
    }

    function _assertBounds(uint256 kind) private view {
        (uint32 minimum, uint32 maximum) = handler.logOf(kind).payloadBounds();
        (, uint32 modelMinimum, uint32 modelMaximum,) = handler.modelOf(kind);
        vm.assertEq(minimum, modelMinimum, "another minimum");
        vm.assertEq(maximum, modelMaximum, "another maximum");
        vm.assertLe(minimum, maximum, "nothing fits");
        vm.assertGt(maximum, 0, "only the empty payload fits");
        vm.assertLe(maximum, PAYLOAD_SIZE_CAP, "above the hard cap");
    }

    function _assertPauseAndCode(uint256 kind) private view {
        (bool isPaused,,, address implementation) = handler.modelOf(kind);
        vm.assertEq(handler.logOf(kind).paused(), isPaused, "paused by one of both only");
        vm.assertEq(handler.implementationOf(kind), implementation, "another implementation");
    }

    function _assertIdentity(uint256 kind) private view {
        SequencedLog log = handler.logOf(kind);
        vm.assertEq(address(log.originatorSequence()), address(sequence), "another sequence");
        vm.assertEq(log.topicKind(), kind, "another topic kind");
    }
}
