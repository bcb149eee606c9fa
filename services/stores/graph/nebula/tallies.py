"""Tallies: what counts at a revision, read without texts. Counts of a graph, and orphans."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from services.domain.ids import EntityId, Revision
from services.domain.scope import Scope
from services.stores.graph.nebula import joins, layout, statements
from services.stores.graph.nebula.layout import OPEN
from services.stores.graph.nebula.reads import VIDS_A_SENTENCE, entities
from services.stores.graph.nebula.sessions import Sessions
from services.stores.graph.nebula.statements import Window
from services.stores.graph.nebula.vids import Kind, Vid, id_of, vids
from services.stores.graph.port import Counts
from services.stores.sql.rows import in_chunks

NAMING = (layout.HAS_SUBJECT, layout.HAS_PREDICATE, layout.HAS_OBJECT)
_SAYS = {edge.name for edge in layout.RECORDS}


@dataclass(slots=True)
class Tally:
    """How many claims of a statement count, how many claims, ends and denials; whether it is believed."""

    claims: int = 0
    records: int = 0
    believed: bool = False


async def tallies(sessions: Sessions, asked: Iterable[Vid], known_at: Revision) -> dict[Vid, Tally]:
    """Of the statements of which anything counts."""
    answers = await sessions.send_all(
        statements.beliefs(chunk) for chunk in in_chunks(asked, VIDS_A_SENTENCE)
    )
    since: list[tuple[str, Vid, int, int]] = []
    until: dict[tuple[bool, Vid, int], int] = {}
    for answer in answers:
        for type, source, place, *revisions in answer.rows:
            told = [revision for revision in revisions if revision is not None]
            if type in (layout.REVOCATION.name, layout.CLOSING.name):
                is_span = type == layout.CLOSING.name
                until.setdefault((is_span, source, place), told[0])
            else:
                since.append((type, source, place, told[0]))
                if type == layout.SPAN.name and told[1] != OPEN:
                    until[True, source, place] = told[1]
    found: dict[Vid, Tally] = defaultdict(Tally)
    for type, source, place, recorded_at in since:
        is_span = type == layout.SPAN.name
        if recorded_at <= known_at < until.get((is_span, source, place), OPEN):
            tally = found[Vid(source)]
            tally.claims += type == layout.CLAIM.name
            tally.records += type in _SAYS
            tally.believed |= is_span
    return dict(found)


async def counts(sessions: Sessions, scope: Scope, known_at: Revision) -> Counts:
    """Reads the revisions of all records and spans of the graph: as much as it has statements."""
    shelves = await joins.shelves(sessions, scope, Kind.THINGS)
    things = await sessions.send_all(
        statements.count_members(chunk, [layout.ON_SHELF], known_at)
        for chunk in in_chunks(shelves, joins.ANCHORS_A_SENTENCE)
    )
    facts = claims = 0
    shelved = joins.grouped(await joins.shelves(sessions, scope, Kind.STATEMENTS), until=known_at)
    window = Window(joins.LARGEST_WINDOW, until=known_at)
    async for members in joins.windows(sessions, shelved, [layout.ON_SHELF], window):
        found = await tallies(sessions, [one.position.member for one in members], known_at)
        facts += sum(tally.believed for tally in found.values())
        claims += sum(tally.claims for tally in found.values())
    return Counts(sum(row[0] for answer in things for row in answer.rows), facts, claims)


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
            found = await tallies(sessions, [one.position.member for one in members], known_at)
            for member in members:
                if member.position.member in found and found[member.position.member].records:
                    for anchor in member.anchors:
                        rest.pop(anchor, None)
            if len(rest) < len(asked):
                # From here on without those that are named.
                window = Window(window_now.size, after=members[-1].position)
                break
    return [id for id in dict.fromkeys(ids) if id in {id_of(one) for one in rest}]
