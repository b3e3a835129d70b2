#!/usr/bin/env bash
# Guess: a wallet refuses to sign a transaction of type 2 without a chain id, since its payload has one.
# Seen: ethers 6.17.0 and eth-account 0.13.7 sign it, for chain 0, without a word. Legacy transactions without a chain id
#   are signed as before EIP-155, valid on every chain that still takes them.
# Why it matters: offline signers find out at the endpoint, or, with legacy ones, on another chain. Check the chain id of
#   what was signed.
. "$(dirname "$0")/lib.sh"
pip_packages eth-account==0.13.7
npm_packages ethers@6.17.0

cat >sign.py <<'E'
from eth_account import Account
from eth_account.typed_transactions import TypedTransaction

account = Account.from_key(b"\1" * 32)
common = {"to": account.address, "value": 0, "gas": 21000, "nonce": 0}
signed = account.sign_transaction({**common, "maxFeePerGas": 1, "maxPriorityFeePerGas": 1})
print("eth-account, type 2: chain", TypedTransaction.from_bytes(signed.raw_transaction).as_dict()["chainId"])
print("eth-account, legacy: v", account.sign_transaction({**common, "gasPrice": 1}).v in (27, 28))
E
cat >sign.mjs <<'E'
import { Transaction, Wallet } from "ethers";

const wallet = new Wallet("0x" + "01".repeat(32));
const common = { to: wallet.address, gasLimit: 21000, nonce: 0 };
const typed = await wallet.signTransaction({ ...common, type: 2, maxFeePerGas: 1, maxPriorityFeePerGas: 1 });
console.log("ethers, type 2: chain", Transaction.from(typed).chainId.toString());
const legacy = Transaction.from(await wallet.signTransaction({ ...common, type: 0, gasPrice: 1 }));
console.log("ethers, legacy: v", legacy.signature.networkV === null && [27, 28].includes(legacy.signature.v));
E
expect bash -c 'python sign.py; node sign.mjs' <<'E'
eth-account, type 2: chain 0
eth-account, legacy: v True
ethers, type 2: chain 0
ethers, legacy: v true
E
