"""Random histories of a graph, and questions whose answers a store and the naive model must agree on."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import combinations

from hypothesis import strategies as st

from services.domain.graph import Entity, EntityType, GraphAspect, Literal, Span, Statement
from services.domain.ids import Revision
from services.domain.instants import BEGINNING, FOREVER, Instant, Interval, Precision
from services.domain.records import Claim, Denial, End, Verdict, VerdictKind
from services.domain.scope import Scope
from services.stores.graph.plain import PlainRecords, scan_plain
from services.stores.graph.port import AsOf, Commit, EntityFilter, Forgetting, GraphStore, StatementFilter
from services.stores.paging import Page
from tests.builders import Maker, closing, on, revoking, text, without_precisions

EPISODES = ("e1", "e2")
DAYS = tuple(on(f"202{year}-01-01") for year in range(4))
INSTANTS = st.sampled_from([BEGINNING, Instant(-1), *DAYS, FOREVER])
BORDERS = st.none() | st.sampled_from(DAYS)
PERIODS = st.sampled_from(
    [Interval(*days) for days in combinations(DAYS, 2)]
    + [Interval(None, day) for day in DAYS]
    + [Interval(day, None) for day in DAYS]
    + [Interval(None, None)]
)
"""Of spans: never empty, never backwards."""


@dataclass(frozen=True, slots=True)
class History:
    """Commits in the order of their revisions, and of what they are made."""

    commits: Sequence[Commit]
    statements: Sequence[Statement]
    repeats: Sequence[int]
    """Positions of commits that are applied once more at the end."""


@st.composite
def histories(draw: st.DrawFn, make: Maker) -> History:
    """Up to four revisions over a handful of statements, as wild as the port's promises allow."""
    nodes = [make.entity(name) for name in ("a", "b", "c")]
    predicates = [make.predicate("knows"), make.predicate("is")]
    things: list[Entity | Literal] = [*nodes, predicates[0], text("x"), text("y")]
    world = [
        make.statement(subject, predicate, thing)
        for subject in nodes
        for predicate in predicates
        for thing in things
    ]
    commits: list[Commit] = []
    known: dict[str, Statement] = {}
    records: list[Claim | End | Denial | Verdict] = []
    believed: dict[str, Span] = {}
    for revision in range(1, draw(st.integers(1, 4)) + 1):
        new = draw(st.lists(st.sampled_from(world), max_size=4, unique=True))
        told = [_told(draw, statement, revision) for statement in new]
        known |= {statement.id: statement for statement in told if statement.id not in known}
        if not known:
            commits.append(Commit(Revision(revision)))
            continue
        statements = st.sampled_from(list(known.values()))
        revoked = draw(st.lists(st.sampled_from(records), max_size=2, unique=True)) if records else []
        closed = (
            draw(st.lists(st.sampled_from(sorted(believed)), max_size=2, unique=True)) if believed else []
        )
        fresh = _records(draw, make, statements, revision)
        opened = _spans(draw, make, statements, revision, [*records, *fresh])
        aliased = draw(st.lists(st.sampled_from(nodes), max_size=2, unique=True))
        commits.append(
            Commit(
                revision=Revision(revision),
                entities=[*nodes, *predicates],
                aliases=[make.alias(node, draw(st.sampled_from(["k1", "k2"]))) for node in aliased],
                statements=told,
                claims=[record for record in fresh if isinstance(record, Claim)],
                ends=[record for record in fresh if isinstance(record, End)],
                denials=[record for record in fresh if isinstance(record, Denial)],
                verdicts=[record for record in fresh if isinstance(record, Verdict)],
                revocations=[revoking(record) for record in revoked],
                opened=opened,
                closed=[closing(believed[id]) for id in closed],
            )
        )
        records += fresh
        believed = {id: span for id, span in believed.items() if id not in closed}
        believed |= {span.id: span for span in opened}
    repeats = draw(st.lists(st.integers(0, len(commits) - 1), max_size=2))
    return History(commits, list(known.values()), repeats)


def _told(draw: st.DrawFn, statement: Statement, revision: int) -> Statement:
    return Statement(
        id=statement.id,
        subject=statement.subject,
        predicate=statement.predicate,
        object=statement.object,
        fact=statement.fact,
        aspect=draw(st.none() | st.sampled_from([GraphAspect.EVENT, GraphAspect.TASK])),
        event_at=draw(st.none() | INSTANTS),
        created_at=Revision(revision),
    )


def _records(
    draw: st.DrawFn, make: Maker, statements: st.SearchStrategy[Statement], revision: int
) -> list[Claim | End | Denial | Verdict]:
    episodes = st.sampled_from(EPISODES)
    said = st.sampled_from(DAYS)
    found: list[Claim | End | Denial | Verdict] = []
    for kind in draw(st.lists(st.sampled_from(["claim", "claim", "end", "denial", "verdict"]), max_size=5)):
        statement, episode = draw(statements), draw(episodes)
        match kind:
            case "claim":
                start, end = draw(BORDERS), draw(BORDERS)
                found.append(make.claim(statement, episode, start, end, draw(said), revision))
            case "end":
                found.append(make.end(statement, draw(INSTANTS), episode, draw(said), revision))
            case "denial":
                start, end = draw(BORDERS), draw(BORDERS)
                found.append(make.denial(statement, start, end, episode, draw(said), revision))
            case _:
                judged = draw(st.sampled_from(VerdictKind))
                found.append(make.verdict(statement, draw(statements), judged, episode, revision))
    return list({record.id: record for record in found}.values())


def _spans(
    draw: st.DrawFn,
    make: Maker,
    statements: st.SearchStrategy[Statement],
    revision: int,
    causes: Sequence[Claim | End | Denial | Verdict],
) -> list[Span]:
    ending = st.none() | st.sampled_from([record.id for record in causes]) if causes else st.none()
    spans: list[Span] = []
    for held in draw(st.lists(PERIODS, max_size=4)):
        statement, cause, contested = draw(statements), draw(ending), draw(st.booleans())
        fine = draw(st.tuples(st.sampled_from(Precision), st.sampled_from(Precision)))
        span = make.span(
            statement, held.start, held.end, revision, None, cause, contested, fine, draw(st.booleans())
        )
        spans.append(draw(st.sampled_from([span, span, without_precisions(span)])))
    return list({span.id: span for span in spans}.values())


def asked(revisions: int) -> st.SearchStrategy[AsOf]:
    """All the ways to look, from before the first revision on."""
    return st.builds(
        AsOf,
        known_at=st.integers(0, revisions).map(Revision),
        valid_at=st.none() | INSTANTS,
        since=st.none() | INSTANTS,
        until=st.none() | INSTANTS,
    )


@st.composite
def filters(draw: st.DrawFn, make: Maker) -> StatementFilter:
    nodes = [make.entity(name).id for name in ("a", "b", "c")] + [make.predicate("knows").id]
    chosen = st.just(()) | st.lists(st.sampled_from(nodes), min_size=1, max_size=2).map(tuple)
    episodes = [make.episode(name) for name in EPISODES]
    return StatementFilter(
        subjects=draw(chosen),
        predicates=draw(chosen),
        objects=draw(chosen),
        aspects=draw(st.just(()) | st.just((GraphAspect.EVENT,))),
        episodes=draw(st.just(()) | st.lists(st.sampled_from(episodes), min_size=1).map(tuple)),
        invalidated_by=draw(st.none() | st.sampled_from(episodes)),
        contested=draw(st.sampled_from([None, None, True, False])),
        include_ended=draw(st.booleans()),
    )


@st.composite
def entity_filters(draw: st.DrawFn, make: Maker) -> EntityFilter:
    types = [EntityType.CONCEPT, EntityType.PREDICATE, EntityType.PERSON]
    return EntityFilter(
        draw(st.lists(st.sampled_from(types), max_size=2, unique=True)),
        draw(st.sampled_from(["", "k", "k1", "a", "k1x"])),
        draw(st.just(()) | st.just((make.entity("c").id,))),
    )


@st.composite
def forgettings(draw: st.DrawFn, history: History) -> "Drawn":
    if not history.statements:
        return Drawn(nodes=draw(st.booleans()))
    places = st.lists(st.integers(0, len(history.statements) - 1), max_size=2, unique=True)
    return Drawn(
        statements=draw(places),
        retold=draw(places),
        nodes=draw(st.booleans()),
        every=draw(st.integers(1, 4)),
        late=draw(st.integers(-1, 1)),
    )


@dataclass(frozen=True)
class Drawn:
    """What a history is made to forget: positions of statements, the nodes of `a` and `b`, one record of
    `every` some, by the revision that is `late` after the last commit's."""

    statements: Sequence[int] = ()
    retold: Sequence[int] = ()
    nodes: bool = False
    every: int = 1
    late: int = 0


async def all_plain(store: GraphStore, scope: Scope, size: int = 2) -> Mapping[str, Sequence[str]]:
    """What a scan of plain records meets, by kind: statements in order, all else sorted."""
    found: dict[str, list[str]] = defaultdict(list)
    after = ""
    while True:
        page = await scan_plain(store, scope, Page(size, after))
        for kind, rows in told(page.records).items():
            found[kind] += rows
        after = page.after
        if not after:
            break
    found["verdicts"] = list(dict.fromkeys(found["verdicts"]))  # of two statements, of a page each
    return {kind: rows if kind == "statements" else sorted(rows) for kind, rows in found.items()}


def told(records: PlainRecords) -> Mapping[str, Sequence[str]]:
    """As texts, by which also 1 and True are told apart; sorted, but for statements."""
    every = {field.name: [repr(row) for row in getattr(records, field.name)] for field in fields(records)}
    return {kind: rows if kind == "statements" else sorted(rows) for kind, rows in every.items()}


class Comparison:
    """A store and the model it is held to, in one scope."""

    def __init__(self, make: Maker, store: GraphStore, model: GraphStore) -> None:
        self._make, self._scope = make, make.scope
        self._store, self._model = store, model

    async def apply(self, commit: Commit) -> None:
        await self._store.apply(self._scope, commit)
        await self._model.apply(self._scope, commit)

    async def forget(self, drawn: "Drawn", history: History) -> None:
        commits = history.commits
        records: list[Claim | End] = []
        for commit in commits:
            records += [*commit.claims, *commit.ends]
        forgetting = Forgetting(
            Revision(len(commits) + drawn.late),
            [history.statements[place].id for place in drawn.statements],
            [self._make.entity(name).id for name in "ab"] if drawn.nodes else [],
            [revoking(record) for record in records[:: drawn.every]],
            [(history.statements[place].id, "said anew") for place in drawn.retold],
        )
        for store in (self._store, self._model):
            await store.forget(self._scope, forgetting)

    async def look(self, statements: Sequence[Statement], at: AsOf) -> None:
        """Every read that takes ids or nothing."""
        ids = [statement.id for statement in statements]
        nodes = [self._make.entity(name).id for name in "abc"] + [self._make.predicate("is").id]
        one, two, scope = self._store, self._model, self._scope
        assert await one.views(scope, ids, at) == await two.views(scope, ids, at)
        assert await one.records(scope, ids[:3]) == await two.records(scope, ids[:3])
        assert await all_plain(one, scope) == await all_plain(two, scope)
        assert await one.counts(scope, at.known_at) == await two.counts(scope, at.known_at)
        assert await one.entities(scope, nodes) == await two.entities(scope, nodes)
        assert set(await one.aliases(scope, at.known_at)) == set(await two.aliases(scope, at.known_at))
        keys = ["k1", "k2", "k3"]
        assert await one.find_entities(scope, keys, at.known_at) == await two.find_entities(
            scope, keys, at.known_at
        )
        orphans = [await store.orphans(scope, nodes, at.known_at) for store in (one, two)]
        assert orphans[0] == orphans[1]
        assert await one.aliases_of(scope, nodes, at.known_at) == await two.aliases_of(
            scope, nodes, at.known_at
        )
        groups = [nodes[:2], nodes[2:3], nodes[3:], []]
        assert await one.degrees(scope, groups, at) == await two.degrees(scope, groups, at)
        for node in nodes:
            assert await one.slot(scope, node, nodes[3]) == await two.slot(scope, node, nodes[3])
            named = [await store.naming(scope, [node, nodes[0]], Page(4)) for store in (one, two)]
            assert named[0].items == named[1].items
        pairs = [(node, other) for node in nodes for other in nodes]
        assert await one.slots(scope, pairs) == await two.slots(scope, pairs)
        assert await one.between(scope, pairs) == await two.between(scope, pairs)
        for episode in EPISODES:
            id = self._make.episode(episode)
            assert await one.of_episode(scope, id) == await two.of_episode(scope, id)

    async def list_entities(self, where: EntityFilter, known_at: Revision, size: int) -> None:
        """Page by page, to the end."""
        after = model_after = ""
        while True:
            page = await self._store.list_entities(self._scope, where, known_at, Page(size, after))
            model = await self._model.list_entities(self._scope, where, known_at, Page(size, model_after))
            assert page.items == model.items
            assert bool(page.after) == bool(model.after)
            if not page.after:
                return
            after, model_after = page.after, model.after

    async def list(self, where: StatementFilter, at: AsOf, size: int) -> None:
        """Page by page, to the end."""
        after = model_after = ""
        while True:
            page = await self._store.list_statements(self._scope, where, at, Page(size, after))
            model = await self._model.list_statements(self._scope, where, at, Page(size, model_after))
            assert page.items == model.items
            assert bool(page.after) == bool(model.after)
            if not page.after:
                return
            after, model_after = page.after, model.after

    async def walk(self, at: AsOf, hops: int, per_level: int, together: str = "") -> None:
        """`together`: names of entities that read as one."""
        seeds = [self._make.entity("a").id, self._make.entity("knows", EntityType.PREDICATE).id]
        group = [self._make.entity(name).id for name in together]
        steps = [
            await store.walk(self._scope, seeds, at, hops, per_level, dict.fromkeys(group, group))
            for store in (self._store, self._model)
        ]
        assert steps[0] == steps[1]
