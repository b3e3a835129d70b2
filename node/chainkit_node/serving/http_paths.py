"""The HTTP paths of a node's methods, whose requests and answers are JSON (XIP-49 §3.2.8, §3.3.3).

XIP-49 writes the paths beside its methods as options. They are added here: in the .proto files
each reader of an envelope would need one more package.
"""

from __future__ import annotations

from typing import Final

from google.api import annotations_pb2
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from chainkit.protocol.methods import MISBEHAVIOR_API, REPLICATION_API
from chainkit.protocol.proto import message_api_pb2
from chainkit.service.edge.configuration import HttpPaths

PATHS: Final = {
    "SubscribeEnvelopes": "/mls/v2/subscribe-envelopes",
    "QueryEnvelopes": "/mls/v2/query-envelopes",
    "PublishPayerEnvelopes": "/mls/v2/publish-payer-envelopes",
    "GetInboxIds": "/mls/v2/get-inbox-ids",
    "SubmitMisbehaviorReport": "/mls/v2/submit-misbehavior-report",
    "QueryMisbehaviorReports": "/mls/v2/query-misbehavior-reports",
}
"""By method. The body is the request's message in JSON."""

_SERVICES: Final = (REPLICATION_API, MISBEHAVIOR_API)
"""Without aliases: one path belongs to one method."""


def http_paths() -> HttpPaths:
    """Return the node's services with the paths of their methods."""
    return HttpPaths(_SERVICES, _descriptors())


def _descriptors() -> bytes:
    """Return the FileDescriptorSet of the services; each file follows those that it imports."""
    files: dict[str, FileDescriptorProto] = {}
    _add(annotations_pb2.DESCRIPTOR, files)
    _add(message_api_pb2.DESCRIPTOR, files)
    described = files[message_api_pb2.DESCRIPTOR.name]
    described.dependency.append(annotations_pb2.DESCRIPTOR.name)
    for service in described.service:
        for method in service.method:
            if f"{described.package}.{service.name}" in _SERVICES and method.name in PATHS:
                rule = method.options.Extensions[annotations_pb2.http]
                rule.post, rule.body = PATHS[method.name], "*"
    return FileDescriptorSet(file=files.values()).SerializeToString(deterministic=True)


def _add(descriptor: FileDescriptor, files: dict[str, FileDescriptorProto]) -> None:
    for dependency in descriptor.dependencies:
        _add(dependency, files)
    if descriptor.name not in files:
        files[descriptor.name] = FileDescriptorProto()
        descriptor.CopyToProto(files[descriptor.name])
