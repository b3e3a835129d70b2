from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional

DESCRIPTOR: _descriptor.FileDescriptor

class GrantUploadRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class GrantUploadResponse(_message.Message):
    __slots__ = ("upload_url", "expires_at")
    UPLOAD_URL_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_AT_FIELD_NUMBER: _ClassVar[int]
    upload_url: str
    expires_at: int
    def __init__(self, upload_url: _Optional[str] = ..., expires_at: _Optional[int] = ...) -> None: ...
