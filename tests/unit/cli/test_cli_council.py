"""The council's commands refuse a missing signer before they read anything."""

from __future__ import annotations

import pytest

from support.command_line import run


def test_sign__without_any_signer__names_every_way_to_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KEYSTORE", "PRIVATE_KEY"):
        monkeypatch.delenv(f"CHAINKIT_{name}", raising=False)
    own = ("--deployment", "deployment.json", "--council", "council.json")

    outcome = run("council", "sign", "proposal.json", *own)

    assert outcome.code == 2
    assert (
        "Error: council sign needs --keystore FILE, --account ALIAS, --signature HEX|FILE or "
        "--export FILE\n"
    ) in outcome.err
