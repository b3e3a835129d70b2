"""Options of gRPC by their names: grpcio takes any name, and says nothing about one it ignores."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from grpc._cython import cygrpc

from support.project import ROOT

PACKAGES = ("src", "indexer", "node", "gateway", "client", "jobs", "localnet", "demo")
NAME = re.compile(r"grpc\.[a-z0-9_.]+")
LIBRARY = Path(cygrpc.__file__).read_bytes()


def is_known(option: str) -> bool:
    """Return whether grpcio's library has an option's name as a string of C."""
    return option.encode() + b"\0" in LIBRARY


def options() -> Iterator[str]:
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            text = path.read_text()
            if '"grpc.' not in text:
                continue  # parsing takes a hundred times as long
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Constant) and NAME.fullmatch(str(node.value)):
                    yield str(node.value)


@pytest.mark.parametrize("option", sorted(set(options())))
def test_option__of_a_server_or_channel__is_known_to_grpcio(option: str) -> None:
    assert is_known(option)


def test_option__with_the_name_of_its_macro__is_unknown_to_grpcio() -> None:
    assert not is_known("grpc.http2.min_recv_ping_interval_without_data_ms")
