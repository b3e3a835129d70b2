"""Health and reflection, which every gRPC service answers: grpc.health.v1 and its v1alpha sister.

Requests and answers are bytes, as those of all other methods.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import replace
from typing import Final

import grpc
from google.protobuf.message import DecodeError
from grpc_health.v1 import health, health_pb2
from grpc_reflection.v1alpha import reflection, reflection_pb2

from chainkit.service.grpc_methods import Bounds, Caller, Methods, Requests, Routes, routes
from chainkit.service.refusals import InvalidRequest, Refusal

HEALTH: Final = health.SERVICE_NAME
REFLECTION: Final = reflection.SERVICE_NAME

_STATUS: Final = health_pb2.HealthCheckResponse


class UnknownService(Refusal):
    """A health check names a service that is not served."""

    code = grpc.StatusCode.NOT_FOUND


class Health:
    """Answers whether the services are ready; made and used on the event loop's thread."""

    def __init__(self, services: Collection[str]) -> None:
        """Take the full names of the services; none is ready yet."""
        self._services = frozenset(("", *services))
        self._status = _STATUS.NOT_SERVING
        self._ends = False
        self._changed = asyncio.Event()

    def say_ready(self, is_ready: bool) -> None:
        """Answer from now on with whether the services are ready."""
        status = _STATUS.SERVING if is_ready and not self._ends else _STATUS.NOT_SERVING
        if status != self._status:
            self._status = status
            self._changed.set()
            self._changed = asyncio.Event()

    def end(self) -> None:
        """Answer for good that the services are not ready."""
        self._ends = True
        self.say_ready(False)

    async def check(self, request: bytes) -> bytes:
        """Answer a HealthCheckRequest. Raises UnknownService."""
        name = _service(request)
        if name not in self._services:
            raise UnknownService("service", "one that is served", "another")
        return _written(self._status)

    async def list(self, _: bytes) -> bytes:
        """Answer the status of each service."""
        answer = health_pb2.HealthListResponse()
        for name in self._services:
            answer.statuses[name].status = self._status
        written: bytes = answer.SerializeToString()
        return written

    async def watch(self, request: bytes) -> AsyncIterator[bytes]:
        """Stream the status of a service now, and each time that the status changes."""
        is_known, last = _service(request) in self._services, None
        while True:
            changed = self._changed
            status = self._status if is_known else _STATUS.SERVICE_UNKNOWN
            if status != last:
                last = status
                yield _written(status)
                continue
            await changed.wait()


class Reflection:
    """Answers what the services are."""

    def __init__(self, services: Collection[str]) -> None:
        """Take the full names of the services."""
        self._servicer = reflection.aio.ReflectionServicer(services)

    async def information(self, requests: Requests, _: Caller) -> AsyncIterator[bytes]:
        """Answer each ServerReflectionRequest."""
        assert not isinstance(requests, bytes)
        read = (_reflection_request(each) async for each in requests)
        async for answer in self._servicer.ServerReflectionInfo(read, None):
            yield answer.SerializeToString()


def service_routes(
    methods: Methods, services: Mapping[str, Collection[str]], health: Health, bounds: Bounds
) -> Routes:
    """Return the methods of the services, of health and of reflection, behind the gate."""
    unary = {**methods.unary, "Check": health.check, "List": health.list}
    streams = {**methods.streams, "Watch": health.watch}
    information = Reflection((*services, HEALTH, REFLECTION)).information
    return routes(
        replace(methods, unary=unary, streams=streams),
        {**services, HEALTH: ("Check", "List", "Watch")},
        {REFLECTION: {"ServerReflectionInfo": information}},
        bounds.gate,
    )


def _service(request: bytes) -> str:
    try:
        name: str = health_pb2.HealthCheckRequest.FromString(request).service
    except DecodeError as error:
        raise InvalidRequest("request", "a HealthCheckRequest", "other bytes") from error
    return name


def _reflection_request(request: bytes) -> reflection_pb2.ServerReflectionRequest:
    try:
        return reflection_pb2.ServerReflectionRequest.FromString(request)
    except DecodeError as error:
        raise InvalidRequest("request", "a ServerReflectionRequest", "other bytes") from error


def _written(status: int) -> bytes:
    written: bytes = _STATUS(status=status).SerializeToString()
    return written
