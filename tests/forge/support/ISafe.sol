// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

/// @title ISafe
/// @notice What these tests call of a Safe: the same in 1.4.1 and 1.5.0.
interface ISafe {
    event ExecutionSuccess(bytes32 indexed txHash, uint256 payment);

    function setup(
        address[] calldata owners,
        uint256 threshold,
        address to,
        bytes calldata data,
        address fallbackHandler,
        address paymentToken,
        uint256 payment,
        address payable paymentReceiver
    ) external;
    function execTransaction(
        address to,
        uint256 value,
        bytes calldata data,
        uint8 operation,
        uint256 safeTxGas,
        uint256 baseGas,
        uint256 gasPrice,
        address gasToken,
        address payable refundReceiver,
        bytes calldata signatures
    ) external payable returns (bool success);
    function addOwnerWithThreshold(address owner, uint256 threshold) external;
    function removeOwner(address previousOwner, address owner, uint256 threshold) external;
    function swapOwner(address previousOwner, address oldOwner, address newOwner) external;
    function changeThreshold(uint256 threshold) external;
    function getOwners() external view returns (address[] memory owners);
    function getThreshold() external view returns (uint256 threshold);
    function nonce() external view returns (uint256 used);
    function domainSeparator() external view returns (bytes32 separator);
    function checkSignatures(bytes32 hash, bytes calldata data, bytes calldata signatures)
        external
        view;
    function getTransactionHash(
        address to,
        uint256 value,
        bytes calldata data,
        uint8 operation,
        uint256 safeTxGas,
        uint256 baseGas,
        uint256 gasPrice,
        address gasToken,
        address refundReceiver,
        uint256 nonce
    ) external view returns (bytes32 hash);
}

/// @title IMultiSend
/// @notice Of MultiSendCallOnly.
interface IMultiSend {
    function multiSend(bytes calldata transactions) external payable;
}
