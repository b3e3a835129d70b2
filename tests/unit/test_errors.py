import inspect
import pickle
import re
from collections.abc import Callable

import pytest

from chainkit import errors
from chainkit.contracts.deployment import read_deployment_record
from chainkit.errors import ChainkitError, EndpointUnavailable, RateLimited, RefusedRequest
from chainkit.protocol.envelope import parse_originator_envelope
from chainkit.protocol.events import MESSAGE_SENT_TOPIC, decode_payload_event
from chainkit.signatures import SigningKey, recover_public_key
from chainkit.types import Log

CLASSES = {
    name: value
    for name, value in vars(errors).items()
    if inspect.isclass(value) and issubclass(value, Exception)
}


def documented_parents() -> dict[str, str]:
    """Class to parent, as the tree in the module's docstring draws it."""
    parents: dict[str, str] = {}
    ancestors: list[str] = ["Exception"]
    for line in inspect.cleandoc(errors.__doc__ or "").splitlines():
        if drawn := re.fullmatch(r"    ([│ ]*(?:[├└]── )?)(\w+)(?: {2,}.*)?", line):
            depth = len(drawn[1]) // 4
            ancestors[depth + 1 :] = [drawn[2]]
            parents[drawn[2]] = ancestors[depth]
    return parents


def raised_by(action: Callable[[], object]) -> ChainkitError:
    with pytest.raises(ChainkitError) as caught:
        action()
    return caught.value


def test_draw_tree__in_the_docstring__is_the_tree_of_the_classes() -> None:
    assert documented_parents() == {
        name: class_.__bases__[0].__name__ for name, class_ in CLASSES.items()
    }


def test_write_message__with_a_place__ends_in_it() -> None:
    error = ChainkitError("envelope 42 of originator 0", "sequence 42", 44, "block 1204331, log 3")

    assert str(error) == (
        "envelope 42 of originator 0: expected sequence 42, got 44 (block 1204331, log 3)"
    )
    assert (error.subject, error.expected, error.got, error.place) == (
        "envelope 42 of originator 0",
        "sequence 42",
        44,
        "block 1204331, log 3",
    )


def test_write_message__without_a_place__ends_in_what_came() -> None:
    assert str(ChainkitError("chain id", 31337, 1)) == "chain id: expected 31337, got 1"


@pytest.mark.parametrize("class_", CLASSES.values(), ids=CLASSES)
def test_pickle__error_of_any_class__comes_back_the_same(class_: type[ChainkitError]) -> None:
    error = class_("log", "1 topic", 2, "block 1204331, log 3")

    copy = pickle.loads(pickle.dumps(error))

    assert type(copy) is class_
    assert (str(copy), vars(copy)) == (str(error), vars(error))


def test_pickle__rate_limit__keeps_how_long_to_wait() -> None:
    error = RateLimited("endpoint", "an answer", "HTTP 429")
    error.retry_after = 7.0

    assert pickle.loads(pickle.dumps(error)).retry_after == 7.0


def test_pickle__refused_request__keeps_the_revert_data() -> None:
    error = RefusedRequest("eth_call", "a result", "execution reverted")
    error.data = "0x118cdaa7"

    assert pickle.loads(pickle.dumps(error)).data == "0x118cdaa7"


@pytest.mark.parametrize(
    "action",
    [
        lambda path: decode_payload_event(
            Log(bytes(20), (MESSAGE_SENT_TOPIC,), b"short", 1, bytes(32), bytes(32), 0, 0)
        ),
        lambda path: parse_originator_envelope(b"\x0a"),
        lambda path: recover_public_key(bytes(65), bytes(32)),
        lambda path: SigningKey(b""),
        lambda path: read_deployment_record(path),
    ],
    ids=["log", "envelope", "signature", "key", "record"],
)
def test_pickle__error_with_another_as_its_cause__comes_back_the_same(
    action: Callable[[object], object], tmp_path: object
) -> None:
    error = raised_by(lambda: action(tmp_path))

    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.parametrize("class_", CLASSES.values(), ids=CLASSES)
def test_ask_error__whether_asking_again_may_help__has_one_answer(
    class_: type[ChainkitError],
) -> None:
    retryable = issubclass(class_, errors.RetryableChainError)
    fatal = issubclass(class_, errors.FatalChainError)

    assert not (retryable and fatal)
    # These two are raised only as one of their subclasses.
    shared = (errors.ChainError, errors.StateUnavailable, errors.MethodUnavailable)
    if issubclass(class_, errors.ChainError) and class_ not in shared:
        assert retryable or fatal
    else:
        assert not (retryable or fatal)


def test_tell_apart__rate_limit_and_bad_data__are_different_types() -> None:
    assert not issubclass(RateLimited, errors.MalformedData)
    assert not issubclass(RateLimited, errors.InconsistentAnswer)
    assert not issubclass(errors.InconsistentAnswer, RateLimited)
    assert not issubclass(EndpointUnavailable, RateLimited)


def test_error__empty_text_received__says_that_there_was_nothing() -> None:
    assert str(ChainkitError("role", "a name", "")) == "role: expected a name, got nothing"
