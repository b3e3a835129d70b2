"""The working group's vectors of RFC 9420, where somebody has them: no package brings them.

They are ``test-vectors/passive-client-*.json`` of the repository mlswg/mls-implementations.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

from chainkit_client.mls.program import find_node
from support.client.hostile import bundle

FOLDER = os.environ.get("CHAINKIT_MLS_VECTORS")


@pytest.mark.skipif(FOLDER is None, reason="CHAINKIT_MLS_VECTORS names no folder of vectors")
def test_passive_client__of_suites_1_and_3__computes_each_epoch(tmp_path: Path) -> None:
    files = sorted(Path(FOLDER or "").glob("passive-client-*.json"))
    assert files
    program = bundle("passive_client.mjs", tmp_path)

    done = subprocess.run(
        [find_node(), program, *files], capture_output=True, text=True, timeout=200, check=False
    )

    assert done.returncode == 0, done.stderr
    counted = json.loads(done.stdout)
    assert counted["groups"] > 0
    assert counted["epochs"] >= counted["groups"]
