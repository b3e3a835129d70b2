// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {UUPSUpgradeable} from "@openzeppelin/contracts/proxy/utils/UUPSUpgradeable.sol";
import {ISequencedLog} from "../../../contracts/interfaces/ISequencedLog.sol";
import {SequencedLogSuite} from "../support/SequencedLogSuite.sol";
import {Trailers} from "../support/Trailers.sol";

/// @title SequencedLogTrailersTest
/// @notice What a council calls in a payload contract, through its proxy, with and without a trailer.
abstract contract SequencedLogTrailersTest is SequencedLogSuite, Trailers {
    string internal contractName;

    function setUp() public override {
        super.setUp();
        _readFunctions(contractName);
    }

    function test_functions__ofTheVectors__areAllThatACouncilCalls() public view {
        vm.assertEq(selectors.length, 6);
    }

    function testFuzz_call__anyTrailer__doesTheSame(
        uint256 seed,
        address anyone,
        bytes memory trailer
    ) public {
        _assertTrailerChangesNothing(address(log), seed, anyone, trailer);
    }

    /* INTERNALS */

    function _arranged(bytes4 selector, uint256 seed) internal override returns (Call memory call) {
        bytes memory data;
        if (selector == ISequencedLog.pause.selector) {
            data = abi.encodeCall(ISequencedLog.pause, ());
        } else if (selector == ISequencedLog.unpause.selector) {
            vm.prank(admin);
            log.pause();
            data = abi.encodeCall(ISequencedLog.unpause, ());
        } else if (selector == IAccessControl.grantRole.selector) {
            // None that is an administrator, or the contract itself.
            address account = address(uint160(uint256(keccak256(abi.encode(seed)))));
            data = abi.encodeCall(IAccessControl.grantRole, (DEFAULT_ADMIN_ROLE, account));
        } else if (selector == IAccessControl.revokeRole.selector) {
            _grantSecondAdmin();
            data = abi.encodeCall(IAccessControl.revokeRole, (DEFAULT_ADMIN_ROLE, secondAdmin));
        } else if (selector == ISequencedLog.setPayloadBounds.selector) {
            data = _bounding(seed);
        } else {
            vm.assertTrue(
                selector == UUPSUpgradeable.upgradeToAndCall.selector, "no arguments for it"
            );
            data = _upgrading(seed);
        }
        return Call(admin, data);
    }

    function _bounding(uint256 seed) private pure returns (bytes memory call) {
        uint256 maximum = _bound(seed, 1, PAYLOAD_SIZE_CAP);
        uint256 minimum = _bound(seed >> 32, 0, maximum);
        return abi.encodeCall(ISequencedLog.setPayloadBounds, (uint32(minimum), uint32(maximum)));
    }

    /// @dev With a call of the new code, and without.
    function _upgrading(uint256 seed) private returns (bytes memory call) {
        bytes memory inner = seed % 2 == 0 ? bytes("") : abi.encodeCall(ISequencedLog.pause, ());
        address successor = _newSuccessor(kind);
        return abi.encodeCall(UUPSUpgradeable.upgradeToAndCall, (successor, inner));
    }
}

/// forge-config: default.fuzz.runs = 64
contract GroupMessagesTrailersTest is SequencedLogTrailersTest {
    constructor() SequencedLogSuite(GROUP_MESSAGE) {
        contractName = "GroupMessages";
    }
}

/// forge-config: default.fuzz.runs = 64
contract IdentityUpdatesTrailersTest is SequencedLogTrailersTest {
    constructor() SequencedLogSuite(IDENTITY_UPDATE) {
        contractName = "IdentityUpdates";
    }
}
