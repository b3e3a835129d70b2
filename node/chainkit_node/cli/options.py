"""Options of a node: who connects, what is kept outside of the database, who is asked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from chainkit.chain import Endpoint, RetryPolicy
from chainkit.errors import ConfigurationError
from chainkit.service.certificate import CertificateFiles
from chainkit.service.monitor_server import parse_listen
from chainkit.terminal.options import file_option, gathered, several
from chainkit.text.hosts import is_loopback
from chainkit_node.accounting.reporter import REPORT_SECONDS
from chainkit_node.originating.sequence_record import SequenceRecord
from chainkit_node.watching.rounds import ROUND_SECONDS

DEFAULT_ADDRESS: Final = "127.0.0.1:5051"
_CHAIN_AND_URL: Final = re.compile(r"([1-9][0-9]{0,18})=(.+)")

_LONGEST_ANSWER_BYTES: Final = 4 << 20
"""An endpoint lists a block's transactions beside its header, 70 bytes each."""


@dataclass(frozen=True, slots=True)
class ListenOptions:
    """Where the node listens, and with which certificate."""

    grpc_address: str
    certificate_path: Path | None
    key_path: Path | None
    is_plain_text: bool

    def certificate_files(self) -> CertificateFiles | None:
        """Return the files of the certificate, or None where plain text is served.

        Raises ConfigurationError for an address without a port, for half a pair, for plain text on
        an address that strangers reach and that nobody asked for, and for both at once.
        """
        parse_listen(self.grpc_address, "--grpc")
        if self.certificate_path is not None and self.key_path is not None:
            if self.is_plain_text:
                expected = "either a certificate or plain text"
                raise ConfigurationError("--plain-text", expected, "both")
            return CertificateFiles(self.certificate_path, self.key_path)
        if self.certificate_path is not None or self.key_path is not None:
            missing = "--tls-key" if self.key_path is None else "--tls-certificate"
            raise ConfigurationError(missing, "certificate and key together", "one of them")
        if not self.is_plain_text and not is_loopback(self.grpc_address):
            expected = "--tls-certificate and --tls-key, or --plain-text behind a proxy with TLS"
            raise ConfigurationError("--grpc", expected, "neither", self.grpc_address)
        return None


listen_options = several(
    click.option(
        "--grpc",
        "grpc_address",
        metavar="HOST:PORT",
        default=DEFAULT_ADDRESS,
        show_default=True,
        help="Where readers and payers connect; port 0 takes a free one.",
    ),
    file_option(
        "--tls-certificate",
        "certificate_path",
        "CHAINKIT_TLS_CERTIFICATE",
        "Chain of certificates, PEM; read again when the file changes.",
    ),
    file_option(
        "--tls-key",
        "key_path",
        "CHAINKIT_TLS_KEY",
        "Private key of the certificate, PEM without a password.",
    ),
    click.option(
        "--plain-text",
        "is_plain_text",
        is_flag=True,
        help="Serve without TLS on an address that others reach, too.",
    ),
    gathered(ListenOptions, "listening"),
)
"""Decorator: where the node listens; the command takes a ListenOptions."""


RECORD_SUFFIX: Final = ".sequence-record"
"""Behind the name of SQLite's file: the record that is kept where none is named."""


@dataclass(frozen=True, slots=True)
class RecordOptions:
    """Where the last sequence id is recorded, and what is given up."""

    path: Path | None
    resume_after: int

    def place(self, database: Path | None) -> Path | None:
        """Return the record's path: by default beside ``database``, SQLite's file."""
        if self.path is not None or database is None:
            return self.path
        return database.with_name(f"{database.name}{RECORD_SUFFIX}")

    @contextmanager
    def opened(self, database: Path | None) -> Iterator[SequenceRecord | None]:
        """Open the record of ``place``, if there is one. Errors as SequenceRecord.

        Raises ConfigurationError where envelopes are given up without a record.
        """
        path = self.place(database)
        if path is None:
            if self.resume_after:
                raise ConfigurationError("--resume-after", "a --sequence-record beside it", "none")
            yield None
            return
        with closing(SequenceRecord(path, self.resume_after)) as record:
            yield record


record_options = several(
    file_option(
        "--sequence-record",
        "path",
        "CHAINKIT_SEQUENCE_RECORD",
        "Where to record the last sequence id, outside of the database: with it the node notices "
        "that a restored database is older, and signs no id again. By default it is beside the "
        "file of SQLite, with the ending .sequence-record; PostgreSQL has none.",
    ),
    click.option(
        "--resume-after",
        "resume_after",
        metavar="SEQUENCE_ID",
        type=click.IntRange(min=0),
        default=0,
        help="Give up envelopes up to this id, which a restored database lacks; readers see a gap. "
        "It needs a sequence record, and may be a million beyond the last known id at most.",
    ),
    gathered(RecordOptions, "records"),
)
"""Decorator: what is kept outside of the database; the command takes RecordOptions."""


def connect_wallet_chains(texts: Sequence[str]) -> dict[int, list[Endpoint]]:
    """Return endpoints by chain id for texts such as ``8453=https://…``; nothing is sent yet.

    Each endpoint tries once, and gives up within seconds: the indexer's thread waits for it. Raises
    ConfigurationError, which shows no part of a URL that may be a secret.
    """
    endpoints: dict[int, list[Endpoint]] = {}
    for text in texts:
        match = _CHAIN_AND_URL.fullmatch(text)
        if match is None:
            expected = "CHAIN_ID=URL, such as 8453=https://…"
            raise ConfigurationError("--wallet-rpc", expected, "another form")
        endpoint = Endpoint.connect(
            match[2],
            timeout_seconds=5.0,
            connect_timeout_seconds=2.0,
            longest_answer_bytes=_LONGEST_ANSWER_BYTES,
            retry=RetryPolicy(attempts=1),
        )
        endpoints.setdefault(int(match[1]), []).append(endpoint)
    return endpoints


wallet_option = click.option(
    "--wallet-rpc",
    "wallet_endpoints",
    envvar="CHAINKIT_WALLET_RPC",
    show_envvar=True,
    multiple=True,
    metavar="CHAIN_ID=URL",
    callback=lambda context, parameter, value: connect_wallet_chains(value),
    help="JSON-RPC endpoint that answers for contract wallets of a chain, at each block since its "
    "start; give several of one chain to fail over, and the same chains as all nodes.",
)
"""The command takes a mapping of chain ids to endpoints."""


watch_option = click.option(
    "--watch-seconds",
    type=click.FloatRange(min=0),
    default=ROUND_SECONDS,
    show_default=True,
    help="Seconds between two looks at what another node serves to clients; 0 for none.",
)
"""The command takes a number of seconds."""


payer_report_option = click.option(
    "--payer-report-seconds",
    type=click.FloatRange(min=0),
    default=REPORT_SECONDS,
    show_default=True,
    help="Seconds after which an envelope of this node is in a payer report, at the latest; 0 for "
    "no reports.",
)
"""The command takes a number of seconds."""
