// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {SequencedLog} from "./base/SequencedLog.sol";
import {IIdentityUpdates} from "./interfaces/IIdentityUpdates.sol";
import {IOriginatorSequence} from "./interfaces/IOriginatorSequence.sol";
import {ISequencedLog} from "./interfaces/ISequencedLog.sol";

/// @title IdentityUpdates
/// @notice The chain's order of identity updates. See IIdentityUpdates.
contract IdentityUpdates is IIdentityUpdates, SequencedLog {
    /* CONSTRUCTOR */

    /// @notice Constructs an implementation for use behind a proxy.
    /// @param sequence The shared sequence; it must be deployed.
    /// @custom:oz-upgrades-unsafe-allow constructor
    constructor(IOriginatorSequence sequence) SequencedLog(sequence) {}

    /* PUBLISHING */

    /// @inheritdoc IIdentityUpdates
    function addIdentityUpdate(bytes32 inboxId, bytes calldata update) external {
        emit IdentityUpdateCreated(inboxId, update, _takeSequenceId(update.length));
    }

    /* IDENTITY */

    /// @inheritdoc ISequencedLog
    function topicKind() public pure override(ISequencedLog, SequencedLog) returns (uint256 kind) {
        return 2;
    }
}
