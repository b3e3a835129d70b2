// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

/// @title OwnedWallet
/// @notice Accepts what its owner signed (ERC-1271). Anybody may change the owner: only tests
/// deploy it.
contract OwnedWallet {
    /* STORAGE */

    /// @notice The account whose signatures count.
    address public owner;

    /* CONSTRUCTOR */

    /// @notice Sets the first owner.
    /// @param firstOwner The account.
    constructor(address firstOwner) {
        owner = firstOwner;
    }

    /* CHANGES */

    /// @notice Sets another owner.
    /// @param newOwner The account.
    function setOwner(address newOwner) external {
        owner = newOwner;
    }

    /* READS */

    /// @notice Tells whether the owner signed a digest.
    /// @param digest The hash that was signed.
    /// @param signature r, s and v, 65 bytes.
    /// @return magic ERC-1271's value where it is so, zeros otherwise.
    function isValidSignature(bytes32 digest, bytes calldata signature)
        external
        view
        returns (bytes4 magic)
    {
        if (signature.length != 65) return bytes4(0);
        bytes32 r = bytes32(signature[0:32]);
        bytes32 s = bytes32(signature[32:64]);
        bool isOwners = ecrecover(digest, uint8(signature[64]), r, s) == owner;
        return isOwners ? this.isValidSignature.selector : bytes4(0);
    }
}
