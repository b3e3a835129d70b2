// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {ISafe} from "../support/ISafe.sol";
import {SafeReleases} from "../support/SafeReleases.sol";
import {Trailers} from "../support/Trailers.sol";

/// @title SafeTrailersTest
/// @notice What a council's Safe calls of itself, with and without a trailer, in every release.
/// forge-config: default.fuzz.runs = 64
contract SafeTrailersTest is SafeReleases, Trailers {
    address internal constant SAFE = address(uint160(uint256(keccak256("safe"))));

    /// @dev With what the Safe's list of owners begins.
    address internal constant LIST_END = address(1);
    uint256 internal constant THRESHOLD = 2;

    function setUp() public {
        _readFunctions("Safe");
    }

    function test_functions__ofTheVectors__areAllThatASafeCallsOfItself() public view {
        vm.assertEq(selectors.length, 4);
    }

    function testFuzz_call__anyTrailer__doesTheSame(
        uint256 seed,
        address anyone,
        bytes memory trailer
    ) public {
        for (uint256 release = 0; release < packages.length; ++release) {
            uint256 snapshot = vm.snapshotState();
            _putSafe(release, SAFE);
            _setUp(SAFE, _owners(), THRESHOLD);
            _assertTrailerChangesNothing(SAFE, seed, anyone, trailer);
            vm.revertToState(snapshot);
        }
    }

    /* INTERNALS */

    function _owners() private view returns (address[] memory owners) {
        owners = new address[](3);
        (owners[0], owners[1], owners[2]) = (owner, admin, operator);
    }

    function _arranged(bytes4 selector, uint256 seed)
        internal
        view
        override
        returns (Call memory call)
    {
        address added = address(uint160(uint256(keccak256(abi.encode(seed)))));
        uint256 threshold = _bound(seed, 1, THRESHOLD);
        bytes memory data;
        if (selector == ISafe.addOwnerWithThreshold.selector) {
            data = abi.encodeCall(ISafe.addOwnerWithThreshold, (added, threshold));
        } else if (selector == ISafe.removeOwner.selector) {
            data = abi.encodeCall(ISafe.removeOwner, (LIST_END, owner, threshold));
        } else if (selector == ISafe.swapOwner.selector) {
            data = abi.encodeCall(ISafe.swapOwner, (LIST_END, owner, added));
        } else {
            vm.assertTrue(selector == ISafe.changeThreshold.selector, "no arguments for it");
            data = abi.encodeCall(ISafe.changeThreshold, (threshold));
        }
        return Call(SAFE, data);
    }
}
