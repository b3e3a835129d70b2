"""Checks of hosts by their text alone: which hosts are in one's own network, or machine."""

from __future__ import annotations

import ipaddress
import re
from typing import Final
from urllib.parse import urlsplit

_OWN_NAMES: Final = ("localhost", "local", "internal", "lan", "home.arpa")
"""Ends of names that no public host has (RFC 6761, 6762, 8375)."""

_ODD_PART: Final = re.compile("0x[0-9a-f]+|[0-9]+")
"""Part of an IPv4 address that only the system's resolver takes, such as 127.1 or 0x7f000001."""


def is_public(address: str) -> bool:
    """Return whether an IP address is neither a loopback, nor a link's, nor a private network's."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address):
        return (found.ipv4_mapped or found).is_global
    return found.is_global


def is_loopback(address: str) -> bool:
    """Return whether ``HOST:PORT`` is an address of this machine alone, by its text."""
    host = address.rpartition(":")[0].removeprefix("[").removesuffix("]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_on_own_machine(url: str) -> bool:
    """Return whether a URL's host is, by its text alone, this machine, or one on the same link.

    A cloud's machines find their secrets at a link-local address. A name may still lead to such an
    address. Another text than a URL has no host.
    """
    try:
        host = (urlsplit(url).hostname or "").rstrip(".").lower()
    except ValueError:
        return False
    try:
        found = ipaddress.ip_address(_usual_form(host).partition("%")[0])
    except ValueError:
        return f".{host}".endswith(".localhost")
    if isinstance(found, ipaddress.IPv6Address):
        found = found.ipv4_mapped or found
    return found.is_loopback or found.is_link_local or found.is_unspecified


def has_private_host(url: str) -> bool:
    """Return whether a URL's host is, by its text alone, loopback, link-local or private.

    A name may still lead to such an address.
    """
    host = (urlsplit(url).hostname or "").rstrip(".").lower()
    try:
        return not is_public(_usual_form(host))
    except ValueError:
        return "." not in host or any(f".{host}".endswith(f".{name}") for name in _OWN_NAMES)


def _usual_form(host: str) -> str:
    """Return an IPv4 address of up to four parts, in bases 8, 10 and 16, in its usual form.

    Any other host is returned as it is. Raises ValueError where the numbers are too large.
    """
    parts = host.split(".")
    if len(parts) > 4 or not all(map(_ODD_PART.fullmatch, parts)):
        return host
    *first, last = (int(part, 16 if "x" in part else 8 if part[0] == "0" else 10) for part in parts)
    # The last part fills the bytes that are left.
    data = bytes(first) + last.to_bytes(4 - len(first), "big")
    return str(ipaddress.IPv4Address(data))
