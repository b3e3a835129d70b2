"""The storage service as a process: uploads, downloads and parts, grants, restarts."""

from __future__ import annotations

import itertools
import json
import os
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner

from chainkit.service.upload_grant import Grant, write_grant
from chainkit_backups.cli.grant import grant_command
from support.network.storage_service import StorageService, content, form_of, upload_of

MIB = 1 << 20
KEY = bytes(range(32))
_NUMBERS = itertools.count(20)


@pytest.fixture
def own() -> str:
    """An address that no other test uploads from: each has limits of its own."""
    return f"127.0.1.{next(_NUMBERS)}"


@pytest.fixture(scope="module")
def key_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("key") / "grant.key"
    path.write_text(KEY.hex() + "\n")
    return path


@pytest.fixture(scope="module")
def service(key_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StorageService]:
    service = StorageService(
        tmp_path_factory.mktemp("service"),
        *("--grant-key", str(key_path), "--open-file-mib", "2", "--file-mib", "8"),
    )
    service.start()
    yield service
    assert service.stop() == 0


def grant(seconds: int = 600, key: bytes = KEY) -> str:
    return write_grant(key, Grant(os.urandom(16), int(time.time()) + seconds))


# ------------------------------------------------------------------ in and out


@pytest.mark.conforms("H22")
def test_upload__by_todays_client__is_answered_with_the_id_alone(
    service: StorageService, own: str
) -> None:
    data = content(200_000)

    stored = service.upload(data, source=own)

    assert stored.status == 200
    assert re.fullmatch(r"[A-Za-z0-9_-]{22}", stored.text)
    assert service.download(stored.text).body == data


@pytest.mark.conforms("H22")
def test_backup__form_of_the_seed__is_answered_with_its_url(
    service: StorageService, own: str
) -> None:
    data = content(200_000)
    headers, body = form_of(data)

    stored = service.send(
        f"POST /backups HTTP/1.1\r\nhost: h\r\n{headers}\r\n".encode() + body, own
    )

    url = json.loads(stored.body)["downloadUrl"]
    start = f"http://127.0.0.1:{service.port}/backups/"
    assert url.startswith(start)
    request = f"GET /backups/{url.removeprefix(start)} HTTP/1.1\r\nhost: h\r\n\r\n"
    assert service.send(request.encode()).body == data


def test_upload__same_bytes_twice__has_two_ids(service: StorageService, own: str) -> None:
    data = content()

    assert service.upload(data, source=own).text != service.upload(data, source=own).text


def test_upload__compressed__is_stored_as_it_came(service: StorageService, own: str) -> None:
    data = content()

    stored = service.upload(data, source=own, headers="content-encoding: gzip\r\n")

    assert service.download(stored.text).body == data


def test_download__answer__is_no_page_of_the_host_and_readable_by_all(
    service: StorageService, own: str
) -> None:
    found = service.download(service.upload(b"<script>", source=own).text).headers

    assert found["content-type"] == "application/octet-stream"
    assert found["content-disposition"] == "attachment"
    assert "sandbox" in found["content-security-policy"]
    assert found["x-content-type-options"] == "nosniff"
    assert found["access-control-allow-origin"] == "*"
    assert found["cache-control"] == "no-store"


# ------------------------------------------------------------------ parts


@pytest.mark.parametrize(
    ("asked", "status", "begin", "end"),
    [
        ("bytes=0-0", 206, 0, 1),
        ("bytes=10-19", 206, 10, 20),
        ("bytes=990-", 206, 990, 1000),
        ("bytes=-7", 206, 993, 1000),
        ("bytes=-5000", 206, 0, 1000),
        ("bytes=995-5000", 206, 995, 1000),
        ("bytes=1000-", 416, 0, 0),
        ("bytes=5-4", 200, 0, 1000),
        ("bytes=0-1,5-6", 200, 0, 1000),
        ("lines=0-1", 200, 0, 1000),
        (f"bytes={'9' * 5000}-", 200, 0, 1000),
    ],
)
def test_download__range__is_as_asked(
    service: StorageService, asked: str, status: int, begin: int, end: int
) -> None:
    source = f"127.0.2.{next(_NUMBERS)}"
    data = os.urandom(1000)
    stored = service.upload(data, source=source)

    found = service.download(stored.text, f"range: {asked}\r\n", source)

    assert found.status == status
    if status == 416:
        assert found.headers["content-range"] == "bytes */1000"
        return
    assert found.body == data[begin:end]
    ranged = f"bytes {begin}-{end - 1}/1000"
    assert found.headers.get("content-range") == (ranged if status == 206 else None)


def test_download__cut_in_the_middle__goes_on_where_it_ended(
    service: StorageService, own: str
) -> None:
    data = os.urandom(2 * MIB)
    stored = service.upload(data, source=own)
    with service.connect() as connection:
        connection.sendall(f"GET /files/{stored.text} HTTP/1.1\r\nhost: h\r\n\r\n".encode())
        begun = b""
        while len(begun) < 300_000:
            begun += connection.recv(65536)
    head, _, begun = begun.partition(b"\r\n\r\n")
    [tag] = re.findall(rb"(?i)^etag: (\S+)", head, re.MULTILINE)

    headers = f"range: bytes={len(begun)}-\r\nif-range: {tag.decode()}\r\n"
    rest = service.download(stored.text, headers)

    assert rest.status == 206
    assert begun + rest.body == data


# ------------------------------------------------------------------ grants


@pytest.mark.conforms("H23")
def test_grant__used__takes_one_file_and_has_limits_of_its_own(
    service: StorageService, own: str
) -> None:
    path = f"/backups?grant={grant()}"
    data = os.urandom(4 * MIB)

    kept = service.upload(data, path, own)
    again = service.upload(data, path, own)

    assert (kept.status, again.status) == (200, 409)
    file_id = json.loads(kept.body)["downloadUrl"].rpartition("/")[2]
    assert service.download(file_id).body == data


def test_grant__of_several_uploads_at_once__takes_one_file(
    service: StorageService, own: str
) -> None:
    path = f"/backups?grant={grant()}"

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: service.upload(content(), path, own).status, range(8)))

    assert sorted(found) == [200] + [409] * 7
    assert service.has_no_rest()


def test_grant__whose_upload_broke_off__may_be_used_again(
    service: StorageService, own: str
) -> None:
    path = f"/backups?grant={grant()}"
    with service.connect(own) as connection:
        connection.sendall(upload_of(content(), path)[:-5])
    assert service.has_no_rest()

    assert service.upload(content(), path, own).status == 200


def test_grant_command__url_that_it_prints__takes_one_file(
    service: StorageService, key_path: Path, own: str
) -> None:
    start = f"http://127.0.0.1:{service.port}"
    words = ["--grant-key", str(key_path), "--url", f"{start}/"]

    printed = CliRunner().invoke(grant_command, words, catch_exceptions=False).stdout

    path = printed.strip().removeprefix(start)
    assert path.startswith("/backups?grant=")
    assert [service.upload(content(), path, own).status for _ in range(2)] == [200, 409]


@pytest.mark.parametrize(
    "text",
    ["", "x", "A" * 75, grant(-1), grant(key=bytes(32)), grant()[:-1] + "!", grant() + "A"],
    ids=["empty", "short", "zeros", "expired", "of another key", "altered", "longer"],
)
def test_grant__that_does_not_hold__is_refused(service: StorageService, text: str) -> None:
    source = f"127.0.6.{next(_NUMBERS)}"

    assert service.upload(content(), f"/backups?grant={text}", source).status == 403


# ------------------------------------------------------------------ over restarts


def test_service__killed__keeps_files_their_time_and_used_grants(
    key_path: Path, tmp_path: Path
) -> None:
    service = StorageService(tmp_path, "--grant-key", str(key_path))
    service.start()
    data, path = content(100_000), f"/upload?grant={grant()}"
    kept = [service.upload(data, place).text for place in ("/upload", path, "/upload")]
    with service.connect() as connection:
        connection.sendall(upload_of(data)[:-5])
        while not os.listdir(service.files / "incoming"):
            time.sleep(0.02)
        service.kill()
    # As if this file's 72 hours had passed meanwhile.
    late = service.files / "open" / kept[2]
    assert abs(late.stat().st_mtime - time.time() - 72 * 3600) < 60
    os.utime(late, (time.time() - 1,) * 2)

    service.start()
    try:
        assert [service.download(each).status for each in kept] == [200, 200, 404]
        assert service.upload(data, path).status == 409
        assert service.metric('files{kind="open"}') == 1
        assert service.metric('bytes{kind="granted"}') == len(data)
        assert (os.listdir(service.files / "incoming"), late.exists()) == ([], False)
    finally:
        assert service.stop() == 0


@pytest.mark.conforms("H24")
def test_service__with_seconds_after_download__keeps_a_file_until_its_end_was_sent(
    tmp_path: Path,
) -> None:
    service = StorageService(tmp_path, "--seconds-after-download", "0")
    service.start()
    try:
        stored = service.upload(content()).text
        found = [service.download(stored, f"range: bytes={each}\r\n") for each in ("0-9", "10-")]

        assert [each.status for each in found] == [206, 206]
        assert service.download(stored).status == 404
    finally:
        assert service.stop() == 0


def test_service__on_a_folder_that_another_one_serves__is_refused(
    service: StorageService, tmp_path: Path
) -> None:
    second = StorageService(tmp_path, "--folder", str(service.files))

    with pytest.raises(AssertionError, match=r"exit 2: .*is served by another process"):
        second.start()


def test_monitor__of_a_service_that_works__says_so(service: StorageService) -> None:
    assert json.loads(service.watch("/healthz"))["alive"]
    assert json.loads(service.watch("/readyz"))["ready"]
    assert service.metric('uploads_total{kind="granted",outcome="not_allowed"}') > 0
