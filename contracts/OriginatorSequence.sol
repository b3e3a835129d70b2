// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {IOriginatorSequence} from "./interfaces/IOriginatorSequence.sol";

/// @title OriginatorSequence
/// @notice The shared sequence of originator 0. See IOriginatorSequence.
contract OriginatorSequence is IOriginatorSequence {
    /* STORAGE */

    /// @inheritdoc IOriginatorSequence
    address public immutable groupMessages;

    /// @inheritdoc IOriginatorSequence
    address public immutable identityUpdates;

    /// @inheritdoc IOriginatorSequence
    uint64 public last;

    /* CONSTRUCTOR */

    /// @notice Fixes the two callers for ever.
    /// @param groupMessages_ The proxy of GroupMessages; it need not be deployed yet.
    /// @param identityUpdates_ The proxy of IdentityUpdates; it need not be deployed yet.
    constructor(address groupMessages_, address identityUpdates_) {
        if (
            groupMessages_ == address(0) || identityUpdates_ == address(0)
                || groupMessages_ == identityUpdates_
        ) revert InvalidSequenceCallers(groupMessages_, identityUpdates_);
        groupMessages = groupMessages_;
        identityUpdates = identityUpdates_;
    }

    /* MODIFIERS */

    modifier onlySequencedLog() {
        if (msg.sender != groupMessages && msg.sender != identityUpdates) {
            revert UnauthorizedSequenceCaller(msg.sender);
        }
        _;
    }

    /* SEQUENCING */

    /// @inheritdoc IOriginatorSequence
    function next() external onlySequencedLog returns (uint64 sequenceId) {
        sequenceId = last + 1;
        last = sequenceId;
    }
}
