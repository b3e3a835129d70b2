// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

/// @title StoredCode
/// @notice What a whole message as the code of contracts (as SSTORE2 does it) costs, for the gas
/// study. Never deployed by the scripts.
contract StoredCode {
    /* CONSTANTS */

    /// @dev EIP-170's limit of 24,576 bytes, less the first byte: it stops a call into the data.
    uint256 private constant CHUNK_SIZE = 24_575;

    /// @dev Returns everything that follows it as the new contract's code: a STOP, then the data.
    bytes private constant INIT_CODE = hex"600b5981380380925939f300";

    /* STORAGE */

    /// @notice The sequence id of the last message.
    uint256 public sequenceId;

    /// @notice The contracts that hold a message, by sequence id.
    mapping(uint256 sequenceId => address[] chunks) public chunksOf;

    /// @notice The chain refused to create a contract.
    /// @param size The size of the chunk, in bytes.
    error ChunkNotCreated(uint256 size);

    /* PUBLISHING */

    /// @notice Writes a message into as many contracts as its size asks for.
    /// @param message The whole message.
    function addMessage(bytes32, bytes calldata message) external {
        address[] storage chunks = chunksOf[++sequenceId];
        for (uint256 start = 0; start < message.length; start += CHUNK_SIZE) {
            uint256 end = start + CHUNK_SIZE;
            chunks.push(_create(message[start:end < message.length ? end : message.length]));
        }
    }

    /* INTERNALS */

    function _create(bytes calldata data) private returns (address chunk) {
        bytes memory code = bytes.concat(INIT_CODE, data);
        // Solidity has no other way to create a contract from bytes.
        // solhint-disable-next-line no-inline-assembly
        assembly {
            chunk := create(0, add(code, 32), mload(code))
        }
        if (chunk == address(0)) revert ChunkNotCreated(data.length);
    }
}
