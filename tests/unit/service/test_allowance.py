from __future__ import annotations

import pytest

from chainkit.service.allowance import Buckets, Held, address_of


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        ("ipv4:192.0.2.1:51234", "192.0.2.1"),
        ("ipv6:[2001:db8:0:1:2:3:4:5]:51234", "2001:db8:0:1::/64"),
        ("ipv6:%5B2001:db8:0:1::9%5D:443", "2001:db8:0:1::/64"),
        ("ipv6:%5B::ffff:192.0.2.1%5D:443", "192.0.2.1"),
        ("ipv6:%5Bfe80::1%25eth0%5D:443", "fe80::/64"),
        ("ipv6:%5B::1%5D:443", "::1"),
        ("unix:/run/node.sock", "unix:/run/node.sock"),
        ("ipv4:nonsense", "ipv4:nonsense"),
    ],
)
def test_address__of_a_peer__leaves_out_what_it_can_choose(peer: str, address: str) -> None:
    assert address_of(peer) == address


def test_bucket__emptied__fills_at_its_rate_and_no_further_than_its_burst() -> None:
    buckets = Buckets(per_second=2, burst=3)

    for _ in range(3):
        assert buckets.seconds_to_wait("a", 0) == 0
        buckets.take("a", 0)

    assert buckets.seconds_to_wait("a", 0) == 0.5
    assert buckets.seconds_to_wait("a", 0.5) == 0
    assert buckets.seconds_to_wait("b", 0) == 0
    for _ in range(3):
        buckets.take("a", 1000)
    assert buckets.seconds_to_wait("a", 1000) > 0


def test_bucket__asked_for_several_tokens__waits_for_all_of_them() -> None:
    buckets = Buckets(per_second=2, burst=3)
    buckets.take("a", 0, 2)

    assert buckets.seconds_to_wait("a", 0, 1) == 0
    assert buckets.seconds_to_wait("a", 0, 3) == 1
    assert buckets.seconds_to_wait("a", 1, 3) == 0


def test_bucket__more_taken_than_there_was__waits_until_that_has_come_in() -> None:
    buckets = Buckets(per_second=10, burst=10)

    buckets.take("a", 0, 60)

    assert buckets.seconds_to_wait("a", 0) == pytest.approx(5.1)
    assert buckets.seconds_to_wait("a", 5) > 0
    assert buckets.seconds_to_wait("a", 5.2) == 0


def test_buckets__of_many_addresses__forget_the_one_that_was_longest_unused() -> None:
    buckets = Buckets(per_second=1, burst=1, most=2)
    buckets.take("a", 0)
    buckets.take("b", 0)
    buckets.take("a", 0)

    for number in range(1000):
        assert buckets.seconds_to_wait("a", 0) > 0
        buckets.take("a", 0)
        buckets.take(f"stranger {number}", 0)

    assert len(buckets) == 2
    assert buckets.seconds_to_wait("a", 0) > 0
    assert buckets.seconds_to_wait("b", 0) == 0


def test_buckets__asked_about_strangers__remember_none() -> None:
    buckets = Buckets(per_second=1, burst=1)

    assert buckets.seconds_to_wait("a", 0) == 0
    assert len(buckets) == 0


def test_buckets__rate_0__take_from_nobody() -> None:
    buckets = Buckets(per_second=0, burst=0)

    buckets.take("a", 0, 10**9)

    assert buckets.seconds_to_wait("a", 0) == 0
    assert len(buckets) == 0


def test_held__up_to_the_limits__has_room_again_for_what_is_given_back() -> None:
    held = Held(most=5, most_of_one=3)
    held.take("a", 3)

    assert not held.has_room_for("a", 1) and held.has_room_for("b", 3)
    assert held.has_room(2) and not held.has_room(3)
    held.take("b", 2)
    assert not held.has_room(1)
    held.give_back("a", 1)
    assert held.has_room(1) and held.has_room_for("a", 1)


def test_held__addresses_that_gave_everything_back__are_forgotten() -> None:
    held = Held(most=0, most_of_one=0)
    for number in range(1000):
        assert held.has_room(1) and held.has_room_for(f"stranger {number}", 1)
        held.take(f"stranger {number}", 1)
        held.give_back(f"stranger {number}", 1)
    assert held.has_room(10**12) and held.has_room_for("a", 10**12)

    assert len(held) == held.total == 0
