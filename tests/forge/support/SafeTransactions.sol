// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {IMultiSend, ISafe} from "./ISafe.sol";
import {TestBase} from "./TestBase.sol";

/// @title SafeTransactions
/// @notice What the owners of a Safe sign, written down from Safe's and EIP-712's own documents with
/// nothing but Solidity's encoding: neither the Safe's code nor chainkit's.
abstract contract SafeTransactions is TestBase {
    /// @dev In the order in which they are hashed.
    struct SafeTransaction {
        address to;
        uint256 value;
        bytes data;
        uint8 operation;
        uint256 safeTxGas;
        uint256 baseGas;
        uint256 gasPrice;
        address gasToken;
        address refundReceiver;
        uint256 nonce;
    }

    struct InnerCall {
        address target;
        bytes data;
    }

    string internal constant SAFE_TRANSACTION =
        "SafeTx(address to,uint256 value,bytes data,uint8 operation,uint256 safeTxGas,uint256 baseGas,uint256 gasPrice,address gasToken,address refundReceiver,uint256 nonce)";
    string internal constant DOMAIN = "EIP712Domain(uint256 chainId,address verifyingContract)";

    uint256 internal constant SIGNATURE_LENGTH = 65;

    /// @dev `eth_sign` adds 4 to V; what a key made of typed data ends with 27 or 28.
    uint8 internal constant LAST_TYPED_DATA_V = 28;
    uint8 internal constant ETH_SIGN_V_OFFSET = 4;

    /* HASHES */

    function _domainHash(uint256 chainId, address safe) internal pure returns (bytes32 hash) {
        return keccak256(abi.encode(keccak256(bytes(DOMAIN)), chainId, safe));
    }

    function _messageHash(SafeTransaction memory transaction) internal pure returns (bytes32 hash) {
        bytes memory call = abi.encode(
            keccak256(bytes(SAFE_TRANSACTION)),
            transaction.to,
            transaction.value,
            keccak256(transaction.data),
            transaction.operation
        );
        bytes memory refund = abi.encode(
            transaction.safeTxGas,
            transaction.baseGas,
            transaction.gasPrice,
            transaction.gasToken,
            transaction.refundReceiver,
            transaction.nonce
        );
        return keccak256(bytes.concat(call, refund));
    }

    function _safeTxHash(uint256 chainId, address safe, SafeTransaction memory transaction)
        internal
        pure
        returns (bytes32 hash)
    {
        return keccak256(
            abi.encodePacked(hex"1901", _domainHash(chainId, safe), _messageHash(transaction))
        );
    }

    /* CALLDATA */

    function _execution(SafeTransaction memory transaction, bytes memory signatures)
        internal
        pure
        returns (bytes memory call)
    {
        return abi.encodeCall(
            ISafe.execTransaction,
            (
                transaction.to,
                transaction.value,
                transaction.data,
                transaction.operation,
                transaction.safeTxGas,
                transaction.baseGas,
                transaction.gasPrice,
                transaction.gasToken,
                payable(transaction.refundReceiver),
                signatures
            )
        );
    }

    function _batch(InnerCall[] memory calls) internal pure returns (bytes memory call) {
        bytes memory packed;
        for (uint256 index = 0; index < calls.length; ++index) {
            bytes memory data = calls[index].data;
            packed = abi.encodePacked(
                packed, uint8(0), calls[index].target, uint256(0), data.length, data
            );
        }
        return abi.encodeCall(IMultiSend.multiSend, (packed));
    }

    /* SIGNATURES */

    /// @dev Whose key made a signature, of either kind that a key makes.
    function _signerOf(bytes32 hash, bytes memory signature)
        internal
        pure
        returns (address signer)
    {
        (bytes32 r, bytes32 s, uint8 v) = _parts(signature);
        if (v <= LAST_TYPED_DATA_V) return ecrecover(hash, v, r, s);
        bytes32 prefixed = keccak256(abi.encodePacked("\x19Ethereum Signed Message:\n32", hash));
        return ecrecover(prefixed, v - ETH_SIGN_V_OFFSET, r, s);
    }

    function _parts(bytes memory signature) private pure returns (bytes32 r, bytes32 s, uint8 v) {
        vm.assertEq(signature.length, SIGNATURE_LENGTH);
        (r, s) = abi.decode(signature, (bytes32, bytes32));
        v = uint8(signature[SIGNATURE_LENGTH - 1]);
    }
}
