"""Which missing sequence ids this node will never get: they had expired where it asked (N34).

A node that was away learns them from the originator. Ids of one run up to BLOCK_IDS are in
bitmaps, so that a million holes cost a few MB; longer runs, as of a node that joins late, stay rows
of ``gaps``, because a hostile id may be 2^62 away from the one before.
"""

from __future__ import annotations

from typing import Final

from chainkit_node.storage import schema
from chainkit_node.storage.id_blocks import IdBlocks

LEARNED: Final = IdBlocks(schema.expired_blocks, {"changed_ns": 0})
"""An envelope that comes all the same is stored, and its id leaves the set."""
