// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {TestBase} from "./TestBase.sol";

/// @title VectorFile
/// @notice Reads tests/vectors, which tools/vectors computes without the code under test.
abstract contract VectorFile is TestBase {
    /// @dev The list at `key`, for abi.decode.
    /// @param typeDescription As in EIP-712: forge must be told what a string of digits means.
    function _vectors(string memory file, string memory key, string memory typeDescription)
        internal
        view
        returns (bytes memory encoded)
    {
        return vm.parseJsonTypeArray(_content(file), key, typeDescription);
    }

    function _content(string memory file) internal view returns (string memory json) {
        return vm.readFile(string.concat("tests/vectors/", file, ".json"));
    }
}
