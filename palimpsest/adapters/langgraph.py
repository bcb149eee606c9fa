"""A LangGraph store whose items Palimpsest remembers: `palimpsest-memory[langgraph]`.

    with sync.Client(target, key) as client:
        graph = builder.compile(store=PalimpsestStore(client))

A namespace is a graph of its own, an item a document in it, a put a new version, from which dated facts are
drawn: `store.memory(namespace)` answers from them. What an item says no more ends with its next version.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC
from typing import Any, TypeVar

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from palimpsest import sync
from palimpsest.adapters.langgraph_items import matches, passes, text_of, value_of
from palimpsest.errors import NotFound, error_of_status
from palimpsest.v1 import episode_pb2, graph_pb2, job_pb2, memory_episodes_pb2, memory_ingest_pb2, recall_pb2

SEPARATOR = "."
"""Between labels in a graph's name; LangGraph allows none in a label."""
GRAPHS_AT_ONCE = 32
"""Of one recall."""
MOST_PASSAGES = 200
PAGE = 200
AT_ONCE = 8
"""Documents that are read at the same time."""

Namespace = tuple[str, ...]
Key = tuple[Namespace, str]
T = TypeVar("T")


class PalimpsestStore(BaseStore):
    """Works from code that awaits and code that does not, on the loop of the client that it is given.

    `understood`: a put returns when the item's facts are known; else as soon as it can be read, while
    `search` by words follows a little later. A search by words gives what was found for them, not all. Raises
    CallError. Not there: `ttl`, and `index`, as every item is read.
    """

    def __init__(self, client: sync.Client, *, root: str = "langgraph", understood: bool = True) -> None:
        self._client = client
        self._within = client.within
        self._root = root
        self._understood = understood
        self._revisions: dict[str, int] = {}

    def graph_of(self, namespace: Namespace) -> str:
        """The graph's name."""
        return SEPARATOR.join((self._root, *namespace))

    def memory(self, namespace: Namespace) -> sync.Memory:
        """The same graph for an agent loop: dated facts, what was said, and questions as of a date."""
        return sync.Memory(self._client, self.graph_of(namespace))

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Reads see what was there before; of puts to one key the last one counts."""
        return self._client.run(self._done(list(ops)))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await asyncio.wrap_future(self._client.submit(self._done(list(ops))))

    async def _done(self, ops: Sequence[Op]) -> list[Result]:
        results = await asyncio.gather(*map(self._read, ops))
        puts = {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}
        await asyncio.gather(*map(self._put, puts.values()))
        return list(results)

    async def _read(self, op: Op) -> Result:
        match op:
            case GetOp():
                there = await self._document(op.namespace, op.key)
                return None if there is None else Item(namespace=op.namespace, key=op.key, **there)
            case SearchOp():
                return await self._search(op)
            case ListNamespacesOp():
                return await self._listed(op)
            case PutOp():
                if op.index is not None:
                    raise NotImplementedError("every item is read: `index` can't be chosen")
                return None
        raise ValueError(f"no such operation: {op}")

    async def _put(self, op: PutOp) -> None:
        graph, memory = self.graph_of(op.namespace), self._within.memory
        if op.value is None:
            gone = memory_episodes_pb2.DeleteDocumentRequest(graph_id=graph, document_id=op.key)
            try:
                await self._within.call(memory.DeleteDocument, gone)
            except NotFound:
                return
            return
        given = memory_ingest_pb2.AddEpisodeRequest(
            graph_id=graph,
            document_id=op.key,
            kind=episode_pb2.EPISODE_KIND_DOCUMENT,
            text=text_of(op.value),
            wait_for=episode_pb2.CHUNK_STAGE_PREPROCESSED,
        )
        job = (await self._within.call(memory.AddEpisode, given)).job
        if self._understood:
            job = await self._within.wait(job.job_id)
            self._revisions[graph] = max(job.revision, self._revisions.get(graph, 0))
        if job.state == job_pb2.JOB_STATE_FAILED:
            raise error_of_status(job.error)

    async def _document(self, namespace: Namespace, key: str) -> dict[str, Any] | None:
        """What an item has besides its name."""
        asked = memory_episodes_pb2.GetDocumentRequest(graph_id=self.graph_of(namespace), document_id=key)
        try:
            found = await self._within.call(self._within.memory.GetDocument, asked)
        except NotFound:
            return None
        created, updated = found.document.versions[-1].created_at, found.version.created_at
        times = {"created_at": created.ToDatetime(UTC), "updated_at": updated.ToDatetime(UTC)}
        return {"value": value_of(found.text), **times}

    async def _search(self, op: SearchOp) -> list[SearchItem]:
        count = len(op.namespace_prefix)
        within = [one for one in await self._namespaces() if one[:count] == op.namespace_prefix]
        keys = await self._found(within, op.query) if op.query else await self._all(within)
        wanted, found = op.offset + op.limit, list[SearchItem]()
        for some in _pieces(list(keys.items()), AT_ONCE):
            documents = await asyncio.gather(*(self._document(*key) for key, _ in some))
            for ((namespace, key), score), one in zip(some, documents, strict=True):
                if one is not None and passes(one["value"], op.filter or {}):
                    found.append(SearchItem(namespace, key, score=score, **one))
            if len(found) >= wanted:
                break
        return found[op.offset : wanted]

    async def _found(self, within: Sequence[Namespace], query: str) -> dict[Key, float]:
        """Items with passages that answer a question, best first."""
        by_graph = {self.graph_of(one): one for one in within}
        scores: dict[Key, float] = {}
        for some in _pieces(list(by_graph), GRAPHS_AT_ONCE):
            asked = recall_pb2.RecallRequest(
                graph_ids=some,
                query=query,
                max_facts=0,
                max_passages=MOST_PASSAGES,
                include=[recall_pb2.RECALL_INCLUDE_PASSAGES],
                min_revision=self._revisions.get(some[0], 0) if len(some) == 1 else 0,
            )
            for one in (await self._within.call(self._within.recall.Recall, asked)).passages:
                if one.document_id:
                    key = by_graph[one.graph_id], one.document_id
                    scores[key] = max(one.score, scores.get(key, 0))
        return dict(sorted(scores.items(), key=lambda one: -one[1]))

    async def _all(self, within: Sequence[Namespace]) -> dict[Key, None]:
        """Every item, those last put first."""
        newest: dict[Key, int] = {}
        for one in within:
            asked = memory_episodes_pb2.ListEpisodesRequest(graph_id=self.graph_of(one), page_size=PAGE)
            async for each in self._within.pages(self._within.memory.ListEpisodes, asked, "episodes"):
                if each.document_id:
                    key = one, each.document_id
                    newest[key] = max(each.created_at.ToMicroseconds(), newest.get(key, 0))
        return dict.fromkeys(sorted(newest, key=lambda key: -newest[key]))

    async def _namespaces(self) -> list[Namespace]:
        asked, begins = graph_pb2.ListGraphsRequest(page_size=PAGE), self._root + SEPARATOR
        pages = self._within.pages(self._within.graphs.ListGraphs, asked, "graphs")
        names = [graph.graph_id async for graph in pages]
        return [tuple(one.removeprefix(begins).split(SEPARATOR)) for one in names if one.startswith(begins)]

    async def _listed(self, op: ListNamespacesOp) -> list[Namespace]:
        found = [
            one
            for one in await self._namespaces()
            if all(matches(one, condition) for condition in op.match_conditions or ())
        ]
        cut: list[Any] = sorted({one[: op.max_depth] for one in found})
        return cut[op.offset : op.offset + op.limit]


def _pieces(many: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (many[start : start + size] for start in range(0, len(many), size))
