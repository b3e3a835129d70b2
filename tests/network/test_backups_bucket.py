"""The storage service with a bucket of a real S3 server: as with a folder, and over restarts."""

from __future__ import annotations

import io
import json
import os
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from botocore.session import Session
from click.testing import CliRunner

from chainkit.service.upload_grant import Grant, write_grant
from chainkit_backups.bucket import Bucket, open_bucket
from chainkit_backups.cli.serve import serve_command
from chainkit_backups.store import Store
from chainkit_backups.types import DEFAULT_SECONDS, AlreadyUsed, Kind, Stored
from support.network.s3_server import ENVIRONMENT, S3Server
from support.network.storage_service import StorageService, content, upload_of

MIB = 1 << 20
KEY = bytes(range(32))
NAME = "history"


@pytest.fixture(scope="module", autouse=True)
def environment() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="module")
def server(environment: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    server = S3Server(tmp_path_factory.mktemp("s3") / "log")
    server.start()
    client(server).create_bucket(Bucket=NAME)
    yield server
    server.stop()


def client(server: S3Server) -> Any:
    return Session().create_client("s3", endpoint_url=server.url)


def objects(server: S3Server, prefix: str) -> dict[str, int]:
    listed = client(server).list_objects_v2(Bucket=NAME, Prefix=f"{prefix}/")
    return {
        each["Key"].removeprefix(f"{prefix}/"): each["Size"] for each in listed.get("Contents", ())
    }


@pytest.fixture
def service(server: S3Server, tmp_path: Path) -> Iterator[StorageService]:
    """A service with objects of its own."""
    key = tmp_path / "grant.key"
    key.write_text(KEY.hex())
    options = ("--bucket", f"{NAME}/{tmp_path.name}", "--s3-url", server.url)
    service = StorageService(tmp_path / "service", *options, "--grant-key", str(key))
    service.start()
    yield service
    assert service.stop() == 0


def grant_path() -> str:
    return f"/upload?grant={write_grant(KEY, Grant(os.urandom(16), int(time.time()) + 600))}"


@pytest.mark.conforms("H22")
def test_upload__into_a_bucket__is_one_object_and_comes_back_whole_and_in_parts(
    service: StorageService, server: S3Server, tmp_path: Path
) -> None:
    data = os.urandom(3 * MIB)

    stored = service.upload(data).text

    [(key, size)] = objects(server, tmp_path.name).items()
    assert (re.fullmatch(rf"open/{stored}/\d+", key) is not None, size) == (True, len(data))
    assert service.has_no_rest()
    assert service.download(stored).body == data
    part = service.download(stored, "range: bytes=1000000-2000000\r\n")
    assert (part.status, part.body) == (206, data[1_000_000:2_000_001])
    with service.connect() as connection:
        connection.sendall(f"GET /files/{stored} HTTP/1.1\r\nhost: h\r\n\r\n".encode())
        begun = b""
        while len(begun) < 300_000:
            begun += connection.recv(65536)
    begun = begun.partition(b"\r\n\r\n")[2]
    rest = service.download(stored, f"range: bytes={len(begun)}-\r\n")
    assert begun + rest.body == data
    assert service.download(f"{stored}/..").status == 404


@pytest.mark.conforms("H23", "H24")
def test_service__killed__finds_files_their_time_and_used_grants_in_the_bucket(
    service: StorageService, server: S3Server, tmp_path: Path
) -> None:
    data, path = content(100_000), grant_path()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: service.upload(data, path), range(4)))
    assert sorted(each.status for each in found) == [200, 409, 409, 409]
    [granted] = [each.text for each in found if each.status == 200]
    kept, late = (service.upload(data).text for _ in range(2))
    with service.connect() as connection:
        connection.sendall(upload_of(data)[:-5])
        while not os.listdir(service.files / "incoming"):
            time.sleep(0.02)
        service.kill()
    # As if the time of one had passed meanwhile, and its object was left.
    now, prefix = time.time(), tmp_path.name
    [key] = [each for each in objects(server, prefix) if late in each]
    assert abs(int(key.rpartition("/")[2]) / 1000 - now - DEFAULT_SECONDS) < 60
    end = f"{prefix}/ends/{late}/{int(now * 1000) - 1000}"
    client(server).put_object(Bucket=NAME, Key=end, Body=b"")

    service.start()

    assert [service.download(each).status for each in (granted, kept, late)] == [200, 200, 404]
    assert service.upload(data, path).status == 409
    assert service.metric('bytes{kind="granted"}') == len(data)
    deadline = time.monotonic() + 30
    while any(late in each for each in objects(server, prefix)):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert {each.partition("/")[0] for each in objects(server, prefix)} == {
        "open",
        "granted",
        "used",
    }
    assert service.has_no_rest()


class Clock:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def bucket(server: S3Server, prefix: str) -> Bucket:
    return open_bucket(f"{NAME}/{prefix}", server.url)()


def keep(store: Store, clock: Clock, data: bytes = b"data", grant: Grant | None = None) -> Stored:
    upload = store.begin(Kind.OPEN if grant is None else Kind.GRANTED, "192.0.2.1", grant)
    upload.write(data)
    upload.sync(clock() + DEFAULT_SECONDS)
    return upload.keep()


@pytest.mark.conforms("H24")
def test_store__in_a_bucket__keeps_files_for_72_hours_or_until_an_earlier_end(
    server: S3Server, tmp_path: Path
) -> None:
    clock, prefix = Clock(), "times"
    store = Store.open(tmp_path / "files", clock, lambda: bucket(server, prefix))
    kept, early = keep(store, clock), keep(store, clock, b"early")
    used = Grant(os.urandom(16), int(clock()) + 600)
    granted = keep(store, clock, b"granted", used)
    store.expire(early, clock() + 60)
    store.close()

    again = Store.open(tmp_path / "files", clock, lambda: bucket(server, prefix))

    assert {each.id: (each.size, each.expires_at) for each in again.files} == {
        kept.id: (4, clock() + DEFAULT_SECONDS),
        early.id: (5, clock() + 60),
        granted.id: (7, clock() + DEFAULT_SECONDS),
    }
    clock.now += 60
    assert [each.id for each in again.purge()] == [early.id]
    with pytest.raises(FileNotFoundError):
        again.open_file(early)
    clock.now += DEFAULT_SECONDS - 120
    assert again.find(kept.id) is not None
    clock.now += 60
    assert again.find(kept.id) is None
    assert len(again.purge()) == 2
    assert objects(server, prefix) == {}
    again.close()


def test_put__what_is_there__is_never_written_over(server: S3Server, tmp_path: Path) -> None:
    first, second = bucket(server, "once"), bucket(server, "once")
    stored = Stored("id", Kind.OPEN, 5, 1_800_000_000.0)
    arrived = tmp_path / "arrived"
    arrived.write_bytes(b"first")
    first.keep(arrived, stored)
    arrived.write_bytes(b"other")

    with pytest.raises(FileExistsError):
        second.keep(arrived, stored)

    with first.open(stored, 0) as content:
        assert content.read(100) == b"first"
    grant = Grant(bytes(16), 1_800_000_000)
    first.use(grant)
    # Another process with the same bucket.
    with pytest.raises(AlreadyUsed):
        second.use(grant)


def test_put__that_was_done_and_not_answered__counts_as_done(server: S3Server) -> None:
    place = bucket(server, "lost")
    real = place._client.put_object

    def twice(**given: Any) -> None:
        real(**given)
        given["Body"] = io.BytesIO(b"")
        real(**given)

    place._client.put_object = twice

    place.use(Grant(bytes(16), 1_800_000_000))

    assert len(objects(server, "lost")) == 1


def test_service__whose_store_is_away__answers_500_keeps_nothing_and_gives_the_grant_back(
    tmp_path: Path,
) -> None:
    own = S3Server(tmp_path / "log")
    own.start()
    client(own).create_bucket(Bucket=NAME)
    key = tmp_path / "grant.key"
    key.write_text(KEY.hex())
    options = ("--bucket", NAME, "--s3-url", own.url, "--grant-key", str(key))
    service = StorageService(tmp_path / "service", *options)
    service.start()
    try:
        stored, path = service.upload(content()).text, grant_path()
        own.stop()
        assert service.upload(content(), path).status == 500
        assert service.download(stored).status == 500
        assert service.metric('uploads_total{kind="granted",outcome="failed"}') == 1
        assert service.metric('bytes{kind="granted"}') == 0
        assert service.has_no_rest()
        own.start()
        client(own).create_bucket(Bucket=NAME)
        assert service.upload(content(), path).status == 200
        # The store has lost what it had.
        assert service.download(stored).status == 404
    finally:
        assert service.stop() == 0
        own.stop()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--bucket", "absent"], "bucket absent: expected one that can be used, got 404"),
        (["--bucket", NAME, "--file-mib", "6000"], "expected at most 5120 MiB of one file"),
        ([], "--s3-url needs --bucket"),
    ],
)
def test_serve__options_that_cannot_be__are_refused(
    server: S3Server, tmp_path: Path, options: list[str], words: str
) -> None:
    given = ["--folder", str(tmp_path / "files"), "--s3-url", server.url, *options]

    done = CliRunner().invoke(serve_command, given)

    assert done.exit_code != 0
    assert words in f"{done.output} {done.exception}"
    assert "secret" not in json.dumps(f"{done.output} {done.exception}")
