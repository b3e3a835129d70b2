"""The cycles of a graph, and groups of nodes with a group for each cycle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence


def cyclic_components(
    nodes: Iterable[int], followers: Sequence[Sequence[int]]
) -> Iterator[list[int]]:
    """Yield each strongly connected component of more than one node (Tarjan's algorithm).

    Without recursion: a path may be as long as the batch.
    """
    closed = len(followers)
    found: dict[int, int] = {}
    lowest: dict[int, int] = {}
    opened: list[int] = []
    for root in nodes:
        path = [] if root in found else [root]
        branches: list[Iterator[int]] = []
        while path:
            node = path[-1]
            if len(branches) < len(path):
                found[node] = lowest[node] = len(found)
                opened.append(node)
                branches.append(iter(followers[node]))
            for each in branches[-1]:
                if each not in found:
                    path.append(each)
                    break
                lowest[node] = min(lowest[node], found[each])
            else:
                path.pop()
                branches.pop()
                if path:
                    lowest[path[-1]] = min(lowest[path[-1]], lowest[node])
                if lowest[node] == found[node]:
                    component = _closed(opened, node)
                    found.update(dict.fromkeys(component, closed))
                    if len(component) > 1:
                        yield component


def _closed(opened: list[int], node: int) -> list[int]:
    """Remove and return a node and all nodes that were opened after it."""
    component = [opened.pop()]
    while component[-1] != node:
        component.append(opened.pop())
    return component


class Groups:
    """A group for each cycle and for each other node: no groups wait for each other in a circle.

    A group waits for every other group that one of its nodes waits for.
    """

    def __init__(
        self,
        cycles: Iterable[Sequence[int]],
        nodes: Collection[int],
        followers: Sequence[Sequence[int]],
    ) -> None:
        self._cycle_of = {node: cycle for cycle in cycles for node in cycle}
        self._awaited = Counter(
            self._group(follower)
            for node in nodes
            for follower in followers[node]
            if self._group(follower) != self._group(node)
        )

    def waits(self, node: int) -> bool:
        """Return whether a node's group waits for another group."""
        return self._awaited[self._group(node)] > 0

    def released(self, node: int, follower: int) -> Sequence[int]:
        """Let a follower wait for a node no longer; return the nodes that may now be free."""
        group = self._group(follower)
        if group == self._group(node):
            return (follower,)
        self._awaited[group] -= 1
        return () if self._awaited[group] else self._cycle_of.get(follower, (follower,))

    def _group(self, node: int) -> int:
        """Return the first node of a node's group."""
        cycle = self._cycle_of.get(node)
        return node if cycle is None else cycle[0]
