"""The one exception tree. Each error names the expected and the received value; or a state.

::

    ChainkitError
    ├── ConfigurationError       an option, a file or a record that cannot be used
    ├── MalformedData            bytes that are not what they should be
    │   ├── MalformedLog         a log that none of our contracts can have emitted
    │   ├── MalformedEnvelope    not an envelope of XIP-49 §3.2.1
    │   ├── MalformedMls         not a message or key package of RFC 9420
    │   ├── MalformedAnswer      a peer's answer that contradicts the request, or itself
    │   ├── InvalidSignature     a signature that recovers to nobody, or to somebody else
    │   ├── RefusedUpdate        an identity update that breaks a rule of XIP-46
    │   └── Unprovable           a row that leaves out what its hash is made of
    ├── ChainError               what an endpoint answered, or did not
    │   ├── RetryableChainError  asking again, or elsewhere, may help
    │   │   ├── EndpointUnavailable
    │   │   │   ├── EndpointTimedOut
    │   │   │   └── EndpointFault    an answer that blames the endpoint itself
    │   │   │       ├── StateFault
    │   │   │       └── MethodFault
    │   │   ├── RateLimited
    │   │   ├── RangeRefused
    │   │   ├── Unconfirmed
    │   │   ├── WalletUnanswered     whether a contract wallet signed is not known yet
    │   │   └── InconsistentAnswer
    │   │       ├── OversizedAnswer
    │   │       │   └── OversizedBatch
    │   │       └── Disproved        a hash shows that it is wrong
    │   ├── StateUnavailable     StateFault or StateRefused: the block's state is not kept
    │   ├── MethodUnavailable    MethodFault or MethodRefused: the method is not offered
    │   └── FatalChainError      asking again changes nothing
    │       ├── WrongChain
    │       ├── RefusedRequest
    │       │   ├── AccessRefused
    │       │   ├── StateRefused
    │       │   └── MethodRefused
    │       ├── NoTracing
    │       ├── UndecodedState
    │       ├── TransactionFailed
    │       │   └── OutcomeUnknown   a pool may have it
    │       └── ReorgTooDeep
    └── StoreError               a database or an export that cannot be read or written
        ├── StoreUnavailable     waiting may help
        └── StoreInUse           another indexer holds the database

A rate limit never looks like bad data, nor bad data like a rate limit: they are different types.
"""


class ChainkitError(Exception):
    """Something was not as expected: ``subject: expected …, got … (place)``.

    An error about a state has no ``expected``, and says ``subject got``, such as
    ``keystore node.json already exists``.
    """

    def __init__(self, subject: str, expected: object, got: object, place: str = "") -> None:
        """Keep the parts for callers that use them; the message is built from the parts."""
        self.subject = subject
        self.expected = expected
        self.got = got
        self.place = place
        is_state = expected is None
        # An empty text would leave the sentence without its end.
        words = "nothing" if got == "" else got
        message = f"{subject} {got}" if is_state else f"{subject}: expected {expected}, got {words}"
        super().__init__(f"{message} ({place})" if place else message)

    def __reduce__(self) -> tuple[object, ...]:
        """Survive the way back from a Spark worker, where errors are pickled."""
        return type(self), (self.subject, self.expected, self.got, self.place), self.__dict__


class ConfigurationError(ChainkitError):
    """An option, a file or a deployment record cannot be used as given."""


class MalformedData(ChainkitError):
    """Bytes are not in the expected form."""


class MalformedLog(MalformedData):
    """A log carries data that none of our contracts can have emitted."""


class MalformedEnvelope(MalformedData):
    """Bytes are not an envelope of XIP-49 §3.2.1."""


class MalformedMls(MalformedData):
    """Bytes are not a message of RFC 9420, or a key package that breaks its rules."""


class MalformedAnswer(MalformedData):
    """A peer's answer that no node within the protocol gives: the peer lies, or just changed."""


class InvalidSignature(MalformedData):
    """A signature recovers to no public key, or to another key than required."""


class RefusedUpdate(MalformedData):
    """An identity update breaks a rule of XIP-46; ``reason`` is one of ``identity``'s Refusals."""

    reason: str = ""


class Unprovable(MalformedData):
    """A row lacks a part of what its hash covers, or is of a type that this version does not know.

    The row may be true: this check cannot decide. ``place`` names the column.
    """


class ChainError(ChainkitError):
    """An endpoint did not answer, or not as the chain demands."""


class RetryableChainError(ChainError):
    """Asking again, later or elsewhere, may give the right answer."""


class StateUnavailable(ChainError):
    """The endpoint knows a block, but does not keep its state: a StateFault or StateRefused."""


class MethodUnavailable(ChainError):
    """The endpoint does not offer a method: a MethodFault or MethodRefused."""


class EndpointUnavailable(RetryableChainError):
    """No answer came: refused, timed out, or a server error."""


class EndpointTimedOut(EndpointUnavailable):
    """No answer came in time: a smaller request may be answered."""


class EndpointFault(EndpointUnavailable):
    """A JSON-RPC error whose code does not blame the request itself."""


class StateFault(EndpointFault, StateUnavailable):
    """An error whose text reports that the block's state is not kept."""


class MethodFault(EndpointFault, MethodUnavailable):
    """An error whose text reports that the method is not offered."""


class RateLimited(RetryableChainError):
    """The endpoint asks for fewer requests; ``retry_after`` is in seconds, if the answer has it."""

    retry_after: float | None = None


class RangeRefused(RetryableChainError):
    """The endpoint gives logs of fewer blocks at once; ``suggested_blocks`` if it names them."""

    suggested_blocks: int | None = None


class Unconfirmed(RetryableChainError):
    """An answer can neither be proved nor compared with another endpoint's."""


class WalletUnanswered(RetryableChainError):
    """Whether a contract wallet signed is not known yet: that makes no identity update invalid."""


class InconsistentAnswer(RetryableChainError):
    """An answer contradicts itself or what was proved before (forks mixed, logs cut)."""


class OversizedAnswer(InconsistentAnswer):
    """An answer of more bytes than the limit: a smaller request may be answered."""


class OversizedBatch(OversizedAnswer):
    """A request has more calls than the endpoint takes: the client sends fewer at once."""


class Disproved(InconsistentAnswer):
    """An answer contradicts a hash that it belongs to: no replica that lags explains this."""


class FatalChainError(ChainError):
    """Asking again changes nothing; a person has to decide."""


class WrongChain(FatalChainError):
    """The endpoint serves another chain than the deployment record names."""


class RefusedRequest(FatalChainError):
    """The endpoint answered with an error of its own; ``data`` holds a revert's bytes (hex)."""

    data: str | None = None
    is_repeated: bool = False
    """An earlier attempt had no clear answer: its request may have arrived."""


class AccessRefused(RefusedRequest):
    """HTTP itself refuses, as for a revoked key: every request is refused."""


class StateRefused(RefusedRequest, StateUnavailable):
    """A refusal whose text reports that the block's state is not kept."""


class MethodRefused(RefusedRequest, MethodUnavailable):
    """A refusal whose text reports that the method is not offered."""


class NoTracing(FatalChainError):
    """The endpoint cannot trace a transaction's changes, though it can call the transaction."""


class UndecodedState(FatalChainError):
    """A transaction would change something without a known name: ``got`` lists all such changes."""


class TransactionFailed(FatalChainError):
    """A transaction was mined and reverted, or was not mined in time."""


class OutcomeUnknown(TransactionFailed):
    """An endpoint refused a transaction that a pool may have, or a block: it may be mined yet."""


class ReorgTooDeep(FatalChainError):
    """The chain forks below the oldest block that is still known: nothing was changed."""


class StoreError(ChainkitError):
    """A database or an export cannot be read or written."""


class StoreUnavailable(StoreError):
    """The database does not answer now (restarting, disk full, locked): waiting may help."""


class StoreInUse(StoreError):
    """Another indexer holds the database: two would contradict each other."""
