"""The page about the simulators: their stories, and the planted bugs that they find."""

from __future__ import annotations

from collections.abc import Sequence

from tools.planted_bugs.trial import SEEDS, Verdict

_HEAD = f"""# The simulated network, and its clients

`tests/support/network/simulation` runs a network of four nodes in one thread, under one seed: the
node's own replication, comparison, own-log check and watchdog, over logs in memory. Time jumps from
one event to the next. A story of a seed has publishes, crashes, partitions, restored backups and
clocks that are up to two minutes off; in the second half of the tests, one node lies.

A simulated chain has a block every two seconds, with payloads of originator 0 and with changes of
the registry: a node may be added late, is disabled and enabled again, and moves to another URL,
which others read in the registry some blocks later. Each node sees the head with a lag of its own,
up to 12 s. Reorgs replace up to 20 blocks; a block is final 30 blocks behind the head. A
transaction that a reorg took back comes again, in another order or some blocks later. Each node
signs the payloads of the blocks that it has seen, and serves them to strangers. Watchdogs run in
half of the stories, and in all in which a node lies about the chain.

In the end everything is mended, and must hold:

- all honest nodes hold the same bytes, but for ids that their originator signed twice;
- nothing that was acknowledged is lost;
- each honest node has the stream of each other one open, also of one that a reorg took out of the
  registry;
- no honest node is accused of anything but of being slow or silent;
- each lie that misled an honest node is reported as what it is, by a report that verifies offline.
  A report of BLOCKCHAIN_INCONSISTENCY is a claim as long as nobody asks the chain.

`tests/network/test_simulated_faults.py` and `test_simulated_lies.py` play 174 stories in
`make test`: 135 are always the same, 39 are new each day. `make soak` plays 39,000. A story that
fails is played again by its seed.

Stories leave out what no node can help. A node that lags by more than the blocks between the
deepest reorg and the final block serves what others know to be of no final chain. A transaction
that never comes again leaves envelopes that name its payload without what they name:
[node.md](node.md) says why such a report is a claim. A restored node believes the first others that
answer: so a backup is only restored while one that answers holds all of its log.

## Clients

`tests/support/client/stories` simulates whole clients: three installations of one group, each with
a database that lasts and up to two processes that may end at any await. They run the product's
readers of topics, its causal order, evidence, look-ups on the chain, groups and intents; gRPC and
the chain's JSON-RPC are left out. Three nodes answer late, in short pages or not at all, and get
each other's envelopes late; now and then none is reached for some seconds. One gateway is the
product's own, with its handlers, publisher and journal; the nodes judge what they are to originate
by the product's rules. Requests and answers on the way to the gateway, and from there to the nodes,
are slow, come late or twice, are lost, or are refused by each code that the product has. The chain
has reorgs, many in half of the stories, and each client and node sees another head of it. Each
story begins with a night after the first invitation, whose answers are lost, and with the group's
first commit on the chain, which meets messages on their way. A quarter of the stories is quiet, so
that no later commit hides what became of a payload. In most stories of the tests, one node lies:

- with a proof: it signs two envelopes under an id, leaves one out of its heads, dates one ahead,
  originates one that depends on itself, or names another payload for a transaction;
- deniably: it leaves out what others have, answers in any order, serves commits in each other's
  places, or stays on a branch that a reorg took back.

In the end must hold: all clients accepted the same commits, each intent has ended, no message that
was read back is lost or shown twice, no honest node is accused, and each lie with a proof is
reported. A message may be lost where the liar signed another one under its id, which is reported.
A transaction that comes back late after a reorg lets clients claim that its dependants depend on
nothing: this is a claim, and stays one.

`tests/client/test_client_stories.py` plays 17 stories, three of them with the real MLS engine, and
780 in `make soak`, of some hundred scheduled steps each.

`tests/support/client/simulation` plays the groups and intents alone, on two logs, with the real
database: four clients whose processes may end at any await, lost payloads and answers, conflicts by
the product's rule, reorgs, and strangers' garbage. In the end, a commit that counts as done must
also be one of those that made the group's epochs. `tests/client/test_group_simulation.py` plays

| worlds | `make test` | `make soak` |
|---|---:|---:|
| of 250 steps, with ever new wishes | 12 | 900 |
| of four wishes at once, which 40 steps interleave | 15 | 100,000 |
| the same, with the real MLS engine | 3 | 1,000 |

The MLS engine of all others is a toy, which fails where one key encrypts two messages.

`tests/support/gateway/model_pool.py` is the pool of a gateway's payer, behind replicas that lag: it
answers late, twice or not at all, refuses what it has, replaces, drops, and loses blocks to reorgs,
a foreign transaction uses nonces up, and the gateway is killed before and after it sends. In the
end, each payload is on the chain once. `tests/unit/gateway/test_model_pool.py` plays 100 seeds, and
10,000 in `make soak`.

Some stories and worlds of `make test` are new each day. pytest prints that day;
`CHAINKIT_DAY=YYYY-MM-DD` plays those of another one.

## Planted bugs

Do the simulators notice when a rule is broken? Each bug below is one change to the code. The
simulator plays up to {SEEDS} stories of each kind that is named, until one fails.
`make planted-bugs` tries all of them again and writes this page.

Some rules of the client are kept twice, such as that a reorg takes a commit back: to break one of
the two changes nothing that can be seen, and is not in the list. The intent machine has 16
transitions, and the list leaves out one after the other, but for five:

- a payload that is read after all, of an intent that waits or was given up (two transitions): it is
  sent again, and known by its content;
- a payload whose epoch a reorg took back: it is given back when it is read, too;
- an intent for which nobody offers a key package: there is none in these worlds;
- a commit that is PROCESSED when a reorg takes it back: seed 127 is the first that shows it.

A group's rounds have 27 transitions, and the list leaves out 14 of them, one after the other. The
other thirteen have tests of their own. Eight of them are failures, which end a process of a story;
five need another process, or another reorg, at the right moment of a round.

In the causal order, seven more changes were tried and are not noticed here, but by tests of their
own. Two of them have no effect that a rule could see: to sort without times, or a commit before the
messages of its epoch, whose keys are kept for three epochs. Nothing is missing for ever in these
stories, and nothing is published twice: so it is not seen whether a client gives up what is missing
at once or never, asks for it alone, takes a later one for a proof that it had it, or shows a copy
again.
"""

_SECTIONS = {
    "network": "In the rules of nodes",
    "client": "In the rules of clients",
    "group": "In the intent machine",
}


def page(verdicts: Sequence[Verdict]) -> str:
    """Return the page, in Markdown."""
    parts = [_HEAD]
    for simulator, title in _SECTIONS.items():
        chosen = [each for each in verdicts if each.bug.simulator == simulator]
        parts.append(f"### {title}\n\n" + _table(chosen))
    return "\n".join(parts)


def _table(verdicts: Sequence[Verdict]) -> str:
    found = sum(each.found is not None for each in verdicts)
    rows = [f"**{found} of {len(verdicts)} bugs found.**", ""]
    rows += ["| bug | file | stories | first seed, and what failed |", "|---|---|---|---|"]
    for each in verdicts:
        bug = each.bug
        name = bug.file.rpartition("/")[2]
        stories = ", ".join(bug.lies) or "honest"
        outcome = "not found" if each.found is None else _cell(each.found)
        rows.append(f"| {bug.name} | [{name}](../{bug.file}) | {stories} | {outcome} |")
    return "\n".join(rows) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
