"""Envoy's configuration, from the address and the limits of a service: one pure function."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

LISTENER: Final = "callers"
APPLICATION: Final = "chainkit.cli.in_envoy:application"
SECRET: Final = "certificate"

_TYPES: Final = "type.googleapis.com/envoy.extensions"
_FILTERS: Final = f"{_TYPES}.filters.http"
_BYTES_TO_RELEASE: Final = 64 << 20
"""Free memory that goes back to the machine in a second, at most."""
_HTTP: Final = "envoy.extensions.filters.network.http_connection_manager.v3"

WINDOW_BYTES: Final = 256 << 10
"""Bytes of all requests of an HTTP/2 connection that may be on their way to Python."""
MOST_JSON_BYTES: Final = 1 << 20
"""Bytes of a request in JSON, which Envoy holds until all of them are there."""
_MOST_JSON_ANSWER: Final = 50 << 20


@dataclass(frozen=True, slots=True)
class EdgeTimes:
    """How long and how much Envoy waits for callers, in whole seconds and in bytes."""

    header_seconds: int = 10
    """From a request's first byte until its headers are there."""
    request_seconds: int = 60
    """From a request's headers until its body has ended."""
    quiet_seconds: int = 60
    """How long Envoy takes nothing of a stream, either way.

    A heartbeat that waits in Envoy's buffer was taken: a reader that reads nothing, and for whom
    less than ``buffer_bytes`` waits, keeps its stream and that place among those of its address.
    """
    connection_seconds: int = 3600
    """How long a connection without a call stays open."""
    handshake_seconds: int = 20
    """From a connection's start until TLS is agreed on."""
    buffer_bytes: int = 1 << 20
    """Bytes that wait in one connection, each way."""
    header_bytes: int = 16 << 10
    """Bytes of a request's headers."""
    heap_bytes: int = 1536 << 20
    """Bytes of Envoy's allocator, which has most of Python's memory, too; before that, the streams
    that hold most end."""


@dataclass(frozen=True, slots=True)
class EdgeLimits(EdgeTimes):
    """Limits that Envoy itself keeps; 0 of a count is no limit."""

    connections: int = 10_000
    """Open connections of all callers."""
    streams_of_connection: int = 1100
    """Open calls and streams of one connection."""


@dataclass(frozen=True, slots=True)
class HttpPaths:
    """Services whose methods Envoy also serves as JSON, at the paths of their options."""

    services: Sequence[str]
    descriptors: bytes = field(repr=False)
    """A google.protobuf.FileDescriptorSet with the services and all that they import."""


@dataclass(frozen=True, slots=True)
class EdgeSettings:
    """Where Envoy listens, and what it allows."""

    addresses: Sequence[tuple[str, int]]
    """IP addresses and ports; port 0 takes a free one."""
    has_tls: bool
    shares_port: bool = False
    limits: EdgeLimits = EdgeLimits()
    http_paths: HttpPaths | None = None
    """None serves gRPC and gRPC-Web alone."""


@dataclass(frozen=True, slots=True)
class EdgePlaces:
    """The files of one process."""

    folder: Path
    """Belongs to the process alone."""
    module: Path
    """The module of Envoy that holds Python."""

    @property
    def admin(self) -> Path:
        """Return the Unix socket at which Envoy answers its own process."""
        return self.folder / "admin.sock"

    @property
    def secret(self) -> Path:
        """Return the file that names the present certificate."""
        return self.folder / "certificate.json"


def envoy_configuration(settings: EdgeSettings, places: EdgePlaces) -> dict[str, Any]:
    """Return the bootstrap, which is JSON, of an Envoy that calls this service."""
    return {
        "node": {"id": "chainkit", "cluster": "chainkit"},
        "admin": {"address": {"pipe": {"path": str(places.admin), "mode": 0o600}}},
        "overload_manager": _overload_manager(settings.limits),
        # Python's memory is Envoy's allocator's, too, which else gives nothing back.
        "memory_allocator_manager": {
            "bytes_to_release": _BYTES_TO_RELEASE,
            "memory_release_interval": "1s",
        },
        "static_resources": {"listeners": [_listener(settings, places)]},
    }


def _overload_manager(limits: EdgeLimits) -> dict[str, Any]:
    heap = _monitor(
        "fixed_heap",
        "fixed_heap.v3.FixedHeapConfig",
        {"max_heap_size_bytes": limits.heap_bytes},
    )
    connections = _monitor(
        "global_downstream_max_connections",
        "downstream_connections.v3.DownstreamConnectionsConfig",
        {"max_active_downstream_connections": limits.connections},
    )
    return {
        # Streams are told apart from this size on.
        "buffer_factory_config": {"minimum_account_to_track_power_of_two": 18},
        "resource_monitors": [heap, connections] if limits.connections else [heap],
        "actions": [
            _action(
                "reset_high_memory_stream",
                {"scaled": {"scaling_threshold": 0.7, "saturation_threshold": 0.9}},
            ),
            _action("stop_accepting_requests", {"threshold": {"value": 0.95}}),
            _action("reject_incoming_connections", {"threshold": {"value": 0.95}}),
        ],
    }


def _monitor(name: str, kind: str, config: Mapping[str, Any]) -> dict[str, Any]:
    kind = f"{_TYPES}.resource_monitors.{kind}"
    return {
        "name": f"envoy.resource_monitors.{name}",
        "typed_config": {"@type": kind, **config},
    }


def _action(name: str, trigger: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": f"envoy.overload_actions.{name}",
        "triggers": [{"name": "envoy.resource_monitors.fixed_heap", **trigger}],
    }


def _listener(settings: EdgeSettings, places: EdgePlaces) -> dict[str, Any]:
    limits = settings.limits
    first, *others = [_address(*each) for each in settings.addresses]
    chain: dict[str, Any] = {"filters": [_connection_manager(settings, places)]}
    if settings.has_tls:
        chain["transport_socket"] = _tls(places)
        chain["transport_socket_connect_timeout"] = _seconds(limits.handshake_seconds)
    return {
        "name": LISTENER,
        "address": first,
        "additional_addresses": [{"address": each} for each in others],
        # With this option, two processes on one port would each get a share of the readers.
        "enable_reuse_port": settings.shares_port,
        "per_connection_buffer_limit_bytes": limits.buffer_bytes,
        "filter_chains": [chain],
    }


def _address(host: str, port: int) -> dict[str, Any]:
    place: dict[str, Any] = {"address": host, "port_value": port}
    if host == "::":
        place["ipv4_compat"] = True
    return {"socket_address": place}


def _tls(places: EdgePlaces) -> dict[str, Any]:
    source = {"path_config_source": {"path": str(places.secret)}}
    return {
        "name": "envoy.transport_sockets.tls",
        "typed_config": {
            "@type": f"{_TYPES}.transport_sockets.tls.v3.DownstreamTlsContext",
            "common_tls_context": {
                "alpn_protocols": ["h2", "http/1.1"],
                "tls_certificate_sds_secret_configs": [
                    {"name": SECRET, "sds_config": {**source, "resource_api_version": "V3"}}
                ],
            },
        },
    }


def _connection_manager(settings: EdgeSettings, places: EdgePlaces) -> dict[str, Any]:
    limits = settings.limits
    http2 = {
        "max_concurrent_streams": limits.streams_of_connection or 2**31 - 1,
        "initial_stream_window_size": WINDOW_BYTES,
        "initial_connection_window_size": WINDOW_BYTES,
    }
    return {
        "name": "envoy.filters.network.http_connection_manager",
        "typed_config": {
            "@type": f"type.googleapis.com/{_HTTP}.HttpConnectionManager",
            "stat_prefix": LISTENER,
            "codec_type": "AUTO",
            "generate_request_id": False,
            "use_remote_address": True,
            "skip_xff_append": True,
            "max_request_headers_kb": max(limits.header_bytes >> 10, 1),
            "request_headers_timeout": _seconds(limits.header_seconds),
            "request_timeout": _seconds(limits.request_seconds),
            "stream_idle_timeout": _seconds(limits.quiet_seconds),
            "common_http_protocol_options": {
                "idle_timeout": _seconds(limits.connection_seconds),
                "headers_with_underscores_action": "ALLOW",
            },
            "http2_protocol_options": http2,
            "route_config": {"virtual_hosts": [_virtual_host()], "validate_clusters": False},
            "http_filters": _http_filters(settings.http_paths, places),
        },
    }


def _virtual_host() -> dict[str, Any]:
    cors = {
        "@type": f"{_FILTERS}.cors.v3.CorsPolicy",
        "allow_origin_string_match": [{"safe_regex": {"regex": ".*"}}],
        "allow_methods": "POST, OPTIONS",
        # gRPC-Web's own headers, those of today's browser SDK, and a gateway's token.
        "allow_headers": "content-type, x-grpc-web, x-user-agent, grpc-timeout, x-app-version, "
        "x-libxmtp-version, authorization",
        "expose_headers": "grpc-status, grpc-message, grpc-status-details-bin",
        "max_age": "600",
    }
    return {
        "name": "all",
        "domains": ["*"],
        "typed_per_filter_config": {"envoy.filters.http.cors": cors},
        # CORS asks for a route; the application ends every call before it.
        "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "none", "timeout": "0s"}}],
    }


def _http_filters(paths: HttpPaths | None, places: EdgePlaces) -> Sequence[Mapping[str, Any]]:
    application = {
        "@type": f"{_FILTERS}.dynamic_modules.v3.DynamicModuleFilter",
        "dynamic_module_config": {"module": {"local": {"filename": str(places.module)}}},
        "filter_name": "pyvoy",
        "terminal_filter": True,
        "filter_config": {
            "@type": "type.googleapis.com/google.protobuf.StringValue",
            # YAML, of which this is a part; the application is nothing without its start.
            "value": f"{{app: '{APPLICATION}', interface: asgi, lifespan: true}}",
        },
    }
    return [
        _http_filter("cors", {"@type": f"{_FILTERS}.cors.v3.Cors"}),
        _http_filter("grpc_web", {"@type": f"{_FILTERS}.grpc_web.v3.GrpcWeb"}),
        *([] if paths is None else [_http_filter("grpc_json_transcoder", _json(paths))]),
        {"name": "application", "typed_config": application},
    ]


def _json(paths: HttpPaths) -> Mapping[str, Any]:
    return {
        "@type": f"{_FILTERS}.grpc_json_transcoder.v3.GrpcJsonTranscoder",
        "proto_descriptor_bin": base64.b64encode(paths.descriptors).decode(),
        "services": list(paths.services),
        # A refusal answers with its HTTP code, its words and its cursor.
        "convert_grpc_status": True,
        "request_validation_options": {"reject_unknown_method": True},
        "max_request_body_size": MOST_JSON_BYTES,
        "max_response_body_size": _MOST_JSON_ANSWER,
        "print_options": {"always_print_primitive_fields": True},
    }


def _http_filter(name: str, config: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"name": f"envoy.filters.http.{name}", "typed_config": config}


def _seconds(seconds: int) -> str:
    return f"{seconds}s"
