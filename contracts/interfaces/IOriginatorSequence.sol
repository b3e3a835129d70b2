// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

/// @title IOriginatorSequence
/// @notice The one counter behind originator 0: every payload on the chain, group message or
/// identity update, takes its sequence id here (XIP-49 §3.2.2: begins at 1, grows by 1).
/// @dev Not upgradeable and without an administrator. The two callers are fixed at construction.
interface IOriginatorSequence {
    /// @notice A caller was fixed at construction that cannot be one: the zero address, or the same
    /// address twice.
    /// @param groupMessages The address given for the GroupMessages proxy.
    /// @param identityUpdates The address given for the IdentityUpdates proxy.
    error InvalidSequenceCallers(address groupMessages, address identityUpdates);

    /// @notice `next` was called by an address that is neither of the two proxies.
    /// @param caller The address that called.
    error UnauthorizedSequenceCaller(address caller);

    /// @notice Takes the next sequence id of originator 0.
    /// @dev Only the two proxies may call. No event: the caller emits the id beside its payload.
    /// @return sequenceId The id taken: one more than the id taken before, 1 at first.
    function next() external returns (uint64 sequenceId);

    /// @notice How far the sequence has come.
    /// @return sequenceId The sequence id taken last, 0 if none was.
    function last() external view returns (uint64 sequenceId);

    /// @notice The first of the two addresses which may call `next`.
    /// @return proxy The proxy of GroupMessages.
    function groupMessages() external view returns (address proxy);

    /// @notice The second of the two addresses which may call `next`.
    /// @return proxy The proxy of IdentityUpdates.
    function identityUpdates() external view returns (address proxy);
}
