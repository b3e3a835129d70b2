// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

/// @title SignatureValidator
/// @notice Tells whether an account signed a digest: a contract by ERC-1271, one that is not
/// deployed yet by ERC-6492, and an account without code by its key. Never deployed: a node sends
/// the creation code by eth_call, and what the constructor returns is the answer, a single byte.
/// @dev No foreign code can keep the constructor from its answer: each call has a limit of gas, and
/// copies 32 bytes of the result at most. It is compiled for Byzantium, because it has to run in
/// blocks as old as the update that names them.
contract SignatureValidator {
    /* ANSWERS */

    uint256 private constant INVALID = 0;
    uint256 private constant VALID = 1;
    /// @dev The endpoint gave too little gas to find out.
    uint256 private constant UNDECIDED = 2;

    /* LIMITS */

    /// @dev For each call of foreign code. Three of them have to fit into the gas of the node's call.
    uint256 private constant CALL_GAS = 6_000_000;
    /// @dev A call gets all but a 64th of what is left (EIP-150); the rest is for the answer.
    uint256 private constant NEEDED_GAS = CALL_GAS + CALL_GAS / 63 + 100_000;

    /* FORMATS */

    bytes4 private constant IS_VALID_SIGNATURE = 0x1626ba7e;
    /// @dev The selector again, as the word that a wallet returns.
    bytes32 private constant MAGIC_WORD = bytes32(IS_VALID_SIGNATURE);
    /// @dev The end of a signature in the form of ERC-6492.
    bytes32 private constant SUFFIX =
        0x6492649264926492649264926492649264926492649264926492649264926492;
    uint256 private constant WORD = 32;

    /// @notice Returns 1 for a valid signature, 0 for another, and 2 where the gas does not suffice.
    /// @param signer The account that is said to have signed.
    /// @param digest The hash that was signed.
    /// @param signature The signature, of any form and length.
    constructor(address signer, bytes32 digest, bytes memory signature) {
        bool isValid;
        if (_hasSuffix(signature)) {
            isValid = _isValidWrapped(signer, digest, signature);
        } else if (signer.code.length != 0) {
            isValid = _isAccepted(signer, digest, signature);
        } else {
            isValid = _isSignedByKey(signer, digest, signature);
        }
        _answer(isValid ? VALID : INVALID);
    }

    /* FORMS OF SIGNATURES */

    function _isValidWrapped(address signer, bytes32 digest, bytes memory signature)
        private
        returns (bool)
    {
        (bool isWellFormed, address factory, bytes memory preparation, bytes memory inner) =
            _unwrap(signature);
        if (!isWellFormed) return false;
        if (_isAccepted(signer, digest, inner)) return true;
        // The wallet is not deployed yet, or has to be prepared before it accepts the signature.
        _prepare(factory, preparation);
        return _isAccepted(signer, digest, inner);
    }

    function _isSignedByKey(address signer, bytes32 digest, bytes memory signature)
        private
        pure
        returns (bool)
    {
        if (signature.length != 65) return false;
        bytes32 r;
        bytes32 s;
        uint8 v;
        // solhint-disable-next-line no-inline-assembly
        assembly ("memory-safe") {
            r := mload(add(signature, 32))
            s := mload(add(signature, 64))
            v := byte(0, mload(add(signature, 96)))
        }
        if (v < 2) v += 27;
        if (v != 27 && v != 28) return false;
        address recovered = ecrecover(digest, v, r, s);
        return recovered != address(0) && recovered == signer;
    }

    /* CALLS OF FOREIGN CODE */

    function _isAccepted(address wallet, bytes32 digest, bytes memory signature)
        private
        view
        returns (bool isAccepted)
    {
        // A call of an account without code succeeds.
        if (wallet.code.length == 0) return false;
        bytes memory question = abi.encodeWithSelector(IS_VALID_SIGNATURE, digest, signature);
        _checkGas();
        uint256 gasLimit = CALL_GAS;
        bytes32 magicWord = MAGIC_WORD;
        // solhint-disable-next-line no-inline-assembly
        assembly ("memory-safe") {
            mstore(0, 0)
            let succeeded := staticcall(gasLimit, wallet, add(question, 32), mload(question), 0, 32)
            let isWord := gt(returndatasize(), 31)
            isAccepted := and(and(succeeded, isWord), eq(mload(0), magicWord))
        }
    }

    function _prepare(address factory, bytes memory preparation) private {
        _checkGas();
        uint256 gasLimit = CALL_GAS;
        // Whether it succeeded shows when the wallet is asked.
        // solhint-disable-next-line no-inline-assembly
        assembly ("memory-safe") {
            pop(call(gasLimit, factory, 0, add(preparation, 32), mload(preparation), 0, 0))
        }
    }

    function _checkGas() private view {
        // An endpoint may allow less than was asked for: then a refusal would be its own.
        if (gasleft() < NEEDED_GAS) _answer(UNDECIDED);
    }

    /* BYTES */

    function _hasSuffix(bytes memory signature) private pure returns (bool hasSuffix) {
        bytes32 suffix = SUFFIX;
        // solhint-disable-next-line no-inline-assembly
        assembly ("memory-safe") {
            let length := mload(signature)
            // The last word of the bytes ends where they end.
            hasSuffix := and(gt(length, 31), eq(mload(add(signature, length)), suffix))
        }
    }

    /// @dev Reads abi.encode(address, bytes, bytes), which stands before the suffix, in place.
    function _unwrap(bytes memory signature)
        private
        pure
        returns (bool isWellFormed, address factory, bytes memory preparation, bytes memory inner)
    {
        uint256 size = signature.length - WORD;
        if (size < 3 * WORD) return (false, address(0), signature, signature);
        uint256 factoryWord = _wordAt(signature, 0);
        bool isPreparation;
        bool isInner;
        (isPreparation, preparation) = _bytesAt(signature, size, _wordAt(signature, WORD));
        (isInner, inner) = _bytesAt(signature, size, _wordAt(signature, 2 * WORD));
        isWellFormed = isPreparation && isInner && factoryWord == uint160(factoryWord);
        factory = address(uint160(factoryWord));
    }

    function _bytesAt(bytes memory data, uint256 size, uint256 offset)
        private
        pure
        returns (bool isWithin, bytes memory found)
    {
        // `size` is at least a word: no difference below is negative.
        if (offset > size - WORD) return (false, data);
        if (_wordAt(data, offset) > size - WORD - offset) return (false, data);
        // Bytes have the same form in memory: their length, and then themselves.
        // solhint-disable-next-line no-inline-assembly
        assembly ("memory-safe") {
            found := add(add(data, 32), offset)
        }
        return (true, found);
    }

    function _wordAt(bytes memory data, uint256 offset) private pure returns (uint256 word) {
        // solhint-disable-next-line no-inline-assembly
        assembly ("memory-safe") {
            word := mload(add(add(data, 32), offset))
        }
    }

    function _answer(uint256 answer) private pure {
        // solhint-disable-next-line no-inline-assembly
        assembly ("memory-safe") {
            mstore8(0, answer)
            return(0, 1)
        }
    }
}
