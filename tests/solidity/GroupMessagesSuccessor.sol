// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {GroupMessages} from "../../contracts/GroupMessages.sol";
import {IOriginatorSequence} from "../../contracts/interfaces/IOriginatorSequence.sol";

/// @title GroupMessagesSuccessor
/// @notice What the tests upgrade to: the same contract with one function more. Never deployed by
/// the scripts.
contract GroupMessagesSuccessor is GroupMessages {
    /* CONSTRUCTOR */

    /// @notice Constructs an implementation for use behind a proxy.
    /// @param sequence The shared sequence; it must be deployed.
    /// @custom:oz-upgrades-unsafe-allow constructor
    constructor(IOriginatorSequence sequence) GroupMessages(sequence) {}

    /* VERSION */

    /// @notice What only the successor can answer.
    /// @return number The number of this version.
    function version() external pure returns (uint256 number) {
        return 2;
    }
}
