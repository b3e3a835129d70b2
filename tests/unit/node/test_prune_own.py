"""The heads of a node's own topics outlive its envelopes, wherever a run of the pruner ends."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chainkit.protocol.topic_heads import Chain, Entry, entry_of, read_topic_head
from chainkit_indexer.storage.envelopes import StoredEnvelope
from chainkit_node.originating.topic_heads import TopicHeads
from chainkit_node.pruning import pruner
from chainkit_node.pruning.pruner import Pruner
from support.network.originator import Originator
from support.reporting import KEYS, OTHER, OWN, Host

from .test_pruner import DAY, MESSAGE, NOW, attest, held, host, prune, pruned, put

__all__ = ["host"]
COUNT = 70
GONE = {each for each in range(1, 65) if each % 3}
"""Every third lives on, and the leaf of the last ids is not complete."""


def put_own(host: Host) -> list[Entry]:
    """Store messages of the node itself; return the entries of their topic's head."""
    node = Originator(OWN, KEYS[OWN])
    signed = {n: node.signed(n, expiry=NOW - DAY if n % 3 else None) for n in range(1, COUNT + 1)}
    put(
        host,
        *(
            StoredEnvelope(OWN, n, n, MESSAGE, NOW - DAY if n % 3 else None, data)
            for n, data in signed.items()
        ),
    )
    attest(host, 1, COUNT, originator_id=OWN)
    return [entry_of(each) for each in signed.values()]


def check_heads(host: Host, entries: list[Entry]) -> None:
    """Ask a node that was started again, and has read nothing yet."""
    heads = TopicHeads(lambda: OWN, KEYS[OWN])
    with host.store.reading() as connection:
        request = heads.begin(connection)
        head = read_topic_head(request.head(MESSAGE), KEYS[OWN].public_key)
        assert request.entries(MESSAGE, 40) == entries[40:]
        assert request.entries(MESSAGE, 0) == entries
    assert head.chain == Chain().extended(entries)


def test_head__of_a_topic_whose_envelopes_were_pruned__is_what_it_was(host: Host) -> None:
    entries = put_own(host)

    assert prune(host)[OWN].envelopes == len(GONE)

    check_heads(host, entries)
    assert held(host, OTHER) == set()


def ending_in_pause(number: int) -> Callable[[float], None]:
    """Return a pause that ends the run when it is made for the nth time."""
    pauses = iter(range(number - 1))

    def pause(seconds: float) -> None:
        if next(pauses, None) is None:
            raise KeyboardInterrupt

    return pause


def test_run__ended_in_any_pause__has_an_entry_for_whatever_it_deleted(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, size in (("MOST_ENTRIES", 5), ("STRETCH_ENVELOPES", 20)):
        monkeypatch.setattr(pruner, name, size)
    monkeypatch.setattr(pruner, "BATCH_BYTES", 1_000)
    entries = put_own(host)

    for pauses in range(1, 100):
        run = Pruner(host.store, lambda: NOW, lambda: 0.0, ending_in_pause(pauses), batch=3)
        try:
            list(run.run(lambda log: None))
        except KeyboardInterrupt:
            check_heads(host, entries)
            assert pruned(host, OWN) <= GONE
            assert held(host, OWN) == set(range(1, COUNT + 1)) - pruned(host, OWN)
        else:
            break

    assert pruned(host, OWN) == GONE
    check_heads(host, entries)
