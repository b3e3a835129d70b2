"""Messages for the program, not for people: only members that name the own inbox send them.

A member writes its inbox itself, so the message waits until the inbox was asked whether it has the
sender. A group in which nothing else was said is shown to nobody.
"""

from __future__ import annotations

from typing import Final

from chainkit_client.groups.session import Session
from chainkit_client.mls.engine import Member
from chainkit_client.storage.sync_groups import hide_unused_group, keep_control

CONTROL_PREFIX: Final = b"\0chainkit\0"
"""Begins the content of a message for the program; nobody types a zero byte."""


def take_control(session: Session, sender: Member, content: bytes) -> bool:
    """Store a message for the program; return False where the message is for people.

    In a group with members of other inboxes each message is for people. A backup takes its own
    messages, too: an earlier restore sent them.
    """
    own = session.tools.installation
    if not content.startswith(CONTROL_PREFIX):
        return False
    if sender.public_key == own.public_key and not own.is_backup:
        return False
    members = session.tools.engine.view(session.state).members
    if any(each.credential != own.credential for each in (sender, *members)):
        return False
    connection, group_id = session.connection, session.group_id
    keep_control(connection, session.tools.seal, group_id, sender.public_key, content)
    hide_unused_group(connection, group_id)
    return True
