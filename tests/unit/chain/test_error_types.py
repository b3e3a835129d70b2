"""Words of an endpoint are read once: callers decide by the type of the error."""

import pytest
import requests

from chainkit.chain.member import error_kind
from chainkit.chain.transport import AnswerTooLarge, HttpFailure
from chainkit.errors import (
    ChainError,
    EndpointFault,
    EndpointTimedOut,
    MethodFault,
    MethodRefused,
    OversizedAnswer,
    RefusedRequest,
    StateFault,
    StateRefused,
)
from chainkit.types import BlockReference
from support.endpoints.fake_endpoint import FakeProvider, RpcError

NO_STATE = "missing trie node 00"
NO_METHOD = "the method eth_call does not exist/is not available"


def error_of(provider: FakeProvider) -> ChainError:
    with pytest.raises(ChainError) as caught:
        provider.endpoint().call(bytes(20), b"", BlockReference(1, bytes(32)))
    return caught.value


@pytest.mark.parametrize(
    ("answer", "expected", "kind"),
    [
        (RpcError(-32000, NO_STATE), StateRefused, "refused_request"),
        (RpcError(-32603, NO_STATE), StateFault, "endpoint_unavailable"),
        (RpcError(-32601, NO_METHOD), MethodRefused, "refused_request"),
        (RpcError(-32603, NO_METHOD), MethodFault, "endpoint_unavailable"),
        (RpcError(-32000, "eth_call: state is not available"), StateRefused, "refused_request"),
        (RpcError(3, f"execution reverted: {NO_STATE}"), RefusedRequest, "refused_request"),
        (RpcError(-32603, "internal error"), EndpointFault, "endpoint_unavailable"),
    ],
)
def test_call__refused_in_words__error_has_their_type_and_is_counted_as_its_kind(
    answer: RpcError, expected: type[ChainError], kind: str
) -> None:
    error = error_of(FakeProvider({"eth_call": answer}))

    assert type(error) is expected
    assert error_kind(error) == kind


@pytest.mark.parametrize(
    ("failure", "expected", "kind"),
    [
        (requests.ReadTimeout(), EndpointTimedOut, "endpoint_unavailable"),
        (AnswerTooLarge("more than 1 bytes"), OversizedAnswer, "inconsistent_answer"),
        (
            HttpFailure(403, {}, b"archive requests need a paid plan"),
            StateRefused,
            "refused_request",
        ),
        (
            HttpFailure(400, {}, b'{"error": {"code": 1, "message": "unsupported method"}}'),
            MethodRefused,
            "refused_request",
        ),
    ],
)
def test_call__no_usable_answer__error_has_its_type_and_is_counted_as_its_kind(
    failure: Exception, expected: type[ChainError], kind: str
) -> None:
    error = error_of(FakeProvider({}, [failure] * 4))

    assert type(error) is expected
    assert error_kind(error) == kind
