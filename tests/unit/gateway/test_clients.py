"""Tokens, and what one client may publish."""

from pathlib import Path

import pytest

from chainkit.errors import ConfigurationError
from chainkit.protocol.methods import MOST_MESSAGE_BYTES
from chainkit.service.grpc_methods import Caller
from chainkit.service.refusals import InvalidRequest, Overloaded, Unauthenticated
from chainkit_gateway.clients import Clients, RateLimits, Tokens

ANN, BEN = "a" * 16, "b" * 32
FILE = f"# clients of the shop\nann {ANN}\n\nben\t{BEN}\nann {'c' * 20}\n"
LIMITS = RateLimits(envelopes_per_second=10, burst=20, bytes_per_second=MOST_MESSAGE_BYTES)


def caller(authorization: str | None = None, peer: str = "ipv4:10.0.0.1:5") -> Caller:
    return Caller(peer, authorization)


def tokens(path: Path, text: str = FILE) -> Tokens:
    path = path / "tokens"
    path.write_text(text)
    return Tokens.read(path)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.conforms("N1")
@pytest.mark.parametrize(
    ("authorization", "name"),
    [(f"Bearer {ANN}", "ann"), (f"bearer {BEN}", "ben"), (f"Bearer {'c' * 20}", "ann")],
)
def test_name__token_of_the_file__is_its_clients(
    tmp_path: Path, authorization: str, name: str
) -> None:
    clients = Clients(tokens(tmp_path), LIMITS, Clock())

    assert clients.name(caller(authorization)) == name


@pytest.mark.conforms("N1")
@pytest.mark.parametrize(
    "authorization",
    [None, "", "Bearer ", ANN, f"Basic {ANN}", f"Bearer {ANN}a", f"Bearer {ANN[:-1]}", "Bearer ä"],
)
def test_name__no_token_of_the_file__is_refused_and_not_shown(
    tmp_path: Path, authorization: str | None
) -> None:
    clients = Clients(tokens(tmp_path), LIMITS, Clock())

    with pytest.raises(Unauthenticated) as caught:
        clients.name(caller(authorization))

    assert ANN[:-1] not in str(caught.value)


@pytest.mark.parametrize(
    ("peer", "name"),
    [
        ("ipv4:10.0.0.1:5", "10.0.0.1"),
        ("ipv6:%5B2001:db8::1:2%5D:5", "2001:db8::/64"),
        ("ipv6:%5B::1%5D:5", "::1"),
        ("ipv6:%5B::ffff:10.0.0.1%5D:5", "10.0.0.1"),
        ("unix:", "unix:"),
    ],
)
def test_name__no_tokens_kept__is_the_address(peer: str, name: str) -> None:
    assert Clients(None, LIMITS, Clock()).name(caller(peer=peer)) == name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected at least one token, got none"),
        ("ann short", "line 1"),
        (f"ann {ANN}\nben", "line 2"),
        (f"ann {ANN}\nben {ANN}", "expected a token of its own, got one used before (line 2)"),
        (f"a/b {ANN}", "expected a name, a space, and a token of 16 to 512 characters"),
    ],
)
def test_read__not_such_a_file__says_where_without_the_token(
    tmp_path: Path, text: str, words: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        tokens(tmp_path, text)

    assert words in str(caught.value)
    assert ANN not in str(caught.value)


@pytest.mark.conforms("N1")
def test_take__more_envelopes_than_the_rate__is_refused_until_the_time_it_says() -> None:
    clock = Clock()
    clients = Clients(None, LIMITS, clock)
    clients.take("ann", 20, 0)

    with pytest.raises(Overloaded, match=r"publications of ann: .*\(again in 0.5 s\)"):
        clients.take("ann", 5, 0)
    clients.take("ben", 20, 0)
    clock.now += 0.5

    clients.take("ann", 5, 0)
    with pytest.raises(Overloaded):
        clients.take("ann", 1, 0)


@pytest.mark.conforms("N1")
def test_take__more_bytes_than_the_rate__is_refused_and_takes_nothing() -> None:
    clock = Clock()
    clients = Clients(None, LIMITS, clock)
    clients.take("ann", 1, MOST_MESSAGE_BYTES)

    for _ in range(2):
        with pytest.raises(Overloaded, match=r"again in 0.5 s"):
            clients.take("ann", 1, MOST_MESSAGE_BYTES // 2)
    clients.take("ann", 19, 0)


def test_take__long_pause__fills_no_more_than_the_burst() -> None:
    clock = Clock()
    clients = Clients(None, LIMITS, clock)
    clients.take("ann", 1, 0)
    clock.now += 10**6

    clients.take("ann", 20, 0)
    with pytest.raises(Overloaded):
        clients.take("ann", 1, 0)


def test_take__more_than_the_burst__never_fits() -> None:
    with pytest.raises(InvalidRequest, match="expected at most 20 at once, got 21"):
        Clients(None, LIMITS, Clock()).take("ann", 21, 0)


def test_take__low_rate_of_bytes__still_takes_a_whole_message() -> None:
    clients = Clients(None, RateLimits(10, 20, 1), Clock())

    clients.take("ann", 1, MOST_MESSAGE_BYTES)
