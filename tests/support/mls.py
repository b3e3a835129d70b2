"""Messages of MLS, written field by field (RFC 9420), so that a test can break any of them."""

from dataclasses import dataclass, field

from Crypto.PublicKey import ECC
from Crypto.Signature import eddsa

SECONDS = 1_735_689_600
"""Inside of the lifetime of each key package, unless a test changes that; since 1970."""

APPLICATION, PROPOSAL, COMMIT = 1, 2, 3


def vector(content: bytes) -> bytes:
    """Content with its length in front."""
    length = len(content)
    if length < 64:
        return bytes([length]) + content
    if length < 16_384:
        return (length | 0x4000).to_bytes(2, "big") + content
    return (length | 0x8000_0000).to_bytes(4, "big") + content


def numbers(*values: int) -> bytes:
    """A vector of numbers of two bytes."""
    return vector(b"".join(value.to_bytes(2, "big") for value in values))


def private_message(
    group_id: bytes,
    content_type: int = APPLICATION,
    epoch: int = 1,
    authenticated_data: bytes = b"authenticated",
) -> bytes:
    """An MLSMessage that hides its content."""
    head = b"\0\1\0\2" + vector(group_id) + epoch.to_bytes(8, "big") + bytes([content_type])
    return head + vector(authenticated_data) + vector(b"sender") + vector(b"ciphertext" * 20)


def public_message(group_id: bytes, content_type: int, sender: bytes = b"\1\0\0\0\7") -> bytes:
    """An MLSMessage that shows its content, by default of the member at leaf 7."""
    head = b"\0\1\0\1" + vector(group_id) + bytes(8) + sender + vector(b"authenticated")
    return head + bytes([content_type]) + b"content"


@dataclass(frozen=True)
class KeyPackageFields:
    """Fields of a KeyPackage in their order: a test replaces those that it is about."""

    seed: bytes = b"\5" * 32
    """Secret of the installation's key."""
    version: int = 1
    cipher_suite: int = 1
    init_key: bytes = b"i" * 32
    encryption_key: bytes = b"e" * 32
    credential: bytes = b"\0\1" + vector(b"inbox")
    versions: bytes = numbers(1)
    extensions: bytes = numbers(0xFF00, 0xFF01)
    credentials: bytes = numbers(1)
    source: int = 1
    lifetime: tuple[int, int] = (SECONDS - 3600, SECONDS + 3600)
    leaf_extensions: bytes = vector(b"\xff\x00" + vector(b"content"))
    package_extensions: bytes = vector(b"\0\1" + vector(b"application id"))
    labels: tuple[bytes, bytes] = (b"LeafNodeTBS", b"KeyPackageTBS")
    rest: bytes = b""
    _key: ECC.EccKey = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Make the key."""
        key = ECC.construct(curve="Ed25519", seed=self.seed)
        object.__setattr__(self, "_key", key)

    @property
    def installation_key(self) -> bytes:
        """32 bytes."""
        return self._key.public_key().export_key(format="raw")

    def written(self) -> bytes:
        """The key package, signed."""
        head = self.version.to_bytes(2, "big") + self.cipher_suite.to_bytes(2, "big")
        package = head + vector(self.init_key) + self._leaf_node() + self.package_extensions
        return package + self._signature(self.labels[1], package) + self.rest

    def _leaf_node(self) -> bytes:
        keys = vector(self.encryption_key) + vector(self.installation_key)
        supported = (self.versions, numbers(1), self.extensions, numbers(), self.credentials)
        lifetime = b"".join(second.to_bytes(8, "big") for second in self.lifetime)
        leaf = keys + self.credential + b"".join(supported) + bytes([self.source]) + lifetime
        leaf += self.leaf_extensions
        return leaf + self._signature(self.labels[0], leaf)

    def _signature(self, label: bytes, content: bytes) -> bytes:
        signed = vector(b"MLS 1.0 " + label) + vector(content)
        return vector(eddsa.new(self._key, "rfc8032").sign(signed))
