// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {TestBase} from "./TestBase.sol";
import {Vm} from "./Vm.sol";

/// @title SigningKeys
/// @notice Public keys as the registry takes them: 65 bytes, 0x04, X, Y.
abstract contract SigningKeys is TestBase {
    bytes1 internal constant UNCOMPRESSED_POINT_PREFIX = 0x04;

    /// @dev The order of secp256k1's group: each secret from 1 to one below has a key of its own.
    uint256 internal constant GROUP_ORDER =
        0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141;

    /// @dev The prime of the field that X and Y belong to.
    uint256 internal constant FIELD_PRIME =
        0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEFFFFFC2F;

    /// @dev By forge's own secp256k1: none of the code under test.
    function _keyOf(uint256 secret) internal returns (bytes memory key) {
        (uint256 x, uint256 y) = _pointOf(secret);
        return _uncompressed(x, y);
    }

    function _pointOf(uint256 secret) internal returns (uint256 x, uint256 y) {
        Vm.Wallet memory wallet = vm.createWallet(secret);
        return (wallet.publicKeyX, wallet.publicKeyY);
    }

    function _keyAddressOf(uint256 secret) internal returns (address keyAddress) {
        return vm.createWallet(secret).addr;
    }

    function _uncompressed(uint256 x, uint256 y) internal pure returns (bytes memory key) {
        return abi.encodePacked(UNCOMPRESSED_POINT_PREFIX, x, y);
    }
}
