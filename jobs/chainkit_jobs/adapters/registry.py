"""The formats that an import knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from chainkit_jobs.adapters.adapter import Adapter
from chainkit_jobs.adapters.aws import Aws
from chainkit_jobs.adapters.bigquery import BigQuery
from chainkit_jobs.adapters.cryo import Cryo
from chainkit_jobs.adapters.ethereum_etl import EthereumEtl

_ADAPTERS: Final[tuple[Adapter, ...]] = (Cryo(), EthereumEtl(), BigQuery(), Aws())

ADAPTERS: Final[Mapping[str, Adapter]] = {adapter.name: adapter for adapter in _ADAPTERS}
"""By the value of ``--format``."""
