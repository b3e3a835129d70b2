"""``gateway run``: PayerApi for an application's clients."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
from eth_utils.address import to_checksum_address

from chainkit.chain import EndpointPool
from chainkit.contracts.deployment import record_subject
from chainkit.contracts.followed import read_followed_deployment
from chainkit.contracts.right_chain import check_deployment
from chainkit.council.signing.key import KeySigner
from chainkit.errors import ConfigurationError, MalformedData
from chainkit.nodes.pool import Nodes
from chainkit.nodes.trust import peer_ca_option
from chainkit.service.edge.launch import Edge, enter
from chainkit.service.log_lines import LogEvent, configure_logging, log_event
from chainkit.service.process import run_service
from chainkit.service.upload_grant import read_base_url, read_key
from chainkit.signatures import SigningKey
from chainkit.terminal.command import CompleteCommand
from chainkit.terminal.edge import print_edge_option
from chainkit.terminal.keystore import load_secret
from chainkit.terminal.options import (
    deployment_option,
    endpoints_option,
    file_option,
    gathered,
    keystore_option_for,
    log_format_option,
    monitor_option,
    password_option,
)
from chainkit.text.ether import parse_ether
from chainkit.text.hosts import is_loopback
from chainkit_gateway.chain_publisher import ChainPublisher
from chainkit_gateway.cli.limits import limits_option, read_gateway_limits
from chainkit_gateway.cli.options import journal_option_for
from chainkit_gateway.clients import Clients, RateLimits, Tokens
from chainkit_gateway.journal import Journal
from chainkit_gateway.monitoring import GatewayMonitor
from chainkit_gateway.payer_account import PayerAccount, Permit, all_permitted
from chainkit_gateway.publishing import Payer
from chainkit_gateway.registry import RegistryWatch, readdressed, registry_reader
from chainkit_gateway.retention import RetentionPolicy
from chainkit_gateway.service import Gateway, serve
from chainkit_gateway.spending import SpendingLimit, spent_today
from chainkit_gateway.upload_grants import UploadGrants

DEFAULT_ADDRESS: Final = "127.0.0.1:5050"
_LIMITS: Final = RateLimits()


def _wei(_context: click.Context, _parameter: click.Parameter, text: str | None) -> int | None:
    try:
        return None if text is None else parse_ether(text)
    except MalformedData as error:
        raise click.BadParameter(f"expected {error.expected}, got {error.got}") from error


@dataclass(frozen=True, slots=True)
class _Options:
    """The options of ``gateway run``."""

    rpc_urls: tuple[str, ...]
    deployment_path: Path
    keystore_path: Path
    password_path: Path | None
    journal_path: Path
    node_urls: tuple[str, ...]
    registry_seconds: float
    grpc_address: str
    tokens_path: Path | None
    retention_path: Path | None
    limits_path: Path | None
    envelopes_per_second: int
    burst: int
    bytes_per_second: int
    daily_limit: int | None
    depth: int
    backups_url: str | None
    grant_key_path: Path | None
    listen: str | None
    log_format: str


@click.command("run", cls=CompleteCommand)
@endpoints_option
@deployment_option
@keystore_option_for("Encrypted key of the payer, which signs and pays.", required=True)
@password_option
@journal_option_for("Where the gateway keeps what it has begun to publish.")
@click.option(
    "--node",
    "node_urls",
    multiple=True,
    metavar="ID=URL",
    help="A node to publish through, in place of all enabled nodes; its key is the registry's. "
    "May be repeated.",
)
@click.option(
    "--registry-seconds",
    type=click.FloatRange(min=1),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="How often the registry is read again; not used with --node.",
)
@click.option(
    "--grpc",
    "grpc_address",
    metavar="HOST:PORT",
    default=DEFAULT_ADDRESS,
    show_default=True,
    help="Where clients connect; other machines only with --tokens. Port 0 takes a free one.",
)
@click.option(
    "--tokens",
    "tokens_path",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Clients' tokens, a line NAME TOKEN each, which they send as authorization: Bearer TOKEN.",
)
@click.option(
    "--retention",
    "retention_path",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="How many days nodes keep what clients publish, in JSON, such as "
    '{"default": {"chat": {"days": 30, "most": 90}}}; docs/gateway.md lists all.',
)
@limits_option
@click.option(
    "--envelopes-per-second",
    type=click.IntRange(min=1, max=1_000_000),
    default=_LIMITS.envelopes_per_second,
    show_default=True,
    metavar="COUNT",
    help="Envelopes that each client may publish, by its token, else by its address.",
)
@click.option(
    "--burst",
    type=click.IntRange(min=1, max=1_000_000),
    default=_LIMITS.burst,
    show_default=True,
    metavar="COUNT",
    help="Envelopes that a client may publish at once, after a pause.",
)
@click.option(
    "--bytes-per-second",
    type=click.IntRange(min=1, max=1 << 40),
    default=_LIMITS.bytes_per_second,
    show_default=True,
    metavar="COUNT",
    help="Bytes of requests that each client may send.",
)
@click.option(
    "--daily-limit",
    metavar="ETHER",
    callback=_wei,
    help="The most that each client may spend on a day of UTC; without it there is no limit.",
)
@click.option(
    "--depth",
    type=click.IntRange(min=0, max=10_000),
    default=0,
    show_default=True,
    metavar="BLOCKS",
    help="Blocks on top of a commit's or identity update's block before it is answered: no reorg "
    "of fewer takes back what a client was told.",
)
@click.option(
    "--backups-url",
    metavar="URL",
    help="A storage service for clients' message history, such as https://backups.example; with "
    "--grant-key.",
)
@file_option(
    "--grant-key",
    "grant_key_path",
    "CHAINKIT_GRANT_KEY",
    "The storage service's key, 64 hex digits: clients get upload URLs from this gateway.",
)
@peer_ca_option
@monitor_option
@log_format_option
@print_edge_option
@gathered(_Options, "options")
def run_command(options: _Options, is_edge_printed: bool) -> None:
    """Publish for an application's clients until a signal stops it (SIGINT or SIGTERM).

    Commits and identity updates go to the chain, everything else through a node. Ending it in any
    way, also by kill -9, publishes nothing twice: it keeps a journal.

    \b
    Example:
      chainkit gateway run --rpc http://127.0.0.1:8545 --deployment deployment.json \\
        --keystore payer.json --password-file password.txt --journal gateway.db
    """
    configure_logging(options.log_format)
    tokens = None if options.tokens_path is None else Tokens.read(options.tokens_path)
    clients, retention = _clients(options, tokens), _retention(options, tokens)
    upload_grants = _upload_grants(options, clients)
    limits = read_gateway_limits(options.limits_path)
    enter(Edge(options.grpc_address, None, limits.edge_limits()), is_printed=is_edge_printed)
    secret = load_secret(options.keystore_path, options.password_path)
    deployment = read_followed_deployment(options.deployment_path)
    subject = record_subject(options.deployment_path)
    contracts = deployment.contracts_by_kind(subject)
    registry = deployment.registry_here(subject)
    pool = EndpointPool.connect(
        options.rpc_urls, lambda endpoint: check_deployment(endpoint, deployment)
    )
    read = registry_reader(pool, registry.address)
    given = _given_nodes(options.node_urls)
    entries = readdressed(read(), given) if given else read()
    journal = Journal.open(options.journal_path)
    signer = KeySigner(str(options.keystore_path), secret)
    permit = _permit(journal, options.daily_limit)
    account = PayerAccount(pool, signer, journal, contracts.values(), permit=permit)
    chain = ChainPublisher(account, deployment.chain_id, contracts, depth=options.depth)
    _warn_of_delegation(account)

    async def run() -> None:
        # Connections belong to the event loop.
        nodes = Nodes(entries)
        payer = Payer(SigningKey(secret), nodes, chain, journal)
        watch = None if given else RegistryWatch(read, nodes)
        monitor = GatewayMonitor(lambda: spent_today(journal, time.time_ns()), lambda: len(nodes))
        await serve(
            Gateway(
                payer=payer,
                nodes=nodes,
                account=account,
                clients=clients,
                retention=retention,
                upload_grants=upload_grants,
                registry=watch,
                registry_seconds=options.registry_seconds,
                monitor=monitor,
                listen=options.listen,
                address=options.grpc_address,
                limits=limits.strangers,
            )
        )

    try:
        run_service(run())
    finally:
        chain.stop()
        journal.close()


def _retention(options: _Options, tokens: Tokens | None) -> RetentionPolicy:
    if options.retention_path is None:
        return RetentionPolicy()
    policy = RetentionPolicy.read(options.retention_path)
    # A name with a typing error would have the terms of everybody.
    if tokens is not None and (unknown := policy.clients - tokens.names):
        subject, got = f"retention {options.retention_path}", ", ".join(sorted(unknown))
        raise ConfigurationError(subject, f"names of clients of {options.tokens_path}", got)
    return policy


def _clients(options: _Options, tokens: Tokens | None) -> Clients:
    # Without tokens, any machine could publish as the application.
    if tokens is None and not is_loopback(options.grpc_address):
        expected = "an address of this machine alone, or --tokens"
        raise ConfigurationError("--grpc", expected, options.grpc_address)
    limits = RateLimits(options.envelopes_per_second, options.burst, options.bytes_per_second)
    return Clients(tokens, limits, time.monotonic)


def _upload_grants(options: _Options, clients: Clients) -> UploadGrants | None:
    url, path = options.backups_url, options.grant_key_path
    if url is None and path is None:
        return None
    if url is None or path is None:
        missing = "--backups-url" if url is None else "--grant-key"
        raise ConfigurationError(missing, "both it and the other one", "one of them")
    base_url = read_base_url(url, "--backups-url")
    return UploadGrants(read_key(path), base_url, clients, time.time, time.monotonic)


def _warn_of_delegation(account: PayerAccount) -> None:
    if (delegate := account.delegate()) is not None:
        named = to_checksum_address(delegate)
        text = (
            f"the payer lets {named} act for it (EIP-7702): geth and other pools keep one "
            "transaction of such an account at a time; delegate to the zero address, or take "
            "another key"
        )
        event = LogEvent("payer_delegated", text, {"delegate": named}, level=logging.WARNING)
        log_event(event)


def _permit(journal: Journal, most: int | None) -> Permit:
    return all_permitted if most is None else SpendingLimit(journal, most, time.time_ns)


def _given_nodes(texts: tuple[str, ...]) -> dict[int, str]:
    urls = {}
    for text in texts:
        number, _, url = text.partition("=")
        if not (number.isascii() and number.isdecimal()) or not url:
            raise ConfigurationError("--node", "ID=URL, such as 100=https://node.example", text)
        urls[int(number)] = url
    return urls
