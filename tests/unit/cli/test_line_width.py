"""No line is longer than a terminal is wide, unless a single word is: a hash, a path, a URL."""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from eth_utils.address import to_checksum_address

from chainkit.cli.change.proposal_options import Reading
from chainkit.cli.change.screen import echo_reading
from chainkit.cli.contracts import upgrade
from chainkit.cli.council.verify_output import echo_bundle
from chainkit.cli.registry import desired
from chainkit.contracts.deployment import DeployedContract
from chainkit.council.calls import Call, expected_change
from chainkit.council.calls.effects import EFFECTS
from chainkit.council.evidence import BundleVerdict, FindingVerdict
from chainkit.council.proposal import Proposal
from chainkit.evidence.labels import ALTERED, INVENTED, QUARANTINED_SERVED, SIGNATURE_INVALID
from chainkit.evidence.verdict import Verdict
from chainkit.terminal.facts import LABEL_WIDTH, LINE_WIDTH, echo_fact
from support.council.proposals import OWNERS, RECORD, SAFE, grounds

CODES = (ALTERED, INVENTED, SIGNATURE_INVALID, QUARANTINED_SERVED)
OLD = to_checksum_address(b"\x55" * 20)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def look_alike(address: str) -> str:
    """An address that begins and ends as another one, for which the longest note is shown."""
    return to_checksum_address(address[:6] + "0" * 32 + address[-4:])


def told(print_it: Any) -> list[str]:
    """The lines that a person is told on both streams."""
    printed = Terminal()
    with redirect_stdout(printed), redirect_stderr(printed):
        print_it()
    return printed.getvalue().splitlines()


def too_long(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if len(line) > LINE_WIDTH]


def upgrade_of(contract: str) -> tuple[Call, dict[str, str]]:
    call = Call.make(RECORD, contract, "upgradeToAndCall", look_alike(OWNERS[0]), b"")
    sequence = to_checksum_address(RECORD.originator_sequence.address)
    before = {f"{contract} implementation": f"{OLD} (release 0.1.0)"}
    return call, before | {f"{contract} sequence": sequence}


def test_show__longest_names_and_notes__fit_the_width() -> None:
    pairs = [upgrade_of("GroupMessages"), upgrade_of("IdentityUpdates")]
    calls = [call for call, _ in pairs]
    facts = {name: value for _, before in pairs for name, value in before.items()}
    said = replace(
        grounds(),
        before=facts,
        after=expected_change(EFFECTS, RECORD, calls, facts).after,
        runs=dict.fromkeys((call.contract for call in calls), OLD),
    )
    council = replace(SAFE, names={each: "a" * 40 for each in OWNERS[:1]})
    reading = Reading(Proposal.make(RECORD, council, calls, said, 2**62, None), RECORD, council)

    lines = told(lambda: echo_reading(reading, names_signers=True))

    assert [line for line in lines if line.startswith("  newImplementation 0x")]
    assert too_long(lines) == []


def test_verify__finding_of_many_codes__fits_the_width() -> None:
    finding = FindingVerdict(
        finding_id="ab" * 32,
        codes=CODES,
        claimed_code=ALTERED,
        originator_id=2**32 - 1,
        sequence_id=2**64 - 1,
        transaction_hash=None,
        verdict=Verdict.PROVED,
        reason="word " * 40,
        steps=(),
        signed_digest=None,
        is_reported=False,
    )
    verdict = BundleVerdict(cast(Any, None), None, (), (finding,))

    lines = told(lambda: echo_bundle(verdict))

    assert " ".join(lines).count(QUARANTINED_SERVED) == 1
    assert too_long(lines) == []


def test_plan__node_that_the_file_does_not_list__is_warned_of_within_the_width() -> None:
    node = SimpleNamespace(node=SimpleNamespace(node_id=4_294_967_200))
    difference: Any = SimpleNamespace(unlisted_enabled=[node], nodes=[])
    check: Any = SimpleNamespace(warn_of_silence=lambda urls: None)

    lines = told(lambda: desired._warn(difference, check))

    assert lines[0].startswith("warning: node 4294967200 is enabled")
    assert too_long(lines) == []


def test_upgrade__deployed_implementation__is_told_within_the_width(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    deployed = DeployedContract("GroupMessages", b"\x77" * 20, 123_456, b"\x88" * 32)
    monkeypatch.setattr(upgrade, "deploy_implementation", lambda *_: deployed)
    running: Any = SimpleNamespace(sending=None, record=None, signer=None)

    lines = told(lambda: upgrade._Upgrading._deploy(running, "GroupMessages"))

    assert lines[-1].endswith("0x" + "88" * 32)
    assert too_long(lines) == []


def test_echo_fact__name_longer_than_its_column__keeps_the_width() -> None:
    lines = told(lambda: echo_fact("  newImplementation", "word " * 60))

    assert lines[0].startswith("  newImplementation word")
    assert all(line.startswith(" " * LABEL_WIDTH + "word") for line in lines[1:])
    assert too_long(lines) == []
