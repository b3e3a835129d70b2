"""Bundles with changed bytes: noticed, or without effect; never more accusing."""

from __future__ import annotations

import json

import pytest

from chainkit.errors import ChainkitError
from support.audit.bundles import (
    OTHER,
    BundleScene,
    guilty,
    proved,
    reseal,
)

pytest_plugins = ["support.audit.bundle_fixtures"]

FILES = ("bundle.json", "headers.rlp", "transactions.jsonl", "findings.jsonl")
PLACES = 60
"""Bytes of each file that are changed, one after the other."""


def flip(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ (1 << place % 7)]) + data[place + 1 :]


def places(data: bytes) -> range:
    return range(0, len(data), len(data) // PLACES + 1)


@pytest.mark.parametrize("name", [*FILES, "report"])
def test_verify_bundle__any_byte_changed__is_noticed(scene: BundleScene, name: str) -> None:
    path = next(scene.bundle.glob("reports/*")) if name == "report" else scene.bundle / name
    whole = path.read_bytes()
    unnoticed = []
    for place in places(whole):
        path.write_bytes(flip(whole, place))
        try:
            proved(scene)
        except ChainkitError:
            continue
        unnoticed.append(place)

    assert unnoticed == []
    path.write_bytes(whole)
    assert proved(scene) == guilty(scene)


@pytest.mark.parametrize("name", FILES[1:])
def test_verify_bundle__any_byte_changed_and_sealed_again__never_accuses_of_more(
    scene: BundleScene, name: str
) -> None:
    path = scene.bundle / name
    whole = path.read_bytes()
    outcomes = set()
    for place in places(whole):
        path.write_bytes(flip(whole, place))
        reseal(scene.bundle)
        try:
            found = proved(scene)
        except ChainkitError:
            outcomes.add("refused")
            continue
        outcomes.add("less" if found < guilty(scene) else "same")
        assert found <= guilty(scene)

    # The auditor's words in a finding may change; nothing that the chain holds may.
    assert outcomes >= {"refused"}
    assert name == "findings.jsonl" or outcomes == {"refused"}


def test_verify_bundle__any_field_of_its_page_replaced__never_accuses_of_more(
    scene: BundleScene,
) -> None:
    content = json.loads((scene.bundle / "bundle.json").read_text())
    values = [None, -1, 0, 1, OTHER, 2**70, "", "0x", "0x" + "00" * 32, [], {}, True, 1.5, ["x"]]
    for name in content.keys() - {"files", "sha256"}:
        for value in values:
            if value == content[name]:
                continue
            reseal(scene.bundle, **{name: value})
            try:
                found = proved(scene)
            except ChainkitError:
                continue
            finally:
                reseal(scene.bundle, **content)
            assert found <= guilty(scene), (name, value)
            assert not found or name in ("tool", "left_out"), (name, value)
