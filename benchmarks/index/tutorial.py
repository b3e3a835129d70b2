"""The way that tutorials teach: web3.py's decoded events, an object each, a commit per block.

Nothing is verified and nothing is signed, and the block's time is not even asked for.
"""

from __future__ import annotations

import json
from importlib.resources import files
from itertools import groupby
from typing import Final

from sqlalchemy import LargeBinary, create_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from web3 import HTTPProvider, Web3
from web3.types import EventData

from benchmarks.index.job import Job, Measured
from benchmarks.index.meter import Meter
from chainkit.contracts.deployment import read_deployment_record

_BLOCKS_PER_REQUEST: Final = 100


class Base(DeclarativeBase):
    """The base class of the tables, as SQLAlchemy wants it."""


class Message(Base):
    """One row per event."""

    __tablename__ = "messages"

    sequence_id: Mapped[int] = mapped_column(primary_key=True)
    group_id: Mapped[bytes] = mapped_column(LargeBinary)
    message: Mapped[bytes] = mapped_column(LargeBinary)
    block_number: Mapped[int] = mapped_column(index=True)
    block_hash: Mapped[bytes] = mapped_column(LargeBinary)
    transaction_hash: Mapped[bytes] = mapped_column(LargeBinary)
    log_index: Mapped[int]


def index(job: Job) -> Measured:
    """Index a stretch of history into an empty database."""
    abi = json.loads(files("chainkit.contracts.abi").joinpath("GroupMessages.json").read_text())
    record = read_deployment_record(job.record_path)
    web3 = Web3(HTTPProvider(job.url))
    contract = web3.eth.contract(
        address=Web3.to_checksum_address(record.group_messages.address), abi=abi
    )
    engine = create_engine(f"sqlite:///{job.database}")
    Base.metadata.create_all(engine)
    last = job.stretch.last_block
    # The clock starts when the connection is there.
    web3.eth.get_block_number()
    meter = Meter(job.stretch.events)
    with Session(engine) as session:
        for start in range(job.stretch.first_block, last + 1, _BLOCKS_PER_REQUEST):
            end = min(start + _BLOCKS_PER_REQUEST - 1, last)
            logs = contract.events.MessageSent().get_logs(from_block=start, to_block=end)
            for _, of_block in groupby(logs, key=lambda log: log["blockNumber"]):
                session.add_all(_message(log) for log in of_block)
                session.commit()
            meter.count(len(logs))
    engine.dispose()
    return meter.finish()


def _message(log: EventData) -> Message:
    arguments = log["args"]
    return Message(
        sequence_id=arguments["sequenceId"],
        group_id=arguments["groupId"],
        message=arguments["message"],
        block_number=log["blockNumber"],
        block_hash=bytes(log["blockHash"]),
        transaction_hash=bytes(log["transactionHash"]),
        log_index=log["logIndex"],
    )
