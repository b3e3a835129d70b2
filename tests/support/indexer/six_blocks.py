"""Six payloads in six blocks, of which a node takes two for not final."""

from __future__ import annotations

from support.chains.fake_chain import Post, malformed, update

A, B, C, D = Post("a"), update("b"), malformed("c"), Post("d")
E, F = Post("e"), Post("f")
FINALITY = 2
