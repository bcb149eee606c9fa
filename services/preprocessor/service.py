"""The preprocessor's calls. It owns documents, versions, episodes and passages, and the passages' vectors."""

import asyncio
from collections.abc import Callable, Sequence

from palimpsest.internal.v1 import erasing_pb2 as erasing_pb
from palimpsest.internal.v1 import preprocessor_pb2 as pb
from palimpsest.internal.v1 import preprocessor_rereading_pb2 as rereading_pb
from services.domain.errors import DocumentNotFound, EpisodeNotFound
from services.domain.facts import NothingReason
from services.domain.ids import DocumentId, EpisodeId, JobId, derive_id
from services.domain.instants import Instant
from services.domain.memory import DocumentVersion, Episode, Passage
from services.domain.scope import Scope
from services.llm import tokens
from services.llm.port import Embedder
from services.preprocessor.assertions import assertion_episode
from services.preprocessor.deleting import Deletions
from services.preprocessor.draft import Draft, Drafter, earlier_passages, is_silent, why_nothing
from services.preprocessor.index import PassageIndex
from services.preprocessor.layout import of_source
from services.preprocessor.mentions import MentionErasing
from services.preprocessor.quarantine import held_back
from services.preprocessor.relevance import why_not_understood, why_nothing_in
from services.preprocessor.rereading import Rereading
from services.preprocessor.source import Source, read_source
from services.preprocessor.versions import removed
from services.stores.errors import ScopeErased, WriteConflict
from services.stores.memory.port import ErasableMemory, TextStore
from services.stores.vectors.port import VectorStore
from services.wire.texts import document_out, episode_out

_ATTEMPTS = 5
"""Tries to save what is new while other jobs save versions of the same document, or in the same session."""


class Preprocessor:
    """Turns text into saved episodes. Every call is idempotent; errors of stores and models pass through."""

    def __init__(
        self,
        text: TextStore,
        vectors: VectorStore,
        embedder: Embedder,
        now: Callable[[], Instant],
        memory: ErasableMemory,
    ) -> None:
        self._fences = memory.fences
        self._text = text
        self._index = PassageIndex(vectors, embedder)
        self._now = now
        self._deletions = Deletions(text, self._index, now)
        self._mentions = MentionErasing(text, memory, self._index)
        self._rereading = Rereading(text)

    async def preprocess(self, scope: Scope, request: pb.PreprocessRequest) -> pb.PreprocessResponse:
        """Saves what is new in a job's text. A repeated call of a job answers the same and saves nothing.

        Raises ValidationFailed, UnstorableText, and WriteConflict when other jobs keep saving versions of the
        same document, or what is said in the same session.
        """
        source = read_source(scope, request.source)
        job = JobId(request.job_id)
        generation = (await self._fences.fence(scope)).generation
        draft = await self._saved(scope, job, source)
        attempt = 0
        while draft is None:
            attempt += 1
            draft = await Drafter(self._text, scope, job, source, self._now()).draft()
            draft = await asyncio.to_thread(held_back, draft) if request.distrusted else draft
            try:
                await self._save(scope, draft.episodes, draft.passages, draft.saved_version, generation)
            except WriteConflict:
                if attempt == _ATTEMPTS:
                    raise
                draft = await self._saved(scope, job, source)
        await self._embed(scope, draft.episodes, draft.passages, generation)
        return await self._answer(scope, source, draft, gate=request.relevance_gate)

    async def record_assertions(
        self, scope: Scope, request: pb.RecordAssertionsRequest
    ) -> pb.RecordAssertionsResponse:
        """Saves one episode a group. A repeated call of a job answers what the first saved."""
        generation = (await self._fences.fence(scope)).generation
        episodes = await self._text.episodes_of_job(scope, JobId(request.job_id))
        passages = await self._passages(scope, episodes)
        if not episodes:
            now = self._now()
            drafted = [assertion_episode(scope, request, at, now) for at in range(len(request.groups))]
            episodes = [episode for episode, _ in drafted]
            passages = [passage for _, lines in drafted for passage in lines]
            await self._save(scope, episodes, passages, None, generation)
        await self._embed(scope, episodes, passages, generation)
        grouped = _by_episode(passages)
        return pb.RecordAssertionsResponse(
            episodes=[episode_out(episode, grouped.get(episode.id, ())) for episode in episodes]
        )

    async def quote(self, scope: Scope, request: pb.QuoteRequest) -> pb.QuoteResponse:
        """Counts all of a text, as if nothing of it were known. Writes nothing."""
        layout = of_source(read_source(scope, request.source))
        spans = await asyncio.to_thread(layout.cut) if layout.pieces else []
        total = sum(span.tokens for span in spans) if len(spans) < 2 else await _count(layout.text)
        return pb.QuoteResponse(tokens=total, chunks=len(spans))

    async def get_document(self, scope: Scope, request: pb.GetDocumentRequest) -> pb.GetDocumentResponse:
        """One version, or the newest for 0, and what versions there are. Raises DocumentNotFound."""
        document = DocumentId(request.document_id)
        if request.version:
            found = await self._text.version(scope, document, request.version)
        else:
            found = await self._text.latest_version(scope, document)
        if found is None:
            raise DocumentNotFound(document)
        heads = await self._text.version_heads(scope, document)
        episodes = await self._text.of_document(scope, document)
        return document_out(found, heads, episodes)

    async def delete_episode_text(
        self, scope: Scope, request: pb.DeleteEpisodeTextRequest
    ) -> pb.DeleteEpisodeTextResponse:
        """Removes an episode's text, passages and vectors; the episode stays as deleted.

        Raises EpisodeNotFound for one that never was. Idempotent.
        """
        episode = EpisodeId(request.episode_id)
        if not await self._text.episodes(scope, [episode]):
            raise EpisodeNotFound(episode)
        # Vectors first: once the passages are gone nothing tells which vectors were theirs.
        await self._index.remove(scope, await self._text.passages_of(scope, episode))
        deleted = await self._text.delete_episode(scope, episode, self._now())
        return pb.DeleteEpisodeTextResponse(deleted=deleted)

    async def delete_episode_texts(
        self, scope: Scope, request: pb.DeleteEpisodeTextsRequest
    ) -> pb.DeleteEpisodeTextsResponse:
        """As `delete_episode_text`, of several at once; those that never were are left out. Idempotent."""
        gone = await self._deletions.episodes(scope, [EpisodeId(id) for id in request.episode_ids])
        return pb.DeleteEpisodeTextsResponse(episodes=gone.episodes, passages=gone.passages)

    async def delete_document_text(
        self, scope: Scope, request: pb.DeleteDocumentTextRequest
    ) -> pb.DeleteDocumentTextResponse:
        """Removes a document or a version. Raises DocumentNotFound for one that never was. Idempotent."""
        version = request.version or None
        done = await self._deletions.document(scope, DocumentId(request.document_id), version)
        return pb.DeleteDocumentTextResponse(
            episode_ids=done.revoked,
            episodes=done.gone.episodes,
            passages=done.gone.passages,
            withdrawals=done.withdrawals,
        )

    async def list_source(self, scope: Scope, request: pb.ListSourceRequest) -> pb.ListSourceResponse:
        """Episodes of a source that are there, in a stable order; none of one that is unknown."""
        listed = await self._text.of_source(scope, request.source, request.limit)
        return pb.ListSourceResponse(
            episodes=[
                pb.SourceEpisode(episode_id=one.id, document_id=one.document or "", version=one.version or 0)
                for one in listed
            ]
        )

    async def erase_mentions(
        self, scope: Scope, request: erasing_pb.EraseMentionsRequest
    ) -> erasing_pb.EraseMentionsResponse:
        """Removes passages that name somebody, and the name from what else is kept. Idempotent."""
        return await self._mentions(scope, request)

    async def mark_unlearned(
        self, scope: Scope, request: pb.MarkUnlearnedRequest
    ) -> pb.MarkUnlearnedResponse:
        """Keeps an episode whose understanding failed; said again, its text is new. Idempotent."""
        await self._text.mark_unlearned(scope, EpisodeId(request.episode_id), self._now())
        return pb.MarkUnlearnedResponse()

    async def take_up(self, scope: Scope, request: pb.TakeUpRequest) -> pb.TakeUpResponse:
        """Counts what episodes say as known again, unless others said and taught it meanwhile. Idempotent."""
        ids = [EpisodeId(id) for id in request.episode_ids]
        found = {one.id: one for one in await self._text.episodes(scope, ids)}
        reasons = []
        for id in ids:
            reason = await self._why_not_again(scope, found.get(id))
            reasons.append(reason)
            if not reason:
                await self._taught(scope, found[id])
        return pb.TakeUpResponse(nothing=reasons)

    async def list_readable(
        self, scope: Scope, request: rereading_pb.ListReadableRequest
    ) -> rereading_pb.ListReadableResponse:
        """Texts that something can be learned of. See Rereading."""
        return await self._rereading.list(scope, request)

    async def list_withdrawals(
        self, scope: Scope, request: rereading_pb.ListWithdrawalsRequest
    ) -> rereading_pb.ListWithdrawalsResponse:
        """What later versions of its document leave out of an episode. Raises EpisodeNotFound."""
        return await self._rereading.withdrawals(scope, request)

    async def _taught(self, scope: Scope, episode: Episode) -> None:
        """From now on its passages are known, and are found, as those of any episode."""
        generation = (await self._fences.fence(scope)).generation
        await self._text.mark_learned(scope, episode.id)
        passages = await self._text.passages_of(scope, episode.id)
        await self._embed(scope, [episode], passages, generation)

    async def _why_not_again(self, scope: Scope, episode: Episode | None) -> str:
        if episode is None or episode.deleted_at is not None:
            return NothingReason.NO_DURABLE_FACT
        if episode.unlearned_at is None:
            return ""
        passages = await self._text.passages_of(scope, episode.id)
        known = await self._text.known_hashes(
            scope, episode.session, episode.document, [one.hash for one in passages]
        )
        if passages and all(one.hash in known for one in passages):
            return NothingReason.DUPLICATE_CONTENT
        return why_not_understood(passages)

    async def _saved(self, scope: Scope, job: JobId, source: Source) -> Draft | None:
        """What this job has saved before; None when it has not."""
        saved = await self._text.episodes_of_job(scope, job)
        # Passages that a later version says as well may have been kept in an episode of that version.
        episodes = [one for one in saved if one.id == derive_id(scope, "episode", job, one.position)]
        version = None if source.document is None else await self._text.version_of_job(scope, job)
        if not episodes and version is None:
            return None
        spoken = any(not is_silent(one) for one in episodes)
        nothing = None if spoken else why_nothing(bool(source.text.strip()))
        number = 0 if version is None else version.version
        return Draft(episodes, await self._passages(scope, episodes), version, number, nothing)

    async def _embed(
        self, scope: Scope, episodes: Sequence[Episode], passages: Sequence[Passage], generation: int
    ) -> None:
        """Takes the vectors back when the graph was erased while they were made."""
        await self._index.add(scope, episodes, passages)
        if (await self._fences.fence(scope)).generation != generation:
            await self._index.remove(scope, passages)
            raise ScopeErased

    async def _save(
        self,
        scope: Scope,
        episodes: Sequence[Episode],
        passages: Sequence[Passage],
        version: DocumentVersion | None,
        generation: int,
    ) -> None:
        if episodes or version is not None:
            await self._text.save(scope, episodes, passages, version, generation, unknown=True)

    async def _answer(
        self, scope: Scope, source: Source, draft: Draft, *, gate: bool
    ) -> pb.PreprocessResponse:
        total = await _count(of_source(source).text)
        passages = _by_episode(draft.passages)
        return pb.PreprocessResponse(
            chunks=[
                _chunk(episode, passages.get(episode.id, ()), gate=gate)
                for episode in draft.episodes
                if not is_silent(episode)
            ],
            tokens=total,
            # A cut or a joint may cost a token; what was new is never more than all there is.
            tokens_saved=max(0, total - sum(episode.tokens for episode in draft.episodes)),
            version=draft.version,
            nothing=draft.nothing or "",
            removed_passage_ids=await self._removed(scope, draft.saved_version),
            version_episode_id=draft.episodes[0].id if draft.saved_version and draft.episodes else "",
        )

    async def _removed(self, scope: Scope, version: DocumentVersion | None) -> Sequence[str]:
        """Passages of earlier versions that this one no longer says."""
        if version is None or version.version == 1:
            return ()
        earlier = await earlier_passages(self._text, scope, version.document, version.version)
        return await asyncio.to_thread(removed, earlier, version.text)

    async def _passages(self, scope: Scope, episodes: Sequence[Episode]) -> list[Passage]:
        return [passage for one in episodes for passage in await self._text.passages_of(scope, one.id)]


def _by_episode(passages: Sequence[Passage]) -> dict[EpisodeId, list[Passage]]:
    grouped: dict[EpisodeId, list[Passage]] = {}
    for passage in passages:
        grouped.setdefault(passage.episode, []).append(passage)
    return grouped


def _chunk(episode: Episode, passages: Sequence[Passage], *, gate: bool) -> pb.Chunk:
    nothing = why_nothing_in(episode, passages, gate=gate)
    return pb.Chunk(episode_id=episode.id, tokens=episode.tokens, nothing=nothing)


async def _count(text: str) -> int:
    return await asyncio.to_thread(tokens.count, text)
