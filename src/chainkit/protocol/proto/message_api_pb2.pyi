import builtins as _builtins
from chainkit.protocol.proto import envelopes_pb2 as _envelopes_pb2
from chainkit.protocol.proto import identity_associations_pb2 as _identity_associations_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Misbehavior(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MISBEHAVIOR_UNSPECIFIED: _ClassVar[Misbehavior]
    MISBEHAVIOR_UNRESPONSIVE_NODE: _ClassVar[Misbehavior]
    MISBEHAVIOR_SLOW_NODE: _ClassVar[Misbehavior]
    MISBEHAVIOR_FAILED_REQUEST: _ClassVar[Misbehavior]
    MISBEHAVIOR_OUT_OF_ORDER: _ClassVar[Misbehavior]
    MISBEHAVIOR_DUPLICATE_SEQUENCE_ID: _ClassVar[Misbehavior]
    MISBEHAVIOR_CAUSAL_ORDERING: _ClassVar[Misbehavior]
    MISBEHAVIOR_INVALID_PAYLOAD: _ClassVar[Misbehavior]
    MISBEHAVIOR_BLOCKCHAIN_INCONSISTENCY: _ClassVar[Misbehavior]
MISBEHAVIOR_UNSPECIFIED: Misbehavior
MISBEHAVIOR_UNRESPONSIVE_NODE: Misbehavior
MISBEHAVIOR_SLOW_NODE: Misbehavior
MISBEHAVIOR_FAILED_REQUEST: Misbehavior
MISBEHAVIOR_OUT_OF_ORDER: Misbehavior
MISBEHAVIOR_DUPLICATE_SEQUENCE_ID: Misbehavior
MISBEHAVIOR_CAUSAL_ORDERING: Misbehavior
MISBEHAVIOR_INVALID_PAYLOAD: Misbehavior
MISBEHAVIOR_BLOCKCHAIN_INCONSISTENCY: Misbehavior

class EnvelopesQuery(_message.Message):
    __slots__ = ("topics", "originator_node_ids", "last_seen")
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    ORIGINATOR_NODE_IDS_FIELD_NUMBER: _ClassVar[int]
    LAST_SEEN_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedScalarFieldContainer[_builtins.bytes]
    originator_node_ids: _containers.RepeatedScalarFieldContainer[int]
    last_seen: _envelopes_pb2.Cursor
    def __init__(self, topics: _Optional[_Iterable[_builtins.bytes]] = ..., originator_node_ids: _Optional[_Iterable[int]] = ..., last_seen: _Optional[_Union[_envelopes_pb2.Cursor, _Mapping[str, object]]] = ...) -> None: ...

class SubscribeEnvelopesRequest(_message.Message):
    __slots__ = ("query",)
    QUERY_FIELD_NUMBER: _ClassVar[int]
    query: EnvelopesQuery
    def __init__(self, query: _Optional[_Union[EnvelopesQuery, _Mapping[str, object]]] = ...) -> None: ...

class SubscribeEnvelopesResponse(_message.Message):
    __slots__ = ("envelopes",)
    ENVELOPES_FIELD_NUMBER: _ClassVar[int]
    envelopes: _containers.RepeatedCompositeFieldContainer[_envelopes_pb2.OriginatorEnvelope]
    def __init__(self, envelopes: _Optional[_Iterable[_Union[_envelopes_pb2.OriginatorEnvelope, _Mapping[str, object]]]] = ...) -> None: ...

class QueryEnvelopesRequest(_message.Message):
    __slots__ = ("query", "limit")
    QUERY_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    query: EnvelopesQuery
    limit: int
    def __init__(self, query: _Optional[_Union[EnvelopesQuery, _Mapping[str, object]]] = ..., limit: _Optional[int] = ...) -> None: ...

class QueryEnvelopesResponse(_message.Message):
    __slots__ = ("envelopes",)
    ENVELOPES_FIELD_NUMBER: _ClassVar[int]
    envelopes: _containers.RepeatedCompositeFieldContainer[_envelopes_pb2.OriginatorEnvelope]
    def __init__(self, envelopes: _Optional[_Iterable[_Union[_envelopes_pb2.OriginatorEnvelope, _Mapping[str, object]]]] = ...) -> None: ...

class SubscribeTopicsRequest(_message.Message):
    __slots__ = ("filters",)
    class TopicFilter(_message.Message):
        __slots__ = ("topic", "last_seen")
        TOPIC_FIELD_NUMBER: _ClassVar[int]
        LAST_SEEN_FIELD_NUMBER: _ClassVar[int]
        topic: _builtins.bytes
        last_seen: _envelopes_pb2.Cursor
        def __init__(self, topic: _Optional[_builtins.bytes] = ..., last_seen: _Optional[_Union[_envelopes_pb2.Cursor, _Mapping[str, object]]] = ...) -> None: ...
    FILTERS_FIELD_NUMBER: _ClassVar[int]
    filters: _containers.RepeatedCompositeFieldContainer[SubscribeTopicsRequest.TopicFilter]
    def __init__(self, filters: _Optional[_Iterable[_Union[SubscribeTopicsRequest.TopicFilter, _Mapping[str, object]]]] = ...) -> None: ...

class SubscribeTopicsResponse(_message.Message):
    __slots__ = ("envelopes", "status_update")
    class SubscriptionStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        SUBSCRIPTION_STATUS_UNSPECIFIED: _ClassVar[SubscribeTopicsResponse.SubscriptionStatus]
        SUBSCRIPTION_STATUS_STARTED: _ClassVar[SubscribeTopicsResponse.SubscriptionStatus]
        SUBSCRIPTION_STATUS_CATCHUP_COMPLETE: _ClassVar[SubscribeTopicsResponse.SubscriptionStatus]
        SUBSCRIPTION_STATUS_WAITING: _ClassVar[SubscribeTopicsResponse.SubscriptionStatus]
    SUBSCRIPTION_STATUS_UNSPECIFIED: SubscribeTopicsResponse.SubscriptionStatus
    SUBSCRIPTION_STATUS_STARTED: SubscribeTopicsResponse.SubscriptionStatus
    SUBSCRIPTION_STATUS_CATCHUP_COMPLETE: SubscribeTopicsResponse.SubscriptionStatus
    SUBSCRIPTION_STATUS_WAITING: SubscribeTopicsResponse.SubscriptionStatus
    class StatusUpdate(_message.Message):
        __slots__ = ("status",)
        STATUS_FIELD_NUMBER: _ClassVar[int]
        status: SubscribeTopicsResponse.SubscriptionStatus
        def __init__(self, status: _Optional[_Union[SubscribeTopicsResponse.SubscriptionStatus, str]] = ...) -> None: ...
    class Envelopes(_message.Message):
        __slots__ = ("envelopes",)
        ENVELOPES_FIELD_NUMBER: _ClassVar[int]
        envelopes: _containers.RepeatedCompositeFieldContainer[_envelopes_pb2.OriginatorEnvelope]
        def __init__(self, envelopes: _Optional[_Iterable[_Union[_envelopes_pb2.OriginatorEnvelope, _Mapping[str, object]]]] = ...) -> None: ...
    ENVELOPES_FIELD_NUMBER: _ClassVar[int]
    STATUS_UPDATE_FIELD_NUMBER: _ClassVar[int]
    envelopes: SubscribeTopicsResponse.Envelopes
    status_update: SubscribeTopicsResponse.StatusUpdate
    def __init__(self, envelopes: _Optional[_Union[SubscribeTopicsResponse.Envelopes, _Mapping[str, object]]] = ..., status_update: _Optional[_Union[SubscribeTopicsResponse.StatusUpdate, _Mapping[str, object]]] = ...) -> None: ...

class GetNewestEnvelopeRequest(_message.Message):
    __slots__ = ("topics",)
    TOPICS_FIELD_NUMBER: _ClassVar[int]
    topics: _containers.RepeatedScalarFieldContainer[_builtins.bytes]
    def __init__(self, topics: _Optional[_Iterable[_builtins.bytes]] = ...) -> None: ...

class GetNewestEnvelopeResponse(_message.Message):
    __slots__ = ("results",)
    class Response(_message.Message):
        __slots__ = ("originator_envelope",)
        ORIGINATOR_ENVELOPE_FIELD_NUMBER: _ClassVar[int]
        originator_envelope: _envelopes_pb2.OriginatorEnvelope
        def __init__(self, originator_envelope: _Optional[_Union[_envelopes_pb2.OriginatorEnvelope, _Mapping[str, object]]] = ...) -> None: ...
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[GetNewestEnvelopeResponse.Response]
    def __init__(self, results: _Optional[_Iterable[_Union[GetNewestEnvelopeResponse.Response, _Mapping[str, object]]]] = ...) -> None: ...

class PublishPayerEnvelopesRequest(_message.Message):
    __slots__ = ("payer_envelopes",)
    PAYER_ENVELOPES_FIELD_NUMBER: _ClassVar[int]
    payer_envelopes: _containers.RepeatedCompositeFieldContainer[_envelopes_pb2.PayerEnvelope]
    def __init__(self, payer_envelopes: _Optional[_Iterable[_Union[_envelopes_pb2.PayerEnvelope, _Mapping[str, object]]]] = ...) -> None: ...

class PublishPayerEnvelopesResponse(_message.Message):
    __slots__ = ("originator_envelopes",)
    ORIGINATOR_ENVELOPES_FIELD_NUMBER: _ClassVar[int]
    originator_envelopes: _containers.RepeatedCompositeFieldContainer[_envelopes_pb2.OriginatorEnvelope]
    def __init__(self, originator_envelopes: _Optional[_Iterable[_Union[_envelopes_pb2.OriginatorEnvelope, _Mapping[str, object]]]] = ...) -> None: ...

class GetInboxIdsRequest(_message.Message):
    __slots__ = ("requests",)
    class Request(_message.Message):
        __slots__ = ("identifier", "identifier_kind")
        IDENTIFIER_FIELD_NUMBER: _ClassVar[int]
        IDENTIFIER_KIND_FIELD_NUMBER: _ClassVar[int]
        identifier: str
        identifier_kind: _identity_associations_pb2.IdentifierKind
        def __init__(self, identifier: _Optional[str] = ..., identifier_kind: _Optional[_Union[_identity_associations_pb2.IdentifierKind, str]] = ...) -> None: ...
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    requests: _containers.RepeatedCompositeFieldContainer[GetInboxIdsRequest.Request]
    def __init__(self, requests: _Optional[_Iterable[_Union[GetInboxIdsRequest.Request, _Mapping[str, object]]]] = ...) -> None: ...

class GetInboxIdsResponse(_message.Message):
    __slots__ = ("responses",)
    class Response(_message.Message):
        __slots__ = ("identifier", "inbox_id", "identifier_kind")
        IDENTIFIER_FIELD_NUMBER: _ClassVar[int]
        INBOX_ID_FIELD_NUMBER: _ClassVar[int]
        IDENTIFIER_KIND_FIELD_NUMBER: _ClassVar[int]
        identifier: str
        inbox_id: str
        identifier_kind: _identity_associations_pb2.IdentifierKind
        def __init__(self, identifier: _Optional[str] = ..., inbox_id: _Optional[str] = ..., identifier_kind: _Optional[_Union[_identity_associations_pb2.IdentifierKind, str]] = ...) -> None: ...
    RESPONSES_FIELD_NUMBER: _ClassVar[int]
    responses: _containers.RepeatedCompositeFieldContainer[GetInboxIdsResponse.Response]
    def __init__(self, responses: _Optional[_Iterable[_Union[GetInboxIdsResponse.Response, _Mapping[str, object]]]] = ...) -> None: ...

class LivenessFailure(_message.Message):
    __slots__ = ("response_time_ns", "subscribe", "query", "publish")
    RESPONSE_TIME_NS_FIELD_NUMBER: _ClassVar[int]
    SUBSCRIBE_FIELD_NUMBER: _ClassVar[int]
    QUERY_FIELD_NUMBER: _ClassVar[int]
    PUBLISH_FIELD_NUMBER: _ClassVar[int]
    response_time_ns: int
    subscribe: SubscribeEnvelopesRequest
    query: QueryEnvelopesRequest
    publish: PublishPayerEnvelopesRequest
    def __init__(self, response_time_ns: _Optional[int] = ..., subscribe: _Optional[_Union[SubscribeEnvelopesRequest, _Mapping[str, object]]] = ..., query: _Optional[_Union[QueryEnvelopesRequest, _Mapping[str, object]]] = ..., publish: _Optional[_Union[PublishPayerEnvelopesRequest, _Mapping[str, object]]] = ...) -> None: ...

class SafetyFailure(_message.Message):
    __slots__ = ("envelopes", "topic_evidence")
    ENVELOPES_FIELD_NUMBER: _ClassVar[int]
    TOPIC_EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    envelopes: _containers.RepeatedCompositeFieldContainer[_envelopes_pb2.OriginatorEnvelope]
    topic_evidence: _builtins.bytes
    def __init__(self, envelopes: _Optional[_Iterable[_Union[_envelopes_pb2.OriginatorEnvelope, _Mapping[str, object]]]] = ..., topic_evidence: _Optional[_builtins.bytes] = ...) -> None: ...

class UnsignedMisbehaviorReport(_message.Message):
    __slots__ = ("reporter_time_ns", "misbehaving_node_id", "type", "liveness", "safety", "submitted_by_node")
    REPORTER_TIME_NS_FIELD_NUMBER: _ClassVar[int]
    MISBEHAVING_NODE_ID_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    LIVENESS_FIELD_NUMBER: _ClassVar[int]
    SAFETY_FIELD_NUMBER: _ClassVar[int]
    SUBMITTED_BY_NODE_FIELD_NUMBER: _ClassVar[int]
    reporter_time_ns: int
    misbehaving_node_id: int
    type: Misbehavior
    liveness: LivenessFailure
    safety: SafetyFailure
    submitted_by_node: bool
    def __init__(self, reporter_time_ns: _Optional[int] = ..., misbehaving_node_id: _Optional[int] = ..., type: _Optional[_Union[Misbehavior, str]] = ..., liveness: _Optional[_Union[LivenessFailure, _Mapping[str, object]]] = ..., safety: _Optional[_Union[SafetyFailure, _Mapping[str, object]]] = ..., submitted_by_node: _Optional[bool] = ...) -> None: ...

class MisbehaviorReport(_message.Message):
    __slots__ = ("server_time_ns", "unsigned_misbehavior_report", "signature")
    SERVER_TIME_NS_FIELD_NUMBER: _ClassVar[int]
    UNSIGNED_MISBEHAVIOR_REPORT_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    server_time_ns: int
    unsigned_misbehavior_report: _builtins.bytes
    signature: _identity_associations_pb2.RecoverableEcdsaSignature
    def __init__(self, server_time_ns: _Optional[int] = ..., unsigned_misbehavior_report: _Optional[_builtins.bytes] = ..., signature: _Optional[_Union[_identity_associations_pb2.RecoverableEcdsaSignature, _Mapping[str, object]]] = ...) -> None: ...

class SubmitMisbehaviorReportRequest(_message.Message):
    __slots__ = ("report",)
    REPORT_FIELD_NUMBER: _ClassVar[int]
    report: UnsignedMisbehaviorReport
    def __init__(self, report: _Optional[_Union[UnsignedMisbehaviorReport, _Mapping[str, object]]] = ...) -> None: ...

class SubmitMisbehaviorReportResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class QueryMisbehaviorReportsRequest(_message.Message):
    __slots__ = ("after_ns",)
    AFTER_NS_FIELD_NUMBER: _ClassVar[int]
    after_ns: int
    def __init__(self, after_ns: _Optional[int] = ...) -> None: ...

class QueryMisbehaviorReportsResponse(_message.Message):
    __slots__ = ("reports",)
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    reports: _containers.RepeatedCompositeFieldContainer[MisbehaviorReport]
    def __init__(self, reports: _Optional[_Iterable[_Union[MisbehaviorReport, _Mapping[str, object]]]] = ...) -> None: ...
