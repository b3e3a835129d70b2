import pytest

from chainkit.contracts.storage_layout import StorageMember, compare_storage

NAMESPACE = "erc7201:chainkit.storage.SequencedLog"
PAUSED = StorageMember("paused", 0, 0, 1, "bool")
MINIMUM = StorageMember("minPayloadSize", 0, 1, 4, "uint32")
MAXIMUM = StorageMember("maxPayloadSize", 0, 5, 4, "uint32")
BEFORE = {NAMESPACE: (PAUSED, MINIMUM, MAXIMUM)}


def test_compare__same_layout__has_no_changes() -> None:
    assert compare_storage(BEFORE, dict(BEFORE)) == ()


@pytest.mark.parametrize(
    "added", [StorageMember("fee", 0, 9, 8, "uint64"), StorageMember("fee", 1, 0, 32, "uint256")]
)
def test_compare__added_at_the_end__keeps_the_meaning(added: StorageMember) -> None:
    (change,) = compare_storage(BEFORE, {NAMESPACE: (*BEFORE[NAMESPACE], added)})

    assert change.keeps_meaning
    assert f"{NAMESPACE}, slot {added.slot}" in change.words and "fee" in change.words


def test_compare__new_namespace__keeps_the_meaning() -> None:
    (change,) = compare_storage(BEFORE, BEFORE | {"erc7201:other": (PAUSED,)})

    assert change.keeps_meaning
    assert change.words.startswith("erc7201:other, slot 0")


@pytest.mark.parametrize(
    ("after", "words"),
    [
        ((PAUSED, MINIMUM), "maxPayloadSize: removed"),
        ((PAUSED, MINIMUM, StorageMember("maxPayloadSize", 0, 5, 8, "uint64")), "now uint64"),
        ((PAUSED, MINIMUM, StorageMember("limit", 0, 5, 4, "uint32")), "now uint32 limit"),
        ((PAUSED, StorageMember("minPayloadSize", 0, 1, 4, "int32"), MAXIMUM), "now int32"),
    ],
)
def test_compare__changed_or_removed__breaks_the_meaning(
    after: tuple[StorageMember, ...], words: str
) -> None:
    (change,) = compare_storage(BEFORE, {NAMESPACE: after})

    assert not change.keeps_meaning
    assert words in change.words


def test_compare__put_into_a_hole_between_others__breaks_the_meaning() -> None:
    before = {"": (PAUSED, StorageMember("count", 1, 0, 32, "uint256"))}
    after = {"": (PAUSED, MINIMUM, StorageMember("count", 1, 0, 32, "uint256"))}

    (change,) = compare_storage(before, after)

    assert not change.keeps_meaning
    assert change.words.startswith("storage from slot 0, slot 0, bytes 1 to 4")


def test_compare__namespace_gone__breaks_the_meaning() -> None:
    (change,) = compare_storage(BEFORE, {})

    assert (change.words, change.keeps_meaning) == (f"{NAMESPACE}: removed", False)
