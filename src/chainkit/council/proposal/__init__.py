"""Proposals of the security council: drafted, read again, signed apart, executed, proved.

A proposal is a file that may have passed through anybody's hands. Everything that is shown, signed
or sent is rebuilt from the reader's own deployment record, council file and package.

The names in this list know no network. ``account_state``, ``drafting``, ``status`` and
``execution`` read the chain: import them from their own modules.
"""

from chainkit.council.proposal.account_transaction import AccountTransaction
from chainkit.council.proposal.council import (
    AddressBook,
    Council,
    SafeSettings,
    council_content,
    read_council,
    write_council,
)
from chainkit.council.proposal.file import (
    hashes,
    parse_proposal,
    proposal_bytes,
    proposal_content,
    read_proposal,
    write_proposal_file,
)
from chainkit.council.proposal.grounds import (
    LONGEST_DAYS,
    SECONDS_PER_DAY,
    Evidence,
    Grounds,
    split_trailer,
)
from chainkit.council.proposal.proposal import Fees, Proposal
from chainkit.council.proposal.signing import (
    add_signature,
    check_signer,
    collect,
    sign_proposal,
    typed_data,
)

__all__ = [
    "LONGEST_DAYS",
    "SECONDS_PER_DAY",
    "AccountTransaction",
    "AddressBook",
    "Council",
    "Evidence",
    "Fees",
    "Grounds",
    "Proposal",
    "SafeSettings",
    "add_signature",
    "check_signer",
    "collect",
    "council_content",
    "hashes",
    "parse_proposal",
    "proposal_bytes",
    "proposal_content",
    "read_council",
    "read_proposal",
    "sign_proposal",
    "split_trailer",
    "typed_data",
    "write_council",
    "write_proposal_file",
]
