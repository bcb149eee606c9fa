"""Tallies: what of statements counts at a revision. Counts of a graph, and orphans."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from services.domain.ids import EntityId, Revision, StatementId
from services.domain.records import Claim, Denial, End
from services.domain.scope import Scope
from services.stores.chunks import in_chunks
from services.stores.graph.nebula import joins, layout, statements
from services.stores.graph.nebula.joins import Member
from services.stores.graph.nebula.reads import Slot, as_asked, counts_in, edges, entities, is_believed, window
from services.stores.graph.nebula.sessions import Sessions
from services.stores.graph.nebula.statements import Window
from services.stores.graph.nebula.vids import Kind, id_of, vids
from services.stores.graph.port import AsOf, Counts

TALLIED = (*layout.RECORDS, layout.REVOCATION, layout.SPAN, layout.CLOSING)
NAMING = (layout.HAS_SUBJECT, layout.HAS_PREDICATE, layout.HAS_OBJECT)


@dataclass(slots=True)
class Tally:
    """How many claims of a statement count, how many claims, ends and denials; whether it is believed."""

    claims: int = 0
    records: int = 0
    believed: bool = False


async def tallies(
    sessions: Sessions, members: Iterable[Member], known_at: Revision
) -> dict[StatementId, Tally]:
    """Of the statements of which anything counts."""
    slot = Slot()
    slot.add(await edges(sessions, [member.position.member for member in members], TALLIED))
    found: dict[StatementId, Tally] = defaultdict(Tally)
    said: list[Claim | End | Denial] = [*slot.of(Claim), *slot.of(End), *slot.of(Denial)]
    for record in said:
        if counts_in(record, known_at):
            found[record.statement].records += 1
            found[record.statement].claims += isinstance(record, Claim)
    for span in slot.all_spans():
        if is_believed(span, known_at):
            found[span.statement].believed = True
    return dict(found)


async def counts(sessions: Sessions, scope: Scope, known_at: Revision) -> Counts:
    """Reads all records and spans of the graph: costs by its statements."""
    shelves = await joins.shelves(sessions, scope, Kind.THINGS)
    things = await sessions.send_all(
        statements.count_members(chunk, layout.ON_SHELF, known_at)
        for chunk in in_chunks(shelves, joins.ANCHORS_A_SENTENCE)
    )
    facts = claims = 0
    shelved = joins.grouped(await joins.shelves(sessions, scope, Kind.STATEMENTS), until=known_at)
    window = Window(joins.LARGEST_WINDOW, until=known_at)
    async for members in joins.windows(sessions, shelved, [layout.ON_SHELF], window):
        found = await tallies(sessions, members, known_at)
        facts += sum(tally.believed for tally in found.values())
        claims += sum(tally.claims for tally in found.values())
    return Counts(sum(row[0] for answer in things for row in answer.rows), facts, claims)


async def degrees(
    sessions: Sessions, scope: Scope, groups: Sequence[Sequence[EntityId]], at: AsOf
) -> list[int]:
    """Reads the spans of every statement that names one of the entities and may be as asked by its hull."""
    place = {vid: number for number, group in enumerate(groups) for vid in vids(scope, Kind.ENTITY, group)}
    named: Counter[int] = Counter()
    asked = Window(joins.LARGEST_WINDOW, until=at.known_at, hull=window(at))
    async for members in joins.windows(sessions, [list(place)], NAMING, asked):
        slot = Slot()
        told = await edges(sessions, [one.position.member for one in members], [layout.SPAN, layout.CLOSING])
        slot.add(told)
        seen = {span.statement for span in slot.all_spans() if as_asked(span, at)}
        for member in members:
            if member.statement in seen:
                named.update({place[anchor] for anchor in member.anchors})
    return [named[number] for number in range(len(groups))]


async def orphans(
    sessions: Sessions, scope: Scope, ids: Sequence[EntityId], known_at: Revision
) -> list[EntityId]:
    """Hubs leave with the first window that names them; what is left at the end is an orphan."""
    there = await entities(sessions, scope, ids)
    rest = dict.fromkeys(vids(scope, Kind.ENTITY, there))
    window: Window | None = Window(joins.LEAST_WINDOW * 4)
    while rest and window is not None:
        asked, window_now = list(rest), window
        window = None
        async for members in joins.windows(sessions, [asked], NAMING, window_now):
            found = await tallies(sessions, members, known_at)
            for member in members:
                if member.statement in found and found[member.statement].records:
                    for anchor in member.anchors:
                        rest.pop(anchor, None)
            if len(rest) < len(asked):
                # From here on without those that are named.
                window = Window(window_now.size, after=members[-1].position)
                break
    return [id for id in dict.fromkeys(ids) if id in {id_of(one) for one in rest}]
