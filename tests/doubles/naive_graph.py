"""NaiveGraph: the graph port in memory, as plainly as can be. The model that real stores are held to."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from services.domain.graph import Entity, EntityType, Literal, Span, Statement
from services.domain.ids import EntityId, EpisodeId, RecordId, Revision, StatementId
from services.domain.instants import BEGINNING, FOREVER, Interval
from services.domain.records import Claim, Denial, End, Verdict
from services.domain.scope import Scope
from services.stores.errors import UnstorableText
from services.stores.graph.port import (
    NAME_HEAD,
    NOBODY,
    Alias,
    AsOf,
    Commit,
    Counts,
    EntityFilter,
    Forgetting,
    NodePair,
    Records,
    StatementFilter,
    StatementView,
    Step,
    Together,
)
from services.stores.paging import Listed, Page
from services.stores.storable import is_storable
from tests.doubles.naive_values import KeptGraph, add, add_nodes, empty_records, texts

R = TypeVar("R", Claim, End, Denial, Verdict)


class NaiveGraph:
    """GraphStore over dictionaries; every read looks at everything."""

    def __init__(self) -> None:
        self._graphs: dict[Scope, KeptGraph] = defaultdict(KeptGraph)

    async def apply(self, scope: Scope, commit: Commit) -> None:
        if not all(is_storable(text) for text in texts(commit)):
            raise UnstorableText("NUL or a lone surrogate")
        graph = self._graphs[scope]
        add_nodes(graph, commit)
        for alias in commit.aliases:
            if graph.forgotten.get(alias.entity, Revision(-1)) >= commit.revision:
                continue
            graph.aliases.setdefault((alias.key, alias.type, alias.entity), (alias, commit.revision))
        add(graph.claims, commit.claims, graph)
        add(graph.ends, commit.ends, graph)
        add(graph.denials, commit.denials, graph)
        add(graph.verdicts, commit.verdicts, graph)
        for revocation in commit.revocations:
            graph.revoked.setdefault(revocation.record, commit.revision)
        for span in commit.opened:
            graph.spans.setdefault(span.id, span)
        for closed in commit.closed:
            span = graph.spans[closed.span]
            if span.known_to is None:
                graph.spans[closed.span] = replace(span, known_to=commit.revision)

    async def find_entities(
        self, scope: Scope, keys: Sequence[str], known_at: Revision
    ) -> Mapping[str, Sequence[Entity]]:
        graph = self._graphs[scope]
        found: dict[str, set[Entity]] = defaultdict(set)
        for alias, recorded_at in graph.aliases.values():
            entity = graph.entities[alias.entity]
            if alias.key in keys and recorded_at <= known_at and entity.created_at <= known_at:
                found[alias.key].add(entity)
        return {key: sorted(nodes, key=_age) for key, nodes in found.items()}

    async def entities(self, scope: Scope, ids: Sequence[EntityId]) -> Sequence[Entity]:
        known = self._graphs[scope].entities
        return [known[id] for id in dict.fromkeys(ids) if id in known]

    async def aliases(self, scope: Scope, known_at: Revision) -> Sequence[Alias]:
        found = self._graphs[scope].aliases.values()
        return [alias for alias, recorded_at in found if recorded_at <= known_at]

    async def aliases_of(self, scope: Scope, ids: Sequence[EntityId], known_at: Revision) -> Sequence[Alias]:
        found = [alias for alias in await self.aliases(scope, known_at) if alias.entity in ids]
        return sorted(found, key=lambda alias: (alias.key, alias.type, alias.entity))

    async def list_entities(
        self, scope: Scope, where: EntityFilter, known_at: Revision, page: Page
    ) -> Listed[Entity]:
        named = {
            alias.entity
            for alias in await self.aliases(scope, known_at)
            if alias.key.startswith(where.prefix)
        }
        found = [
            entity
            for entity in self._graphs[scope].entities.values()
            if entity.created_at <= known_at
            and (entity.name or entity.key)
            and (entity.type in where.types if where.types else entity.type is not EntityType.PREDICATE)
            and (not where.prefix or entity.id in named or entity.id in where.also)
        ]
        found.sort(key=lambda entity: (entity.key[:NAME_HEAD], entity.id))
        begin = _begin([entity.id for entity in found], page.after)
        items = found[begin : begin + page.size]
        return Listed(items, items[-1].id if begin + page.size < len(found) else "")

    async def degrees(self, scope: Scope, groups: Sequence[Sequence[EntityId]], at: AsOf) -> Sequence[int]:
        views = await self.views(scope, list(self._graphs[scope].statements), at)
        named = [{view.subject.id, view.predicate.id, view.statement.object} for view in views if view.spans]
        return [sum(bool(names.intersection(group)) for names in named) for group in groups]

    async def views(self, scope: Scope, ids: Sequence[StatementId], at: AsOf) -> Sequence[StatementView]:
        known = self._graphs[scope].statements
        asked = [known[id] for id in dict.fromkeys(ids) if id in known]
        return [
            self._view(scope, statement, at) for statement in asked if statement.created_at <= at.known_at
        ]

    async def records(self, scope: Scope, ids: Sequence[StatementId]) -> Records:
        graph, asked = self._graphs[scope], set(ids)
        verdicts = self._records(scope, graph.verdicts)
        return Records(
            statements=sorted((s for s in graph.statements.values() if s.id in asked), key=_age),
            claims=[c for c in self._records(scope, graph.claims) if c.statement in asked],
            ends=[e for e in self._records(scope, graph.ends) if e.statement in asked],
            denials=[d for d in self._records(scope, graph.denials) if d.statement in asked],
            verdicts=[v for v in verdicts if v.left in asked or v.right in asked],
            spans=sorted(
                (s for s in graph.spans.values() if s.statement in asked),
                key=lambda s: (s.known_from, _held(s)[0], s.id),
            ),
        )

    async def slot(self, scope: Scope, subject: EntityId, predicate: EntityId) -> Sequence[StatementId]:
        return [s.id for s in self._ordered(scope) if (s.subject, s.predicate) == (subject, predicate)]

    async def slots(
        self, scope: Scope, pairs: Sequence[NodePair]
    ) -> Mapping[NodePair, Sequence[StatementId]]:
        found = {pair: await self.slot(scope, *pair) for pair in pairs}
        return {pair: ids for pair, ids in found.items() if ids}

    async def between(
        self, scope: Scope, pairs: Sequence[NodePair]
    ) -> Mapping[NodePair, Sequence[StatementId]]:
        found = {
            pair: [s.id for s in self._ordered(scope) if (s.subject, s.object) == pair] for pair in pairs
        }
        return {pair: ids for pair, ids in found.items() if ids}

    async def of_predicate(
        self, scope: Scope, predicate: EntityId, target: EntityId | None, page: Page
    ) -> Listed[StatementId]:
        found = [
            s.id
            for s in self._ordered(scope)
            if s.predicate == predicate and (target is None or s.object == target)
        ]
        start = int(page.after or 0)
        end = start + page.size
        return Listed(found[start:end], str(end) if end < len(found) else "")

    async def naming(self, scope: Scope, entities: Sequence[EntityId], page: Page) -> Listed[StatementId]:
        wanted = set(entities)
        ids = [s.id for s in self._ordered(scope) if wanted & {s.subject, s.predicate, s.object}]
        begin = _begin(ids, page.after)
        items = ids[begin : begin + page.size]
        return Listed(items, items[-1] if begin + page.size < len(ids) else "")

    async def of_episode(self, scope: Scope, episode: EpisodeId) -> Records:
        graph = self._graphs[scope]
        return Records(
            statements=(),
            claims=[c for c in self._records(scope, graph.claims) if c.source.episode == episode],
            ends=[e for e in self._records(scope, graph.ends) if e.source.episode == episode],
            denials=[d for d in self._records(scope, graph.denials) if d.source.episode == episode],
            verdicts=[v for v in self._records(scope, graph.verdicts) if v.episode == episode],
            spans=(),
        )

    async def list_statements(
        self, scope: Scope, where: StatementFilter, at: AsOf, page: Page
    ) -> Listed[StatementView]:
        all_views = [self._view(scope, s, at) for s in self._ordered(scope) if s.created_at <= at.known_at]
        found = [view for view in all_views if view.spans and self._matches(scope, view, where, at)]
        ids = [view.statement.id for view in found]
        begin = _begin(ids, page.after)
        items = found[begin : begin + page.size]
        return Listed(items, items[-1].statement.id if begin + page.size < len(found) else "")

    async def walk(
        self,
        scope: Scope,
        seeds: Sequence[EntityId],
        at: AsOf,
        max_hops: int,
        per_level: int,
        together: Together = NOBODY,
    ) -> Sequence[Step]:
        steps: list[Step] = []
        visited = frontier = _grouped(seeds, together)
        for hop in range(1, max_hops + 1):
            met = {step.view.statement.id for step in steps}
            level = [
                view
                for view in (self._view(scope, s, at) for s in reversed(self._ordered(scope)))
                if view.spans and view.statement.created_at <= at.known_at
                if view.statement.id not in met and {node.id for node in _ends(view)} & frontier
            ][:per_level]
            for view in level:
                via = next(node.id for node in _ends(view) if node.id in frontier)
                steps.append(Step(view, hop, via))
            nodes = [node for view in level for node in _ends(view)]
            beyond = [node.id for node in nodes if node.type is not EntityType.PREDICATE]
            frontier = _grouped(beyond, together) - visited
            visited = visited | frontier
        return steps

    async def scan(self, scope: Scope, page: Page) -> Listed[StatementId]:
        ids = [statement.id for statement in self._ordered(scope)]
        begin = _begin(ids, page.after)
        items = ids[begin : begin + page.size]
        return Listed(items, items[-1] if begin + page.size < len(ids) else "")

    async def counts(self, scope: Scope, known_at: Revision) -> Counts:
        graph, at = self._graphs[scope], AsOf(known_at)
        nodes = [e for e in graph.entities.values() if e.created_at <= known_at]
        return Counts(
            entities=sum(node.type is not EntityType.PREDICATE for node in nodes),
            statements=sum(bool(self._spans(scope, id, at)) for id in graph.statements),
            claims=sum(_counts(claim, known_at) for claim in self._records(scope, graph.claims)),
        )

    async def orphans(self, scope: Scope, ids: Sequence[EntityId], known_at: Revision) -> Sequence[EntityId]:
        graph = self._graphs[scope]
        kept: set[EntityId | Literal] = set()
        records: list[Claim | End | Denial] = [
            *self._records(scope, graph.claims),
            *self._records(scope, graph.ends),
            *self._records(scope, graph.denials),
        ]
        for record in records:
            if _counts(record, known_at):
                statement = graph.statements[record.statement]
                kept |= {statement.subject, statement.predicate, statement.object}
        return [id for id in dict.fromkeys(ids) if id in graph.entities and id not in kept]

    async def forget(self, scope: Scope, forgetting: Forgetting) -> None:
        graph = self._graphs[scope]
        if not all(map(is_storable, (sentence for _, sentence in forgetting.retold))):
            raise UnstorableText
        statements, entities = set(forgetting.statements), set(forgetting.entities)
        for id in (statements & graph.statements.keys()) | (entities & graph.entities.keys()):
            graph.forgotten[id] = forgetting.revision
        for id in statements & graph.statements.keys():
            statement = graph.statements[id]
            target = statement.object
            emptied = replace(target, text="") if isinstance(target, Literal) else target
            graph.statements[id] = replace(statement, fact="", object=emptied)
        for id, sentence in forgetting.retold:
            if id in graph.statements and id not in graph.forgotten:
                graph.statements[id] = replace(graph.statements[id], fact=sentence)
        empty_records(graph, statements, forgetting)
        for node in entities & graph.entities.keys():
            graph.entities[node] = replace(graph.entities[node], name="", key="", aliases=())
        graph.aliases = {key: value for key, value in graph.aliases.items() if key[2] not in entities}

    async def purge(
        self, scope: Scope, statements: Sequence[StatementId], entities: Sequence[EntityId]
    ) -> None:
        graph, gone = self._graphs[scope], set(statements)
        graph.claims = {id: one for id, one in graph.claims.items() if one.statement not in gone}
        graph.ends = {id: one for id, one in graph.ends.items() if one.statement not in gone}
        graph.denials = {id: one for id, one in graph.denials.items() if one.statement not in gone}
        graph.spans = {id: one for id, one in graph.spans.items() if one.statement not in gone}
        for id in [one.id for one in graph.verdicts.values() if {one.left, one.right} & gone]:
            del graph.verdicts[id]
        graph.statements = {id: one for id, one in graph.statements.items() if id not in gone}
        graph.entities = {id: one for id, one in graph.entities.items() if id not in entities}
        graph.aliases = {key: value for key, value in graph.aliases.items() if key[2] not in entities}

    async def rows(self, scope: Scope) -> Mapping[str, int]:
        graph = self._graphs.get(scope)
        found = (
            {} if graph is None else {"entities": len(graph.entities), "statements": len(graph.statements)}
        )
        return {kind: count for kind, count in found.items() if count}

    async def erase(self, scope: Scope) -> None:
        self._graphs.pop(scope, None)

    async def close(self) -> None:
        """Nothing is open."""

    def _ordered(self, scope: Scope) -> list[Statement]:
        return sorted(self._graphs[scope].statements.values(), key=_age)

    def _records(self, scope: Scope, records: Mapping[RecordId, R]) -> list[R]:
        revoked = self._graphs[scope].revoked
        current = [replace(record, revoked_at=revoked.get(record.id)) for record in records.values()]
        return sorted(current, key=lambda record: (record.recorded_at, record.id))

    def _spans(self, scope: Scope, statement: StatementId, at: AsOf) -> list[Span]:
        spans = [s for s in self._graphs[scope].spans.values() if s.statement == statement and _seen(s, at)]
        return sorted(spans, key=lambda span: (*_held(span), span.id))

    def _view(self, scope: Scope, statement: Statement, at: AsOf) -> StatementView:
        graph = self._graphs[scope]
        claims = [c for c in self._records(scope, graph.claims) if c.statement == statement.id]
        counting = [c for c in claims if c.source.episode is not None and _counts(c, at.known_at)]
        cited = sorted((c.attested_at, c.source.episode or "") for c in counting)
        target = statement.object
        return StatementView(
            statement=statement,
            subject=graph.entities[statement.subject],
            predicate=graph.entities[statement.predicate],
            object=None if isinstance(target, Literal) else graph.entities[target],
            spans=tuple(self._spans(scope, statement.id, at)),
            episodes=tuple(dict.fromkeys(EpisodeId(episode) for _, episode in cited)),
        )

    def _matches(self, scope: Scope, view: StatementView, where: StatementFilter, at: AsOf) -> bool:
        statement = view.statement
        chosen = (
            (where.subjects, statement.subject),
            (where.predicates, statement.predicate),
            (where.objects, statement.object),
            (where.aspects, statement.aspect),
        )
        contested = any(span.contested for span in view.spans)
        unbounded = at.valid_at is None and at.since is None and at.until is None
        return (
            all(not wanted or value in wanted for wanted, value in chosen)
            and (not where.episodes or bool(set(where.episodes) & set(view.episodes)))
            and where.contested in (None, contested)
            and (
                where.include_ended
                or not unbounded
                or where.invalidated_by is not None
                or any(span.invalid_at is None for span in view.spans)
            )
            and (where.invalidated_by is None or self._ended(scope, view, where.invalidated_by, at))
        )

    def _ended(self, scope: Scope, view: StatementView, episode: EpisodeId, at: AsOf) -> bool:
        graph = self._graphs[scope]
        records: list[Claim | End | Denial] = [
            *graph.claims.values(),
            *graph.ends.values(),
            *graph.denials.values(),
        ]
        causes = {record.id for record in records if record.source.episode == episode}
        return any(
            span.ended_by in causes for span in self._spans(scope, view.statement.id, AsOf(at.known_at))
        )


def _grouped(nodes: Iterable[EntityId], together: Together) -> set[EntityId]:
    return set(nodes).union(*(together[node] for node in nodes if node in together))


def _begin(ids: Sequence[str], after: str) -> int:
    if not after:
        return 0
    if after not in ids:
        raise ValueError("not a position in a list of statements")
    return ids.index(after) + 1


def _age(node: Entity | Statement) -> tuple[Revision, str]:
    return node.created_at, node.id


def _held(span: Span) -> tuple[int, int]:
    """Its borders as numbers; an unknown start is before, an open end after every date."""
    return (
        BEGINNING - 1 if span.valid_at is None else span.valid_at,
        FOREVER + 1 if span.invalid_at is None else span.invalid_at,
    )


def _counts(record: Claim | End | Denial | Verdict, known_at: Revision) -> bool:
    not_revoked = record.revoked_at is None or record.revoked_at > known_at
    return record.recorded_at <= known_at and not_revoked


def _seen(span: Span, at: AsOf) -> bool:
    held = Interval(span.valid_at, span.invalid_at)
    return (
        span.known_from <= at.known_at
        and (span.known_to is None or span.known_to > at.known_at)
        and (at.valid_at is None or held.contains(at.valid_at))
        and held.meets(Interval(at.since, at.until))
    )


def _ends(view: StatementView) -> list[Entity]:
    return [node for node in (view.subject, view.object) if node is not None]
