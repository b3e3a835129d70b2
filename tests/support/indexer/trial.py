"""One chain behind several endpoints, each with its own way to answer, and a page of its blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from chainkit.chain import Endpoint, RetryPolicy
from chainkit_indexer.config import IndexerSettings
from chainkit_indexer.follow.fetch import PayloadLogs, linked_headers
from chainkit_indexer.follow.provenance import Established, PageProver
from chainkit_indexer.types import Provenance
from support.chains.fake_chain import FIRST_BLOCK, FakeChain, Post, update

Tamper = Callable[[str, Any, Any], Any]

POSTS = [[Post("a"), update("b")], [], [Post("c", times=2)]]
LAST = FIRST_BLOCK + len(POSTS) - 1


RECEIPTS = "eth_getBlockReceipts"
ONE_RECEIPT = "eth_getTransactionReceipt"
WITHOUT = (RECEIPTS, ONE_RECEIPT)


def honest(method: str, params: Any, result: Any) -> Any:
    return result


@dataclass
class Trial:
    """One chain behind several endpoints, each with its own way to answer."""

    chain: FakeChain = field(default_factory=FakeChain)
    others: list[Endpoint] = field(default_factory=list)
    now: float = 0.0

    def __post_init__(self) -> None:
        self.chain.mine(*POSTS)

    def endpoint(self, name: str, tamper: Tamper = honest, refused: tuple[str, ...] = ()) -> Front:
        return Front(self.chain, name, tamper, refused)

    def prover(self, trusts_one_endpoint: bool = False) -> PageProver:
        settings = IndexerSettings(self.chain.deployment, trusts_one_endpoint=trusts_one_endpoint)
        return PageProver(settings, lambda endpoint: self.others, lambda: self.now)

    def establish(
        self, asked: Front, prover: PageProver | None = None, deep: bool = False
    ) -> Provenance:
        """How the whole page was established."""
        established = self.established(asked, prover, deep)
        assert established.blocks == len(POSTS)
        return established.provenance

    def established(
        self, asked: Front, prover: PageProver | None = None, deep: bool = False, first: int = 0
    ) -> Established:
        """How blocks from the page's block ``first`` on were established."""
        endpoint = asked.endpoint
        headers = linked_headers(endpoint, FIRST_BLOCK + first, LAST)
        logs = endpoint.logs_of(headers, PayloadLogs(self.chain.deployment).wanted)
        return (prover or self.prover()).establish(endpoint, headers, logs, deep)


class Front:
    """An endpoint before the chain; ``asked`` are the methods of its batches."""

    def __init__(
        self, chain: FakeChain, name: str, tamper: Tamper, refused: tuple[str, ...]
    ) -> None:
        self.chain = chain
        self.tamper = tamper
        self.refused = refused
        self.asked: list[str] = []
        self.endpoint = Endpoint(self, name, RetryPolicy(attempts=1))

    def make_request(self, method: Any, params: Any) -> Any:
        self.asked.append(method)
        if method in self.refused:
            return {"id": 1, "error": {"code": -32601, "message": f"{method} is not available"}}
        answer = self.chain.make_request(method, params)
        if "result" in answer:
            answer["result"] = self.tamper(method, params, answer["result"])
        return answer

    def make_batch_request(self, calls: Any) -> Any:
        return [
            self.make_request(method, params) | {"id": number}
            for number, (method, params) in enumerate(calls)
        ]
