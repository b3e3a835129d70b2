"""The storage service as a process: what it stores for whom, and what strangers cannot do."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from chainkit.service.upload_grant import Grant, write_grant
from support.network.own_gateway import SECONDS
from support.network.storage_service import (
    Answer,
    StorageService,
    exchange,
    form_of,
    read_all,
    upload_of,
)

MIB = 1 << 20
KEY = bytes(range(32))
PROXY = "127.0.0.9"
_NUMBERS = itertools.count(20)
_BYTES = itertools.count()


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
        *("--grant-key", str(key_path), "--proxy", PROXY, "--patience", "1"),
        *("--open-file-mib", "2", "--open-address-mib", "3", "--file-mib", "8"),
    )
    service.start()
    yield service
    assert service.stop() == 0


def grant(seconds: int = 600, key: bytes = KEY) -> str:
    return write_grant(key, Grant(os.urandom(16), int(time.time()) + seconds))


def content(length: int = 1000) -> bytes:
    """Bytes that no other test has."""
    return next(_BYTES).to_bytes(8, "big") * (length // 8)


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


# ------------------------------------------------------------------ what strangers cannot do


@pytest.mark.parametrize(
    "line",
    [
        *("GET /", "GET /files", "GET /files/", "GET /backups", "GET /backups/", "GET /upload"),
        *("GET /files/../lock", "GET /files/..%2flock", "GET /files/%2e%2e/%2e%2e/etc/passwd"),
        *("GET /files//etc/passwd", "GET /files/..\\lock", "GET /files/a%00b", "GET /files/%ff"),
        *("GET /files/.", "GET /files/..", "GET http://h/files/../lock", "GET /files/{id}/"),
        *("GET /files/{id}x", "GET /files/{lower}", "GET /incoming/{id}", "GET /open/{id}"),
        *("PUT /files/{id}", "DELETE /files/{id}", "POST /files/{id}", "POST /backups/{id}"),
    ],
)
def test_request__that_lists_changes_or_leaves_the_folder__is_refused(
    service: StorageService, line: str
) -> None:
    source = f"127.0.3.{next(_NUMBERS)}"
    data = content()
    stored = service.upload(data, source=source).text
    asked = line.format(id=stored, lower=stored.swapcase())

    found = service.send(f"{asked} HTTP/1.1\r\nhost: h\r\n\r\n".encode(), source)

    assert found.status in (400, 404, 405)
    assert stored not in found.text
    assert service.download(stored, source=source).body == data


def is_empty(service: StorageService) -> bool:
    """Wait until no upload is under way; tell whether nothing is left of those that ended."""
    deadline = time.monotonic() + SECONDS
    while os.listdir(service.files / "incoming") and time.monotonic() < deadline:
        time.sleep(0.02)
    return not os.listdir(service.files / "incoming")


def test_upload__announced_as_too_large__is_refused_before_it_comes(
    service: StorageService, own: str
) -> None:
    found = service.send(
        f"POST /upload HTTP/1.1\r\nhost: h\r\ncontent-length: {2 * MIB + 1}\r\n\r\n".encode(), own
    )

    assert found.status == 413


def test_upload__without_an_end__is_ended_at_the_limit(service: StorageService, own: str) -> None:
    head = b"POST /upload HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n"
    chunk = b"10000\r\n" + bytes(65536) + b"\r\n"
    before = service.metric('bytes{kind="open"}')

    found = service.send(itertools.chain([head], itertools.repeat(chunk)), own)

    assert found.status in (0, 413)
    assert is_empty(service)
    assert service.metric('bytes{kind="open"}') == before


def test_form__without_an_end_before_its_file__is_ended(service: StorageService, own: str) -> None:
    head = (
        b"POST /backups HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n"
        b"content-type: multipart/form-data; boundary=B\r\n\r\n"
    )
    line = b"10000\r\n" + (b"x" * 62 + b"\r\n") * 1024 + b"\r\n"

    found = service.send(itertools.chain([head], itertools.repeat(line)), own)

    assert found.status in (0, 408)
    assert is_empty(service)


BROKEN = {
    "shorter than announced": b"content-length: 100\r\n\r\nabc",
    "length and chunks": b"content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n"
    b"3\r\nabc\r\n0\r\n\r\n",
    "two lengths": b"content-length: 3\r\ncontent-length: 4\r\n\r\nabcd",
    "negative length": b"content-length: -1\r\n\r\nabc",
    "length of letters": b"content-length: abc\r\n\r\nabc",
    "bad chunk": b"transfer-encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n",
    "chunks without an end": b"transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
    "nothing": b"content-length: 0\r\n\r\n",
    "no body": b"\r\n",
}


@pytest.mark.parametrize("name", BROKEN)
def test_upload__broken_body__is_not_kept(service: StorageService, name: str) -> None:
    before = service.metric('files{kind="open"}')

    with service.connect(f"127.0.4.{next(_NUMBERS)}") as connection:
        connection.sendall(b"POST /upload HTTP/1.1\r\nhost: h\r\n" + BROKEN[name])
        connection.shutdown(1)
        found = Answer(read_all(connection))

    assert found.status in (0, 400)
    assert is_empty(service)
    assert service.metric('files{kind="open"}') == before


FORMS = {
    "two files": form_of(b"one", b"two"),
    "no file": form_of(),
    "an empty file": form_of(b""),
    "no end": form_of(b"one", end_mark=b""),
    "no boundary": ("content-type: multipart/form-data\r\ncontent-length: 3\r\n", b"abc"),
    "another boundary": (form_of(b"one")[0].replace("=B", "=C"), form_of(b"one")[1]),
    "a form in the form": (
        "content-type: multipart/form-data; boundary=B\r\ncontent-length: 62\r\n",
        b"--B\r\ncontent-type: multipart/mixed; boundary=C\r\n\r\n--C--\r\n--B--",
    ),
    "headers without an end": (
        "content-type: multipart/form-data; boundary=B\r\ncontent-length: 60007\r\n",
        b"--B\r\n" + b"a: b\r\n" * 10_000 + b"--",
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_backup__other_form_than_one_file__is_refused(service: StorageService, name: str) -> None:
    headers, body = FORMS[name]

    found = service.send(
        f"POST /backups HTTP/1.1\r\nhost: h\r\n{headers}\r\n".encode() + body,
        f"127.0.5.{next(_NUMBERS)}",
    )

    assert found.status == 400
    assert is_empty(service)


def test_upload__more_than_an_address_may_keep__is_refused_to_that_address(
    service: StorageService, own: str
) -> None:
    kept = service.upload(os.urandom(2 * MIB), source=own)

    refused = service.upload(os.urandom(2 * MIB), source=own)

    assert (kept.status, refused.status) == (200, 429)
    assert service.upload(content(), source=f"127.0.1.{next(_NUMBERS)}").status == 200


def test_upload__too_many_of_an_address__are_refused_with_the_seconds_to_wait(
    service: StorageService, own: str
) -> None:
    found = [service.upload(b"x", source=own) for _ in range(31)]

    assert [each.status for each in found] == [200] * 30 + [429]
    assert 1 <= int(found[-1].headers["retry-after"]) <= 10


def test_upload__through_a_proxy__counts_for_the_address_that_the_proxy_saw(
    service: StorageService,
) -> None:
    def upload(forwarded: str, source: str = PROXY) -> int:
        headers = f"x-forwarded-for: {forwarded}\r\n"
        return service.upload(os.urandom(2 * MIB), source=source, headers=headers).status

    # The words of the client itself stand before it, and count for nothing.
    assert upload("192.0.2.1") == 200
    assert upload("198.51.100.7, 192.0.2.1") == 429
    assert upload("192.0.2.1, 198.51.100.7") == 200
    # Others than the proxy are not believed.
    stranger = "127.0.0.8"
    assert (upload("192.0.2.50", stranger), upload("192.0.2.51", stranger)) == (200, 429)


def test_connections__more_than_an_address_may_hold__are_closed(
    service: StorageService, own: str
) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(32):
            stack.enter_context(service.connect(own))
        one_more = stack.enter_context(service.connect(own))

        assert exchange(one_more, b"GET /files/x HTTP/1.1\r\nhost: h\r\n\r\n").status == 0
        assert service.download("x").status == 404


def test_connections__that_bring_nothing_or_too_little__are_closed(
    service: StorageService, own: str
) -> None:
    begun = b"POST /upload HTTP/1.1\r\nhost: h\r\n"
    parts = {
        "nothing": b"",
        "half a head": begun,
        "no body": begun + b"content-length: 100\r\n\r\n",
        "half a body": begun + b"content-length: 100\r\n\r\nabc",
    }
    with contextlib.ExitStack() as stack:
        opened = {name: stack.enter_context(service.connect(own)) for name in parts}
        for name, connection in opened.items():
            connection.sendall(parts[name])

        found = {name: Answer(read_all(each)).status for name, each in opened.items()}

    assert found == {"nothing": 0, "half a head": 0, "no body": 408, "half a body": 408}
    assert is_empty(service)


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
    assert is_empty(service)


def test_grant__whose_upload_broke_off__may_be_used_again(
    service: StorageService, own: str
) -> None:
    path = f"/backups?grant={grant()}"
    with service.connect(own) as connection:
        connection.sendall(upload_of(content(), path)[:-5])
    assert is_empty(service)

    assert service.upload(content(), path, own).status == 200


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
    assert service.metric('downloads_total{outcome="failed"}') == 0
    assert service.metric('uploads_total{kind="open",outcome="failed"}') == 0
