"""Gas of the deployment's transactions on geth, which runs a later hard fork than anvil does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

DEPLOYMENT_GAS: Final[Mapping[str, Mapping[str, int]]] = {
    "osaka": {
        "OriginatorSequence": 172_336,
        "GroupMessages's implementation": 1_521_321,
        "IdentityUpdates's implementation": 1_521_741,
        "GroupMessages": 270_112,
        "IdentityUpdates": 270_112,
        "NodeRegistry": 2_214_539,
    },
    "amsterdam": {
        "OriginatorSequence": 1_034_598,
        "GroupMessages's implementation": 10_608_859,
        "IdentityUpdates's implementation": 10_611_939,
        "GroupMessages": 1_258_178,
        "IdentityUpdates": 1_258_178,
        "NodeRegistry": 15_420_295,
    },
}
"""Hard fork, then contract, to ``gasUsed``, as `make test-chains` measures it."""
