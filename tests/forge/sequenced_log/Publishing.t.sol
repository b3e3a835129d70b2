// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {ISequencedLog} from "../../../contracts/interfaces/ISequencedLog.sol";
import {SequencedLogSuite} from "../support/SequencedLogSuite.sol";
import {Vm} from "../support/Vm.sol";

abstract contract PublishingTest is SequencedLogSuite {
    uint256 internal constant MAX_FUZZED_SIZE = 4096;
    uint256 internal constant MAX_FUZZED_PUBLICATIONS = 20;
    bytes32 internal constant LAST_SLOT = bytes32(0);

    /* PUBLISHING */

    /// conforms: 2.2.2-2, 2.2.4-4
    function testFuzz_publish__sizeWithinBounds__emitsThePayloadUnchanged(
        address account,
        bytes32 identifier,
        uint256 seed,
        uint256 size
    ) public {
        size = _bound(size, MIN_PAYLOAD_SIZE, MAX_PAYLOAD_SIZE);
        bytes memory payload = _payload(seed, size);
        vm.recordLogs();
        _publish(kind, account, identifier, payload);
        Vm.Log[] memory logs = vm.getRecordedLogs();
        vm.assertEq(logs.length, 1);
        vm.assertEq(logs[0].emitter, address(log));
        vm.assertEq(logs[0].topics.length, 1);
        vm.assertEq(logs[0].topics[0], _publishedTopic(kind));
        vm.assertEq(logs[0].data, abi.encode(identifier, payload, uint64(1)));
    }

    function testFuzz_publish__sizeOutsideBounds__revertsWithSizeAndBounds(
        uint256 seed,
        uint256 size,
        uint32 minimum,
        uint32 maximum
    ) public {
        maximum = uint32(_bound(maximum, 1, MAX_FUZZED_SIZE - 1));
        minimum = uint32(_bound(minimum, 0, maximum));
        _setPayloadBounds(minimum, maximum);
        size = _sizeOutside(size, minimum, maximum);
        bytes memory payload = _payload(seed, size);
        vm.expectRevert(_outOfBounds(size, minimum, maximum));
        _publish(kind, publisher, IDENTIFIER, payload);
        vm.assertEq(log.lastSequenceId(), 0);
    }

    function test_publish__sizeAtEachBound__isAccepted() public {
        _publishExpecting(_payload(1, MIN_PAYLOAD_SIZE), 1);
        _publishExpecting(_payload(2, MAX_PAYLOAD_SIZE), 2);
    }

    function test_publish__oneByteOutsideEachBound__reverts() public {
        vm.expectRevert(_outOfBounds(MIN_PAYLOAD_SIZE - 1, MIN_PAYLOAD_SIZE, MAX_PAYLOAD_SIZE));
        _publish(kind, publisher, IDENTIFIER, _payload(1, MIN_PAYLOAD_SIZE - 1));
        vm.expectRevert(_outOfBounds(MAX_PAYLOAD_SIZE + 1, MIN_PAYLOAD_SIZE, MAX_PAYLOAD_SIZE));
        _publish(kind, publisher, IDENTIFIER, _payload(1, MAX_PAYLOAD_SIZE + 1));
    }

    function test_publish__emptyPayloadAndMinimumZero__isAccepted() public {
        _setPayloadBounds(0, 1);
        _publishExpecting("", 1);
    }

    function test_publish__payloadOfTheCap__isAcceptedAndOneByteMoreNever() public {
        _setPayloadBounds(0, PAYLOAD_SIZE_CAP);
        bytes memory payload = new bytes(PAYLOAD_SIZE_CAP);
        payload[PAYLOAD_SIZE_CAP - 1] = 0x01;
        _publishExpecting(payload, 1);
        vm.expectRevert(_outOfBounds(uint256(PAYLOAD_SIZE_CAP) + 1, 0, PAYLOAD_SIZE_CAP));
        _publish(kind, publisher, IDENTIFIER, new bytes(uint256(PAYLOAD_SIZE_CAP) + 1));
    }

    function test_publish__afterTheBoundsChanged__followsTheNewOnes() public {
        _publishExpecting(_payload(1, MAX_PAYLOAD_SIZE), 1);
        _setPayloadBounds(MIN_PAYLOAD_SIZE, MAX_PAYLOAD_SIZE - 1);
        vm.expectRevert(_outOfBounds(MAX_PAYLOAD_SIZE, MIN_PAYLOAD_SIZE, MAX_PAYLOAD_SIZE - 1));
        _publish(kind, publisher, IDENTIFIER, _payload(1, MAX_PAYLOAD_SIZE));
    }

    /* SEQUENCE */

    /// conforms: 2.1-1
    function testFuzz_publish__bothContractsInAnyOrder__shareOneSequence(
        uint256 order,
        uint256 publications
    ) public {
        publications = _bound(publications, 1, MAX_FUZZED_PUBLICATIONS);
        bytes memory payload = _payload(order, MIN_PAYLOAD_SIZE);
        for (uint64 sequenceId = 1; sequenceId <= publications; ++sequenceId) {
            uint256 publishedKind = (order >> sequenceId) & 1 == 0 ? kind : siblingKind;
            _expectPublished(publishedKind, IDENTIFIER, payload, sequenceId);
            _publish(publishedKind, publisher, IDENTIFIER, payload);
            vm.assertEq(log.lastSequenceId(), sequenceId);
            vm.assertEq(_log(siblingKind).lastSequenceId(), sequenceId);
        }
    }

    function test_publish__largestSequenceId__isEmittedWholeAndTheNextReverts() public {
        vm.store(address(sequence), LAST_SLOT, bytes32(uint256(type(uint64).max - 1)));
        _publishExpecting(_payload(1, MIN_PAYLOAD_SIZE), type(uint64).max);
        vm.expectRevert(abi.encodeWithSignature("Panic(uint256)", 0x11));
        _publish(kind, publisher, IDENTIFIER, _payload(1, MIN_PAYLOAD_SIZE));
    }

    /* PAUSING */

    /// conforms: 2.2.2-3, 2.2.4-5
    function testFuzz_publish__paused__revertsWhateverTheSize(uint256 size) public {
        size = _bound(size, 0, MAX_FUZZED_SIZE);
        _pause();
        bytes memory payload = _payload(size, size);
        vm.expectRevert(abi.encodeWithSelector(ISequencedLog.EnforcedPause.selector));
        _publish(kind, publisher, IDENTIFIER, payload);
        vm.assertEq(log.lastSequenceId(), 0);
    }

    function test_publish__siblingPaused__isAccepted() public {
        vm.prank(admin);
        _log(siblingKind).pause();
        _publishExpecting(_payload(1, MIN_PAYLOAD_SIZE), 1);
    }

    function test_publish__unpausedAgain__continuesTheSequence() public {
        _publishExpecting(_payload(1, MIN_PAYLOAD_SIZE), 1);
        _pause();
        vm.prank(admin);
        log.unpause();
        _publishExpecting(_payload(1, MIN_PAYLOAD_SIZE), 2);
    }

    /* INTERNALS */

    function _publishExpecting(bytes memory payload, uint64 sequenceId) private {
        _expectPublished(kind, IDENTIFIER, payload, sequenceId);
        _publish(kind, publisher, IDENTIFIER, payload);
        vm.assertEq(log.lastSequenceId(), sequenceId);
    }

    function _pause() private {
        vm.prank(admin);
        log.pause();
    }

    function _setPayloadBounds(uint32 minimum, uint32 maximum) private {
        vm.prank(admin);
        log.setPayloadBounds(minimum, maximum);
    }

    function _sizeOutside(uint256 seed, uint256 minimum, uint256 maximum)
        private
        pure
        returns (uint256 size)
    {
        if (seed % 2 == 0 && minimum > 0) return _bound(seed, 0, minimum - 1);
        return _bound(seed, maximum + 1, MAX_FUZZED_SIZE);
    }

    function _outOfBounds(uint256 size, uint256 minimum, uint256 maximum)
        private
        pure
        returns (bytes memory refusal)
    {
        return abi.encodeWithSelector(
            ISequencedLog.PayloadSizeOutOfBounds.selector, size, minimum, maximum
        );
    }
}

contract GroupMessagesPublishingTest is PublishingTest {
    constructor() SequencedLogSuite(GROUP_MESSAGE) {}
}

contract IdentityUpdatesPublishingTest is PublishingTest {
    constructor() SequencedLogSuite(IDENTITY_UPDATE) {}
}
