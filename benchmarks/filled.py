"""Filled graphs for measurements of recall: facts, claims, spans, passages and vectors, put into the stores.

People use tools and live in places; a fifth of the facts has ended. Every fact is claimed by one passage of
an episode of its own, as facts that are asserted are. Vectors are random: what they find isn't measured.
"""

from collections.abc import Iterator

import numpy as np

from services.domain.graph import EntityType, Span, span_id
from services.domain.ids import EpisodeId, JobId, PassageId, Revision, derive_id
from services.domain.instants import Instant
from services.domain.memory import Episode, EpisodeKind, Passage, Role
from services.domain.records import Claim, Source
from services.domain.scope import Scope
from services.runtime.resources import Resources
from services.stores.graph.port import Commit
from services.stores.vectors.port import Collection
from services.stores.vectors.rows import entity_row, hulls, passage_row, statement_row
from tests.builders import Maker, together

BATCH = 1_000
DAY = 86_400_000_000
BEGAN = 1_500_000_000_000_000
FACTS_A_PERSON = 25
PLACES = 50


async def fill(resources: Resources, scope: Scope, facts: int) -> Revision:
    """Puts a graph of so many facts into the stores; answers its revision."""
    memory, chance = resources.memory, np.random.default_rng(7)
    revision = Revision(0)
    for revision, commit, episodes, passages in batches(scope, facts):
        entry = await memory.revisions.begin(
            scope, Revision(revision - 1), f"fill-{revision}", Instant(BEGAN + revision * DAY), b"", "{}"
        )
        await memory.text.save(scope, episodes, passages, None)
        await resources.graph.apply(scope, commit)

        def vector() -> np.ndarray:
            return chance.standard_normal(resources.embedder.dimension).astype(np.float32)

        held = hulls(commit.opened)
        rows = [statement_row(one, held[one.id], vector()) for one in commit.statements]
        named = [entity_row(one, vector()) for one in commit.entities if one.type is not EntityType.PREDICATE]
        said = [passage_row(scope, p, e, vector()) for p, e in zip(passages, episodes, strict=True)]
        for collection, batch in (
            (Collection.STATEMENTS, rows),
            (Collection.ENTITIES, named),
            (Collection.PASSAGES, said),
        ):
            await resources.vectors.upsert(scope, collection, batch)
        await memory.revisions.publish(scope, entry.revision)
    await resources.vectors.flush()
    return revision


def batches(scope: Scope, facts: int) -> Iterator[tuple[Revision, Commit, list[Episode], list[Passage]]]:
    people = max(1, facts // FACTS_A_PERSON)
    for first in range(0, facts, BATCH):
        revision = Revision(1 + first // BATCH)
        made = [
            _fact(Maker(scope), number, people, revision)
            for number in range(first, min(first + BATCH, facts))
        ]
        yield (
            revision,
            together([commit for commit, _, _ in made]),
            [episode for _, episode, _ in made],
            [passage for _, _, passage in made],
        )


def _fact(make: Maker, number: int, people: int, revision: Revision) -> tuple[Commit, Episode, Passage]:
    person, lives = number % people, number // people % 5 == 0
    place = (
        f"Place {(person + number // people) % PLACES}"
        if lives
        else f"Tool {number % 97} of kind {number // people}"
    )
    kind = EntityType.PLACE if lives else EntityType.TECHNOLOGY
    subject = make.entity(f"Person {person}", EntityType.PERSON, revision)
    predicate = make.predicate("lives_in" if lives else "uses", revision)
    target = make.entity(place, kind, revision)
    statement = make.statement(subject, predicate, target, revision)
    said = Instant(BEGAN + number * DAY // 8)
    episode = EpisodeId(derive_id(make.scope, "episode", number))
    passage = PassageId(derive_id(make.scope, "passage", number))
    text = statement.fact.replace("_", " ")
    claim = Claim(
        make.record_id("claim", statement, number), statement.id, said, None, said, said,
        Source(episode, passage, text), recorded_at=revision,
    )  # fmt: skip
    ended = Instant(said + 400 * DAY) if number % 5 == 1 else None
    span = Span(
        span_id(make.scope, statement.id, said, revision),
        statement.id,
        said,
        ended,
        revision,
        None,
        claim.id,
        None,
    )
    return (
        Commit(
            revision,
            entities=(subject, predicate, target),
            aliases=(make.alias(subject), make.alias(predicate), make.alias(target)),
            statements=(statement,),
            claims=(claim,),
            opened=(span,),
        ),
        Episode(episode, JobId("fill"), EpisodeKind.ASSERTION, text, said, Instant(BEGAN), 8),
        Passage(passage, episode, 0, text, 0, len(text), str(number), "", Role.NONE, said_at=said),
    )
