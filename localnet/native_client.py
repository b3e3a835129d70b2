"""Today's native client, as people use it: libxmtp by its Python bindings, without a patch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Self

import xmtp_bindings as xmtp
from eth_account import Account
from eth_account.messages import encode_defunct
from eth_account.signers.local import LocalAccount

_HOST_OF_NO_USE: Final = "http://127.0.0.1:9"
"""The bindings require a host of the old network, too, and never call it beside a gateway."""


class NativeClient:
    """One installation of a person: a wallet, an inbox, and its conversations."""

    def __init__(self, client: Any, account: LocalAccount) -> None:
        """Use ``register``."""
        self._client = client
        self.account = account
        self._recovery = account

    @classmethod
    async def register(cls, gateway_url: str, database: Path, account: LocalAccount) -> Self:
        """Connect through a gateway, and register an inbox for a wallet.

        The identity update and the key package are published before the call returns.
        """
        identifier = _identifier(account)
        api = await xmtp.connect_to_backend(
            _HOST_OF_NO_USE, gateway_url, False, None, None, None, None
        )
        options = xmtp.DbOptions(
            db=str(database), encryption_key=None, max_db_pool_size=None, min_db_pool_size=None
        )
        inbox_id = xmtp.generate_inbox_id(identifier, 1)
        client = await xmtp.create_client(
            api,
            api,
            options,
            inbox_id,
            identifier,
            1,
            None,
            xmtp.FfiDeviceSyncMode.DISABLED,
            None,
            None,
        )
        request = client.signature_request()
        if request is not None:
            await _sign(request, account)
            await client.register_identity(request)
        return cls(client, account)

    @property
    def inbox_id(self) -> str:
        """The inbox id, in hex."""
        inbox_id: str = self._client.inbox_id()
        return inbox_id

    async def associate(self, wallet: LocalAccount) -> None:
        """Add a wallet to the inbox; the inbox's wallet and the new one sign."""
        request = await self._client.add_identity(_identifier(wallet))
        await self._apply(request, wallet)

    async def revoke(self, wallet: LocalAccount) -> None:
        """Remove a wallet from the inbox, which the recovery wallet signs."""
        await self._apply(await self._client.revoke_identity(_identifier(wallet)), self._recovery)

    async def change_recovery(self, wallet: LocalAccount) -> None:
        """Let another wallet sign revocations from now on."""
        request = await self._client.change_recovery_identifier(_identifier(wallet))
        await self._apply(request, self._recovery)
        self._recovery = wallet

    async def wallets(self) -> set[str]:
        """Return the addresses of the inbox, as the library derives them from the updates."""
        state = await self._client.inbox_state(True)
        return {each.identifier for each in state.account_identities}

    async def _apply(self, request: Any, *wallets: LocalAccount) -> None:
        for wallet in wallets:
            await _sign(request, wallet)
        await self._client.apply_signature_request(request)

    @property
    def installation_id(self) -> bytes:
        """The installation's public key: 32 bytes."""
        installation_id: bytes = self._client.installation_id()
        return installation_id

    async def can_add(self, other: NativeClient) -> bool:
        """Return whether the node from which this client reads has the other one's key package."""
        wanted = other.installation_id
        try:
            found = await self._client.get_key_package_statuses_for_installation_ids([wanted])
        except xmtp.FfiError:
            # The library expects an answer for each, and raises where the node has none.
            return False
        return found[wanted].validation_error is None

    async def create_group(self, others: Sequence[LocalAccount]) -> bytes:
        """Create a group with other people, by their wallets' addresses; return its id."""
        identifiers = [_identifier(other) for other in others]
        options = xmtp.FfiCreateGroupOptions(
            permissions=None,
            group_name=None,
            group_image_url_square=None,
            group_description=None,
            custom_permission_policy_set=None,
            message_disappearing_settings=None,
            app_data=None,
        )
        conversations = self._client.conversations()
        group = await conversations.create_group_by_identity(identifiers, options)
        group_id: bytes = group.id()
        return group_id

    async def add(self, group_id: bytes, other: LocalAccount) -> None:
        """Add a person to a group: a commit."""
        await self._client.conversation(group_id).add_members_by_identity([_identifier(other)])

    async def rename(self, group_id: bytes, name: str) -> None:
        """Give a group a name: a commit."""
        await self._client.conversation(group_id).update_group_name(name)

    async def name(self, group_id: bytes) -> str:
        """Return a group's name, as of now."""
        group = self._client.conversation(group_id)
        await group.sync()
        name: str = group.group_name()
        return name

    async def send(self, group_id: bytes, text: str) -> None:
        """Send a text to a group."""
        await self._client.conversation(group_id).send_text(text)

    async def join(self) -> list[bytes]:
        """Look for welcomes; return the ids of all groups."""
        conversations = self._client.conversations()
        await conversations.sync()
        options = xmtp.FfiListConversationsOptions(
            created_after_ns=None,
            created_before_ns=None,
            last_activity_before_ns=None,
            last_activity_after_ns=None,
            order_by=None,
            limit=None,
            consent_states=None,
            include_duplicate_dms=False,
        )
        return [item.conversation().id() for item in conversations.list(options)]

    async def read(self, group_id: bytes) -> list[str]:
        """Read a group's texts, oldest first."""
        group = self._client.conversation(group_id)
        await group.sync()
        options = xmtp.FfiListMessagesOptions(
            sent_before_ns=None,
            sent_after_ns=None,
            limit=None,
            delivery_status=None,
            direction=None,
            content_types=None,
            exclude_content_types=None,
            exclude_sender_inbox_ids=None,
            sort_by=None,
            inserted_after_ns=None,
            inserted_before_ns=None,
        )
        messages = await group.find_messages(options)
        return [
            xmtp.decode_text(message.content)
            for message in messages
            if message.kind == xmtp.FfiConversationMessageKind.APPLICATION
        ]


async def _sign(request: Any, wallet: LocalAccount) -> None:
    text = encode_defunct(text=await request.signature_text())
    signature = Account.sign_message(text, wallet.key).signature
    await request.add_ecdsa_signature(bytes(signature))


def _identifier(account: LocalAccount) -> Any:
    return xmtp.FfiIdentifier(
        identifier=account.address.lower(), identifier_kind=xmtp.FfiIdentifierKind.ETHEREUM
    )
