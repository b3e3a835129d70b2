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
    __slots__ = ("highest_sequence_id", "contents")
    HIGHEST_SEQUENCE_ID_FIELD_NUMBER: _ClassVar[int]
    CONTENTS_FIELD_NUMBER: _ClassVar[int]
    highest_sequence_id: int
    contents: _containers.RepeatedCompositeFieldContainer[RangeContent]
    def __init__(self, highest_sequence_id: _Optional[int] = ..., contents: _Optional[_Iterable[_Union[RangeContent, _Mapping[str, object]]]] = ...) -> None: ...
