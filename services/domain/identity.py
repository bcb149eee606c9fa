"""Identity: which entities, and which predicates, read as one. Merges are records; nothing is moved, so each
can be undone.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from services.domain.ids import EntityId, EpisodeId, RecordId, Revision
from services.domain.instants import Instant
from services.domain.kernel.joined import Joined
from services.domain.records import Judge


class MergeKind(IntEnum):
    """What a merge record says of its two entities.

    SYNONYM and DISTINCT are of two predicates, and a matter of the lexicon alone (services/domain/
    lexicon.py): what a tenant declares comes before them.
    """

    SAME = 1
    APART = 2
    SYNONYM = 3
    DISTINCT = 4


@dataclass(frozen=True, slots=True)
class Merge:
    """SAME, SYNONYM: `entity` reads as `into`. APART, DISTINCT: the two are not one, whatever others are.

    Immutable; a split revokes it. `episode` is the one whose text made somebody ask, None for a user's.
    """

    id: RecordId
    entity: EntityId
    into: EntityId
    kind: MergeKind
    judge: Judge
    attested_at: Instant
    why: str = ""
    model: str = ""
    prompt_version: str = ""
    episode: EpisodeId | None = None
    recorded_at: Revision = Revision(0)
    revoked_at: Revision | None = None


Couple = tuple[EntityId, EntityId]
"""Two entities, the lesser id first."""


def counting_merges(merges: Iterable[Merge]) -> dict[Couple, Merge]:
    """Of several merges of two entities the one that counts: user over model over rule, then attested last.

    A tie falls to APART: doubt keeps both; of two that lead both ways, to the greater `into`.
    """
    counting: dict[Couple, Merge] = {}
    for merge in merges:
        if merge.entity == merge.into:
            continue
        couple = _couple(merge)
        known = counting.get(couple)
        if known is None or _rank(known) < _rank(merge):
            counting[couple] = merge
    return counting


def merged(merges: Iterable[Merge]) -> Mapping[EntityId, EntityId]:
    """What each merged entity reads as; one that reads as itself is absent. No value is a key.

    `merges` are those that count (services/domain/beliefs.py in_force) and must be whole: of an entity in
    them, all. The heavier join first, and what anybody told apart with more weight, no chain joins. All of a
    group read as the one that is itself merged into no other; of several, as the one into which the heaviest
    merge leads. The order of the merges has no say.
    """
    counting = counting_merges(merges)
    apart = [(couple, each) for couple, each in counting.items() if each.kind is MergeKind.APART]
    links = sorted(
        (each for each in counting.values() if each.kind is MergeKind.SAME),
        key=lambda each: (_weight(each), _couple(each)),
        reverse=True,
    )
    joined: Joined[EntityId] = Joined()
    made: list[Merge] = []
    for link in links:
        roots = {joined.root(link.entity), joined.root(link.into)}
        barred = any(
            each.judge >= link.judge and {joined.root(one), joined.root(other)} == roots
            for (one, other), each in apart
        )
        if not barred:
            joined.join(link.entity, link.into)
            made.append(link)
    return _read_as(joined, made)


def _read_as(joined: Joined[EntityId], made: Iterable[Merge]) -> dict[EntityId, EntityId]:
    members: dict[EntityId, set[EntityId]] = {}
    incoming: dict[EntityId, tuple[tuple[int, int, int], EntityId]] = {}
    leaving: set[EntityId] = set()
    for link in made:
        members.setdefault(joined.root(link.entity), set()).update((link.entity, link.into))
        leaving.add(link.entity)
        incoming[link.into] = max(_rank(link), incoming.get(link.into, _rank(link)))
    reads: dict[EntityId, EntityId] = {}
    for group in members.values():
        staying = [id for id in group if id not in leaving] or [id for id in group if id in incoming]
        shown = max(staying, key=lambda id: incoming[id])
        reads.update((id, shown) for id in group if id != shown)
    return reads


def _couple(merge: Merge) -> Couple:
    return (merge.entity, merge.into) if merge.entity <= merge.into else (merge.into, merge.entity)


def _weight(merge: Merge) -> tuple[int, int, int]:
    return merge.judge, merge.attested_at, merge.kind


def _rank(merge: Merge) -> tuple[tuple[int, int, int], EntityId]:
    return _weight(merge), merge.into
