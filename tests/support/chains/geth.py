"""geth as a child process, whose blocks a test orders through the engine API."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

import requests

from localnet.ports import free_port
from localnet.process import end, end_with_parent
from support.chains.chain import dev_address
from support.chains.starting import answering_endpoint
from support.project import ROOT

CHAIN_ID: Final = 1337
_SECRET: Final = b"\7" * 32
_ZERO: Final = "0x" + 64 * "0"
_FUNDED: Final = 10**21
_BLOCK_SECONDS: Final = 12
_GENESIS_SECONDS_AGO: Final = 10**6
_ENGINE: Final = {"osaka": ("V3", "V5", "V4"), "amsterdam": ("V4", "V6", "V5")}
"""Versions of forkchoiceUpdated, getPayload and newPayload."""


def program() -> str | None:
    """The geth that `make test-chains` builds, or one on the PATH."""
    return shutil.which("geth", path=f"{ROOT / '.cache' / 'bin'}:{os.environ['PATH']}")


class Geth:
    """A running geth; use as a context manager.

    ``url`` is its public endpoint, ``fork`` the hard fork that its chain is at.
    """

    chain_id = CHAIN_ID

    def __init__(self, folder: Path, fork: str) -> None:
        """Write the genesis block of a chain at a hard fork, and start it."""
        self._forkchoice, self._get, self._new = _ENGINE[fork]
        self.fork = fork
        self._is_final = _ZERO
        self._lock = threading.Lock()
        data, secret = folder / "geth", folder / "jwt"
        secret.write_text(_SECRET.hex())
        genesis = folder / "genesis.json"
        genesis.write_text(json.dumps(_genesis(fork)))
        command = [program(), "--datadir", data, "--verbosity", "1"]
        subprocess.run([*command, "init", genesis], check=True, capture_output=True)
        http, engine = free_port(), free_port()
        self.url, self._engine_url = (f"http://127.0.0.1:{port}" for port in (http, engine))
        options = {
            "--networkid": CHAIN_ID,
            "--port": 0,
            "--http.port": http,
            "--http.api": "eth,net,web3,debug,txpool",
            "--authrpc.port": engine,
            "--authrpc.jwtsecret": secret,
        }
        flags = ["--http", "--nodiscover", "--maxpeers=0", "--ipcdisable", "--syncmode=full"]
        words = [str(word) for pair in options.items() for word in pair]
        with (folder / "log").open("w") as log:
            self._process = subprocess.Popen(
                [*command, *flags, "--gcmode=archive", *words],
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=end_with_parent,
            )
        self.endpoint = answering_endpoint(self.url, folder / "log")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        end(self._process)

    def mine(self, parent: str | None = None, fee_recipient: int = 0) -> str:
        """Build a block on a parent, by default the head, make it the head, and return its hash."""
        with self._lock:
            head = self._block("latest") if parent is None else self._block(parent)
            attributes: dict[str, Any] = {
                "timestamp": hex(int(head["timestamp"], 16) + _BLOCK_SECONDS),
                "prevRandao": _ZERO,
                "suggestedFeeRecipient": f"0x{fee_recipient:040x}",
                "withdrawals": [],
                "parentBeaconBlockRoot": _ZERO,
            }
            if self.fork == "amsterdam":
                attributes["slotNumber"] = hex(int(head["number"], 16) + 1)
                attributes["targetGasLimit"] = head["gasLimit"]
            begun = self._choose(head["hash"], attributes)
            # The payload is filled in the background, and anew every two seconds.
            time.sleep(0.1)
            built = self._engine(f"engine_getPayload{self._get}", begun["payloadId"])
            payload, wishes = built["executionPayload"], built["executionRequests"]
            status = self._engine(f"engine_newPayload{self._new}", payload, [], _ZERO, wishes)
            assert status["status"] == "VALID", status
            self._choose(payload["blockHash"])
            return str(payload["blockHash"])

    @contextmanager
    def mining(self) -> Iterator[None]:
        """Mine block after block meanwhile."""
        over = threading.Event()

        def loop() -> None:
            while not over.is_set():
                self.mine()

        thread = threading.Thread(target=loop)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def finalize(self, block: str) -> None:
        """Make a block, by its hash, the safe and final one."""
        self._is_final = block
        self._choose(self._block("latest")["hash"])

    def hash_of(self, block: int) -> str:
        """The hash of a block by height."""
        return str(self._block(hex(block))["hash"])

    def _choose(self, head: str, attributes: dict[str, Any] | None = None) -> Any:
        state = {"headBlockHash": head}
        state |= dict.fromkeys(("safeBlockHash", "finalizedBlockHash"), self._is_final)
        method = f"engine_forkchoiceUpdated{self._forkchoice}"
        chosen = self._engine(method, state, attributes)
        assert chosen["payloadStatus"]["status"] == "VALID", chosen
        return chosen

    def _block(self, block: str) -> dict[str, Any]:
        by = "Hash" if len(block) == len(_ZERO) else "Number"
        answer: dict[str, Any] = self.endpoint.request(f"eth_getBlockBy{by}", block, False)
        return answer

    def _engine(self, method: str, *params: Any) -> Any:
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        bearer = {"authorization": f"Bearer {_token()}"}
        answer = requests.post(self._engine_url, json=call, headers=bearer, timeout=30).json()
        assert "result" in answer, (method, answer)
        return answer["result"]


def _token() -> str:
    """A JSON Web Token (RFC 7519) of now, as the engine API demands."""

    def encoded(part: bytes) -> str:
        return base64.urlsafe_b64encode(part).rstrip(b"=").decode()

    parts = ({"alg": "HS256", "typ": "JWT"}, {"iat": int(time.time())})
    signed = ".".join(encoded(json.dumps(each).encode()) for each in parts)
    return f"{signed}.{encoded(hmac.digest(_SECRET, signed.encode(), hashlib.sha256))}"


def _genesis(fork: str) -> dict[str, Any]:
    """geth's own development genesis, with the contracts that a block calls, and ours to pay."""
    dumped = subprocess.run([program(), "--dev", "dumpgenesis"], check=True, capture_output=True)
    genesis: dict[str, Any] = json.loads(dumped.stdout)
    config = genesis["config"]
    for later in ("amsterdamTime", "bogotaTime"):
        config.pop(later, None)
    if fork == "amsterdam":
        config["amsterdamTime"] = 0
    paid = {dev_address(number): {"balance": hex(_FUNDED)} for number in range(10)}
    genesis["alloc"] |= {each.lower().removeprefix("0x"): value for each, value in paid.items()}
    genesis |= {"gasLimit": hex(60_000_000), "baseFeePerGas": hex(10**9)}
    genesis["timestamp"] = hex(int(time.time()) - _GENESIS_SECONDS_AGO)
    return genesis
