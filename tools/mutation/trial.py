"""Gives a mutant to the suites of the contracts, in a copy of the project."""

from chainkit.errors import ConfigurationError
from tools.breaking import Copy, Ended
from tools.mutation.mutants import Mutant

# Left out: these suites compare files, deploy by the scripts or are slow; none is about a
# contract's behaviour. The scripts refuse every mutant, because its code is not the package's: that
# is no test that notices.
APE_FILES_LEFT_OUT = (
    "test_abi_coverage.py",
    "test_abis.py",
    "test_deploy*.py",
    "test_roles_table.py",
    "test_stateful_*.py",
    "test_traffic_and_reorg.py",
)
KILLED, SURVIVED, INVALID = "killed", "survived", "not compiling"


def check_unchanged(copy: Copy, suites: tuple[str, ...], seed: int) -> None:
    """Refuse to start with a suite that fails on the unchanged contracts."""
    for suite in suites:
        ended = _run(copy, suite, seed)
        if ended.status != 0:
            end = "\n".join(ended.output.splitlines()[-20:])
            raise ConfigurationError(f"suite {suite}", "all tests to pass unchanged", end)


def outcome_of(copy: Copy, mutant: Mutant, suites: tuple[str, ...], seed: int) -> str:
    """Run the suites in turn, until a suite notices the mutant."""
    with copy.changed(mutant):
        for suite in suites:
            ended = _run(copy, suite, seed)
            if "Compiler run failed" in ended.output:
                return INVALID
            if ended.status != 0:
                return KILLED
        return SURVIVED


def _run(copy: Copy, suite: str, seed: int) -> Ended:
    if suite == "forge":
        return copy.forge("--fail-fast", FOUNDRY_FUZZ_SEED=hex(seed))
    left_out = [f"--ignore-glob=tests/contracts/{name}" for name in APE_FILES_LEFT_OUT]
    return copy.ape("tests/contracts", "-x", *left_out)
