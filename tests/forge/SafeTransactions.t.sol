// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {ISafe} from "./support/ISafe.sol";
import {SafeReleases} from "./support/SafeReleases.sol";
import {Vm} from "./support/Vm.sol";

/// @title SafeTransactionsTest
/// @notice The formulas that the vectors are checked by, against the code of the real Safe and of the
/// real MultiSendCallOnly, for any transaction.
contract SafeTransactionsTest is SafeReleases {
    address internal constant SAFE = address(uint160(uint256(keccak256("safe"))));
    address internal constant MULTI_SEND = address(uint160(uint256(keccak256("multi send"))));
    uint256 internal constant MAX_CALLS = 5;
    uint256 internal constant MAX_CALLDATA = 200;

    /* HASHES */

    function testFuzz_hash__anyFields__isWhatTheRealSafeComputes(
        uint64 chainId,
        address safe,
        SafeTransaction memory transaction
    ) public {
        // Where forge and the EVM have code of their own; and to the Safe an operation is 0 or 1.
        vm.assume(uint160(safe) > type(uint16).max && safe != address(vm));
        transaction.operation %= 2;
        vm.chainId(chainId);
        bytes32 hash = _safeTxHash(chainId, safe, transaction);
        for (uint256 release = 0; release < packages.length; ++release) {
            _putSafe(release, safe);
            vm.assertEq(ISafe(safe).domainSeparator(), _domainHash(chainId, safe));
            vm.assertEq(_askedHash(safe, transaction), hash);
        }
    }

    /* BATCHES */

    function testFuzz_batch__anyCalls__areMadeByTheRealMultiSendInTheirOrder(uint256 seed) public {
        InnerCall[] memory calls = _anyCalls(seed);
        bytes memory batch = _batch(calls);
        for (uint256 release = 0; release < packages.length; ++release) {
            _putMultiSend(release, MULTI_SEND);
            vm.startStateDiffRecording();
            // solhint-disable-next-line avoid-low-level-calls
            (bool accepted,) = MULTI_SEND.call(batch);
            Vm.AccountAccess[] memory accesses = vm.stopAndReturnStateDiff();
            vm.assertTrue(accepted);
            vm.assertEq(accesses.length, calls.length + 1);
            for (uint256 index = 0; index < calls.length; ++index) {
                _assertMade(accesses[index + 1], calls[index]);
            }
        }
    }

    function testFuzz_batch__oneCallIsADelegatecall__isRefusedByTheRealMultiSend(uint256 seed)
        public
    {
        InnerCall[] memory calls = _anyCalls(seed);
        bytes memory batch = _batch(calls);
        // The operation of the first call stands behind selector, offset and length.
        batch[4 + 32 + 32] = 0x01;
        for (uint256 release = 0; release < packages.length; ++release) {
            _putMultiSend(release, MULTI_SEND);
            // solhint-disable-next-line avoid-low-level-calls
            (bool accepted,) = MULTI_SEND.call(batch);
            vm.assertFalse(accepted);
        }
    }

    /* INTERNALS */

    function _assertMade(Vm.AccountAccess memory access, InnerCall memory call) private pure {
        vm.assertEq(access.kind, CALL_KIND);
        vm.assertEq(access.account, call.target);
        vm.assertEq(access.accessor, MULTI_SEND);
        vm.assertEq(access.data, call.data);
        vm.assertEq(access.value, 0);
    }

    function _anyCalls(uint256 seed) private pure returns (InnerCall[] memory calls) {
        calls = new InnerCall[](_bound(seed, 1, MAX_CALLS));
        for (uint256 index = 0; index < calls.length; ++index) {
            uint256 word = uint256(keccak256(abi.encode(seed, index)));
            bytes memory data = _payload(word, word % MAX_CALLDATA);
            calls[index] = InnerCall(address(uint160(word >> 8)), data);
        }
    }
}
