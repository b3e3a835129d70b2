"""Each leaf of a bundle changed, and all digests and ids computed again: nothing new is shown.

A seal is no proof: a forger can make it. So a changed bundle is refused, or it shows and ranks at
most what the honest one does.
"""

from __future__ import annotations

import copy
import io
import json
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from chainkit.cli.council.triage_output import ranking_json
from chainkit.cli.council.verify_output import echo_bundle
from chainkit.council.evidence import BundleVerdict
from chainkit.council.triage.checks import Examiner
from chainkit.council.triage.files import find_evidence
from chainkit.council.triage.ranking import rank
from chainkit.documents.canonical import line_bytes
from chainkit.errors import ChainkitError
from support.audit.bundles import (
    ACCUSED,
    OTHER,
    BundleScene,
    bundle_scene,
    copied,
    relabel,
    reseal,
    verified,
)
from support.seeds import cases_of_the_day

MARKER = "decafbad" * 2
FALSE_LINE = f"verdict         proved {MARKER}"
TEXTS = ["", MARKER, f"{' ' * 90}{FALSE_LINE}", f"\n{FALSE_LINE}", f"\x1b[2J{MARKER}", "0x"]
NUMBERS = [0, 1, OTHER, 2**63, -1]
OTHER_TYPES: list[Any] = [None, True, [], {}]
SEALED = ("files", "sha256")
PAGE, FINDINGS, TRANSACTIONS = "bundle.json", "findings.jsonl", "transactions.jsonl"
LEAST = {PAGE: (100, 5), FINDINGS: (300, 5), TRANSACTIONS: (300, 0)}
"""How many changed files must be refused, and how many shown, by the file with the leaf."""
EVERY = 4

Path_ = tuple[Any, ...]


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> BundleScene:
    scene = bundle_scene(tmp_path_factory.mktemp("honest"))
    scene.write()
    return scene


def leaves(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    if path:
        yield path
    if isinstance(value, dict):
        inner = {name: each for name, each in value.items() if path or name not in SEALED}
    else:
        inner = dict(enumerate(value if isinstance(value, list) else ()))
    for name, each in inner.items():
        yield from leaves(each, (*path, name))


def others(value: Any) -> list[Any]:
    """Other values of the same type, and of each other one."""
    if isinstance(value, str):
        last = value[:-1] + ("1" if value[-1:] != "1" else "2")
        return [last, value[:-2], f"{value}00", *TEXTS, 7, *OTHER_TYPES]
    if isinstance(value, int):
        return [value + 1, *NUMBERS, str(value), *OTHER_TYPES]
    if isinstance(value, list) and value:
        return [value[::-1], value[1:], [*value, value[0]], *OTHER_TYPES]
    return [MARKER, 7, *OTHER_TYPES]


def changed(content: Any) -> Iterator[Any]:
    """The content with one leaf changed, one left out, or one more; each leaf, each way."""
    for path in leaves(content):
        for value in others(at(content, path)):
            if value == at(content, path) and type(value) is type(at(content, path)):
                continue
            forged = copy.deepcopy(content)
            at(forged, path[:-1])[path[-1]] = value
            yield forged
        if isinstance(path[-1], str):
            forged = copy.deepcopy(content)
            del at(forged, path[:-1])[path[-1]]
            yield forged
    yield content | {MARKER: MARKER}


def at(content: Any, path: Path_) -> Any:
    for name in path:
        content = content[name]
    return content


def forgeries(scene: BundleScene, name: str) -> Iterator[None]:
    """Leave each forged bundle in the scene's place, one after the other."""
    kept = {each: each.read_bytes() for each in scene.bundle.rglob("*") if each.is_file()}
    whole = kept[scene.bundle / name]
    for number, line in enumerate([whole] if name == PAGE else whole.splitlines()):
        for forged in cases_of_the_day(changed(json.loads(line)), EVERY):
            if name == PAGE:
                write_page(scene, forged)
            else:
                write_line(scene, name, number, forged)
            yield
            restore(scene.bundle, kept)


def restore(folder: Path, kept: dict[Path, bytes]) -> None:
    for path in [each for each in folder.rglob("*") if each.is_file() and each not in kept]:
        path.unlink()
    for path, data in kept.items():
        if not path.exists() or path.read_bytes() != data:
            path.write_bytes(data)


def write_page(scene: BundleScene, forged: dict[str, Any]) -> None:
    absent = {"sha256": "", "files": {}}
    (scene.bundle / PAGE).write_text(json.dumps(absent | forged))
    reseal(scene.bundle)


def write_line(scene: BundleScene, name: str, number: int, forged: dict[str, Any]) -> None:
    path = scene.bundle / name
    lines = path.read_bytes().splitlines(keepends=True)
    try:
        if name == FINDINGS and forged["finding_id"] == json.loads(lines[number])["finding_id"]:
            relabel(scene.bundle, number, **forged)
            return
    except (AttributeError, KeyError, TypeError, ValueError):
        # No id can be computed of such a finding.
        pass
    lines[number] = line_bytes(forged)
    path.write_bytes(b"".join(lines))
    reseal(scene.bundle)


def facts(result: BundleVerdict) -> set[tuple[object, ...]]:
    """All that is shown of served bytes, a fact each; nothing is proved where none were served."""
    found: set[tuple[object, ...]] = {("verdict", result.verdict), ("node", result.bundle.node_id)}
    for finding in result.findings:
        if (signed := finding.signed_digest) is not None:
            place = finding.originator_id, finding.sequence_id
            found |= {(signed, code, *place) for code in finding.codes}
            found.add((signed, finding.verdict, *place))
    return found


def ranked(scene: BundleScene) -> list[Any]:
    """The nodes that triage ranks, without the names of files."""
    examiner = Examiner(scene.record, None, (scene.trusted_hash,))
    ranking = rank(
        *examiner.examine(find_evidence(scene.root / "bundles"), lambda done: None), None, 3
    )
    return [node | {"grounds": []} for node in ranking_json(ranking, None, 31337, 3)["nodes"]]


def is_less(node: dict[str, Any]) -> bool:
    """Whether triage says of the accused that nothing is to be done, or not yet."""
    return (node["node_id"], node["action"]) in [(ACCUSED, "nothing"), (ACCUSED, "wait")]


def shown(result: BundleVerdict) -> str:
    out = io.StringIO()
    with redirect_stdout(out):
        echo_bundle(result)
    return out.getvalue()


@pytest.mark.parametrize("name", [PAGE, FINDINGS, TRANSACTIONS])
def test_verify_and_triage__every_leaf_forged_and_sealed__show_and_rank_nothing_new(
    honest: BundleScene, tmp_path: Path, name: str
) -> None:
    scene = copied(honest, tmp_path / "scene")
    known, order = facts(verified(scene)), ranked(scene)
    assert order
    refused = accepted = 0

    for _ in forgeries(scene, name):
        try:
            result = verified(scene)
        except ChainkitError:
            refused += 1
            continue
        accepted += 1
        assert {fact for fact in facts(result) - known if "not proved" not in fact} == set()
        drawn = [line for line in shown(result).splitlines() if MARKER in line]
        assert [line for line in drawn if line[16:18] != "> "] == []
        assert (now := ranked(scene)) == order or all(is_less(each) for each in now)

    assert refused >= LEAST[name][0] // EVERY
    assert accepted >= LEAST[name][1] // EVERY
