import gc
import inspect
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from chainkit import __version__
from chainkit.cli.main import SECTIONS, chainkit, main
from chainkit.terminal.command import LazyGroup, load_command

COMMANDS = [name for commands in SECTIONS.values() for name in commands]
HEAVY = ["ape", "pyarrow", "pyspark", "sqlalchemy"]
UNUSED = ["eth_account", "websockets", "chainkit_client.accounts"]
"""Modules that commands for history between devices do without, and other commands import."""

Path_ = tuple[str, ...]


def commands_below(path: Path_, command: click.Command) -> Iterator[tuple[Path_, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None, (*path, name)
            yield from commands_below((*path, name), child)


def commands_of(name: str) -> list[tuple[Path_, click.Command]]:
    command = chainkit.get_command(click.Context(chainkit), name)
    assert command is not None
    return list(commands_below((name,), command))


def help_sentence(command: click.Command) -> str:
    return " ".join((command.help or "").split("\n\n")[0].split())


def examples_of(command: click.Command) -> list[str]:
    """The lines after `Example:`, each with what continues it."""
    _, _, text = inspect.cleandoc(command.help or "").partition("\nExample:\n")
    lines = text.split("\n\n")[0].replace("\\\n", " ").splitlines()
    return [" ".join(line.split()) for line in lines]


def faults_of_example(example: str) -> list[str]:
    """Words of an example line that are no command, or no option of the command."""
    command: click.Command = chainkit
    words = shlex.split(example)
    if words[:1] != ["chainkit"]:
        return [f"{example}: does not start with chainkit"]
    rest = words[1:]
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        child = command.get_command(click.Context(command), rest[0])
        if child is None:
            return [f"{example}: no command {rest[0]}"]
        command, rest = child, rest[1:]
    known = {option for param in command.params for option in (*param.opts, *param.secondary_opts)}
    used = {word.partition("=")[0] for word in rest if word.startswith("-") and word != "-"}
    return [f"{example}: no option {option}" for option in sorted(used - known)]


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.mark.parametrize("end", ["", "raise ModuleNotFoundError('a_package')"])
def test_load__module_of_a_command__is_imported_while_no_garbage_is_collected(
    end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"command_{bool(end)}"
    seen = tmp_path / "seen"
    lines = [
        "import click, gc",
        "from pathlib import Path",
        f"Path({str(seen)!r}).write_text(str(gc.isenabled()))",
        end,
        "command = click.Command('shown')",
    ]
    (tmp_path / f"{name}.py").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(ModuleNotFoundError) if end else nullcontext():
        assert load_command(name, "command").name == "shown"

    assert seen.read_text() == "False"
    assert gc.isenabled()


# ------------------------------------------------------------------ every command


@pytest.mark.parametrize("name", COMMANDS)
def test_document__every_command_below__has_a_sentence_with_a_full_stop(name: str) -> None:
    sentences = {path: help_sentence(command) for path, command in commands_of(name)}

    assert [path for path, sentence in sentences.items() if not sentence.endswith(".")] == []
    assert [path for path, sentence in sentences.items() if not sentence[:1].isupper()] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_list_command__in_a_groups_help__is_its_own_sentence(name: str) -> None:
    group = chainkit.get_command(click.Context(chainkit), name)
    lazy = group.lazy_commands if isinstance(group, LazyGroup) else {}

    for command in lazy.values():
        assert command.sentence == command.load().get_short_help_str(limit=1000)


@pytest.mark.parametrize("name", COMMANDS)
def test_document__every_command_below__has_an_example_of_itself(name: str) -> None:
    without = []
    for path, command in commands_of(name):
        start = " ".join(("chainkit", *path))
        examples = examples_of(command)
        if not examples or not all(f"{line} ".startswith(f"{start} ") for line in examples):
            without.append((path, examples))

    assert without == []


@pytest.mark.parametrize("name", COMMANDS)
def test_document__every_example__uses_commands_and_options_that_exist(name: str) -> None:
    faults = [
        fault
        for _, command in commands_of(name)
        for example in examples_of(command)
        for fault in faults_of_example(example)
    ]

    assert faults == []


@pytest.mark.parametrize("name", COMMANDS)
def test_document__every_option_below__has_a_help_text(name: str) -> None:
    without = [
        (path, option.name)
        for path, command in commands_of(name)
        for option in command.params
        if isinstance(option, click.Option) and not option.help
    ]

    assert without == []


@pytest.mark.parametrize("name", COMMANDS)
def test_ask_help__of_every_command_below__exits_0(name: str) -> None:
    for path, command in commands_of(name):
        result = CliRunner().invoke(chainkit, [*path, "--help"])

        assert result.exit_code == 0, (path, result.output)
        assert result.output.startswith("Usage: "), path
        assert help_sentence(command).split()[0] in result.output, path


# ------------------------------------------------------------------ the root


def test_document__root__has_a_sentence_and_an_example() -> None:
    assert help_sentence(chainkit).endswith(".")
    assert [faults_of_example(example) for example in examples_of(chainkit)] == [[]]


def test_ask_help__of_the_root__lists_every_command_under_whom_it_serves() -> None:
    result = CliRunner().invoke(chainkit, ["--help"])

    assert result.exit_code == 0
    positions = [
        result.output.index(text)
        for section, commands in SECTIONS.items()
        for text in (f"{section}:", *(f"  {name} " for name in commands))
    ]
    assert positions == sorted(positions)
    assert chainkit.list_commands(click.Context(chainkit)) == COMMANDS


@pytest.mark.parametrize("text", [t for c in SECTIONS.values() for _, t in c.values()])
def test_list_command__in_the_roots_help__is_one_sentence(text: str) -> None:
    assert re.fullmatch(r"[A-Z][^.]*\.", text)


def test_ask_version__of_the_root__is_that_of_the_package() -> None:
    result = CliRunner().invoke(chainkit, ["--version"])

    assert (result.exit_code, result.output) == (0, f"chainkit, version {__version__}\n")


@pytest.mark.parametrize(
    "arguments",
    [["nonsense"], ["key", "nonsense"], ["--nonsense"], ["key", "show"], ["doctor", "--nonsense"]],
    ids=" ".join,
)
def test_run__unknown_command_or_missing_option__exits_2(arguments: list[str]) -> None:
    result = CliRunner().invoke(chainkit, arguments)

    assert result.exit_code == 2
    assert "Error: " in result.output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["idnex"], "No such command 'idnex'. Did you mean 'index'?"),
        (["index", "rnu"], "No such command 'rnu'. Did you mean 'run'?"),
        (["key", "nwe"], "No such command 'nwe'. Did you mean 'new'?"),
        (
            ["registry", "pen-updates"],
            "No such command 'pen-updates'. (Possible commands: close-updates, open-updates)",
        ),
        (["index", "zzz"], "No such command 'zzz'."),
        (["index", "--nonsense"], "No such option: --nonsense"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_run__mistyped_command__names_those_it_may_have_been_meant_for(
    arguments: list[str], told: str
) -> None:
    result = CliRunner().invoke(chainkit, arguments)

    assert result.exit_code == 2
    assert result.output.splitlines()[-1] == f"Error: {told}"


@pytest.mark.parametrize(("command", "extra"), [("index", "indexer"), ("audit", "audit")])
def test_run__command_whose_packages_are_missing__names_the_extra(
    command: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = next(commands for commands in SECTIONS.values() if command in commands)
    monkeypatch.setitem(section, command, ("absent_package.cli:group", "Say nothing."))

    result = CliRunner().invoke(chainkit, [command])

    assert result.exit_code == 2
    assert f"chainkit {command} needs the package absent_package" in result.output
    assert f"{extra}.txt '.[{extra}]' in a clone of chainkit" in result.output


# ------------------------------------------------------------------ a light start


@pytest.mark.parametrize(
    ("words", "heavy"),
    [
        ("--help", HEAVY),
        ("--version", HEAVY),
        ("key --help", HEAVY),
        ("client history --help", HEAVY),
        ("client history approve --help", UNUSED),
        ("client history apply --help", UNUSED),
    ],
)
def test_start__root_or_a_light_command__imports_nothing_heavy(
    words: str, heavy: list[str]
) -> None:
    code = (
        "import contextlib, io, json, sys\n"
        "from chainkit.cli.main import main\n"
        f"sys.argv = ['chainkit', *{words.split()!r}]\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        "    main()\n"
        f"print(json.dumps([name for name in {heavy!r} if name in sys.modules]))\n"
    )

    assert json.loads(run_python(code)) == []


def test_start__installed_command__runs_the_root() -> None:
    code = "from chainkit.cli.main import main; import sys; sys.argv = ['chainkit', '-h']; main()"

    assert run_python(code).startswith("Usage: chainkit [OPTIONS] COMMAND [ARGS]...")


def test_run__several_options_missing__names_all_at_once() -> None:
    result = CliRunner().invoke(chainkit, ["index", "run"], env={})

    assert result.exit_code == 2
    for name in ("--rpc (or CHAINKIT_RPC)", "--deployment", "--keystore", "--database"):
        assert name in result.output


def test_run__only_missing_option_is_in_the_environment__is_not_named() -> None:
    result = CliRunner().invoke(
        chainkit, ["index", "run"], env={"CHAINKIT_RPC": "http://127.0.0.1:1"}
    )

    assert result.exit_code == 2
    assert "--rpc" not in result.output


@pytest.mark.parametrize(
    ("command", "package", "extra"),
    [
        ("index", "sqlalchemy", "indexer"),
        ("audit", "pyspark", "audit"),
        ("audit", "pandas", "audit"),
        ("audit export-chain", "pyspark", "audit"),
    ],
)
def test_run__extra_not_installed__names_the_extra_at_once(
    command: str, package: str, extra: str
) -> None:
    program = f"""
import importlib.util, sys
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == {package!r} else found(name, *more)
from chainkit.cli.main import main
sys.argv = ["chainkit", *{command.split()!r}, "--help"]
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )

    assert done.returncode == 2
    assert (
        f"needs the package {package}: make mls-engine && pip install "
        f"-c requirements/constraints/{extra}.txt '.[{extra}]' in a clone" in done.stderr
    )


def program(*arguments: str) -> list[str]:
    return [str(Path(sys.executable).with_name("chainkit")), *arguments]


def test_run__output_that_nobody_reads__ends_quietly() -> None:
    shell = f"{shlex.join(program('doctor'))} | true; exit ${{PIPESTATUS[0]}}"

    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False)

    assert done.stderr == ""
    assert done.returncode in (0, 1, 141)


def test_run__file_that_a_command_forgot_to_look_for__is_one_sentence_and_exits_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: object) -> None:
        Path("/nowhere/record.json").read_bytes()

    monkeypatch.setattr("chainkit.cli.main.chainkit", fail)

    with pytest.raises(SystemExit, match="2"):
        main()

    assert capsys.readouterr().err == "error: /nowhere/record.json does not exist\n"


def test_run__output_that_is_full__is_one_sentence_and_exits_2() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            program("doctor"), stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )

    assert done.returncode == 2
    assert done.stderr == "error: output: No space left on device\n"
