"""The certificate as Envoy reads it: a file of names that is replaced, and two files in memory.

A key lies on no disk but the operator's. Envoy takes what `certificate.json` names whenever that
file is replaced by renaming, and keeps what it has where it cannot use the new pair.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from chainkit.service.certificate import CertificatePair
from chainkit.service.edge.configuration import SECRET
from chainkit.service.edge.handed import file_in_memory


class SecretFiles:
    """Hands pairs to Envoy, in Envoy's process or before the process becomes Envoy's."""

    def __init__(self, path: Path) -> None:
        """Take the path of the file of names."""
        self._path = path
        self._version = 0
        self._files: tuple[int, ...] = ()

    def write(self, pair: CertificatePair) -> None:
        """Let Envoy take a pair."""
        before = self._files
        self._files = tuple(file_in_memory("tls", each) for each in (pair.certificate, pair.key))
        self._version += 1
        fresh = self._path.with_suffix(".new")
        fresh.write_text(json.dumps(_named(self._version, *self._files)))
        os.replace(fresh, self._path)
        # Envoy has read the files before these long ago.
        for each in before:
            os.close(each)


def _named(version: int, certificate: int, key: int) -> dict[str, Any]:
    # Envoy reads no file below /proc, but those of its own descriptors by this name.
    pair = {
        "certificate_chain": {"filename": f"/dev/fd/{certificate}"},
        "private_key": {"filename": f"/dev/fd/{key}"},
    }
    secret = {
        "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret",
        "name": SECRET,
        "tls_certificate": pair,
    }
    return {"version_info": str(version), "resources": [secret]}
