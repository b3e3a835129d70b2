"""One node's answers, page after page: what is kept, and where a hostile node is cut off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainkit.council.gathering.node_answers import MOST_STALE_PAGES, HostedReport, NodePages, Share
from chainkit.errors import InconsistentAnswer
from chainkit.misbehavior.signed import parse_signed
from chainkit.protocol.proto import message_api_pb2
from support.audit.identities import key_of
from support.council.hosts import HonestHost, after, hosted, page
from support.damage import damaged

SHARE = Share(reports=100, bytes=1 << 20, seconds=1)


def pages(share: Share = SHARE, after_ns: int = 0) -> NodePages:
    return NodePages(100, key_of(100).public_key, after_ns, share)


def taken(reader: NodePages, answer: Callable[[bytes], bytes]) -> list[HostedReport]:
    """Ask until there is no request more."""
    found: list[HostedReport] = []
    while (request := reader.request()) is not None:
        found += reader.take(answer(request))
    return found


@pytest.mark.conforms("N53")
@pytest.mark.parametrize("page_size", [1, 2, 5, 50])
def test_take__honest_node__gives_all_of_its_reports(page_size: int) -> None:
    reports = [hosted(100, 300, number) for number in range(1, 8)]
    host = HonestHost(reports, page_size)
    reader = pages()

    found = taken(reader, host.answer)

    digests = [parse_signed(each).digest for each in reports]
    assert [each.signed.digest for each in found] == digests
    assert (reader.reports, reader.after_ns, reader.cut) == (7, 7, None)
    assert len(set(host.asked)) == len(host.asked)
    assert [each.name for each in found] == [f"node-100-{each.hex()}.pb" for each in digests]
    assert [parse_signed(each.data) for each in found] == list(map(parse_signed, reports))


def test_take__after_a_time__asks_for_later_ones_alone() -> None:
    host = HonestHost([hosted(100, 300, number) for number in range(1, 8)])

    found = taken(pages(after_ns=5), host.answer)

    assert (len(found), host.asked[0]) == (2, 5)


def test_take__fields_that_nobody_signed__are_dropped() -> None:
    reports = [hosted(100, 300, stored, time_ns=1) for stored in (1, 2)]
    reports[1] += b"\xfa\x01\x03abc"

    (one,), (other,) = (pages().take(page(each)) for each in reports)

    assert one.data == other.data


@pytest.mark.conforms("N53")
def test_take__report_of_another_key__is_counted_and_not_kept() -> None:
    reader = pages()
    own, foreign = hosted(100, 300, 1), hosted(100, 300, 2, key=key_of(200))

    found = reader.take(page(own, foreign))

    assert [each.signed.reporter for each in found] == [key_of(100).public_key]
    assert (reader.reports, reader.wrong_key, reader.malformed) == (1, 1, 0)


def test_take__reports_that_say_nothing__are_counted_and_not_kept() -> None:
    unsigned = message_api_pb2.MisbehaviorReport.FromString(hosted(100, 300, 1))
    unsigned.ClearField("signature")
    nobody = message_api_pb2.MisbehaviorReport.FromString(hosted(100, 300, 2))
    nobody.signature.bytes = bytes(65)
    empty = message_api_pb2.MisbehaviorReport(server_time_ns=3)
    reader = pages()

    found = reader.take(page(*(each.SerializeToString() for each in (unsigned, nobody, empty))))

    assert (found, reader.malformed, reader.wrong_key) == ([], 3, 0)


def test_take__same_report_again__is_one() -> None:
    reader = pages()
    again = [hosted(100, 300, stored, time_ns=1) for stored in (1, 2, 3)]

    found = reader.take(page(*again))

    assert (len(found), reader.repeated, reader.reports) == (1, 2, 1)


def test_take__page_of_an_earlier_time__is_refused() -> None:
    reader = pages()
    reader.take(page(hosted(100, 300, 7)))

    for stored in (7, 6, 0):
        with pytest.raises(InconsistentAnswer, match="stored after 7, got one of"):
            reader.take(page(hosted(100, 300, 9), hosted(100, 300, stored)))


def test_take__repeats_itself_under_new_times__ends() -> None:
    reader = pages()
    with pytest.raises(InconsistentAnswer, match=f"{MOST_STALE_PAGES} pages without one"):
        taken(reader, lambda request: page(hosted(100, 300, after(request) + 1, time_ns=1)))

    assert (reader.reports, reader.repeated) == (1, MOST_STALE_PAGES)


def test_take__never_ends__is_cut_at_its_share() -> None:
    reader = pages(replace(SHARE, reports=10))

    found = taken(reader, lambda request: page(hosted(100, 300, after(request) + 1)))

    assert (len(found), reader.after_ns) == (10, 10)
    assert reader.cut == "it has 10 reports or more"


def test_take__page_larger_than_the_share__is_taken_up_to_there_and_gone_on_with() -> None:
    times = [3, 1, 2, 2, 2, 5, 4]
    reports = [hosted(100, 300, stored, time_ns=n) for n, stored in enumerate(times)]
    first = pages(replace(SHARE, reports=3))

    found = taken(first, HonestHost(reports, 50).answer)
    rest = taken(pages(after_ns=first.after_ns), HonestHost(reports, 50).answer)

    assert (len(found), first.after_ns) == (3, 1)
    assert first.cut == "it has 3 reports or more"
    digests = {each.signed.digest for each in [*found, *rest]}
    assert digests == {parse_signed(each).digest for each in reports}


def test_take__more_bytes_than_its_share__is_asked_no_more() -> None:
    reader = pages(replace(SHARE, bytes=50))

    found = taken(reader, HonestHost([hosted(100, 300, n) for n in (1, 2, 3)], 1).answer)

    assert len(found) == 1
    assert reader.cut == "its answers have 50 bytes or more"


def test_take__last_time_there_is__is_the_end() -> None:
    reader = pages()

    found = taken(reader, lambda _: page(hosted(100, 300, 2**64 - 1, time_ns=1)))

    assert (len(found), reader.cut) == (1, None)


@given(st.one_of(st.binary(max_size=60), damaged(page(hosted(100, 300, 1), hosted(100, 300, 2)))))
def test_take__any_bytes__are_reports_of_the_node_or_refused(answer: bytes) -> None:
    try:
        found = pages().take(answer)
    except InconsistentAnswer as error:
        assert str(error).isprintable()
        return
    for each in found:
        assert parse_signed(each.data).reporter == key_of(100).public_key
