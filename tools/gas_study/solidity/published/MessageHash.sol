// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {CompleteMessage} from "./CompleteMessage.sol";

// Nothing is to be added, but each column of the table has its contract.
// solhint-disable no-empty-blocks

/// @title MessageHash
/// @notice XIP-49 §2.1.3, "storing the hashes of messages on chain. No event", for the gas study.
/// Never deployed by the scripts.
/// @dev The published figure comes out where CompleteMessage is given 32 bytes, the message's hash.
contract MessageHash is CompleteMessage {}
