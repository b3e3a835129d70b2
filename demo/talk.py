"""Two real clients talk: `python -m demo.talk GATEWAY FOLDER TEXT` writes all that ben reads.

The clients keep their state in the folder, and continue from it. A process of its own, because the
native library writes its log to the standard streams of its process, even while it ends.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Final

from localnet.accounts import development_account
from localnet.native_client import NativeClient

READ: Final = "read.json"

_ANN, _BEN = 8, 9
"""Numbers of the development accounts whose wallets sign."""

_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.1


async def talk(gateway_url: str, folder: Path, text: str) -> list[str]:
    """Let ann send a text to the group that she has with ben; return all texts that ben reads."""
    ann = await NativeClient.register(gateway_url, folder / "ann.db", development_account(_ANN))
    ben = await NativeClient.register(gateway_url, folder / "ben.db", development_account(_BEN))
    # Each may read from another node than those that took what the other one published.
    while not await ann.can_add(ben):
        await asyncio.sleep(_POLL_SECONDS)
    groups = await ann.join()
    group = groups[0] if groups else await ann.create_group([ben.account])
    await ann.send(group, text)
    while group not in await ben.join():
        await asyncio.sleep(_POLL_SECONDS)
    while text not in (texts := await ben.read(group)):
        await asyncio.sleep(_POLL_SECONDS)
    return texts


def main() -> None:
    """Write the texts as JSON to READ in the folder."""
    gateway_url, folder, text = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    read = asyncio.run(asyncio.wait_for(talk(gateway_url, folder, text), _SECONDS))
    (folder / READ).write_text(json.dumps(read))


if __name__ == "__main__":
    main()
