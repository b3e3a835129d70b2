// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {ISafe} from "./support/ISafe.sol";
import {SafeReleases} from "./support/SafeReleases.sol";
import {VectorFile} from "./support/VectorFile.sol";
import {Vm} from "./support/Vm.sol";

/// @title SafeVectorsTest
/// @notice tests/vectors/safe.json against Solidity's own encoding and against the code of the real
/// Safe: the same hashes, signatures and calldata that tests/unit/council/safe hold Python to.
contract SafeVectorsTest is SafeReleases, VectorFile {
    struct OwnerSignature {
        address owner;
        bytes signature;
    }

    struct TransactionVector {
        string name;
        uint256 chainId;
        address safe;
        bytes32 domainHash;
        bytes32 messageHash;
        bytes32 hash;
        OwnerSignature[] signatures;
        bytes packed;
        bytes execCalldata;
    }

    struct BatchVector {
        string name;
        InnerCall[] calls;
        bytes data;
    }

    string internal constant TRANSACTION =
        "TransactionCase(string name,uint256 chainId,address safe,bytes32 domainHash,bytes32 messageHash,bytes32 hash,SignatureCase[] signatures,bytes packed,bytes execCalldata)SignatureCase(address owner,bytes signature)";
    string internal constant BATCH =
        "BatchCase(string name,CallCase[] calls,bytes calldata)CallCase(address target,bytes calldata)";

    uint256 internal constant TRANSACTIONS = 4;
    uint256 internal constant BATCHES = 3;

    /* SOLIDITY'S OWN ENCODING */

    function test_hashes__ofEachTransaction__areThoseOfSolidity() public view {
        TransactionVector[] memory vectors = _transactionVectors();
        SafeTransaction[] memory transactions = _transactions();
        for (uint256 index = 0; index < TRANSACTIONS; ++index) {
            TransactionVector memory vector = vectors[index];
            SafeTransaction memory transaction = transactions[index];
            vm.assertEq(_domainHash(vector.chainId, vector.safe), vector.domainHash, vector.name);
            vm.assertEq(_messageHash(transaction), vector.messageHash, vector.name);
            bytes32 hash = _safeTxHash(vector.chainId, vector.safe, transaction);
            vm.assertEq(hash, vector.hash, vector.name);
        }
    }

    function test_signatures__ofEachTransaction__recoverToTheirOwners() public view {
        TransactionVector[] memory vectors = _transactionVectors();
        for (uint256 index = 0; index < TRANSACTIONS; ++index) {
            TransactionVector memory vector = vectors[index];
            for (uint256 number = 0; number < vector.signatures.length; ++number) {
                OwnerSignature memory one = vector.signatures[number];
                vm.assertEq(_signerOf(vector.hash, one.signature), one.owner, vector.name);
            }
            vm.assertEq(vector.signatures.length, 3);
        }
    }

    function test_packed__ofEachTransaction__isBySignersAscending() public view {
        TransactionVector[] memory vectors = _transactionVectors();
        for (uint256 index = 0; index < TRANSACTIONS; ++index) {
            OwnerSignature[] memory ordered = _ascending(vectors[index].signatures);
            vm.assertEq(_joined(ordered), vectors[index].packed, vectors[index].name);
        }
    }

    function test_execution__ofEachTransaction__isEncodedAlike() public view {
        TransactionVector[] memory vectors = _transactionVectors();
        SafeTransaction[] memory transactions = _transactions();
        for (uint256 index = 0; index < TRANSACTIONS; ++index) {
            TransactionVector memory vector = vectors[index];
            bytes memory call = _execution(transactions[index], vector.packed);
            vm.assertEq(call, vector.execCalldata, vector.name);
        }
    }

    function test_batch__ofEachListOfCalls__isPackedAlike() public view {
        BatchVector[] memory batches = _batches();
        for (uint256 index = 0; index < BATCHES; ++index) {
            BatchVector memory vector = batches[index];
            vm.assertEq(_batch(vector.calls), vector.data, vector.name);
        }
    }

    /* THE REAL SAFE */

    function test_realSafe__eachTransaction__computesItsHashes() public {
        TransactionVector[] memory vectors = _transactionVectors();
        SafeTransaction[] memory transactions = _transactions();
        for (uint256 release = 0; release < packages.length; ++release) {
            for (uint256 index = 0; index < TRANSACTIONS; ++index) {
                TransactionVector memory vector = vectors[index];
                _putSafe(release, vector.safe);
                vm.chainId(vector.chainId);
                bytes32 separator = ISafe(vector.safe).domainSeparator();
                vm.assertEq(separator, vector.domainHash, vector.name);
                bytes32 hash = _askedHash(vector.safe, transactions[index]);
                vm.assertEq(hash, vector.hash, vector.name);
            }
        }
    }

    function test_realSafe__signaturesAsPacked__areItsOwnersOfThatHashOnly() public {
        TransactionVector[] memory vectors = _transactionVectors();
        SafeTransaction[] memory transactions = _transactions();
        for (uint256 release = 0; release < packages.length; ++release) {
            for (uint256 index = 0; index < TRANSACTIONS; ++index) {
                uint256 snapshot = vm.snapshotState();
                TransactionVector memory vector = vectors[index];
                _putOwnersSafe(release, vectors[index], transactions[index].nonce);
                vm.assertTrue(_takes(vector.safe, vector.hash, vector.packed), vector.name);
                bytes32 otherHash = keccak256(abi.encode(vector.hash));
                vm.assertFalse(_takes(vector.safe, otherHash, vector.packed), vector.name);
                bytes memory unordered = _joined(vector.signatures);
                vm.assertFalse(_takes(vector.safe, vector.hash, unordered), vector.name);
                vm.revertToState(snapshot);
            }
        }
    }

    function test_realSafe__calldataOfAnExecution__makesTheCallsUnderItsHash() public {
        TransactionVector[] memory vectors = _transactionVectors();
        SafeTransaction[] memory transactions = _transactions();
        for (uint256 release = 0; release < packages.length; ++release) {
            for (uint256 index = 0; index < TRANSACTIONS; ++index) {
                // The last one would send more ether than there is.
                if (transactions[index].value > 0) continue;
                uint256 snapshot = vm.snapshotState();
                _assertExecuted(release, vectors[index], transactions[index]);
                vm.revertToState(snapshot);
            }
        }
    }

    function test_realSafe__calldataOfAnExecutionWithAnotherNonce__isRefused() public {
        TransactionVector[] memory vectors = _transactionVectors();
        SafeTransaction[] memory transactions = _transactions();
        for (uint256 release = 0; release < packages.length; ++release) {
            uint256 snapshot = vm.snapshotState();
            _putOwnersSafe(release, vectors[0], transactions[0].nonce);
            vm.store(vectors[0].safe, NONCE_SLOT, bytes32(transactions[0].nonce + 1));
            // solhint-disable-next-line avoid-low-level-calls
            (bool accepted,) = vectors[0].safe.call(vectors[0].execCalldata);
            vm.assertFalse(accepted);
            vm.revertToState(snapshot);
        }
    }

    /* INTERNALS */

    function _transactionVectors() private view returns (TransactionVector[] memory vectors) {
        vectors = abi.decode(_vectors("safe", ".transactions", TRANSACTION), (TransactionVector[]));
        vm.assertEq(vectors.length, TRANSACTIONS);
    }

    function _transactions() private view returns (SafeTransaction[] memory transactions) {
        transactions =
            abi.decode(_vectors("safe", ".transactions", SAFE_TRANSACTION), (SafeTransaction[]));
        vm.assertEq(transactions.length, TRANSACTIONS);
    }

    function _batches() private view returns (BatchVector[] memory batches) {
        batches = abi.decode(_vectors("safe", ".batches", BATCH), (BatchVector[]));
        vm.assertEq(batches.length, BATCHES);
    }

    function _assertExecuted(
        uint256 release,
        TransactionVector memory vector,
        SafeTransaction memory transaction
    ) private {
        _putOwnersSafe(release, vector, transaction.nonce);
        bool isBatch = transaction.operation == 1;
        if (isBatch) _putMultiSend(release, transaction.to);
        InnerCall[] memory calls = isBatch ? _batches()[0].calls : _onlyCall(transaction);
        vm.startStateDiffRecording();
        vm.recordLogs();
        // solhint-disable-next-line avoid-low-level-calls
        (bool accepted, bytes memory answer) = vector.safe.call(vector.execCalldata);
        vm.assertTrue(accepted && abi.decode(answer, (bool)), vector.name);
        Vm.AccountAccess[] memory accesses = vm.stopAndReturnStateDiff();
        for (uint256 number = 0; number < calls.length; ++number) {
            vm.assertEq(_timesMade(accesses, vector.safe, calls[number]), 1, vector.name);
        }
        Vm.Log[] memory logs = vm.getRecordedLogs();
        vm.assertEq(logs[logs.length - 1].topics[0], ISafe.ExecutionSuccess.selector);
        vm.assertEq(logs[logs.length - 1].topics[1], vector.hash);
    }

    function _timesMade(Vm.AccountAccess[] memory accesses, address safe, InnerCall memory call)
        private
        pure
        returns (uint256 times)
    {
        for (uint256 index = 0; index < accesses.length; ++index) {
            Vm.AccountAccess memory access = accesses[index];
            if (access.kind != CALL_KIND || access.accessor != safe) continue;
            if (access.account != call.target) continue;
            if (keccak256(access.data) == keccak256(call.data)) ++times;
        }
    }

    function _onlyCall(SafeTransaction memory transaction)
        private
        pure
        returns (InnerCall[] memory calls)
    {
        calls = new InnerCall[](1);
        calls[0] = InnerCall(transaction.to, transaction.data);
    }

    /// @dev On the vector's chain, with the vector's owners, who must all sign, and its nonce.
    function _putOwnersSafe(uint256 release, TransactionVector memory vector, uint256 nonce)
        private
    {
        address[] memory owners = new address[](vector.signatures.length);
        for (uint256 number = 0; number < owners.length; ++number) {
            owners[number] = vector.signatures[number].owner;
        }
        vm.chainId(vector.chainId);
        _putSafe(release, vector.safe);
        _setUp(vector.safe, owners, owners.length);
        vm.store(vector.safe, NONCE_SLOT, bytes32(nonce));
    }

    function _takes(address safe, bytes32 hash, bytes memory signatures)
        private
        view
        returns (bool taken)
    {
        bytes memory call = abi.encodeCall(ISafe.checkSignatures, (hash, "", signatures));
        // solhint-disable-next-line avoid-low-level-calls
        (taken,) = safe.staticcall(call);
    }

    function _joined(OwnerSignature[] memory signatures)
        private
        pure
        returns (bytes memory joined)
    {
        for (uint256 index = 0; index < signatures.length; ++index) {
            joined = bytes.concat(joined, signatures[index].signature);
        }
    }

    function _ascending(OwnerSignature[] memory signatures)
        private
        pure
        returns (OwnerSignature[] memory sorted)
    {
        sorted = signatures;
        for (uint256 last = 1; last < sorted.length; ++last) {
            for (uint256 at = last; at > 0 && sorted[at].owner < sorted[at - 1].owner; --at) {
                (sorted[at], sorted[at - 1]) = (sorted[at - 1], sorted[at]);
            }
        }
    }
}
