// SPDX-License-Identifier: MIT
pragma solidity 0.8.28;

import {OwnedWallet} from "./OwnedWallet.sol";

/// @title OwnedWalletFactory
/// @notice Deploys wallets at addresses that are known before, so that tests can sign for a wallet
/// that is not deployed yet (ERC-6492).
contract OwnedWalletFactory {
    /// @notice Deploys the wallet of an owner.
    /// @param owner The account whose signatures the wallet accepts.
    /// @return wallet The wallet's address.
    function deploy(address owner) external returns (address wallet) {
        return address(new OwnedWallet{salt: bytes32(0)}(owner));
    }
}
