// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {SequencedLog} from "./base/SequencedLog.sol";
import {IGroupMessages} from "./interfaces/IGroupMessages.sol";
import {IOriginatorSequence} from "./interfaces/IOriginatorSequence.sol";
import {ISequencedLog} from "./interfaces/ISequencedLog.sol";

/// @title GroupMessages
/// @notice The chain's order of group messages. See IGroupMessages.
contract GroupMessages is IGroupMessages, SequencedLog {
    /* CONSTRUCTOR */

    /// @notice Constructs an implementation for use behind a proxy.
    /// @param sequence The shared sequence; it must be deployed.
    /// @custom:oz-upgrades-unsafe-allow constructor
    constructor(IOriginatorSequence sequence) SequencedLog(sequence) {}

    /* PUBLISHING */

    /// @inheritdoc IGroupMessages
    function addMessage(bytes32 groupId, bytes calldata message) external {
        emit MessageSent(groupId, message, _takeSequenceId(message.length));
    }

    /* IDENTITY */

    /// @inheritdoc ISequencedLog
    function topicKind() public pure override(ISequencedLog, SequencedLog) returns (uint256 kind) {
        return 0;
    }
}
