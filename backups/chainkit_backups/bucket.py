"""Files in an S3-compatible store: one object for each, put in one request when it is whole.

::

    PREFIX/open/ID/END, PREFIX/granted/ID/END  a file, and the moment at which it expires
    PREFIX/ends/ID/END                         an earlier moment: no object is changed
    PREFIX/used/GRANT/END                      a used grant

Moments are in milliseconds since 1970. So a listing has all that a restart needs. Each object is
put on the condition that there is none (``If-None-Match: *``).
"""

from __future__ import annotations

import errno
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, BinaryIO, Final, Self

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
from botocore.session import Session

from chainkit.errors import ConfigurationError
from chainkit.service.upload_grant import Grant
from chainkit_backups.types import AlreadyUsed, Kind, Stored

MOST_FILE_BYTES: Final = 5 << 30
"""The most that one request puts, by S3's own limit."""

_CONNECTIONS: Final = 600
"""Each transfer has its own; the service serves 500."""
_CONNECT_SECONDS: Final = 5
_READ_SECONDS: Final = 60
_ATTEMPTS: Final = 3
_MARK: Final = "mark"
_ENDS, _USED = "ends", "used"
_THERE: Final = ("PreconditionFailed", "ConditionalRequestConflict", "412", "409")
_ABSENT: Final = ("NoSuchKey", "404")
_PER_SECOND: Final = 1000


class Bucket:
    """A bucket, or what begins with a prefix in it, as ``Place``."""

    def __init__(self, name: str, prefix: str, client: Any) -> None:
        """Use ``open_bucket``."""
        self._name = name
        self._prefix = f"{prefix}/" if prefix else ""
        self._client = client
        self._keys: dict[str, list[str]] = {}
        """The object of a file, and behind it those with an earlier end, by the file's id."""
        self._guard = Lock()

    def read(self) -> tuple[list[Stored], dict[str, float]]:
        """Return all kept files, and used grants; remove ends of files that are gone."""
        files, used = dict[str, Stored](), dict[str, float]()
        ends = list[tuple[str, float, str]]()
        for key, size in self._listed():
            match key.removeprefix(self._prefix).split("/"):
                case [kind, name, end] if kind in set(Kind) and _is_moment(end):
                    files[name] = Stored(name, Kind(kind), size, _seconds(end))
                    self._keys[name] = [key]
                case ["ends", name, end] if _is_moment(end):
                    ends.append((name, _seconds(end), key))
                case ["used", name, end] if _is_moment(end):
                    used[name] = _seconds(end)
        for name, end_at, key in ends:
            if name in files:
                files[name].expires_at = min(files[name].expires_at, end_at)
                self._keys[name].append(key)
            else:
                self._delete(key)
        return list(files.values()), used

    def keep(self, arrived: Path, stored: Stored) -> None:
        """Put a finished file, and remove it from the disk."""
        key = self._key(stored.kind, stored.id, stored.expires_at)
        with arrived.open("rb") as file:
            if not self._put(key, file, stored.size):
                raise OSError(errno.EEXIST, f"{stored.kind} file: expected a new id")
        with self._guard:
            self._keys[stored.id] = [key]
        arrived.unlink()

    def open(self, stored: Stored, begin: int) -> _Body:
        """Open a file from a byte on."""
        with self._guard:
            keys = self._keys.get(stored.id)
        if keys is None:
            raise FileNotFoundError(errno.ENOENT, "file removed")
        with _as_os_error():
            answer = self._client.get_object(
                Bucket=self._name, Key=keys[0], Range=f"bytes={begin}-"
            )
        return _Body(answer["Body"])

    def expire(self, stored: Stored) -> None:
        """Put an earlier end beside a file."""
        key = self._key(_ENDS, stored.id, stored.expires_at)
        self._put(key, b"", 0)
        with self._guard:
            self._keys.setdefault(stored.id, []).append(key)

    def remove(self, stored: Stored) -> None:
        """Remove a file, and then its earlier ends."""
        with self._guard:
            keys = self._keys.pop(stored.id, [])
        for key in keys:
            self._delete(key)

    def use(self, grant: Grant) -> None:
        """Store a used grant. Raises AlreadyUsed."""
        if not self._put(self._key(_USED, grant.id.hex(), grant.expires_at), b"", 0):
            raise AlreadyUsed("upload grant", "one that was not used", "one whose file is here")

    def forget(self, grant_id: str, until: float) -> None:
        """Remove a used grant."""
        self._delete(self._key(_USED, grant_id, until))

    def _key(self, first: str, name: str, at: float) -> str:
        return f"{self._prefix}{first}/{name}/{round(at * _PER_SECOND)}"

    def _listed(self) -> Iterator[tuple[str, int]]:
        pages = self._client.get_paginator("list_objects_v2")
        with _as_os_error():
            for page in pages.paginate(Bucket=self._name, Prefix=self._prefix):
                for each in page.get("Contents", ()):
                    yield each["Key"], each["Size"]

    def _put(self, key: str, body: BinaryIO | bytes, length: int) -> bool:
        """Put an object where there is none; return False where there is one."""
        mark = secrets.token_hex(8)
        given = {"Bucket": self._name, "Key": key}
        with _as_os_error():
            try:
                self._client.put_object(
                    **given,
                    Body=body,
                    ContentLength=length,
                    ContentType="application/octet-stream",
                    IfNoneMatch="*",
                    Metadata={_MARK: mark},
                )
            except ClientError as error:
                if _code(error) not in _THERE:
                    raise
                # An attempt whose answer was lost may have put it.
                found = self._client.head_object(**given)
                return bool(found["Metadata"].get(_MARK) == mark)
        return True

    def _delete(self, key: str) -> None:
        with _as_os_error():
            self._client.delete_object(Bucket=self._name, Key=key)


class _Body:
    """A body that comes from the store, as ``Content``."""

    def __init__(self, body: Any) -> None:
        self._body = body

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._body.close()

    def read(self, size: int) -> bytes:
        with _as_os_error():
            data: bytes = self._body.read(size)
        return data


def open_bucket(name: str, endpoint: str | None) -> Callable[[], Bucket]:
    """Return what connects to ``NAME`` or ``NAME/PREFIX`` of a store; AWS' own without a URL.

    Keys come from the environment or the machine's role, as for AWS' own tools. Raises
    ConfigurationError where there is no such bucket, or none that takes conditional puts.
    """
    bucket, _, prefix = name.partition("/")
    # A store of one machine has no domain for each bucket.
    style = {"addressing_style": "path"} if endpoint else {}
    config = Config(
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=_READ_SECONDS,
        max_pool_connections=_CONNECTIONS,
        retries={"total_max_attempts": _ATTEMPTS, "mode": "standard"},
        s3=style,
    )

    def connect() -> Bucket:
        try:
            client = Session().create_client("s3", endpoint_url=endpoint, config=config)
            client.head_bucket(Bucket=bucket)
        except (BotoCoreError, ClientError, ValueError) as error:
            got = _code(error) if isinstance(error, ClientError) else type(error).__name__
            raise ConfigurationError(f"bucket {bucket}", "one that can be used", got) from error
        return Bucket(bucket, prefix.strip("/"), client)

    return connect


@contextmanager
def _as_os_error() -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        number = errno.ENOENT if _code(error) in _ABSENT else errno.EIO
        raise OSError(number, f"S3 store: expected success, got {_code(error)}") from error
    except (BotoCoreError, HTTPClientError) as error:
        raise OSError(
            errno.EIO, f"S3 store: expected an answer, got {type(error).__name__}"
        ) from error


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", "an error"))


def _is_moment(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= len(str(10**15))


def _seconds(text: str) -> float:
    return int(text) / _PER_SECOND
