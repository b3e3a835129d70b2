"""Random histories of a group: whoever commits whatever, all members stay in one group."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chainkit_client.mls.node_engine import NodeEngine
from support.client.parties import Party, founder
from support.seeds import IS_SOAK

EXAMPLES = 400 if IS_SOAK else 8
MOST_MEMBERS = 9


class History:
    """A group, step by step."""

    def __init__(self, engine: NodeEngine, data: st.DataObject) -> None:
        self.engine = engine
        self.data = data
        self.members = [founder(engine)]
        self.left: list[Party] = []
        self.names = iter(range(1000))

    def step(self) -> None:
        actor = self.data.draw(st.sampled_from(self.members))
        others = [member for member in self.members if member is not actor]
        actions = ["send", "update"]
        actions += ["add"] if len(self.members) < MOST_MEMBERS else []
        actions += ["remove"] if others else []
        getattr(self, self.data.draw(st.sampled_from(actions)))(actor, others)

    def send(self, actor: Party, others: list[Party]) -> None:
        message = actor.send(b"to all", b"digest")
        for other in others:
            received = other.read(message)
            assert received.plaintext == b"to all"
            assert received.authenticated_data == b"digest"
            assert received.sender.public_key == actor.installation.public_key

    def update(self, actor: Party, others: list[Party]) -> None:
        actor.update(others)

    def add(self, actor: Party, others: list[Party]) -> None:
        room = MOST_MEMBERS - len(self.members)
        count = self.data.draw(st.integers(1, min(3, room)))
        names = [b"member %d" % next(self.names) for _ in range(count)]
        self.members += actor.invite(self.engine, names, others)

    def remove(self, actor: Party, others: list[Party]) -> None:
        gone = self.data.draw(
            st.lists(st.sampled_from(others), min_size=1, max_size=2, unique_by=id)
        )
        commit = actor.remove([each.leaf for each in gone], others)
        assert commit
        self.members = [each for each in self.members if not any(each is one for one in gone)]
        for each in gone:
            assert not each.view.is_member

    def check(self) -> None:
        views = [member.view for member in self.members]
        assert len({view.epoch_authenticator for view in views}) == 1
        assert len({(view.epoch, view.members) for view in views}) == 1
        leaves = {member.leaf: member.public_key for member in views[0].members}
        assert leaves == {
            view.own_leaf: member.installation.public_key
            for view, member in zip(views, self.members, strict=True)
        }


@settings(
    deadline=None,
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_group__after_each_step_of_a_random_history__is_one_for_all_its_members(
    engine: NodeEngine, data: st.DataObject
) -> None:
    history = History(engine, data)
    for _ in range(data.draw(st.integers(5, 20))):
        history.step()
        history.check()
