import builtins as _builtins
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Envelopes(_message.Message):
    __slots__ = ("envelopes",)
    ENVELOPES_FIELD_NUMBER: _ClassVar[int]
    envelopes: _containers.RepeatedScalarFieldContainer[_builtins.bytes]
    def __init__(self, envelopes: _Optional[_Iterable[_builtins.bytes]] = ...) -> None: ...

class NewestEnvelopes(_message.Message):
    __slots__ = ("results",)
    class Newest(_message.Message):
        __slots__ = ("envelope",)
        ENVELOPE_FIELD_NUMBER: _ClassVar[int]
        envelope: _builtins.bytes
        def __init__(self, envelope: _Optional[_builtins.bytes] = ...) -> None: ...
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[NewestEnvelopes.Newest]
    def __init__(self, results: _Optional[_Iterable[_Union[NewestEnvelopes.Newest, _Mapping[str, object]]]] = ...) -> None: ...

class PayerReports(_message.Message):
    __slots__ = ("reports",)
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    reports: _containers.RepeatedScalarFieldContainer[_builtins.bytes]
    def __init__(self, reports: _Optional[_Iterable[_builtins.bytes]] = ...) -> None: ...

class TopicEnvelopes(_message.Message):
    __slots__ = ("envelopes",)
    ENVELOPES_FIELD_NUMBER: _ClassVar[int]
    envelopes: Envelopes
    def __init__(self, envelopes: _Optional[_Union[Envelopes, _Mapping[str, object]]] = ...) -> None: ...
