"""Certificates of an authority of one's own, in PEM: in time or not, for the right name or not."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

from Crypto.Hash import SHA256
from Crypto.PublicKey import ECC
from Crypto.Signature import DSS
from Crypto.Util.asn1 import DerObjectId

_ECDSA_SHA256 = DerObjectId("1.2.840.10045.4.3.2").encode()
_COMMON_NAME = DerObjectId("2.5.4.3").encode()
_ALTERNATIVE_NAMES = DerObjectId("2.5.29.17").encode()
_BASIC_CONSTRAINTS = DerObjectId("2.5.29.19").encode()
_serials = count(1)

Pair = tuple[bytes, bytes]
"""A certificate and its key, both PEM."""


@dataclass(frozen=True)
class Authority:
    """Signs certificates; ``certificate`` is what those who believe it trust."""

    key: ECC.EccKey
    name: str
    certificate: bytes

    def issue(self, *names: str, days: float = 365, age_days: float = 30) -> Pair:
        """Return a certificate of DNS names that ends in so many days, and began so long ago."""
        key = ECC.generate(curve="P-256")
        extension = _extension(_ALTERNATIVE_NAMES, *(_tagged(0x82, n.encode()) for n in names))
        body = _body(names[0], self.name, key, (days, age_days), extension)
        return _signed(body, self.key), _secret(key)


def make_authority(name: str = "peers") -> Authority:
    """Return an authority with a new key, and its own certificate for a year."""
    key = ECC.generate(curve="P-256")
    is_authority = _extension(_BASIC_CONSTRAINTS, _tagged(0x01, b"\xff"), is_critical=True)
    body = _body(name, name, key, (365, 30), is_authority)
    return Authority(key, name, _signed(body, key))


def make_pair(days: float = 365, age_days: float = 30) -> Pair:
    """Return a self-signed certificate of ``localhost``, and its key."""
    key = ECC.generate(curve="P-256")
    extension = _extension(_ALTERNATIVE_NAMES, _tagged(0x82, b"localhost"))
    body = _body("localhost", "localhost", key, (days, age_days), extension)
    return _signed(body, key), _secret(key)


def _body(
    subject: str, issuer: str, key: ECC.EccKey, days_and_age: tuple[float, float], extension: bytes
) -> bytes:
    days, age_days = days_and_age
    serial = next(_serials)
    return _tagged(
        0x30,
        _tagged(0xA0, _tagged(0x02, b"\2")),
        _tagged(0x02, serial.to_bytes(serial.bit_length() // 8 + 1, "big")),
        _tagged(0x30, _ECDSA_SHA256),
        _name(issuer),
        _tagged(0x30, _time(-age_days), _time(days)),
        _name(subject),
        key.public_key().export_key(format="DER"),
        _tagged(0xA3, _tagged(0x30, extension)),
    )


def _signed(body: bytes, key: ECC.EccKey) -> bytes:
    signature = DSS.new(key, "deterministic-rfc6979", "der").sign(SHA256.new(body))
    whole = _tagged(0x30, body, _tagged(0x30, _ECDSA_SHA256), _tagged(0x03, b"\0", signature))
    return ssl.DER_cert_to_PEM_cert(whole).encode()


def _secret(key: ECC.EccKey) -> bytes:
    return key.export_key(format="PEM", use_pkcs8=True).encode()


def _name(text: str) -> bytes:
    part = _tagged(0x30, _COMMON_NAME, _tagged(0x0C, text.encode()))
    return _tagged(0x30, _tagged(0x31, part))


def _extension(kind: bytes, *values: bytes, is_critical: bool = False) -> bytes:
    critical = _tagged(0x01, b"\xff") if is_critical else b""
    return _tagged(0x30, kind, critical, _tagged(0x04, _tagged(0x30, *values)))


def _time(days: float) -> bytes:
    moment = datetime.now(UTC) + timedelta(days=days)
    return _tagged(0x17, f"{moment:%y%m%d%H%M%SZ}".encode())


def _tagged(tag: int, *parts: bytes) -> bytes:
    """Return an ASN.1 value in DER."""
    content = b"".join(parts)
    length = len(content).to_bytes(2, "big").lstrip(b"\0") or b"\0"
    if len(content) >= 128:
        length = bytes([0x80 + len(length)]) + length
    return bytes([tag]) + length + content


def write_pair(files: tuple[Path, Path], pair: Pair) -> None:
    """Replace both files as a renewal does: by renaming."""
    for path, content in zip(files, pair, strict=True):
        fresh = path.with_suffix(".new")
        fresh.write_bytes(content)
        fresh.replace(path)
