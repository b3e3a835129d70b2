"""A second PostgreSQL that repeats what the first one commits, and may take its place."""

from __future__ import annotations

import os
import subprocess
import time

from sqlalchemy import make_url

from localnet.postgres import Postgres

SECONDS = 30.0


class Standby(Postgres):
    """A hot standby of a primary, by streaming replication; use as a context manager."""

    def __init__(self, primary: Postgres, port: int | None = None, **settings: str) -> None:
        """Copy the primary; with ``port`` the standby listens where a server was that is gone."""
        self._primary = primary
        self._port = port
        super().__init__(**settings)

    def start(self) -> None:
        """Start the server on its port."""
        self.port = self._port or self.port
        super().start()

    def _make_data_folder(self) -> None:
        self._password = self._primary._password
        if self._account:
            os.chown(self.folder, self._account["user"], self._account["group"])
        subprocess.run(
            [
                self._programs / "pg_basebackup",
                *("--host", "127.0.0.1", "--port", str(self._primary.port)),
                *("--username", "postgres", "--pgdata", self._data),
                *("--write-recovery-conf", "--checkpoint", "fast", "--no-sync"),
            ],
            check=True,
            cwd=self.folder,
            env={"PGPASSWORD": self._password},
            **self._account,
        )

    def promote(self) -> None:
        """Take the primary's place."""
        self.execute("SELECT pg_promote()")


def wait_for_standby(primary: Postgres) -> None:
    """Have each commit wait until the standby has it."""
    primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
    primary.execute("SELECT pg_reload_conf()")
    deadline = time.monotonic() + SECONDS
    query = "SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')"
    while primary.execute(query)[0][0] == 0:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def of_either(database: str, *servers: Postgres) -> str:
    """Return the URL of a database on whichever server takes writes."""
    url = make_url(database)
    hosts = "&".join(f"host=127.0.0.1:{each.port}" for each in servers)
    name, password = url.username, url.password
    plain = f"postgresql+psycopg://{name}:{password}@/{url.database}"
    return f"{plain}?{hosts}&target_session_attrs=read-write&connect_timeout=3"
