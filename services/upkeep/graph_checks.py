"""Checks of the graph: statements with all that is theirs, aliases, and what episodes say."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence, Set

from services.domain.beliefs import Said, believed, hull, in_force, said_by
from services.domain.graph import Span, Statement
from services.domain.ids import EntityId, EpisodeId, StatementId
from services.domain.instants import Interval
from services.domain.memory import VoiceClaim, VoiceEnd
from services.domain.records import Claim, Denial, End, Verdict
from services.domain.scope import Scope
from services.domain.timeline import DerivedSpan
from services.stores.graph.port import KeepsHulls, Records
from services.stores.memory.lexicons import Lexicons
from services.stores.vectors.port import Collection
from services.upkeep.checks import Looking, Seen, vector_differences
from services.upkeep.closures import Closure, nodes_of
from services.upkeep.differences import Difference, Kind
from services.upkeep.parts import PAGE, pages
from services.upkeep.rows import Expected, of_entity, of_statement


class StatementCheck:
    """Each statement with its nodes, records, spans, hull and vectors. A unit is a statement's id."""

    def __init__(self, looking: Looking) -> None:
        self._stores = looking.stores
        self._lexicons = Lexicons(looking.stores.readings, looking.stores.graph, looking.vocabulary)

    async def pages(self, scope: Scope) -> AsyncIterator[Sequence[str]]:
        async for ids in pages(lambda page: self._stores.graph.scan(scope, page)):
            yield ids

    async def look(self, seen: Seen, units: Sequence[str]) -> list[Difference]:
        ids = [StatementId(unit) for unit in units]
        lexicon = await self._lexicons.at(seen.scope, seen.known_at)
        closure = await Closure.of(self._stores, seen.scope, lexicon, seen.known_at, ids)
        asked = set(ids)
        every = [one for one in closure.records.statements if one.id in asked]
        mine = [one for one in every if one.created_at <= seen.known_at]
        found = [
            *_beyond_the_log(seen, every, closure.records),
            *_lost_ends(seen, mine, closure),
            *await self._evidence(seen, mine, closure.records),
        ]
        whole = closure.whole()
        found += _spans(seen, [one for one in mine if one.id in whole], closure)
        found += await self._hulls(seen, mine, closure.records)
        found += await self._vectors(seen, mine, closure)
        return found

    async def _evidence(
        self, seen: Seen, statements: Sequence[Statement], stored: Records
    ) -> list[Difference]:
        said: dict[StatementId, list[Claim | End | Denial]] = {one.id: [] for one in statements}
        every: list[Claim | End | Denial] = [*stored.claims, *stored.ends, *stored.denials]
        for record in in_force(every, seen.known_at):
            if record.statement in said:
                said[record.statement].append(record)
        records_of_mine = [record for records in said.values() for record in records]
        cited = {one.source.episode: one.statement for one in records_of_mine if one.source.episode}
        there = {one.id: one for one in await self._stores.text.episodes(seen.scope, list(cited))}
        found = [
            Difference(Kind.EVIDENCE_WITHOUT_EPISODE, seen.scope, episode, "graph", statement)
            for episode, statement in cited.items()
            if episode not in there
        ]
        silent = [one.id for one in statements if one.fact and not said[one.id]]
        kept = await self._read_otherwise(seen, silent, every) if silent else set()
        return found + [
            Difference(Kind.STATEMENT_WITHOUT_CLAIMS, seen.scope, id, unit=id)
            for id in silent
            if id not in kept
        ]

    async def _read_otherwise(
        self, seen: Seen, silent: Sequence[StatementId], every: Sequence[Claim | End | Denial]
    ) -> set[StatementId]:
        """Those that a text which is there said by an earlier reading: they are known as of then."""
        said = {(one.statement, one.source.episode) for one in every if one.statement in silent}
        cited = sorted({episode for _, episode in said if episode})
        texts = await self._stores.text.episodes(seen.scope, cited)
        there = {one.id for one in texts if one.deleted_at is None}
        return {statement for statement, episode in said if episode in there}

    async def _hulls(self, seen: Seen, statements: Sequence[Statement], records: Records) -> list[Difference]:
        if not isinstance(self._stores.graph, KeepsHulls) or not statements:
            return []
        kept = await self._stores.graph.hulls(seen.scope, [one.id for one in statements])
        found: list[Difference] = []
        for one in statements:
            needed = hull(span for span in records.spans if span.statement == one.id)
            has = kept.get(one.id)
            if needed is not None and (has is None or not _covers(has, needed)):
                found.append(Difference(Kind.HULL_TOO_NARROW, seen.scope, one.id, unit=one.id))
        return found

    async def _vectors(
        self, seen: Seen, statements: Sequence[Statement], closure: Closure
    ) -> list[Difference]:
        spans: dict[StatementId, list[Span]] = {one.id: [] for one in statements}
        for span in closure.records.spans:
            if span.statement in spans:
                spans[span.statement].append(span)
        wanted: dict[str, Expected] = {}
        nodes: dict[str, Expected] = {}
        archived = await self._stores.archive.among(seen.scope, list(spans))
        for one in statements:
            if row := of_statement(one, spans[one.id], seen.known_at, one.id in archived):
                wanted[one.id] = row
            for node in nodes_of(one):
                entity = closure.nodes.get(node)
                if entity and entity.created_at <= seen.known_at and (row := of_entity(entity)):
                    nodes[node] = row
        vectors = self._stores.vectors
        found: list[Difference] = []
        for collection in (Collection.STATEMENTS, Collection.ARCHIVE):
            rows = {id: row for id, row in wanted.items() if row.collection is collection}
            if rows:
                stored = await vectors.fetch(seen.scope, collection, list(rows))
                found += vector_differences(seen.scope, rows, stored)
        naming = {node: one.id for one in reversed(statements) for node in nodes_of(one)}
        for difference in vector_differences(
            seen.scope, nodes, await vectors.fetch(seen.scope, Collection.ENTITIES, list(nodes))
        ):
            unit = naming[EntityId(difference.id)]
            found.append(Difference(difference.kind, seen.scope, difference.id, difference.what, unit))
        return found


class AliasCheck:
    """Each alias with its entity. A unit is an entity's id."""

    def __init__(self, looking: Looking) -> None:
        self._stores = looking.stores

    async def pages(self, scope: Scope) -> AsyncIterator[Sequence[str]]:
        known_at = await self._stores.revisions.current(scope)
        aliases = await self._stores.graph.aliases(scope, known_at)
        ids = list(dict.fromkeys(alias.entity for alias in aliases))
        for start in range(0, len(ids), PAGE):
            yield ids[start : start + PAGE]

    async def look(self, seen: Seen, units: Sequence[str]) -> list[Difference]:
        ids = [EntityId(unit) for unit in units]
        there = {entity.id for entity in await self._stores.graph.entities(seen.scope, ids)}
        return [
            Difference(Kind.EDGE_WITHOUT_END, seen.scope, id, "entity of an alias", id)
            for id in ids
            if id not in there
        ]


class MergeCheck:
    """Each merge with its two entities. A unit is the id of one that is merged, or told apart."""

    def __init__(self, looking: Looking) -> None:
        self._stores = looking.stores

    async def pages(self, scope: Scope) -> AsyncIterator[Sequence[str]]:
        async for merges in pages(lambda page: self._stores.readings.list_merges(scope, page)):
            yield list(dict.fromkeys(merge.entity for merge in merges))

    async def look(self, seen: Seen, units: Sequence[str]) -> list[Difference]:
        asked = {EntityId(unit) for unit in units}
        merges = await self._stores.readings.merges(seen.scope, sorted(asked))
        mine = [merge for merge in merges if merge.entity in asked]
        named = {side for merge in mine for side in (merge.entity, merge.into)}
        there = {entity.id for entity in await self._stores.graph.entities(seen.scope, sorted(named))}
        found = [
            Difference(Kind.REVISION_NOT_IN_LOG, seen.scope, merge.id, unit=merge.entity)
            for merge in mine
            if max(merge.recorded_at, merge.revoked_at or 0) > seen.begun
        ]
        return found + [
            Difference(Kind.EDGE_WITHOUT_END, seen.scope, side, "entity of a merge", merge.entity)
            for merge in mine
            if merge.recorded_at <= seen.known_at
            for side in sorted({merge.entity, merge.into} - there)
        ]


class EpisodeCheck:
    """What each episode says, with what it says it of. A unit is an episode's id."""

    def __init__(self, looking: Looking) -> None:
        self._stores = looking.stores

    async def pages(self, scope: Scope) -> AsyncIterator[Sequence[str]]:
        async for episodes in pages(lambda page: self._stores.text.scan_episodes(scope, page)):
            yield [episode.id for episode in episodes]

    async def look(self, seen: Seen, units: Sequence[str]) -> list[Difference]:
        found: list[Difference] = []
        said: dict[EpisodeId, Records] = {}
        ids = [EpisodeId(unit) for unit in units]
        for episode in await self._stores.text.episodes(seen.scope, ids):
            records = await self._stores.graph.of_episode(seen.scope, episode.id)
            counting: list[Claim | End | Denial] = in_force(
                [*records.claims, *records.ends, *records.denials], seen.known_at
            )
            deleted = episode.deleted_at is not None and episode.deleted_at < seen.settled
            spoken = deleted and await self._spoken(seen, episode.id)
            if deleted and (counting or spoken):
                where = "graph" if counting else "voice"
                found.append(
                    Difference(Kind.EVIDENCE_WITHOUT_EPISODE, seen.scope, episode.id, where, episode.id)
                )
            said[episode.id] = records
        return [*found, *await self._lost_statements(seen, said)]

    async def _spoken(self, seen: Seen, episode: EpisodeId) -> bool:
        aspects = await self._stores.voice.of_episode(seen.scope, episode)
        records: list[VoiceClaim | VoiceEnd] = []
        for aspect in aspects:
            records += [*aspect.claims, *aspect.ends]
        mine = [record for record in records if record.episode == episode]
        return bool(in_force(mine, seen.known_at))

    async def _lost_statements(self, seen: Seen, said: Mapping[EpisodeId, Records]) -> list[Difference]:
        counting = {episode: _every(records, seen) for episode, records in said.items()}
        named = {side for records in counting.values() for record in records for side in _sides(record)}
        if not named:
            return []
        stored = await self._stores.graph.records(seen.scope, sorted(named))
        there = {statement.id for statement in stored.statements}
        return [
            Difference(Kind.EDGE_WITHOUT_END, seen.scope, record.id, f"record of {side}", episode)
            for episode, records in counting.items()
            for record in records
            for side in _sides(record)
            if side not in there
        ]


def _every(records: Records, seen: Seen) -> list[Claim | End | Denial | Verdict]:
    every: list[Claim | End | Denial | Verdict] = [
        *records.claims,
        *records.ends,
        *records.denials,
        *records.verdicts,
    ]
    return in_force(every, seen.known_at)


def _covers(outer: Interval, inner: Interval) -> bool:
    from_the_start = outer.start is None or (inner.start is not None and outer.start <= inner.start)
    to_the_end = outer.end is None or (inner.end is not None and inner.end <= outer.end)
    return from_the_start and to_the_end


def _sides(record: Claim | End | Denial | Verdict) -> list[StatementId]:
    return [record.left, record.right] if isinstance(record, Verdict) else [record.statement]


def _beyond_the_log(seen: Seen, statements: Iterable[Statement], records: Records) -> list[Difference]:
    latest = {one.id: int(one.created_at) for one in statements}
    every: list[Claim | End | Denial] = [*records.claims, *records.ends, *records.denials]
    for record in every:
        if record.statement in latest:
            latest[record.statement] = max(latest[record.statement], record.recorded_at)
    for span in records.spans:
        if span.statement in latest:
            latest[span.statement] = max(latest[span.statement], span.known_from)
    return [
        Difference(Kind.REVISION_NOT_IN_LOG, seen.scope, id, unit=id)
        for id, revision in latest.items()
        if revision > seen.begun
    ]


def _lost_ends(seen: Seen, statements: Iterable[Statement], closure: Closure) -> list[Difference]:
    there = {statement.id for statement in closure.records.statements}
    found = []
    mine: set[StatementId] = set()
    for one in statements:
        mine.add(one.id)
        for node in nodes_of(one):
            if node in closure.absent:
                what = "entity of a statement"
                found.append(Difference(Kind.EDGE_WITHOUT_END, seen.scope, node, what, one.id))
    for verdict in in_force(closure.records.verdicts, seen.known_at):
        sides = {verdict.left, verdict.right}
        for lost in sorted(sides - there):
            for unit in sorted(sides & mine):
                what = f"record of {lost}"
                found.append(Difference(Kind.EDGE_WITHOUT_END, seen.scope, verdict.id, what, unit))
    return found


def _said(span: Span | DerivedSpan, silent: Set[StatementId]) -> Said:
    said = said_by(span)
    return (*said[:6], None, None, None) if span.statement in silent else said


def _spans(seen: Seen, statements: Sequence[Statement], closure: Closure) -> list[Difference]:
    mine = {one.id for one in statements}
    now = [span for span in believed(closure.records.spans, seen.known_at) if span.statement in mine]
    derived = [span for span in closure.derived() if span.statement in mine]
    # What was written before spans told how fine they are is right as far as it tells.
    silent = {span.statement for span in now if span.start_precision is None}
    told = [_said(span, silent) for span in now]
    follow = {_said(span, silent) for span in derived}
    differing = {said[0] for said in follow.symmetric_difference(told)}
    if len(set(told)) < len(told):
        differing |= {said[0] for said in told if told.count(said) > 1}
    return [
        Difference(Kind.SPANS_DIFFER, seen.scope, one.id, unit=one.id)
        for one in statements
        if one.id in differing
    ]
