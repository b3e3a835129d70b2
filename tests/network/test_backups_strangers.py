"""Strangers and the storage service: nothing is listed, changed, or taken without an end."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator

import pytest

from support.network.storage_service import (
    Answer,
    StorageService,
    content,
    exchange,
    form_of,
    read_all,
)

MIB = 1 << 20
PROXY = "127.0.0.9"
_NUMBERS = itertools.count(20)


@pytest.fixture
def own() -> str:
    """An address that no other test uploads from: each has limits of its own."""
    return f"127.0.1.{next(_NUMBERS)}"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StorageService]:
    service = StorageService(
        tmp_path_factory.mktemp("service"),
        *("--proxy", PROXY, "--patience", "1", "--open-file-mib", "2", "--open-address-mib", "3"),
    )
    service.start()
    yield service
    assert service.stop() == 0


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
    assert service.has_no_rest()
    assert service.metric('bytes{kind="open"}') == before


def test_form__without_an_end_before_its_file__is_ended(service: StorageService, own: str) -> None:
    head = (
        b"POST /backups HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n"
        b"content-type: multipart/form-data; boundary=B\r\n\r\n"
    )
    line = b"10000\r\n" + (b"x" * 62 + b"\r\n") * 1024 + b"\r\n"

    found = service.send(itertools.chain([head], itertools.repeat(line)), own)

    assert found.status in (0, 408)
    assert service.has_no_rest()


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
    assert service.has_no_rest()
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
    assert service.has_no_rest()


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
    assert service.has_no_rest()


def test_monitor__after_all_these__counts_no_fault_of_the_service(service: StorageService) -> None:
    assert service.metric('downloads_total{outcome="failed"}') == 0
    assert service.metric('uploads_total{kind="open",outcome="failed"}') == 0
    assert service.events() == ["listening", "backups_listening"]
