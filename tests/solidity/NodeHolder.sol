// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {IERC721Receiver} from "@openzeppelin/contracts/token/ERC721/IERC721Receiver.sol";

/// @title NodeHolder
/// @notice A contract that takes node tokens, for the tests. Never deployed by the scripts.
contract NodeHolder is IERC721Receiver {
    /* STORAGE */

    /// @notice The account that moved the last token here.
    address public lastOperator;

    /// @notice What came with the last token.
    bytes public lastData;

    /* RECEIVING */

    /// @inheritdoc IERC721Receiver
    function onERC721Received(address operator, address, uint256, bytes calldata data)
        external
        returns (bytes4 selector)
    {
        lastOperator = operator;
        lastData = data;
        return IERC721Receiver.onERC721Received.selector;
    }
}
