// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {SafeTransactions} from "./support/SafeTransactions.sol";
import {VectorFile} from "./support/VectorFile.sol";

/// @title ProposalVectorsTest
/// @notice tests/vectors/proposals.json against Solidity's own encoding: from calls and grounds to the
/// hash that owners compare, as tests/unit/council/proposal/test_vectors.py holds Python to it.
contract ProposalVectorsTest is SafeTransactions, VectorFile {
    struct ProposalVector {
        string name;
        uint256 nonce;
        InnerCall[] calls;
        string line;
        uint64 expires;
        bytes32 digest;
        bytes trailer;
        address to;
        bytes data;
        uint8 operation;
        bytes32 hash;
    }

    struct FunctionVector {
        string signature;
        bytes selector;
    }

    string internal constant PROPOSAL =
        "ProposalCase(string name,uint256 nonce,CallCase[] calls,string line,uint64 expires,bytes32 digest,bytes trailer,address to,bytes data,uint8 operation,bytes32 hash)CallCase(address target,bytes calldata)";
    string internal constant FUNCTION = "FunctionCase(string signature,bytes selector)";

    uint256 internal constant CHAIN_ID = 31337;
    uint256 internal constant PROPOSALS = 2;
    uint256 internal constant FUNCTIONS = 23;

    function test_functions__ofACouncil__haveTheirSelectors() public view {
        FunctionVector[] memory vectors =
            abi.decode(_vectors("proposals", ".functions", FUNCTION), (FunctionVector[]));
        for (uint256 index = 0; index < vectors.length; ++index) {
            bytes4 selector = bytes4(keccak256(bytes(vectors[index].signature)));
            bytes memory expected = vectors[index].selector;
            vm.assertEq(abi.encodePacked(selector), expected, vectors[index].signature);
        }
        vm.assertEq(vectors.length, FUNCTIONS);
    }

    function test_trailer__ofEachProposal__isMarkExpiryAndDigestOfItsGrounds() public view {
        ProposalVector[] memory vectors = _proposals();
        for (uint256 index = 0; index < PROPOSALS; ++index) {
            ProposalVector memory vector = vectors[index];
            bytes32 digest = sha256(bytes(vector.line));
            vm.assertEq(digest, vector.digest, vector.name);
            bytes memory trailer = abi.encodePacked("XIP-49/1", vector.expires, digest);
            vm.assertEq(trailer, vector.trailer, vector.name);
        }
    }

    function test_hash__ofEachProposal__isThatOfItsCallsWithTheTrailerBehindTheLast() public view {
        address safe = vm.parseJsonAddress(_content("proposals"), ".accounts.safe");
        ProposalVector[] memory vectors = _proposals();
        for (uint256 index = 0; index < PROPOSALS; ++index) {
            ProposalVector memory vector = vectors[index];
            SafeTransaction memory transaction = _transactionOf(vector);
            vm.assertEq(transaction.data, vector.data, vector.name);
            vm.assertEq(_safeTxHash(CHAIN_ID, safe, transaction), vector.hash, vector.name);
        }
    }

    /* INTERNALS */

    function _proposals() private view returns (ProposalVector[] memory vectors) {
        vectors = abi.decode(_vectors("proposals", ".proposals", PROPOSAL), (ProposalVector[]));
        vm.assertEq(vectors.length, PROPOSALS);
    }

    /// @dev One call is made by the Safe itself, several by a delegatecall of MultiSendCallOnly.
    function _transactionOf(ProposalVector memory vector)
        private
        view
        returns (SafeTransaction memory transaction)
    {
        InnerCall[] memory calls = vector.calls;
        InnerCall memory last = calls[calls.length - 1];
        last.data = bytes.concat(last.data, vector.trailer);
        bool isBatch = calls.length > 1;
        transaction.nonce = vector.nonce;
        transaction.operation = isBatch ? 1 : 0;
        transaction.data = isBatch ? _batch(calls) : last.data;
        transaction.to = isBatch
            ? vm.parseJsonAddress(_content("proposals"), ".accounts.multiSend")
            : last.target;
        vm.assertEq(transaction.to, vector.to, vector.name);
        vm.assertEq(uint256(transaction.operation), vector.operation, vector.name);
    }
}
