"""Writes the HTTP paths of a node's methods for Envoy (XIP-49 §3.2.8, §3.3.3).

Run ``python -m tools.write_http_descriptors`` after a change to a .proto file; ``--check`` writes
nothing and exits with 1 if the file is out of date. The paths are the options that XIP-49 writes
beside its methods; they are listed here, because in the .proto files they would cost every reader
of an envelope a package.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import click
from google.api import annotations_pb2
from google.protobuf.descriptor import FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from chainkit.protocol.proto import message_api_pb2

TARGET: Final = Path(__file__).parents[1] / "operations" / "envoy" / "services.binpb"
PATHS: Final = {
    "SubscribeEnvelopes": "/mls/v2/subscribe-envelopes",
    "QueryEnvelopes": "/mls/v2/query-envelopes",
    "PublishPayerEnvelopes": "/mls/v2/publish-payer-envelopes",
    "GetInboxIds": "/mls/v2/get-inbox-ids",
    "SubmitMisbehaviorReport": "/mls/v2/submit-misbehavior-report",
    "QueryMisbehaviorReports": "/mls/v2/query-misbehavior-reports",
}
"""By method. The body is the request's message in JSON."""

_SERVICES: Final = ("ReplicationApi", "MisbehaviorApi")
"""Without aliases: one path belongs to one method."""


def descriptors() -> bytes:
    """Return the FileDescriptorSet of the node's services, with the paths."""
    files: dict[str, FileDescriptorProto] = {}
    _add(message_api_pb2.DESCRIPTOR, files)
    _add(annotations_pb2.DESCRIPTOR, files)
    described = files[message_api_pb2.DESCRIPTOR.name]
    described.dependency.append(annotations_pb2.DESCRIPTOR.name)
    for service in described.service:
        for method in service.method:
            if service.name in _SERVICES and method.name in PATHS:
                rule = method.options.Extensions[annotations_pb2.http]
                rule.post, rule.body = PATHS[method.name], "*"
    # Each file follows those that it imports: an annotated file is last.
    ordered = [file for name, file in files.items() if name != described.name]
    return FileDescriptorSet(file=[*ordered, described]).SerializeToString(deterministic=True)


def _add(descriptor: FileDescriptor, files: dict[str, FileDescriptorProto]) -> None:
    for dependency in descriptor.dependencies:
        _add(dependency, files)
    if descriptor.name not in files:
        files[descriptor.name] = FileDescriptorProto()
        descriptor.CopyToProto(files[descriptor.name])


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if the file is outdated.")
def main(check: bool) -> None:
    """Write operations/envoy/services.binpb, or check it.

    Example: python -m tools.write_http_descriptors
    """
    content = descriptors()
    if not check:
        TARGET.write_bytes(content)
    elif not TARGET.exists() or TARGET.read_bytes() != content:
        click.echo(f"{TARGET.name}: outdated; run python -m tools.write_http_descriptors", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
