// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {IERC1967} from "@openzeppelin/contracts/interfaces/IERC1967.sol";
import {IERC1822Proxiable} from "@openzeppelin/contracts/interfaces/draft-IERC1822.sol";
import {ERC1967Utils} from "@openzeppelin/contracts/proxy/ERC1967/ERC1967Utils.sol";
import {UUPSUpgradeable} from "@openzeppelin/contracts/proxy/utils/UUPSUpgradeable.sol";
import {OriginatorSequence} from "../../../contracts/OriginatorSequence.sol";
import {SequencedLog} from "../../../contracts/base/SequencedLog.sol";
import {ISequencedLog} from "../../../contracts/interfaces/ISequencedLog.sol";
import {AnsweringContract} from "../../solidity/AnsweringContract.sol";
import {GroupMessagesSuccessor} from "../../solidity/GroupMessagesSuccessor.sol";
import {SequencedLogSuite} from "../support/SequencedLogSuite.sol";

abstract contract UpgradesTest is SequencedLogSuite {
    uint256 internal constant MAX_FUZZED_ANSWER = 128;
    uint256 internal constant WORD = 32;

    address internal before;

    function setUp() public override {
        super.setUp();
        before = _implementationOf(log);
    }

    /* ACCEPTED */

    /// conforms: 2.2.2-10, 2.2.4-12
    function test_upgrade__successor__isAuthorizedAndEmitted() public {
        address successor = _newSuccessor(kind);
        vm.expectEmit(address(log));
        emit ISequencedLog.UpgradeAuthorized(admin, successor);
        vm.expectEmit(address(log));
        emit IERC1967.Upgraded(successor);
        _upgrade(successor);
        vm.assertEq(_implementationOf(log), successor);
        vm.assertEq(GroupMessagesSuccessor(address(log)).version(), 2);
    }

    function test_upgrade__successor__keepsSequenceBoundsPauseAndRoles() public {
        _publish(kind, publisher, IDENTIFIER, _payload(1, MIN_PAYLOAD_SIZE));
        _grantSecondAdmin();
        vm.startPrank(admin);
        log.setPayloadBounds(3, 300);
        log.pause();
        vm.stopPrank();
        bytes memory state = _state();
        _upgrade(_newSuccessor(kind));
        vm.assertEq(_state(), state);
        vm.prank(secondAdmin);
        log.unpause();
        _expectPublished(kind, IDENTIFIER, _payload(2, 3), 2);
        _publish(kind, publisher, IDENTIFIER, _payload(2, 3));
    }

    function test_upgrade__sameAgainAndBack__isAccepted() public {
        _upgrade(_newSuccessor(kind));
        _upgrade(before);
        vm.assertEq(_implementationOf(log), before);
    }

    function test_upgrade__withACall__makesItInTheSameTransaction() public {
        address successor = _newSuccessor(kind);
        vm.prank(admin);
        log.upgradeToAndCall(successor, abi.encodeCall(ISequencedLog.pause, ()));
        vm.assertTrue(log.paused());
    }

    /* REFUSED */

    /// conforms: 2.2.2-9, 2.2.4-11
    function testFuzz_upgrade__anyOther__reverts(address account) public {
        vm.assume(account != admin);
        address successor = _newSuccessor(kind);
        vm.prank(account);
        _expectNotAdmin(account);
        log.upgradeToAndCall(successor, "");
        vm.assertEq(_implementationOf(log), before);
    }

    function test_upgrade__sibling__revertsWithBothKinds() public {
        _assertRefused(_newImplementation(siblingKind, sequence), _kindChanged(siblingKind));
    }

    function test_upgrade__anotherSequence__revertsWithBoth() public {
        OriginatorSequence other = new OriginatorSequence(publisher, stranger);
        _assertRefused(_newImplementation(kind, other), _sequenceChanged(address(other)));
    }

    function test_upgrade__accountWithoutCode__reverts() public {
        _assertRefused(stranger, _sequenceChanged(address(0)));
    }

    function test_upgrade__contractThatAnswersNothing__reverts() public {
        _assertRefused(address(new AnsweringContract()), _sequenceChanged(address(0)));
    }

    function testFuzz_upgrade__answerOfAnyOtherLength__isNoAnswer(uint256 seed, uint256 length)
        public
    {
        length = _bound(length, 0, MAX_FUZZED_ANSWER);
        vm.assume(length != WORD);
        bytes memory answer = abi.encodePacked(abi.encode(sequence), _payload(seed, length));
        // Cut to its length: the right word with bytes more, or the beginning of the right word.
        bytes memory cut = _firstBytes(answer, length);
        _assertRefused(_answering(cut, abi.encode(kind)), _sequenceChanged(address(0)));
        _assertRefused(
            _answering(
                abi.encode(sequence), _firstBytes(abi.encode(kind, seed, seed, seed), length)
            ),
            _kindChanged(type(uint256).max)
        );
    }

    function testFuzz_upgrade__sequenceWithDirtyBits__isNoAnswer(uint96 dirt) public {
        vm.assume(dirt != 0);
        uint256 answer = uint256(uint160(address(sequence))) | (uint256(dirt) << 160);
        _assertRefused(
            _answering(abi.encode(answer), abi.encode(kind)), _sequenceChanged(address(0))
        );
    }

    function testFuzz_upgrade__anyOtherAddressAsSequence__reverts(address proposed) public {
        vm.assume(proposed != address(sequence));
        _assertRefused(
            _answering(abi.encode(proposed), abi.encode(kind)), _sequenceChanged(proposed)
        );
    }

    function testFuzz_upgrade__anyOtherKind__reverts(uint256 proposed) public {
        vm.assume(proposed != kind);
        _assertRefused(
            _answering(abi.encode(sequence), abi.encode(proposed)), _kindChanged(proposed)
        );
    }

    function test_upgrade__sequenceButNoKind__reverts() public {
        AnsweringContract foreign = new AnsweringContract();
        foreign.setAnswer(ISequencedLog.originatorSequence.selector, abi.encode(sequence));
        _assertRefused(address(foreign), _kindChanged(type(uint256).max));
    }

    function test_upgrade__rightAnswersButNotUpgradeable__reverts() public {
        address foreign = _answering(abi.encode(sequence), abi.encode(kind));
        _assertRefused(
            foreign,
            abi.encodeWithSelector(ERC1967Utils.ERC1967InvalidImplementation.selector, foreign)
        );
    }

    function testFuzz_upgrade__implementationForAnotherSlot__reverts(bytes32 slot) public {
        vm.assume(slot != IMPLEMENTATION_SLOT);
        address foreign = _answering(abi.encode(sequence), abi.encode(kind));
        AnsweringContract(foreign)
            .setAnswer(IERC1822Proxiable.proxiableUUID.selector, abi.encode(slot));
        _assertRefused(
            foreign,
            abi.encodeWithSelector(UUPSUpgradeable.UUPSUnsupportedProxiableUUID.selector, slot)
        );
    }

    function test_upgrade__implementationItself__reverts() public {
        address successor = _newSuccessor(kind);
        vm.prank(admin);
        vm.expectRevert(
            abi.encodeWithSelector(UUPSUpgradeable.UUPSUnauthorizedCallContext.selector)
        );
        SequencedLog(before).upgradeToAndCall(successor, "");
    }

    /* INTERNALS */

    function test_upgrade__highestAddressAsSequence__revertsWithIt() public {
        address highest = address(type(uint160).max);
        _assertRefused(_answering(abi.encode(highest), abi.encode(kind)), _sequenceChanged(highest));
    }

    function test_upgrade__refusalThatReadsLikeTheRightAnswer__isNoAnswer() public {
        address foreign = _answering(abi.encode(sequence), abi.encode(kind));
        vm.mockCallRevert(foreign, abi.encodeCall(ISequencedLog.topicKind, ()), abi.encode(kind));
        _assertRefused(foreign, _kindChanged(type(uint256).max));
        bytes memory question = abi.encodeCall(ISequencedLog.originatorSequence, ());
        vm.mockCallRevert(foreign, question, abi.encode(sequence));
        _assertRefused(foreign, _sequenceChanged(address(0)));
    }

    function _upgrade(address implementation) private {
        vm.prank(admin);
        log.upgradeToAndCall(implementation, "");
    }

    function _assertRefused(address implementation, bytes memory refusal) private {
        vm.expectRevert(refusal);
        _upgrade(implementation);
        vm.assertEq(_implementationOf(log), before);
    }

    function _answering(bytes memory sequenceAnswer, bytes memory kindAnswer)
        private
        returns (address foreign)
    {
        AnsweringContract answering = new AnsweringContract();
        answering.setAnswer(ISequencedLog.originatorSequence.selector, sequenceAnswer);
        answering.setAnswer(ISequencedLog.topicKind.selector, kindAnswer);
        return address(answering);
    }

    function _firstBytes(bytes memory data, uint256 length)
        private
        pure
        returns (bytes memory first)
    {
        first = new bytes(length);
        for (uint256 index = 0; index < length; ++index) {
            first[index] = data[index];
        }
    }

    function _state() private view returns (bytes memory state) {
        (uint32 minimum, uint32 maximum) = log.payloadBounds();
        return abi.encode(
            minimum,
            maximum,
            log.paused(),
            _members(),
            log.lastSequenceId(),
            log.originatorSequence(),
            log.topicKind()
        );
    }

    function _sequenceChanged(address proposed) private view returns (bytes memory refusal) {
        return abi.encodeWithSelector(
            ISequencedLog.OriginatorSequenceChanged.selector, address(sequence), proposed
        );
    }

    function _kindChanged(uint256 proposed) private view returns (bytes memory refusal) {
        return abi.encodeWithSelector(ISequencedLog.TopicKindChanged.selector, kind, proposed);
    }
}

contract GroupMessagesUpgradesTest is UpgradesTest {
    constructor() SequencedLogSuite(GROUP_MESSAGE) {}
}

contract IdentityUpdatesUpgradesTest is UpgradesTest {
    constructor() SequencedLogSuite(IDENTITY_UPDATE) {}
}
