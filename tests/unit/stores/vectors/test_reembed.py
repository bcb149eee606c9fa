"""Embedding anew beside writers, crashes included: in the end every row is there, as it should be."""

from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.domain.instants import Instant
from services.domain.scope import Scope
from services.stores.vectors.port import Collection, VectorRow
from services.stores.vectors.reembed import MORE_ROUNDS, NotCaughtUp, Refill, reembed
from services.stores.vectors.rows import digest
from services.stores.vectors.sources import Found, Wanted
from tests.builders import a_scope
from tests.doubles.embedder import HashEmbedder
from tests.doubles.vectors import ArrayVectorStore

SCOPE = a_scope()
OLD, NEW = HashEmbedder(8), HashEmbedder(12)
KINDS = (Collection.STATEMENTS, Collection.PASSAGES)
NO_VECTOR = np.zeros(0, dtype=np.float32)


class Crash(Exception):
    """The run ends here."""


@dataclass(frozen=True, slots=True)
class Write:
    """A user's doing: a text with its start; an empty one is forgotten."""

    collection: Collection
    id: str
    text: str
    valid_at: Instant


@dataclass
class Installation:
    """The stores of an installation, and writers that act in steps between those of whoever embeds anew.

    `truth` stands for the other stores. A writer changes it first, and the vectors in a later step.
    """

    writes: Iterator[Write | type[Crash] | None]
    truth: dict[Collection, dict[str, Wanted]] = field(default_factory=lambda: defaultdict(dict))
    old: ArrayVectorStore = field(default_factory=lambda: ArrayVectorStore(OLD.dimension))
    new: ArrayVectorStore = field(default_factory=lambda: ArrayVectorStore(NEW.dimension))
    new_in_use: bool = False
    dropped: bool = False
    unfinished: list[Write] = field(default_factory=list)

    async def step(self) -> None:
        """What others do before the next step of whoever embeds anew."""
        match next(self.writes, None):
            case Write() as write:
                self.truth[write.collection][write.id] = _wanted(write)
                self.unfinished.append(write)
            case None:
                await self.finish_one()
            case crash:
                raise crash

    async def finish_one(self) -> None:
        """The second step of the oldest writer that has one left: by the embedder in use."""
        if not self.unfinished:
            return
        write = self.unfinished.pop(0)
        wanted = self.truth[write.collection][write.id]
        if self.new_in_use:
            await _write(self.new, NEW, write.collection, wanted)
        else:
            await _write(self.old, OLD, write.collection, wanted)
            await self.new.delete(SCOPE, write.collection, [write.id])

    async def alone(self) -> bool:
        return self.new_in_use and self.dropped

    async def use(self) -> None:
        await self.step()
        self.new_in_use = True

    async def drop_others(self) -> Sequence[str]:
        assert self.new_in_use
        self.dropped = True
        return ["old"]

    async def pages(self, scope: Scope) -> AsyncIterator[tuple[Collection, Found]]:
        for collection in KINDS:
            ids = sorted(self.truth[collection])
            for start in range(0, len(ids), 2):
                yield collection, await self.read(scope, collection, ids[start : start + 2])

    async def read(self, scope: Scope, collection: Collection, ids: Sequence[str]) -> Found:
        await self.step()
        held = self.truth[collection]
        # Of passages nothing is left; of all others an id without a text.
        kept = collection is not Collection.PASSAGES
        return {id: held[id] for id in ids if id in held and (kept or held[id].text)}

    async def embed(self, texts: Sequence[str]) -> np.ndarray:
        await self.step()
        return await NEW.passages(texts)


class Stepping(ArrayVectorStore):
    """The new vectors as whoever embeds anew sees them: others act before each of its calls, and after."""

    def __init__(self, installation: Installation) -> None:
        super().__init__(NEW.dimension)
        self._installation = installation
        self._rows = installation.new._rows  # one store, two doors

    async def upsert(self, scope: Scope, collection: Collection, rows: Sequence[VectorRow]) -> None:
        await self._installation.step()
        await super().upsert(scope, collection, rows)
        await self._installation.step()

    async def fetch(
        self, scope: Scope, collection: Collection, ids: Sequence[str]
    ) -> Mapping[str, VectorRow]:
        found = await super().fetch(scope, collection, ids)
        await self._installation.step()
        return found


def _wanted(write: Write) -> Wanted:
    row = VectorRow(write.id, NO_VECTOR, valid_at=write.valid_at, digest=digest(write.text))
    return Wanted(row, write.text)


async def _write(
    store: ArrayVectorStore, embedder: HashEmbedder, collection: Collection, wanted: Wanted
) -> None:
    if wanted.text:
        [vector] = await embedder.passages([wanted.text])
        await store.upsert(SCOPE, collection, [replace(wanted.row, vector=vector)])
    else:
        await store.delete(SCOPE, collection, [wanted.row.id])


async def run(installation: Installation, say: Callable[[str], None] = lambda _: None) -> int:
    async def scopes() -> Sequence[Scope]:
        return [SCOPE]

    refill = Refill(installation, installation.embed, Stepping(installation))
    return await reembed(refill, installation, scopes, pause_seconds=0, say=say)


async def assert_whole(installation: Installation) -> None:
    while installation.unfinished:
        await installation.finish_one()
    for collection in KINDS:
        there = {id: one for id, one in installation.truth[collection].items() if one.text}
        found = await installation.new.fetch(SCOPE, collection, list(installation.truth[collection]))
        assert set(found) == set(there)
        assert await installation.new.count(SCOPE, collection) == len(there)
        for id, one in there.items():
            [vector] = await NEW.passages([one.text])
            assert one.fits(found[id])
            assert np.array_equal(found[id].vector, vector), "the vector is of the text as it is now"


WRITES = st.builds(
    Write,
    st.sampled_from(KINDS),
    st.sampled_from("abcde"),
    st.sampled_from(["", "one", "two", "three"]),
    st.sampled_from([Instant(1), Instant(2)]),
)


@given(
    before=st.lists(WRITES, max_size=8),
    beside=st.lists(st.one_of(WRITES, WRITES, st.none(), st.none(), st.just(Crash)), max_size=60),
)
async def test_whatever_others_write_and_wherever_it_is_cut_off_all_rows_are_there_in_the_end(
    before: list[Write], beside: list[Write | type[Crash] | None]
) -> None:
    installation = Installation(iter(before))
    for _ in before:
        await installation.step()
    while installation.unfinished:
        await installation.finish_one()
    installation.writes = iter(beside)
    for _ in range(1 + beside.count(Crash)):
        try:
            await run(installation)
        except Crash:
            continue
        break
    assert installation.dropped
    await assert_whole(installation)


async def test_rows_that_are_there_are_not_embedded_again() -> None:
    installation = Installation(iter(()))
    for number in range(200):
        write = Write(Collection.STATEMENTS, f"id{number}", f"text {number}", Instant(1))
        installation.truth[write.collection][write.id] = _wanted(write)
    # Cut off at the 30th step, of two hundred rows by two.
    installation.writes = iter([*[None] * 29, Crash])
    with pytest.raises(Crash):
        await run(installation)
    done = await installation.new.count(SCOPE, Collection.STATEMENTS)
    assert 0 < done < 200
    assert not installation.new_in_use
    said: list[str] = []
    assert await run(installation, said.append) == 200 - done
    assert said[0] == f"round 1: {200 - done} rows"
    await assert_whole(installation)


async def test_a_row_that_a_run_left_of_what_is_gone_is_swept() -> None:
    installation = Installation(iter(()))
    [vector] = await NEW.passages(["gone"])
    for collection in KINDS:
        await installation.new.upsert(SCOPE, collection, [VectorRow("left", vector)])
    said: list[str] = []
    await run(installation, said.append)
    assert "swept 2 rows of what is not there any more" in said
    await assert_whole(installation)


async def test_writers_that_never_let_it_catch_up_are_told_of() -> None:
    class Restless(Installation):
        async def step(self) -> None:
            # Another process deletes whatever is made.
            await self.new.delete(SCOPE, Collection.STATEMENTS, ["a"])

    installation = Restless(iter(()))
    installation.truth[Collection.STATEMENTS]["a"] = _wanted(
        Write(Collection.STATEMENTS, "a", "text", Instant(1))
    )
    said: list[str] = []
    with pytest.raises(NotCaughtUp):
        await run(installation, said.append)
    assert said.count("caught up with 1 rows") == MORE_ROUNDS
    assert not installation.dropped


@pytest.mark.parametrize("collection", KINDS)
@pytest.mark.parametrize("text", ["two", ""])
async def test_a_text_that_changes_between_reading_and_writing_is_taken_back(
    collection: Collection, text: str
) -> None:
    installation = Installation(iter([Write(collection, "a", "one", Instant(1))]))
    await installation.step()
    await installation.finish_one()
    # Both steps of the writer fall after the row was read and before it is written.
    installation.writes = iter([None, Write(collection, "a", text, Instant(1)), None])
    await run(installation)
    await assert_whole(installation)
