// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {Outcomes} from "./Outcomes.sol";
import {VectorFile} from "./VectorFile.sol";

/// @title Trailers
/// @notice A proposal's grounds stand as a trailer behind the arguments of its last call, so that its
/// owners sign them and the chain keeps them (chainkit.council.proposal). The suites over this contract prove
/// what this rests on, for each function that a council calls: bytes behind the arguments change
/// nothing of what the call does.
abstract contract Trailers is Outcomes, VectorFile {
    /// @dev In the order of the vectors' fields.
    struct FunctionVector {
        string name;
        string signature;
        bytes selector;
    }

    string internal constant FUNCTION =
        "FunctionCase(string contract,string signature,bytes selector)";

    bytes4[] internal selectors;

    /* FUNCTIONS */

    /// @dev Keeps which functions of a contract a council calls, as the vectors say; Python's own list
    /// must equal them.
    function _readFunctions(string memory name) internal {
        FunctionVector[] memory vectors =
            abi.decode(_vectors("proposals", ".functions", FUNCTION), (FunctionVector[]));
        for (uint256 index = 0; index < vectors.length; ++index) {
            if (keccak256(bytes(vectors[index].name)) != keccak256(bytes(name))) continue;
            selectors.push(bytes4(vectors[index].selector));
        }
    }

    /// @dev Brings the contract to where it accepts a call of a function, and returns that call, with
    /// arguments that depend on `seed`. Reverts for a function that it does not know.
    function _arranged(bytes4 selector, uint256 seed) internal virtual returns (Call memory call);

    /* PROOF */

    /// @dev For every function: whether it is accepted, or refused because of the sender.
    function _assertTrailerChangesNothing(
        address target,
        uint256 seed,
        address anyone,
        bytes memory trailer
    ) internal {
        for (uint256 index = 0; index < selectors.length; ++index) {
            uint256 snapshot = vm.snapshotState();
            Call memory call = _arranged(selectors[index], seed);
            vm.assertEq(bytes32(bytes4(call.data)), bytes32(selectors[index]));
            Outcome memory outcome = _assertSameOutcome(target, call, trailer);
            vm.assertTrue(outcome.accepted, "arranged, but refused");
            vm.assertGt(outcome.written, 0, "accepted, but nothing written");
            call.sender = anyone;
            _assertSameOutcome(target, call, trailer);
            vm.revertToState(snapshot);
        }
    }
}
