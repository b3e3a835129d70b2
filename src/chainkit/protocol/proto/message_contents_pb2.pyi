import builtins as _builtins
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Signature(_message.Message):
    __slots__ = ("ecdsa_compact", "wallet_ecdsa_compact")
    class ECDSACompact(_message.Message):
        __slots__ = ("bytes", "recovery")
        BYTES_FIELD_NUMBER: _ClassVar[int]
        RECOVERY_FIELD_NUMBER: _ClassVar[int]
        bytes: _builtins.bytes
        recovery: int
        def __init__(self, bytes: _Optional[_builtins.bytes] = ..., recovery: _Optional[int] = ...) -> None: ...
    class WalletECDSACompact(_message.Message):
        __slots__ = ("bytes", "recovery")
        BYTES_FIELD_NUMBER: _ClassVar[int]
        RECOVERY_FIELD_NUMBER: _ClassVar[int]
        bytes: _builtins.bytes
        recovery: int
        def __init__(self, bytes: _Optional[_builtins.bytes] = ..., recovery: _Optional[int] = ...) -> None: ...
    ECDSA_COMPACT_FIELD_NUMBER: _ClassVar[int]
    WALLET_ECDSA_COMPACT_FIELD_NUMBER: _ClassVar[int]
    ecdsa_compact: Signature.ECDSACompact
    wallet_ecdsa_compact: Signature.WalletECDSACompact
    def __init__(self, ecdsa_compact: _Optional[_Union[Signature.ECDSACompact, _Mapping[str, object]]] = ..., wallet_ecdsa_compact: _Optional[_Union[Signature.WalletECDSACompact, _Mapping[str, object]]] = ...) -> None: ...

class UnsignedPublicKey(_message.Message):
    __slots__ = ("created_ns", "secp256k1_uncompressed")
    class Secp256k1Uncompressed(_message.Message):
        __slots__ = ("bytes",)
        BYTES_FIELD_NUMBER: _ClassVar[int]
        bytes: _builtins.bytes
        def __init__(self, bytes: _Optional[_builtins.bytes] = ...) -> None: ...
    CREATED_NS_FIELD_NUMBER: _ClassVar[int]
    SECP256K1_UNCOMPRESSED_FIELD_NUMBER: _ClassVar[int]
    created_ns: int
    secp256k1_uncompressed: UnsignedPublicKey.Secp256k1Uncompressed
    def __init__(self, created_ns: _Optional[int] = ..., secp256k1_uncompressed: _Optional[_Union[UnsignedPublicKey.Secp256k1Uncompressed, _Mapping[str, object]]] = ...) -> None: ...

class SignedPublicKey(_message.Message):
    __slots__ = ("key_bytes", "signature")
    KEY_BYTES_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    key_bytes: _builtins.bytes
    signature: Signature
    def __init__(self, key_bytes: _Optional[_builtins.bytes] = ..., signature: _Optional[_Union[Signature, _Mapping[str, object]]] = ...) -> None: ...
