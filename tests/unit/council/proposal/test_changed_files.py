"""A file of which one place was changed, sealed or not, is refused, or shown as what it is."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable
from contextlib import redirect_stderr, redirect_stdout

import pytest

from chainkit.cli.change.proposal_options import Reading
from chainkit.cli.change.screen import echo_reading
from chainkit.council.proposal import Proposal, parse_proposal, proposal_content
from chainkit.documents.canonical import page_bytes
from chainkit.errors import ChainkitError
from chainkit.terminal.facts import LINE_WIDTH, echo_error
from support.council.changed_proposals import KINDS, MARKER, cases, council_of, original
from support.council.proposals import OWNERS, RECORD
from support.council.shown_proposals import signed_hash, texts_of, words_of
from support.seeds import cases_of_the_day

QUOTED = re.compile(r".{16}> ")
LONGEST_ERROR = 500
LEAST_REFUSED = 300
EVERY = 5


def parsed(data: bytes, kind: str) -> Proposal:
    changes_safe = original(kind).changes_safe
    return parse_proposal(data, "proposal", RECORD, council_of(kind), changes_safe)


def shown(proposal: Proposal, kind: str) -> str:
    out = io.StringIO()
    with redirect_stdout(out):
        echo_reading(Reading(proposal, RECORD, council_of(kind)), names_signers=True)
    return out.getvalue()


def check_refusal(error: ChainkitError) -> None:
    err = io.StringIO()
    with redirect_stderr(err):
        echo_error(str(error))
    (line,) = err.getvalue().splitlines()
    assert len(line) <= LONGEST_ERROR, line
    assert "  " not in line, line
    assert re.fullmatch(r"error: [ -~…]+: expected .+, got .+", line), line


def check_screen(data: bytes, proposal: Proposal, text: str) -> None:
    content = json.loads(data)
    lines = text.splitlines()
    # Cautions stand above the account, a summary below the signers.
    start = next(number for number, line in enumerate(lines) if line.startswith("account "))
    end = lines.index("") if "" in lines else len(lines)
    quotes = [line for line in lines if QUOTED.match(line)]
    unquoted = [label(line) for line in lines[start:end]]
    assert squeezed(unquoted) == squeezed([words_of(content)])
    assert squeezed(line[18:] for line in quotes) == squeezed(map(quoted, texts_of(content)))
    assert [line for line in lines if MARKER in line and line not in quotes] == []
    assert all(len(line) <= LINE_WIDTH for line in lines)
    hashes = {line for line in lines if line.startswith(("SafeTx hash", "transaction "))}
    assert [line.split()[-1] for line in hashes] == ["0x" + signed_hash(content).hex()]
    assert proposal.hash == signed_hash(content)


def label(line: str) -> str:
    return line[:16] if QUOTED.match(line) else line


def quoted(text: str) -> str:
    words = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{words}"'


def squeezed(texts: Iterable[str]) -> str:
    return "".join("".join(texts).split())


@pytest.mark.parametrize("kind", KINDS)
def test_show__every_leaf_changed_and_sealed__is_refused_or_shown_as_it_is(kind: str) -> None:
    first = original(kind)
    refused = accepted = 0

    # The first one is as it was: no change of the day may be one that is taken.
    unchanged = page_bytes(proposal_content(first))
    for data in (unchanged, *cases_of_the_day(cases(kind), EVERY)):
        try:
            proposal = parsed(data, kind)
        except ChainkitError as error:
            check_refusal(error)
            refused += 1
            continue
        check_screen(data, proposal, shown(proposal, kind))
        # The owners' signatures are over the original alone.
        counted = set(OWNERS).intersection(proposal.signatures)
        assert not counted or proposal.hash == first.hash
        accepted += 1

    assert refused > LEAST_REFUSED // EVERY
    assert accepted > 0
