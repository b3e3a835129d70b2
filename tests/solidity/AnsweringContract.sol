// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

/// @title AnsweringContract
/// @notice Answers calls with bytes that a test chose, so that the tests can ask an upgrade to
/// accept a contract which says what is expected of it. Never deployed by the scripts.
contract AnsweringContract {
    /* STORAGE */

    mapping(bytes4 selector => bytes data) private _answers;

    /// @notice No answer was chosen for this function.
    /// @param selector The function's selector.
    error Unanswered(bytes4 selector);

    /* ANSWERING */

    // Whatever function is asked for must be answered; solhint takes the fallback's result for a
    // second function without documentation.
    // solhint-disable no-complex-fallback, use-natspec

    fallback(bytes calldata) external returns (bytes memory data) {
        data = _answers[msg.sig];
        if (data.length == 0) revert Unanswered(msg.sig);
    }

    /// @notice Chooses the answer to a function.
    /// @param selector The function's selector.
    /// @param data The bytes to answer; empty to revert.
    function setAnswer(bytes4 selector, bytes calldata data) external {
        _answers[selector] = data;
    }
}
