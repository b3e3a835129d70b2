import resource
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url, text

from chainkit.errors import StoreError, StoreInUse, StoreUnavailable
from chainkit_indexer.storage import migrate
from chainkit_indexer.storage.database import Database
from chainkit_indexer.storage.envelopes import read_highest
from localnet.postgres import Postgres
from support.indexer.databases import whole_pages, write_page

MIB = 1024 * 1024
FAULTS: dict[str, Callable[[Postgres], object]] = {
    "restarted": Postgres.restart,
    "crashed": partial(Postgres.restart, immediately=True),
    "cut off": Postgres.kill_connections,
}


@pytest.fixture
def url(postgres: Postgres) -> str:
    return postgres.new_database()


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    opened = Database(url)
    migrate.create(opened)
    write_page(opened)
    yield opened
    opened.close()


@contextmanager
def small_disk(mebibytes: int) -> Iterator[Path]:
    """A folder that is as small as said; only root may make one."""
    folder = Path(tempfile.mkdtemp(prefix="chainkit-disk-"))
    folder.chmod(0o755)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", folder],
        check=False,
        capture_output=True,
    )
    try:
        if mounted.returncode:
            pytest.skip("needs the right to mount a small disk")
        yield folder
    finally:
        if not mounted.returncode:
            subprocess.run(["umount", "--lazy", folder], check=True)
        folder.rmdir()


@contextmanager
def small_database(kind: str, postgres: Postgres) -> Iterator[tuple[str, Path]]:
    """URL of an empty database that has its tables on a small disk, and the disk."""
    with small_disk(24) as disk:
        if kind == "sqlite":
            yield str(disk / "node.db"), disk
            return
        owner = postgres.folder.stat()
        shutil.chown(disk, owner.st_uid, owner.st_gid)
        postgres.execute(f"CREATE TABLESPACE small LOCATION '{disk}'")
        url = postgres.new_database()
        name = make_url(url).database
        postgres.execute(f"ALTER DATABASE {name} SET TABLESPACE small")
        try:
            yield url, disk
        finally:
            postgres.execute(f"DROP DATABASE {name} WITH (FORCE)")
            postgres.execute("DROP TABLESPACE small")


def fill(database: Database) -> int:
    """Write pages until that is refused, and return how many there are."""
    for number in range(1000):
        try:
            write_page(database)
        except StoreUnavailable:
            return number
    raise AssertionError("never full")


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_write__disk_full__waits_for_space_with_whole_pages(kind: str, postgres: Postgres) -> None:
    with small_database(kind, postgres) as (url, disk):
        database = Database(url)
        migrate.create(database)
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(4 * MIB))

        written = fill(database)
        with pytest.raises(StoreUnavailable, match=r"(?i)disk is full|no space left"):
            write_page(database)
        if kind == "sqlite":
            # A new connection to PostgreSQL may need space for the catalogue's cache.
            assert whole_pages(database) == written
        ballast.unlink()
        assert whole_pages(database) == written > 0
        write_page(database)

        assert whole_pages(database) == written + 1
        database.close()


def test_write__file_may_not_grow__waits_with_whole_pages(tmp_path: Path) -> None:
    database = Database(str(tmp_path / "node.db"))
    migrate.create(database)
    write_page(database)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MIB, hard))
    try:
        written = 1 + fill(database)
        assert whole_pages(database) == written
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    write_page(database)

    assert whole_pages(database) == written + 1
    with database.reading() as connection:
        assert connection.scalar(text("PRAGMA integrity_check")) == "ok"
    database.close()


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("moment", ["half_way", "before_commit"])
def test_write__interrupted_by_the_server__leaves_nothing_and_resumes(
    fault: str, moment: str, postgres: Postgres, database: Database, url: str
) -> None:
    with pytest.raises(StoreUnavailable):
        write_page(database, **{moment: lambda: FAULTS[fault](postgres)})

    assert whole_pages(database) == 1
    write_page(database)
    assert whole_pages(database) == 2
    assert_locked(url)


@pytest.mark.parametrize("fault", FAULTS)
def test_write__interrupted_between_two__fails_once_at_most(
    fault: str, postgres: Postgres, database: Database, url: str
) -> None:
    assert whole_pages(database) == 1

    FAULTS[fault](postgres)

    assert whole_pages(database) == 1
    with suppress(StoreUnavailable):
        write_page(database)
    pages = whole_pages(database)
    write_page(database)
    assert whole_pages(database) == pages + 1
    assert_locked(url)


@pytest.mark.parametrize("fault", FAULTS)
def test_read__interrupted_by_the_server__fails_and_works_again(
    fault: str, postgres: Postgres, database: Database
) -> None:
    with pytest.raises(StoreUnavailable), database.reading() as connection:
        connection.execute(text("SELECT * FROM envelopes"))
        FAULTS[fault](postgres)
        connection.execute(text("SELECT * FROM envelopes"))

    assert whole_pages(database) == 1


@pytest.mark.parametrize("fault", FAULTS)
def test_read_highest__interrupted_by_the_server__fails_and_works_again(
    fault: str, postgres: Postgres, database: Database
) -> None:
    with pytest.raises(StoreUnavailable), database.reading() as connection:
        before = read_highest(connection)
        FAULTS[fault](postgres)
        read_highest(connection)

    with database.reading() as connection:
        assert read_highest(connection) == before


def test_everything__server_stopped__may_pass(
    postgres: Postgres, database: Database, url: str
) -> None:
    other = Database(url)
    postgres.stop()
    try:
        for attempt in (whole_pages, write_page, write_page, migrate.check_revision, Database.lock):
            with pytest.raises(StoreUnavailable):
                attempt(database)
        with pytest.raises(StoreUnavailable):
            other.lock()
    finally:
        postgres.start()

    write_page(database)
    assert whole_pages(database) == 2


def test_write__lock_lost_to_another__is_refused_until_that_one_ends(
    postgres: Postgres, database: Database, url: str
) -> None:
    other = Database(url)
    postgres.kill_connections()
    write_page(other)

    with suppress(StoreUnavailable):
        write_page(database)
    for _ in range(2):
        with pytest.raises(StoreInUse):
            write_page(database)
    assert whole_pages(database) == 2
    other.close()

    write_page(database)
    assert whole_pages(database) == 3


def test_write__network_lost_the_session_and_the_server_did_not_see__takes_the_lock_back(
    postgres: Postgres, url: str
) -> None:
    with Relay(postgres.port) as relay:
        address = make_url(url).set(port=relay.port)
        database = Database(address.render_as_string(hide_password=False))
        migrate.create(database)
        relay.forget_clients()

        with pytest.raises(StoreUnavailable):
            write_page(database)
        write_page(database)

        assert whole_pages(database) == 1
        assert_locked(url)
        database.close()


def test_connect__too_many_connections__may_pass() -> None:
    settings = {"max_connections": "4", "superuser_reserved_connections": "0", "fsync": "off"}
    with Postgres(**settings) as server:
        url = server.new_database()
        database = Database(url)
        others = [Database(url) for _ in range(4)]
        with ExitStack() as held:
            for other in others:
                held.enter_context(other.reading())
            with pytest.raises(StoreUnavailable, match="too many clients"):
                database.lock()
        for other in others:
            other.close()

        migrate.create(database)
        write_page(database)
        database.close()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"password": "guess"}, "password authentication failed"),
        ({"database": "nowhere"}, 'database "nowhere" does not exist'),
    ],
)
def test_connect__refused_for_good__is_no_matter_of_waiting(
    url: str, change: dict[str, Any], message: str
) -> None:
    wrong = make_url(url).set(**change)

    with pytest.raises(StoreError, match=message) as caught:
        Database(wrong.render_as_string(hide_password=False)).lock()

    assert not isinstance(caught.value, StoreUnavailable)


def assert_locked(url: str) -> None:
    other = Database(url)
    with pytest.raises(StoreInUse):
        other.lock()


class Relay:
    """A way to the server that loses clients without telling the server."""

    def __init__(self, port: int) -> None:
        self._server_port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._clients: list[socket.socket] = []
        self._servers: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> "Relay":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        for each in (self._listener, *self._clients, *self._servers):
            each.close()

    def forget_clients(self) -> None:
        for client in self._clients:
            client.shutdown(socket.SHUT_RDWR)
        time.sleep(0.1)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._server_port))
                self._clients.append(client)
                self._servers.append(server)
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=_pump, args=pair, daemon=True).start()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
