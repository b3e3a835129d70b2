// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {SequencedLog} from "../../../contracts/base/SequencedLog.sol";
import {IOriginatorSequence} from "../../../contracts/interfaces/IOriginatorSequence.sol";

/// @title CountedGroupMessages
/// @notice GroupMessages with a counter of its own instead of the shared sequence, for the gas
/// study: what the shared sequence costs is the difference. Never deployed by the scripts.
/// @dev The counter lies where it is cheapest, in the slot that publishing reads anyway. Roles,
/// pausing, bounds and upgrades are SequencedLog's; only `lastSequenceId` answers for the sequence.
contract CountedGroupMessages is SequencedLog {
    /* STORAGE */

    /// @dev SequencedLog's slot, with the counter behind its members.
    struct CountedStorage {
        bool paused;
        uint32 minPayloadSize;
        uint32 maxPayloadSize;
        uint64 sequenceId;
    }

    /// @dev The same slot as SequencedLog's, whose constant is private.
    bytes32 private constant COUNTED_STORAGE =
        0xc4e9928a0b7700cb9e19bb8d48232d4e780fbefae57f9bb4190f2d161b99d500;

    // Unindexed as in XIP-49: indexing would change the figure.
    // solhint-disable gas-indexed-events

    /// @notice Emitted when a message was published.
    /// @param groupId The group that the message is for.
    /// @param message The whole message.
    /// @param sequenceId The message's sequence id.
    event MessageSent(bytes32 groupId, bytes message, uint64 sequenceId);

    /* CONSTRUCTOR */

    /// @notice Constructs an implementation for use behind a proxy.
    /// @param sequence The shared sequence, unused; it must be deployed.
    constructor(IOriginatorSequence sequence) SequencedLog(sequence) {}

    /* PUBLISHING */

    /// @notice Counts a message and emits it.
    /// @param groupId The group that the message is for.
    /// @param message The whole message.
    function addMessage(bytes32 groupId, bytes calldata message) external {
        emit MessageSent(groupId, message, _count(message.length));
    }

    /* IDENTITY */

    /// @inheritdoc SequencedLog
    function topicKind() public pure override returns (uint256 kind) {
        return 0;
    }

    /* INTERNALS */

    /// @dev SequencedLog's `_takeSequenceId`, with the counter in place of the call.
    function _count(uint256 payloadSize) private returns (uint64 sequenceId) {
        CountedStorage storage $ = _countedStorage();
        CountedStorage memory settings = $;
        if (settings.paused) revert EnforcedPause();
        if (payloadSize < settings.minPayloadSize || payloadSize > settings.maxPayloadSize) {
            revert PayloadSizeOutOfBounds(
                payloadSize, settings.minPayloadSize, settings.maxPayloadSize
            );
        }
        sequenceId = settings.sequenceId + 1;
        $.sequenceId = sequenceId;
    }

    function _countedStorage() private pure returns (CountedStorage storage $) {
        // ERC-7201's own pattern: Solidity has no other way to name a slot.
        // solhint-disable-next-line no-inline-assembly
        assembly {
            $.slot := COUNTED_STORAGE
        }
    }
}
