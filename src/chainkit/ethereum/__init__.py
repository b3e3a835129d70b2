"""The commitments in a block's header, as pure functions over rows of a chain export.

A block's hash is the keccak256 of its header; the header holds the roots of two tries, over the
encoded transactions and the encoded receipts. So all of a chain export hangs on one block hash.
Rows have the columns of exports.tables, with the types of pyarrow's ``to_pylist``.
"""

from chainkit.ethereum.header import DecodedHeader, decode_header, header_bytes
from chainkit.ethereum.receipt import bloom_of_logs, decode_receipt, receipt_bytes
from chainkit.ethereum.root import trie_root
from chainkit.ethereum.sender import create_address, recover_sender, signing_hash
from chainkit.ethereum.transaction import decode_call, transaction_bytes
from chainkit.ethereum.trie import inclusion_proofs, verify_inclusion

__all__ = [
    "DecodedHeader",
    "bloom_of_logs",
    "create_address",
    "decode_call",
    "decode_header",
    "decode_receipt",
    "header_bytes",
    "inclusion_proofs",
    "receipt_bytes",
    "recover_sender",
    "signing_hash",
    "transaction_bytes",
    "trie_root",
    "verify_inclusion",
]
