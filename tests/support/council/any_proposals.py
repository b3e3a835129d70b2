"""Every call that a council may make, any arguments, any chain on which it changes something.

Facts are written here by hand: what the effects make of them is under test.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from eth_utils.address import to_checksum_address
from hypothesis import strategies as st

from chainkit.contracts.parameters import PAYLOAD_SIZE_CAP
from chainkit.council.calls import FUNCTIONS, OWNER_FUNCTIONS, Call, expected_change
from chainkit.council.calls.effect import NONE
from chainkit.council.calls.effects import EFFECTS
from chainkit.council.proposal import Evidence, Fees, Grounds, Proposal
from chainkit.signatures import SECP256K1_ORDER, SigningKey, address_of
from support.council.proposals import OWNERS, PLAIN, RECORD, SAFE

OURS = [contract.address for contract in RECORD.contracts]
LOGS = [name for name in FUNCTIONS if name != "NodeRegistry"]
LIST_END = "0x" + "1".zfill(40)


@dataclass(frozen=True)
class Step:
    """A call, and the facts of a chain on which it changes something."""

    call: Call
    before: Mapping[str, str]


def _is_somebody(address: bytes) -> bool:
    return address not in (*OURS, SAFE.account)


words = st.integers(0, 2**256 - 1)
# The first ones are no accounts: the zero address, and with what a Safe's list begins and ends.
accounts = (
    st.integers(2**8, 2**160 - 1)
    .map(lambda number: number.to_bytes(20, "big"))
    .filter(_is_somebody)
    .map(to_checksum_address)
)
pairs = st.lists(accounts, min_size=2, max_size=2, unique=True)
crowds = st.lists(accounts, min_size=3, max_size=5, unique=True)
keys = st.integers(1, SECP256K1_ORDER - 1).map(
    lambda number: SigningKey(number.to_bytes(32, "big"))
)
# Text that a URL may hold behind its host.
paths = st.text(
    st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters="\\"), max_size=400
)
sizes = st.integers(1, PAYLOAD_SIZE_CAP)


@st.composite
def _add_node(draw: st.DrawFn, name: str) -> Step:
    key, holder = draw(keys).public_key, draw(accounts)
    url = "https://node.example/" + draw(paths)
    facts = ("status", "holder", "http address")
    return Step(
        Call.make(RECORD, name, "addNode", holder, key, url),
        {f"node of key {address_of(key)} {fact}": NONE for fact in facts},
    )


@st.composite
def _update_health(draw: st.DrawFn, name: str) -> Step:
    node_id, is_enabled = draw(words), draw(st.booleans())
    return Step(
        Call.make(RECORD, name, "updateHealth", node_id, is_enabled),
        {f"node {node_id} status": "disabled" if is_enabled else "enabled"},
    )


@st.composite
def _transfer(draw: st.DrawFn, name: str) -> Step:
    node_id, (holder, successor) = draw(words), draw(pairs)
    call = Call.make(RECORD, name, "transferFrom", holder, successor, node_id)
    return Step(call, {f"node {node_id} holder": holder})


@st.composite
def _open_updates(draw: st.DrawFn, name: str) -> Step:
    is_open = draw(st.booleans())
    return Step(
        Call.make(RECORD, name, "setHttpAddressUpdatesOpen", is_open),
        {"NodeRegistry operators' address updates": "closed" if is_open else "open"},
    )


@st.composite
def _set_url(draw: st.DrawFn, name: str) -> Step:
    node_id, old, new = draw(words), draw(paths), draw(paths)
    url = f"https://node.example/new{new}"
    return Step(
        Call.make(RECORD, name, "updateHttpAddress", node_id, url),
        {f"node {node_id} http address": f"https://node.example/old{old}"},
    )


def _ownership(owner: str, pending: str) -> dict[str, str]:
    return {"NodeRegistry owner": owner, "NodeRegistry pending owner": pending}


@st.composite
def _offer_ownership(draw: st.DrawFn, name: str) -> Step:
    owner, successor = draw(pairs)
    return Step(Call.make(RECORD, name, "transferOwnership", successor), _ownership(owner, NONE))


@st.composite
def _accept_ownership(draw: st.DrawFn, name: str) -> Step:
    return Step(Call.make(RECORD, name, "acceptOwnership"), _ownership(*draw(pairs)))


def _pause(name: str) -> st.SearchStrategy[Step]:
    return st.just(Step(Call.make(RECORD, name, "pause"), {f"{name} paused": "no"}))


def _unpause(name: str) -> st.SearchStrategy[Step]:
    return st.just(Step(Call.make(RECORD, name, "unpause"), {f"{name} paused": "yes"}))


@st.composite
def _grant(draw: st.DrawFn, name: str) -> Step:
    added, *found = draw(crowds)
    return Step(
        Call.make(RECORD, name, "grantRole", bytes(32), added),
        {f"{name} administrators": ", ".join(sorted(found))},
    )


@st.composite
def _revoke(draw: st.DrawFn, name: str) -> Step:
    found = draw(crowds)
    return Step(
        Call.make(RECORD, name, "revokeRole", bytes(32), found[0]),
        {f"{name} administrators": ", ".join(sorted(found))},
    )


@st.composite
def _set_bounds(draw: st.DrawFn, name: str) -> Step:
    maximum = draw(sizes)
    minimum = draw(st.integers(0, maximum))
    return Step(
        Call.make(RECORD, name, "setPayloadBounds", minimum, maximum),
        {f"{name} payload bounds": f"{minimum} to {maximum + 1} bytes"},
    )


@st.composite
def _upgrade(draw: st.DrawFn, name: str) -> Step:
    current, successor = draw(pairs)
    sequence = to_checksum_address(RECORD.originator_sequence.address)
    return Step(
        Call.make(RECORD, name, "upgradeToAndCall", successor, b""),
        {
            f"{name} implementation": f"{current} (no known release)",
            f"{name} sequence": sequence,
        },
    )


_STEPS: Mapping[str, Callable[[str], st.SearchStrategy[Step]]] = {
    "addNode": _add_node,
    "updateHealth": _update_health,
    "transferFrom": _transfer,
    "setHttpAddressUpdatesOpen": _open_updates,
    "updateHttpAddress": _set_url,
    "transferOwnership": _offer_ownership,
    "acceptOwnership": _accept_ownership,
    "pause": _pause,
    "unpause": _unpause,
    "grantRole": _grant,
    "revokeRole": _revoke,
    "setPayloadBounds": _set_bounds,
    "upgradeToAndCall": _upgrade,
}

steps = st.one_of(
    [_STEPS[function](name) for name, functions in FUNCTIONS.items() for function in functions]
)
"""Any call of one of the contracts."""


_owner_functions = st.sampled_from(OWNER_FUNCTIONS)


@st.composite
def owner_steps(draw: st.DrawFn) -> Step:
    """Any call by which a Safe changes its own owners."""
    function = draw(_owner_functions)
    added, *owners = draw(crowds)
    # The number that is there now is never the one that is asked for.
    threshold = draw(st.integers(1, len(owners) - 1))
    arguments: dict[str, tuple[object, ...]] = {
        "addOwnerWithThreshold": (added, threshold),
        "removeOwner": (LIST_END, owners[0], threshold),
        "swapOwner": (LIST_END, owners[0], added),
        "changeThreshold": (threshold,),
    }
    return Step(
        Call.make_of_safe(SAFE.account, function, *arguments[function]),
        {"Safe owners": ", ".join(sorted(owners)), "Safe signatures needed": str(len(owners))},
    )


_step_lists = st.lists(steps, min_size=1, max_size=4)


@st.composite
def contract_steps(draw: st.DrawFn) -> list[Step]:
    """Calls of the contracts, no two of which concern the same fact."""
    chosen: list[Step] = []
    for step in draw(_step_lists):
        if not any(name in other.before for other in chosen for name in step.before):
            chosen.append(step)
    return chosen


texts = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=80)
spaced = texts.map(lambda text: " ".join(text.split())).filter(bool)
digests = st.binary(min_size=32, max_size=32).map(bytes.hex)
evidence = st.lists(st.builds(Evidence, spaced, digests), max_size=3).map(tuple)
# Numbers that the file's integers hold; the Safe's own nonce is a uint256.
counts = st.integers(0, 2**63 - 1)


@st.composite
def grounds_of(draw: st.DrawFn, chosen: list[Step]) -> Grounds:
    """Any grounds that calls may have."""
    calls = [step.call for step in chosen]
    before = {name: value for step in chosen for name, value in step.before.items()}
    return Grounds(
        reason=draw(spaced),
        evidence=draw(evidence),
        before=before,
        after=expected_change(EFFECTS, RECORD, calls, before).after,
        runs={name: draw(accounts) for name in sorted({call.contract for call in calls} & {*LOGS})},
        expires=draw(counts),
    )


_choices = st.one_of(contract_steps(), owner_steps().map(lambda step: [step]))
_amounts = st.integers(1, 2**64 - 1)


@st.composite
def safe_proposals(draw: st.DrawFn) -> Proposal:
    """Any proposal of the Safe, about the contracts or about its own owners."""
    chosen = draw(_choices)
    calls = [step.call for step in chosen]
    return Proposal.make(RECORD, SAFE, calls, draw(grounds_of(chosen)), draw(counts), None)


@st.composite
def plain_proposals(draw: st.DrawFn) -> Proposal:
    """Any proposal of an account with a key."""
    step, nonce = draw(steps), draw(counts)
    fees = Fees(draw(_amounts), draw(_amounts), draw(_amounts))
    return Proposal.make(RECORD, PLAIN, [step.call], draw(grounds_of([step])), nonce, fees)


signer_numbers = st.permutations(range(len(OWNERS))).flatmap(
    lambda order: st.integers(0, len(OWNERS)).map(lambda count: order[:count])
)
"""Which of the council's owners sign, and in which order."""
