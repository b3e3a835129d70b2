"""Who is to hold the contracts of one network: data from `deployments/parameters/`."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from web3 import Web3

from chainkit.errors import ConfigurationError

_ZERO_ADDRESS = "0x" + 40 * "0"


@dataclass(frozen=True, slots=True)
class Parameters:
    """What a deployment is given; the files also name the source of each address."""

    chain_id: int
    message_admin: str
    """Checksummed address: gets DEFAULT_ADMIN_ROLE on GroupMessages and IdentityUpdates."""
    registry_owner: str
    """Checksummed address: owns the NodeRegistry."""


def read_parameters(path: Path) -> Parameters:
    """Read a parameter file. Raises ConfigurationError that names the file and the field."""
    subject = f"deployment parameters {path}"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(subject, "a readable file", error.strerror) from error
    except ValueError as error:
        raise ConfigurationError(subject, "JSON", error) from error
    if not isinstance(content, Mapping):
        raise ConfigurationError(subject, "an object", type(content).__name__)
    return Parameters(
        chain_id=_chain_id(content, subject),
        message_admin=_sourced_address(content, "message_admin", subject),
        registry_owner=_sourced_address(content, "registry_owner", subject),
    )


def _chain_id(content: Mapping[str, Any], subject: str) -> int:
    value = content.get("chain_id")
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ConfigurationError(subject, "an integer from 1", repr(value), "chain_id")
    return value


def _sourced_address(content: Mapping[str, Any], name: str, subject: str) -> str:
    entry = content.get(name)
    if not isinstance(entry, Mapping):
        raise ConfigurationError(subject, "an object with address and source", repr(entry), name)
    address, source = entry.get("address"), entry.get("source")
    is_address = isinstance(address, str) and Web3.is_checksum_address(address)
    if not is_address or address == _ZERO_ADDRESS:
        place = f"{name}.address"
        raise ConfigurationError(subject, "a checksummed address but zero", repr(address), place)
    if not isinstance(source, str) or not source.strip():
        place = f"{name}.source"
        raise ConfigurationError(subject, "where the address comes from", repr(source), place)
    return str(address)
