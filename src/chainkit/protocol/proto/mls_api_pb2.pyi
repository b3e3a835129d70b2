import builtins as _builtins
from chainkit.protocol.proto import mls_message_contents_pb2 as _mls_message_contents_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GroupMessageInput(_message.Message):
    __slots__ = ("v1",)
    class V1(_message.Message):
        __slots__ = ("data", "sender_hmac", "should_push")
        DATA_FIELD_NUMBER: _ClassVar[int]
        SENDER_HMAC_FIELD_NUMBER: _ClassVar[int]
        SHOULD_PUSH_FIELD_NUMBER: _ClassVar[int]
        data: _builtins.bytes
        sender_hmac: _builtins.bytes
        should_push: bool
        def __init__(self, data: _Optional[_builtins.bytes] = ..., sender_hmac: _Optional[_builtins.bytes] = ..., should_push: _Optional[bool] = ...) -> None: ...
    V1_FIELD_NUMBER: _ClassVar[int]
    v1: GroupMessageInput.V1
    def __init__(self, v1: _Optional[_Union[GroupMessageInput.V1, _Mapping[str, object]]] = ...) -> None: ...

class WelcomeMessageInput(_message.Message):
    __slots__ = ("v1", "welcome_pointer")
    class V1(_message.Message):
        __slots__ = ("installation_key", "data", "hpke_public_key", "wrapper_algorithm", "welcome_metadata")
        INSTALLATION_KEY_FIELD_NUMBER: _ClassVar[int]
        DATA_FIELD_NUMBER: _ClassVar[int]
        HPKE_PUBLIC_KEY_FIELD_NUMBER: _ClassVar[int]
        WRAPPER_ALGORITHM_FIELD_NUMBER: _ClassVar[int]
        WELCOME_METADATA_FIELD_NUMBER: _ClassVar[int]
        installation_key: _builtins.bytes
        data: _builtins.bytes
        hpke_public_key: _builtins.bytes
        wrapper_algorithm: _mls_message_contents_pb2.WelcomeWrapperAlgorithm
        welcome_metadata: _builtins.bytes
        def __init__(self, installation_key: _Optional[_builtins.bytes] = ..., data: _Optional[_builtins.bytes] = ..., hpke_public_key: _Optional[_builtins.bytes] = ..., wrapper_algorithm: _Optional[_Union[_mls_message_contents_pb2.WelcomeWrapperAlgorithm, str]] = ..., welcome_metadata: _Optional[_builtins.bytes] = ...) -> None: ...
    class WelcomePointer(_message.Message):
        __slots__ = ("installation_key", "welcome_pointer", "hpke_public_key", "wrapper_algorithm")
        INSTALLATION_KEY_FIELD_NUMBER: _ClassVar[int]
        WELCOME_POINTER_FIELD_NUMBER: _ClassVar[int]
        HPKE_PUBLIC_KEY_FIELD_NUMBER: _ClassVar[int]
        WRAPPER_ALGORITHM_FIELD_NUMBER: _ClassVar[int]
        installation_key: _builtins.bytes
        welcome_pointer: _builtins.bytes
        hpke_public_key: _builtins.bytes
        wrapper_algorithm: _mls_message_contents_pb2.WelcomePointerWrapperAlgorithm
        def __init__(self, installation_key: _Optional[_builtins.bytes] = ..., welcome_pointer: _Optional[_builtins.bytes] = ..., hpke_public_key: _Optional[_builtins.bytes] = ..., wrapper_algorithm: _Optional[_Union[_mls_message_contents_pb2.WelcomePointerWrapperAlgorithm, str]] = ...) -> None: ...
    V1_FIELD_NUMBER: _ClassVar[int]
    WELCOME_POINTER_FIELD_NUMBER: _ClassVar[int]
    v1: WelcomeMessageInput.V1
    welcome_pointer: WelcomeMessageInput.WelcomePointer
    def __init__(self, v1: _Optional[_Union[WelcomeMessageInput.V1, _Mapping[str, object]]] = ..., welcome_pointer: _Optional[_Union[WelcomeMessageInput.WelcomePointer, _Mapping[str, object]]] = ...) -> None: ...

class KeyPackageUpload(_message.Message):
    __slots__ = ("key_package_tls_serialized",)
    KEY_PACKAGE_TLS_SERIALIZED_FIELD_NUMBER: _ClassVar[int]
    key_package_tls_serialized: _builtins.bytes
    def __init__(self, key_package_tls_serialized: _Optional[_builtins.bytes] = ...) -> None: ...

class UploadKeyPackageRequest(_message.Message):
    __slots__ = ("key_package", "is_inbox_id_credential")
    KEY_PACKAGE_FIELD_NUMBER: _ClassVar[int]
    IS_INBOX_ID_CREDENTIAL_FIELD_NUMBER: _ClassVar[int]
    key_package: KeyPackageUpload
    is_inbox_id_credential: bool
    def __init__(self, key_package: _Optional[_Union[KeyPackageUpload, _Mapping[str, object]]] = ..., is_inbox_id_credential: _Optional[bool] = ...) -> None: ...
