"""A second revision, which no program has: for tests of how databases are upgraded."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import pytest

import chainkit_indexer
from chainkit_indexer.cli import repair
from chainkit_indexer.storage import migrate

_SECOND: Final = "0002"
_SECOND_REVISION: Final = f'''
from alembic import op
from sqlalchemy import Column, Text

revision = "{_SECOND}"
down_revision = "0001"

def upgrade():
    op.add_column("reorgs", Column("remark", Text))
    op.execute("UPDATE reorgs SET remark = 'from before'")
    op.create_index("reorgs_by_remark", "reorgs", ["remark"])
'''


@pytest.fixture
def second_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let the program have a second revision, which adds a column to the reorgs; return it."""
    folder = tmp_path / "migrations"
    shutil.copytree(Path(chainkit_indexer.__file__).parent / "storage/migrations", folder)
    (folder / "versions/revision_0002.py").write_text(_SECOND_REVISION)
    monkeypatch.setattr(migrate, "_MIGRATIONS", str(folder))
    for module in (migrate, repair):
        monkeypatch.setattr(module, "REVISION", _SECOND)
    return _SECOND
