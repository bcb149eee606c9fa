"""Deletions: which text goes with episodes, versions and documents, and what other versions keep of it."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from palimpsest.internal.v1 import values_pb2
from services.domain.errors import DocumentNotFound
from services.domain.ids import DocumentId, EpisodeId, PassageId, derive_id
from services.domain.instants import Instant
from services.domain.memory import Episode, Passage
from services.domain.scope import Scope
from services.llm import tokens
from services.preprocessor.index import PassageIndex
from services.preprocessor.versions import removed
from services.preprocessor.withdrawing import withdrawn
from services.stores.errors import WriteConflict
from services.stores.memory.documents import TextGone
from services.stores.memory.port import TextStore
from services.stores.paging import Page

_ATTEMPTS = 5
"""Tries to delete a version while others delete the version that would keep some of it, or give it more."""
_BETWEEN = "\n\n"
_ALL = 2**31 - 1
"""Above every version's number."""

Kept = tuple[Sequence[Episode], Sequence[Passage]]


@dataclass(frozen=True, slots=True)
class DocumentGone:
    """`revoked`: every episode whose evidence must go, also of a deletion that was cut short."""

    revoked: Sequence[EpisodeId]
    gone: TextGone
    withdrawals: Sequence[values_pb2.Withdrawal] = ()


class Deletions:
    """Removes text, and the vectors of it. Every method is idempotent."""

    def __init__(self, text: TextStore, index: PassageIndex, now: Callable[[], Instant]) -> None:
        self._text = text
        self._index = index
        self._now = now

    async def episodes(self, scope: Scope, ids: Sequence[EpisodeId]) -> TextGone:
        """Vectors first: once the passages are gone nothing tells which vectors were theirs."""
        await self._index.remove(
            scope, [line for id in ids for line in await self._text.passages_of(scope, id)]
        )
        return await self._text.delete_episodes(scope, ids, self._now())

    async def document(self, scope: Scope, document: DocumentId, version: int | None) -> DocumentGone:
        """Removes a version, or the whole document. Raises DocumentNotFound for one that never was.

        What the next version says as well is its own: it stays, as said in that version.
        """
        attempt = 0
        while True:
            attempt += 1
            episodes = await self._text.of_document(scope, document, version)
            heads = await self._text.version_heads(scope, document)
            if not episodes and not any(version in (None, head.version) for head in heads):
                raise DocumentNotFound(document)
            kept: Kept = ((), ()) if version is None else await self._kept(scope, document, version, episodes)
            try:
                gone = await self._remove(scope, document, version, episodes, kept)
                break
            except WriteConflict:
                if attempt == _ATTEMPTS:
                    raise
        if version is not None:
            await self._follow(scope, episodes)
        withdrawals = () if version is None else await self._withdrawn(scope, document, version)
        return DocumentGone([one.id for one in episodes], gone, withdrawals)

    async def _remove(
        self,
        scope: Scope,
        document: DocumentId,
        version: int | None,
        episodes: Sequence[Episode],
        kept: Kept,
    ) -> TextGone:
        # Vectors first: once the passages are gone nothing tells which vectors were theirs.
        if version is None:
            every = await self._earlier(scope, document, _ALL)
            await self._index.remove(scope, list(every.values()))
        else:
            stays = {passage.id for passage in kept[1]}
            there = [one.id for one in episodes if one.deleted_at is None]
            lines = [line for id in there for line in await self._text.passages_of(scope, id)]
            await self._index.remove(scope, [line for line in lines if line.id not in stays])
        seen = [one.id for one in episodes]
        return await self._text.delete_versions(scope, document, version, seen, kept, self._now())

    async def _kept(
        self, scope: Scope, document: DocumentId, version: int, episodes: Sequence[Episode]
    ) -> Kept:
        """What the next version says as well, as episodes of it."""
        heads = await self._text.version_heads(scope, document)
        later = [head.version for head in heads if head.version > version]
        following = await self._text.version(scope, document, min(later)) if later else None
        if following is None:
            return (), ()
        mine = await self._text.of_document(scope, document, following.version)
        said = {passage.hash for one in mine for passage in await self._text.passages_of(scope, one.id)}
        told = next((one for one in mine if one.deleted_at is None), None)
        saved: list[Episode] = []
        passages: list[Passage] = []
        for old in episodes:
            if old.deleted_at is not None or old.unlearned_at is not None:
                continue  # what could not be understood was new again to the next version
            lines = await self._text.passages_of(scope, old.id)
            gone = set(await asyncio.to_thread(removed, lines, following.text))
            staying = [line for line in lines if line.id not in gone and line.hash not in said]
            if not staying:
                continue
            text = _BETWEEN.join(line.text for line in staying)
            episode = replace(
                old if told is None else _as_told(old, told),
                id=_kept_id(scope, old),
                text=text,
                tokens=await asyncio.to_thread(tokens.count, text),
                reference_time=following.reference_time,
                version=following.version,
            )
            saved.append(episode)
            passages += _moved(staying, episode)
        return saved, passages

    async def _follow(self, scope: Scope, episodes: Sequence[Episode]) -> None:
        """The vectors of what was kept, by this call or by one that was cut short."""
        kept = await self._text.episodes(scope, [_kept_id(scope, old) for old in episodes])
        for episode in kept:
            if episode.deleted_at is None:
                await self._index.follow(scope, [episode], await self._text.passages_of(scope, episode.id))

    async def _withdrawn(
        self, scope: Scope, document: DocumentId, version: int
    ) -> Sequence[values_pb2.Withdrawal]:
        earlier = await self._earlier(scope, document, version)
        return await withdrawn(self._text, scope, document, version, earlier)

    async def _earlier(self, scope: Scope, document: DocumentId, version: int) -> dict[PassageId, Passage]:
        found: dict[PassageId, Passage] = {}
        page = Page(size=1_000)
        while True:
            listed = await self._text.document_passages(scope, document, version, page)
            found |= {passage.id: passage for passage in listed.items}
            if not listed.after:
                return found
            page = Page(page.size, listed.after)


def _kept_id(scope: Scope, old: Episode) -> EpisodeId:
    return EpisodeId(derive_id(scope, "kept-episode", old.id))


def _as_told(old: Episode, by: Episode) -> Episode:
    """An episode with what the giver of another version said about that one."""
    return replace(old, session=by.session, title=by.title, source=by.source, metadata=by.metadata)


def _moved(passages: Sequence[Passage], episode: Episode) -> list[Passage]:
    moved: list[Passage] = []
    start = 0
    for position, passage in enumerate(passages):
        end = start + len(passage.text)
        said_at = None if passage.said_at is None else episode.reference_time
        moved.append(
            replace(passage, episode=episode.id, position=position, start=start, end=end, said_at=said_at)
        )
        start = end + len(_BETWEEN)
    return moved
