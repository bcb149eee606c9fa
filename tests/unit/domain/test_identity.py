"""Identity: what reads as what, given merges; the laws that hold whatever they are."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from services.domain.beliefs import in_force
from services.domain.identity import Merge, MergeKind, merged
from services.domain.ids import EntityId, RecordId, Revision
from services.domain.instants import Instant
from services.domain.records import Judge

NAMES = [EntityId(name) for name in "abcdef"]
SAME, APART = MergeKind.SAME, MergeKind.APART
RULE, MODEL, USER = Judge.RULE, Judge.MODEL, Judge.USER


def merge(entity: str, into: str, kind: MergeKind = SAME, judge: Judge = USER, attested: int = 1) -> Merge:
    id = RecordId(f"{kind.name} {judge.name} {entity} {into} {attested}")
    return Merge(id, EntityId(entity), EntityId(into), kind, judge, Instant(attested))


def together(*merges: Merge) -> dict[str, str]:
    return {str(one): str(into) for one, into in merged(merges).items()}


@st.composite
def records(draw: st.DrawFn) -> list[Merge]:
    made = draw(
        st.lists(
            st.builds(
                merge,
                entity=st.sampled_from(NAMES),
                into=st.sampled_from(NAMES),
                kind=st.sampled_from((SAME, SAME, APART)),
                judge=st.sampled_from(Judge),
                attested=st.integers(1, 4),
            ),
            max_size=12,
        )
    )
    return list({one.id: one for one in made}.values())


def groups(merges: Sequence[Merge]) -> set[frozenset[EntityId]]:
    """Those that read as one, of several; whatever each of them reads as."""
    reads = merged(merges)
    shown = {reads.get(name, name) for name in NAMES}
    found = [frozenset(name for name in NAMES if reads.get(name, name) == one) for one in shown]
    return {group for group in found if len(group) > 1}


def test_a_merge_reads_one_as_the_other() -> None:
    assert together(merge("a", "b")) == {"a": "b"}
    assert together() == together(merge("a", "a")) == together(merge("a", "b", APART)) == {}


def test_merges_of_merges_lead_to_the_one_that_reads_as_itself() -> None:
    chain = [merge("a", "b"), merge("b", "c"), merge("x", "b")]
    assert together(*chain) == {"a": "c", "b": "c", "x": "c"}


def test_of_two_that_one_was_merged_into_the_heavier_is_shown() -> None:
    assert together(merge("a", "b", judge=MODEL), merge("a", "c", judge=USER)) == {"a": "c", "b": "c"}
    assert together(merge("a", "b", attested=2), merge("a", "c", attested=1)) == {"a": "b", "c": "b"}


def test_a_circle_reads_as_one_of_its_own() -> None:
    circle = [merge("a", "b", attested=3), merge("b", "c", attested=2), merge("c", "a", attested=1)]
    assert together(*circle) == {"a": "b", "c": "b"}


def test_a_user_outweighs_a_model_and_the_later_word_the_earlier() -> None:
    assert together(merge("a", "b", judge=MODEL, attested=9), merge("a", "b", APART)) == {}
    assert together(merge("a", "b", APART, MODEL, 9), merge("a", "b")) == {"a": "b"}
    assert together(merge("a", "b", attested=1), merge("b", "a", APART, attested=2)) == {}
    assert together(merge("a", "b", APART, attested=1), merge("b", "a", attested=2)) == {"b": "a"}
    assert together(merge("a", "b"), merge("a", "b", APART)) == {}  # doubt keeps both


def test_what_is_told_apart_no_chain_joins() -> None:
    apart = merge("a", "c", APART, MODEL)
    assert together(merge("a", "b", judge=MODEL, attested=2), merge("b", "c", judge=MODEL), apart) == {
        "a": "b"
    }
    assert together(merge("a", "b"), merge("b", "c"), apart) == {"a": "c", "b": "c"}


@given(merges=records(), data=st.data())
def test_the_order_of_merges_has_no_say(merges: list[Merge], data: st.DataObject) -> None:
    assert merged(data.draw(st.permutations(merges))) == merged(merges)


@given(merges=records())
def test_nothing_reads_as_what_itself_reads_as_another(merges: list[Merge]) -> None:
    reads = merged(merges)
    assert not set(reads) & set(reads.values())
    assert all(one != into for one, into in reads.items())


@given(merges=records())
def test_what_a_user_tells_apart_is_never_one(merges: list[Merge]) -> None:
    last: dict[frozenset[EntityId], tuple[int, bool]] = {}
    for one in merges:
        if one.judge is USER:
            couple, said = frozenset((one.entity, one.into)), (one.attested_at, one.kind is APART)
            last[couple] = max(said, last.get(couple, said))
    reads = merged(merges)
    for couple, (_, apart) in last.items():
        if apart and len(couple) == 2:
            assert len({reads.get(name, name) for name in couple}) == 2


@given(merges=records())
def test_what_reads_as_one_some_merge_connects(merges: list[Merge]) -> None:
    links = {frozenset((one.entity, one.into)) for one in merges if one.kind is SAME}
    for group in groups(merges):
        reached = {next(iter(group))}
        for _ in group:
            reached |= {name for name in group if any({name, one} in links for one in reached)}
        assert reached == group


@given(merges=records(), data=st.data())
def test_a_merge_revoked_might_as_well_not_have_been(merges: list[Merge], data: st.DataObject) -> None:
    """What follows is of the records in force alone: split after merge restores, and the past stays."""
    before = [replace(one, recorded_at=Revision(1)) for one in merges]
    taken = data.draw(st.sets(st.sampled_from(NAMES), max_size=2))
    more = [merge(one, into) for one in sorted(taken) for into in NAMES[:2]]
    added = [replace(one, id=RecordId(f"added {one.id}"), recorded_at=Revision(2)) for one in more]
    split = [*before, *(replace(one, revoked_at=Revision(3)) for one in added)]
    then = {known: merged(in_force(split, Revision(known))) for known in (1, 2, 3)}
    assert then[1] == then[3] == merged(before)
    assert then[2] == merged([*before, *added])


@given(merges=records(), cut=st.integers(0, 2**6 - 1))
def test_a_group_reads_the_same_alone(merges: list[Merge], cut: int) -> None:
    """Records of other groups have no say: a reader may ask for the groups it needs and no others."""
    chosen = {name for at, name in enumerate(NAMES) if cut >> at & 1}
    members = set(chosen)
    for _ in NAMES:
        for one in merges:
            if one.kind is SAME and {one.entity, one.into} & members:
                members |= {one.entity, one.into}
    within = [one for one in merges if {one.entity, one.into} <= members]
    whole, some = merged(merges), merged(within)
    assert all(some.get(name, name) == whole.get(name, name) for name in members)
