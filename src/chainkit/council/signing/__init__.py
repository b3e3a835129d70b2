"""Signers: keys in keystores, in the environment and behind Ape; each signature is checked."""

from chainkit.council.signing.ape_account import ApeSigner
from chainkit.council.signing.environment import (
    LOCAL_CHAIN_IDS,
    PRIVATE_KEY_VARIABLE,
    has_environment_key,
    take_environment_key,
)
from chainkit.council.signing.hashes import transaction_cost
from chainkit.council.signing.key import KeySigner
from chainkit.council.signing.signer import (
    Signer,
    recover_signer,
    sign_transaction,
    sign_typed_data,
)

__all__ = [
    "LOCAL_CHAIN_IDS",
    "PRIVATE_KEY_VARIABLE",
    "ApeSigner",
    "KeySigner",
    "Signer",
    "has_environment_key",
    "recover_signer",
    "sign_transaction",
    "sign_typed_data",
    "take_environment_key",
    "transaction_cost",
]
