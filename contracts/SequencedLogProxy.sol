// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {ERC1967Proxy} from "@openzeppelin/contracts/proxy/ERC1967/ERC1967Proxy.sol";

/// @title SequencedLogProxy
/// @notice OpenZeppelin's ERC-1967 proxy, unchanged, named so that the project's own build has it.
contract SequencedLogProxy is ERC1967Proxy {
    /// @notice Deploys the proxy and initializes it in the same transaction.
    /// @param implementation The first implementation, GroupMessages or IdentityUpdates.
    /// @param initialization The call to ISequencedLog's `initialize`; it must not be empty.
    constructor(address implementation, bytes memory initialization)
        ERC1967Proxy(implementation, initialization)
    {}
}
