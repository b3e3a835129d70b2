import builtins as _builtins
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Range(_message.Message):
    __slots__ = ("level", "number")
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    level: int
    number: int
    def __init__(self, level: _Optional[int] = ..., number: _Optional[int] = ...) -> None: ...

class CompareRangesRequest(_message.Message):
    __slots__ = ("originator_node_id", "through_sequence_id", "ranges")
    ORIGINATOR_NODE_ID_FIELD_NUMBER: _ClassVar[int]
    THROUGH_SEQUENCE_ID_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    originator_node_id: int
    through_sequence_id: int
    ranges: _containers.RepeatedCompositeFieldContainer[Range]
    def __init__(self, originator_node_id: _Optional[int] = ..., through_sequence_id: _Optional[int] = ..., ranges: _Optional[_Iterable[_Union[Range, _Mapping[str, object]]]] = ...) -> None: ...

class RangeContent(_message.Message):
    __slots__ = ("digests", "expired")
    DIGESTS_FIELD_NUMBER: _ClassVar[int]
    EXPIRED_FIELD_NUMBER: _ClassVar[int]
    digests: _builtins.bytes
    expired: int
    def __init__(self, digests: _Optional[_builtins.bytes] = ..., expired: _Optional[int] = ...) -> None: ...

class CompareRangesResponse(_message.Message):
    __slots__ = ("highest_sequence_id", "contents", "now_ns")
    HIGHEST_SEQUENCE_ID_FIELD_NUMBER: _ClassVar[int]
    CONTENTS_FIELD_NUMBER: _ClassVar[int]
    NOW_NS_FIELD_NUMBER: _ClassVar[int]
    highest_sequence_id: int
    contents: _containers.RepeatedCompositeFieldContainer[RangeContent]
    now_ns: int
    def __init__(self, highest_sequence_id: _Optional[int] = ..., contents: _Optional[_Iterable[_Union[RangeContent, _Mapping[str, object]]]] = ..., now_ns: _Optional[int] = ...) -> None: ...

class TopicHead(_message.Message):
    __slots__ = ("originator_node_id", "topic", "through_sequence_id", "count", "last_sequence_id", "chained_hash")
    ORIGINATOR_NODE_ID_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    THROUGH_SEQUENCE_ID_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQUENCE_ID_FIELD_NUMBER: _ClassVar[int]
    CHAINED_HASH_FIELD_NUMBER: _ClassVar[int]
    originator_node_id: int
    topic: _builtins.bytes
    through_sequence_id: int
    count: int
    last_sequence_id: int
    chained_hash: _builtins.bytes
    def __init__(self, originator_node_id: _Optional[int] = ..., topic: _Optional[_builtins.bytes] = ..., through_sequence_id: _Optional[int] = ..., count: _Optional[int] = ..., last_sequence_id: _Optional[int] = ..., chained_hash: _Optional[_builtins.bytes] = ...) -> None: ...

class SignedTopicHead(_message.Message):
    __slots__ = ("unsigned_topic_head", "originator_signature")
    UNSIGNED_TOPIC_HEAD_FIELD_NUMBER: _ClassVar[int]
    ORIGINATOR_SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    unsigned_topic_head: _builtins.bytes
    originator_signature: _builtins.bytes
    def __init__(self, unsigned_topic_head: _Optional[_builtins.bytes] = ..., originator_signature: _Optional[_builtins.bytes] = ...) -> None: ...

class TopicEvidence(_message.Message):
    __slots__ = ("heads", "entries")
    HEADS_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    heads: _containers.RepeatedCompositeFieldContainer[SignedTopicHead]
    entries: _containers.RepeatedCompositeFieldContainer[TopicEntry]
    def __init__(self, heads: _Optional[_Iterable[_Union[SignedTopicHead, _Mapping[str, object]]]] = ..., entries: _Optional[_Iterable[_Union[TopicEntry, _Mapping[str, object]]]] = ...) -> None: ...

class TopicEntry(_message.Message):
    __slots__ = ("sequence_id", "digest", "expiry_unixtime")
    SEQUENCE_ID_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    EXPIRY_UNIXTIME_FIELD_NUMBER: _ClassVar[int]
    sequence_id: int
    digest: _builtins.bytes
    expiry_unixtime: int
    def __init__(self, sequence_id: _Optional[int] = ..., digest: _Optional[_builtins.bytes] = ..., expiry_unixtime: _Optional[int] = ...) -> None: ...

class TopicHeadQuery(_message.Message):
    __slots__ = ("topic", "entries_after_sequence_id")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_AFTER_SEQUENCE_ID_FIELD_NUMBER: _ClassVar[int]
    topic: _builtins.bytes
    entries_after_sequence_id: int
    def __init__(self, topic: _Optional[_builtins.bytes] = ..., entries_after_sequence_id: _Optional[int] = ...) -> None: ...

class QueryTopicHeadsRequest(_message.Message):
    __slots__ = ("queries",)
    QUERIES_FIELD_NUMBER: _ClassVar[int]
    queries: _containers.RepeatedCompositeFieldContainer[TopicHeadQuery]
    def __init__(self, queries: _Optional[_Iterable[_Union[TopicHeadQuery, _Mapping[str, object]]]] = ...) -> None: ...

class TopicHeadAnswer(_message.Message):
    __slots__ = ("head", "entries")
    HEAD_FIELD_NUMBER: _ClassVar[int]
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    head: SignedTopicHead
    entries: _containers.RepeatedCompositeFieldContainer[TopicEntry]
    def __init__(self, head: _Optional[_Union[SignedTopicHead, _Mapping[str, object]]] = ..., entries: _Optional[_Iterable[_Union[TopicEntry, _Mapping[str, object]]]] = ...) -> None: ...

class QueryTopicHeadsResponse(_message.Message):
    __slots__ = ("answers",)
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    answers: _containers.RepeatedCompositeFieldContainer[TopicHeadAnswer]
    def __init__(self, answers: _Optional[_Iterable[_Union[TopicHeadAnswer, _Mapping[str, object]]]] = ...) -> None: ...

class PayerTotal(_message.Message):
    __slots__ = ("payer", "messages", "bytes", "byte_days")
    PAYER_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    BYTE_DAYS_FIELD_NUMBER: _ClassVar[int]
    payer: _builtins.bytes
    messages: int
    bytes: int
    byte_days: int
    def __init__(self, payer: _Optional[_builtins.bytes] = ..., messages: _Optional[int] = ..., bytes: _Optional[int] = ..., byte_days: _Optional[int] = ...) -> None: ...

class PayerTotals(_message.Message):
    __slots__ = ("totals",)
    TOTALS_FIELD_NUMBER: _ClassVar[int]
    totals: _containers.RepeatedCompositeFieldContainer[PayerTotal]
    def __init__(self, totals: _Optional[_Iterable[_Union[PayerTotal, _Mapping[str, object]]]] = ...) -> None: ...

class SequenceIdRange(_message.Message):
    __slots__ = ("first_sequence_id", "last_sequence_id")
    FIRST_SEQUENCE_ID_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQUENCE_ID_FIELD_NUMBER: _ClassVar[int]
    first_sequence_id: int
    last_sequence_id: int
    def __init__(self, first_sequence_id: _Optional[int] = ..., last_sequence_id: _Optional[int] = ...) -> None: ...

class PayerReport(_message.Message):
    __slots__ = ("originator_node_id", "first_sequence_id", "last_sequence_id", "missing", "billed_to_nobody", "payers", "payers_root")
    ORIGINATOR_NODE_ID_FIELD_NUMBER: _ClassVar[int]
    FIRST_SEQUENCE_ID_FIELD_NUMBER: _ClassVar[int]
    LAST_SEQUENCE_ID_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    BILLED_TO_NOBODY_FIELD_NUMBER: _ClassVar[int]
    PAYERS_FIELD_NUMBER: _ClassVar[int]
    PAYERS_ROOT_FIELD_NUMBER: _ClassVar[int]
    originator_node_id: int
    first_sequence_id: int
    last_sequence_id: int
    missing: _containers.RepeatedCompositeFieldContainer[SequenceIdRange]
    billed_to_nobody: int
    payers: int
    payers_root: _builtins.bytes
    def __init__(self, originator_node_id: _Optional[int] = ..., first_sequence_id: _Optional[int] = ..., last_sequence_id: _Optional[int] = ..., missing: _Optional[_Iterable[_Union[SequenceIdRange, _Mapping[str, object]]]] = ..., billed_to_nobody: _Optional[int] = ..., payers: _Optional[int] = ..., payers_root: _Optional[_builtins.bytes] = ...) -> None: ...

class NodeSignature(_message.Message):
    __slots__ = ("node_id", "signature")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    node_id: int
    signature: _builtins.bytes
    def __init__(self, node_id: _Optional[int] = ..., signature: _Optional[_builtins.bytes] = ...) -> None: ...

class SignedPayerReport(_message.Message):
    __slots__ = ("unsigned_payer_report", "originator_signature", "payers", "attestations")
    UNSIGNED_PAYER_REPORT_FIELD_NUMBER: _ClassVar[int]
    ORIGINATOR_SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    PAYERS_FIELD_NUMBER: _ClassVar[int]
    ATTESTATIONS_FIELD_NUMBER: _ClassVar[int]
    unsigned_payer_report: _builtins.bytes
    originator_signature: _builtins.bytes
    payers: PayerTotals
    attestations: _containers.RepeatedCompositeFieldContainer[NodeSignature]
    def __init__(self, unsigned_payer_report: _Optional[_builtins.bytes] = ..., originator_signature: _Optional[_builtins.bytes] = ..., payers: _Optional[_Union[PayerTotals, _Mapping[str, object]]] = ..., attestations: _Optional[_Iterable[_Union[NodeSignature, _Mapping[str, object]]]] = ...) -> None: ...

class PayerReportQuery(_message.Message):
    __slots__ = ("originator_node_id", "after_sequence_id")
    ORIGINATOR_NODE_ID_FIELD_NUMBER: _ClassVar[int]
    AFTER_SEQUENCE_ID_FIELD_NUMBER: _ClassVar[int]
    originator_node_id: int
    after_sequence_id: int
    def __init__(self, originator_node_id: _Optional[int] = ..., after_sequence_id: _Optional[int] = ...) -> None: ...

class QueryPayerReportsRequest(_message.Message):
    __slots__ = ("queries",)
    QUERIES_FIELD_NUMBER: _ClassVar[int]
    queries: _containers.RepeatedCompositeFieldContainer[PayerReportQuery]
    def __init__(self, queries: _Optional[_Iterable[_Union[PayerReportQuery, _Mapping[str, object]]]] = ...) -> None: ...

class QueryPayerReportsResponse(_message.Message):
    __slots__ = ("reports",)
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    reports: _containers.RepeatedCompositeFieldContainer[SignedPayerReport]
    def __init__(self, reports: _Optional[_Iterable[_Union[SignedPayerReport, _Mapping[str, object]]]] = ...) -> None: ...
