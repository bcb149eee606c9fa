"""A preprocessor on a real store in SQLite, and short ways to ask it."""

from palimpsest.internal.v1 import preprocessor_pb2 as pb
from services.domain.ids import EpisodeId, PassageId
from services.domain.instants import Instant
from services.domain.memory import Episode, Passage
from services.domain.scope import GraphId, Scope, TenantId
from services.preprocessor.service import Preprocessor
from services.stores.memory.sql import SqlMemory
from services.stores.paging import Page
from services.stores.vectors.port import Collection
from tests.doubles.embedder import HashEmbedder
from tests.doubles.vectors import ArrayVectorStore

SCOPE = Scope(TenantId("acme"), GraphId("maya"))
TWIN = Scope(TenantId("other"), GraphId("maya"))
NOON = 1_750_000_000_000_000


class Bench:
    """A preprocessor with its stores, and short ways to ask it."""

    def __init__(self, memory: SqlMemory) -> None:
        self.text = memory.text
        self.vectors = ArrayVectorStore(64)
        self.clock = NOON + 1
        self.memory = memory
        self.service = Preprocessor(
            self.text, self.vectors, HashEmbedder(64), lambda: Instant(self.clock), self.memory
        )

    async def document(self, job: str, text: str, id: str = "atlas", at: int = NOON) -> pb.PreprocessResponse:
        source = pb.Source(kind="document", text=text, document_id=id, reference_time=at)
        return await self.ask(job, source)

    async def talk(self, job: str, *texts: str, ids: bool = True, at: int = NOON) -> pb.PreprocessResponse:
        """Messages of one session; their ids are their texts."""
        messages = [
            pb.SourceMessage(message_id=text if ids else "", role="user", speaker="Maya", text=text)
            for text in texts
        ]
        source = pb.Source(kind="conversation", messages=messages, session_id="s1", reference_time=at)
        return await self.ask(job, source)

    async def ask(self, job: str, source: pb.Source, scope: Scope = SCOPE) -> pb.PreprocessResponse:
        return await self.service.preprocess(scope, pb.PreprocessRequest(job_id=job, source=source))

    async def passages(self, response: pb.PreprocessResponse, scope: Scope = SCOPE) -> list[Passage]:
        found: list[Passage] = []
        for chunk in response.chunks:
            found += await self.text.passages_of(scope, EpisodeId(chunk.episode_id))
        return found

    async def episodes(self, response: pb.PreprocessResponse) -> list[Episode]:
        ids = [EpisodeId(chunk.episode_id) for chunk in response.chunks]
        return list(await self.text.episodes(SCOPE, ids))

    async def gone(self, response: pb.PreprocessResponse) -> set[str]:
        ids = [PassageId(id) for id in response.removed_passage_ids]
        return {passage.text for passage in await self.text.passages(SCOPE, ids)}

    async def everything(self) -> list[object]:
        passages = await self.text.scan_passages(SCOPE, Page(1_000))
        rows = await self.vectors.fetch(SCOPE, Collection.PASSAGES, [one.id for one in passages.items])
        return [passages, sorted(rows), await self.vectors.count(SCOPE, Collection.PASSAGES)]
