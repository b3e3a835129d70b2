import pytest

from chainkit.protocol.publish_rules.refusal import PublishRefused, RefusalReason
from chainkit.signatures import keccak256
from chainkit.types import TopicKind
from chainkit_gateway.routing import route
from support import mls, publishes


@pytest.mark.conforms("N2")
@pytest.mark.parametrize(
    ("client_envelope", "kind", "is_for_chain"),
    [
        (publishes.group_message(), TopicKind.GROUP_MESSAGE, False),
        (publishes.commit(), TopicKind.GROUP_MESSAGE, True),
        (
            publishes.group_message(mls.private_message(publishes.GROUP_ID, mls.PROPOSAL)),
            TopicKind.GROUP_MESSAGE,
            True,
        ),
        (publishes.welcome(), TopicKind.WELCOME, False),
        (publishes.key_package(), TopicKind.KEY_PACKAGE, False),
        (publishes.identity_update(), TopicKind.IDENTITY_UPDATE, True),
    ],
)
def test_route__each_kind__goes_to_the_chain_only_where_order_matters(
    client_envelope: bytes, kind: TopicKind, is_for_chain: bool
) -> None:
    publication = route(client_envelope, "ann")

    assert publication.kind is kind
    assert publication.is_for_chain is is_for_chain
    assert publication.digest == keccak256(client_envelope)
    assert publication.client_envelope == client_envelope
    assert publication.client == "ann"


@pytest.mark.parametrize(
    ("client_envelope", "reason"),
    [
        (b"\xff", RefusalReason.NOT_A_CLIENT_ENVELOPE),
        pytest.param(bytes(4_000_001), RefusalReason.TOO_LARGE, id="too large"),
        (publishes.group_message(b"\0\1"), RefusalReason.INVALID_PAYLOAD),
        (publishes.identity_update(inbox_id="00" * 32), RefusalReason.INVALID_PAYLOAD),
        (publishes.welcome(b"short"), RefusalReason.WRONG_TOPIC),
    ],
)
def test_route__payload_that_no_node_serves__is_refused_before_it_costs(
    client_envelope: bytes, reason: RefusalReason
) -> None:
    with pytest.raises(PublishRefused) as caught:
        route(client_envelope, "ann")

    assert caught.value.reason is reason
