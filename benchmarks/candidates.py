"""Candidates of new names in graphs of growing size: how long the search for them takes, beside a scan.

Six names in ten are of people, three of companies of three words, one is Chinese. Asked are the candidates
of one new name at a time: initials, acronyms, other spellings, and names like none. There are no vectors,
whose search benchmarks/vectors.py measures: "by keys" is the one look-up in the alias table, "whole" is with
the comparison of what it found. p50 and p95; ratios are to the smallest graph of the same run. "comparing
all" is what a search without keys would take for each new name.

Run: python -m benchmarks.candidates [--sizes 1000 50000] [--questions 40]
"""

import argparse
import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from services.domain.graph import Entity, EntityType
from services.domain.ids import EntityId, Revision, derive_id
from services.domain.likeness import Name, likeness
from services.domain.names import name_key
from services.domain.near_keys import is_near_key, keys_to_ask, near_keys
from services.domain.scope import GraphId, Scope, TenantId
from services.resolver.candidates import Candidates
from services.stores.graph.port import Alias, Commit
from services.stores.graph.sql import SqlGraphStore
from services.stores.sql.engine import engine_for
from tests.doubles.embedder import HashEmbedder
from tests.doubles.vectors import ArrayVectorStore

BATCH = 1_000
SYLLABLES = (
    "ka",
    "po",
    "ri",
    "ma",
    "lu",
    "ven",
    "sto",
    "bra",
    "dei",
    "nor",
    "tal",
    "shi",
    "gru",
    "ost",
    "wen",
)
HAN = "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗伟芳娜敏静丽强磊军洋勇艳杰娟涛明超兰霞平"
ASKED = (
    *(
        "Kapo R.",
        "M. Ridei",
        "Jose Maluven",
        "José Maluven",
        "Ridei, Kapo",
        "Luven",
        "Unheard Of",
        "KRM",
        "NTS",
    ),
    *("Kapo Ridei Maven", "王伟", "張偉", "Wenshi Ostnor Brapo Inc.", "Zzyzx", "Norbra T.", "IBM", "劉麗"),
    *("Project 7", "C++", "The Kapo"),
)


def names(size: int, chance: random.Random) -> Iterator[tuple[str, EntityType]]:
    """Different names: six in ten of people, three of companies, one Chinese."""
    seen: set[str] = set()
    while len(seen) < size:
        kind = chance.random()
        if kind < 0.6:
            words, type = [_word(chance, 2), _word(chance, 3)], EntityType.PERSON
        elif kind < 0.9:
            words, type = [_word(chance, 2) for _ in range(3)], EntityType.ORGANIZATION
        else:
            words, type = ["".join(chance.choices(HAN, k=chance.choice((2, 3))))], EntityType.PERSON
        name = " ".join(words)
        if name not in seen:
            seen.add(name)
            yield name, type


def _word(chance: random.Random, syllables: int) -> str:
    return "".join(chance.choices(SYLLABLES, k=syllables)).capitalize()


def entity(scope: Scope, name: str, type: EntityType) -> Entity:
    key = name_key(name)
    return Entity(EntityId(derive_id(scope, "entity", type, key)), name, key, type, created_at=Revision(1))


async def fill(store: SqlGraphStore, scope: Scope, size: int) -> tuple[list[Entity], int]:
    """The entities of a graph, and the number of their near keys."""
    every = [entity(scope, name, type) for name, type in names(size, random.Random(size))]
    near = 0
    for start in range(0, len(every), BATCH):
        some = every[start : start + BATCH]
        aliases = [
            Alias(key, one.type, one.id, one.name)
            for one in some
            for key in (one.key, *near_keys(one.name, one.type))
        ]
        near += sum(is_near_key(alias.key) for alias in aliases)
        await store.apply(scope, Commit(Revision(1), entities=some, aliases=aliases))
    return every, near


def quantiles(seconds: Sequence[float]) -> tuple[float, float]:
    return statistics.median(seconds) * 1000, statistics.quantiles(seconds, n=20)[-1] * 1000


async def measure(
    store: SqlGraphStore, scope: Scope, embedder: HashEmbedder, questions: int
) -> dict[str, tuple[float, float]]:
    search = Candidates(store, ArrayVectorStore(embedder.dimension), embedder)
    whole: list[float] = []
    keys: list[float] = []
    for number in range(questions):
        name = ASKED[number % len(ASKED)]
        new = entity(Scope(scope.tenant, GraphId("new")), name, EntityType.UNKNOWN)
        asked = sorted(keys_to_ask(name, EntityType.UNKNOWN))
        began = time.perf_counter()
        await store.find_entities(scope, asked, Revision(1))
        keys.append(time.perf_counter() - began)
        began = time.perf_counter()
        await search.find(scope, [new], [], Revision(1))
        whole.append(time.perf_counter() - began)
    return {"by keys": quantiles(keys), "whole": quantiles(whole)}


def scan(every: Sequence[Entity]) -> float:
    """Milliseconds to compare one new name with all."""
    new = Name("Kapo R.", EntityType.UNKNOWN)
    began = time.perf_counter()
    for one in every:
        likeness(new, Name(one.name, one.type))
    return (time.perf_counter() - began) * 1000


async def main(sizes: Sequence[int], questions: int) -> None:
    embedder = HashEmbedder(64)
    first: dict[str, tuple[float, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        store = await SqlGraphStore.open(engine_for(f"sqlite:///{Path(folder) / 'graph.db'}"))
        for size in sizes:
            scope = Scope(TenantId("bench"), GraphId(f"of-{size}"))
            every, near = await fill(store, scope, size)
            found = await measure(store, scope, embedder, questions)
            first = first or found
            for part, (p50, p95) in found.items():
                ratios = f"{p50 / first[part][0]:5.2f} {p95 / first[part][1]:5.2f}"
                print(f"{size:>8} {part:<8} p50 {p50:8.2f} ms  p95 {p95:8.2f} ms  ratios {ratios}")
            print(
                f"{size:>8} near keys an entity {near / size:.2f}; comparing all names {scan(every):.0f} ms"
            )
        await store.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 50_000])
    parser.add_argument("--questions", type=int, default=40)
    options = parser.parse_args()
    asyncio.run(main(options.sizes, options.questions))
