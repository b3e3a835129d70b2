// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {ISafe} from "./ISafe.sol";
import {SafeTransactions} from "./SafeTransactions.sol";

/// @title SafeReleases
/// @notice The code that Safe itself published, from its npm packages, put where a test wants it.
abstract contract SafeReleases is SafeTransactions {
    /// @dev Where npm puts 1.4.1 and 1.5.0; Safe renamed its package between them.
    string[2] internal packages = ["safe-contracts", "safe-smart-account"];

    /// @dev Where a Safe of either release keeps its nonce.
    bytes32 internal constant NONCE_SLOT = bytes32(uint256(5));

    /// @dev The kind of a recorded access that is a plain call.
    uint8 internal constant CALL_KIND = 0;

    function _putSafe(uint256 release, address place) internal {
        vm.etch(place, _code(release, "Safe.sol/Safe.json"));
    }

    function _putMultiSend(uint256 release, address place) internal {
        vm.etch(place, _code(release, "libraries/MultiSendCallOnly.sol/MultiSendCallOnly.json"));
    }

    /// @dev A Safe without modules, guard and fallback handler.
    function _setUp(address safe, address[] memory owners, uint256 threshold) internal {
        address payable nobody = payable(address(0));
        ISafe(safe).setup(owners, threshold, nobody, "", nobody, nobody, 0, nobody);
    }

    /// @dev What the Safe itself says the hash is.
    function _askedHash(address safe, SafeTransaction memory transaction)
        internal
        view
        returns (bytes32 hash)
    {
        return ISafe(safe)
            .getTransactionHash(
                transaction.to,
                transaction.value,
                transaction.data,
                transaction.operation,
                transaction.safeTxGas,
                transaction.baseGas,
                transaction.gasPrice,
                transaction.gasToken,
                transaction.refundReceiver,
                transaction.nonce
            );
    }

    function _code(uint256 release, string memory artifact)
        private
        view
        returns (bytes memory code)
    {
        string memory folder = string.concat(
            "node_modules/@safe-global/", packages[release], "/build/artifacts"
        );
        string memory json = vm.readFile(string.concat(folder, "/contracts/", artifact));
        return vm.parseJsonBytes(json, ".deployedBytecode");
    }
}
