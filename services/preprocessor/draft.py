"""Drafts: the episodes, passages and document version that a job would save, worked out before any write."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from services.domain.facts import NothingReason
from services.domain.ids import DocumentId, EpisodeId, JobId, derive_id
from services.domain.instants import Instant
from services.domain.memory import DocumentVersion, Episode, EpisodeKind, Passage
from services.domain.scope import Scope
from services.llm import tokens
from services.preprocessor.layout import (
    Layout,
    message_hash,
    of_document,
    of_messages,
    of_spoken_text,
    spoken_paragraphs,
)
from services.preprocessor.passages import passages_of
from services.preprocessor.source import Message, Source, text_hash
from services.preprocessor.versions import changes, missed_sentences
from services.stores.memory.port import TextStore
from services.stores.paging import Page


@dataclass(frozen=True, slots=True)
class Draft:
    """What to save; `nothing` says why there are no episodes. `version` is the document's, 0 if none."""

    episodes: Sequence[Episode] = ()
    passages: Sequence[Passage] = ()
    saved_version: DocumentVersion | None = None
    version: int = 0
    nothing: NothingReason | None = None


class Drafter:
    """Drafts what one job brings. Reads the store, writes nothing; the same store gives the same draft."""

    def __init__(self, text: TextStore, scope: Scope, job: JobId, source: Source, now: Instant) -> None:
        self._text = text
        self._scope = scope
        self._job = job
        self._source = source
        self._now = now

    async def draft(self) -> Draft:
        if self._source.kind is EpisodeKind.CONVERSATION:
            return await self._conversation()
        return await self._document()

    async def _conversation(self) -> Draft:
        source = self._source
        said = source.messages or tuple(spoken_paragraphs(source))
        said = tuple(message for message in said if message.text.strip())
        fresh = await self._fresh(said)
        if not fresh:
            return Draft(nothing=why_nothing(any(said)))
        if source.messages:
            return await self._cut(of_messages(fresh), None)
        whole = source.text if len(fresh) == len(said) else "\n\n".join(one.text for one in fresh)
        return await self._cut(of_spoken_text(whole, source), None)

    async def _fresh(self, said: Sequence[Message]) -> list[Message]:
        """The messages that the session does not know, by the tenant's id or by hash."""
        ids, hashes = await self._known(said)
        fresh: list[Message] = []
        for message in said:
            if message.message_id in ids or message_hash(message) in hashes:
                continue
            if message.message_id:
                ids.add(message.message_id)
            fresh.append(message)
        return fresh

    async def _known(self, said: Sequence[Message]) -> tuple[set[str], frozenset[str]]:
        session = self._source.session
        if session is None or not said:
            return set(), frozenset()
        named = [message.message_id for message in said if message.message_id]
        ids = await self._text.known_message_ids(self._scope, session, named) if named else frozenset()
        hashes = [message_hash(message) for message in said]
        return set(ids), await self._text.known_hashes(self._scope, session, None, hashes)

    async def _document(self) -> Draft:
        source, document = self._source, self._source.document
        if document is None:
            return await self._cut(of_document(source.text, source.reference_time), None)
        latest = await self._text.latest_version(self._scope, document)
        content = text_hash(source.text)
        missed = frozenset[str]() if latest is None else await self._missed(latest)
        # The text as well: parts of it go when an episode is deleted, and may then be learned anew.
        if latest is not None and latest.hash == content and latest.text == source.text and not missed:
            return Draft(version=latest.version, nothing=NothingReason.UNCHANGED_DOCUMENT)
        version = DocumentVersion(
            document=document,
            version=await self._text.last_version(self._scope, document) + 1,
            hash=content,
            text=source.text,
            reference_time=source.reference_time,
            created_at=self._now,
            job=self._job,
            title=source.title,
            tokens=await asyncio.to_thread(tokens.count, source.text),
        )
        if latest is None:
            layout: Layout | None = of_document(source.text, source.reference_time)
        else:
            earlier = await earlier_passages(self._text, self._scope, document, version.version)
            layout = await asyncio.to_thread(
                changes, source.text, latest.text, earlier, source.reference_time, missed
            )
        return await self._cut(layout, version)

    async def _missed(self, latest: DocumentVersion) -> frozenset[str]:
        """The sentences of the latest version that could not be understood."""
        episodes = await self._text.episodes_of_job(self._scope, latest.job)
        missed, learned = (
            "\n\n".join(one.text for one in episodes if (one.unlearned_at is not None) is failed)
            for failed in (True, False)
        )
        return missed_sentences(missed, learned) if missed else frozenset()

    async def _cut(self, layout: Layout | None, version: DocumentVersion | None) -> Draft:
        """The draft of a text; without pieces it has nothing."""
        number = 0 if version is None else version.version
        if layout is None or not layout.pieces:
            nothing = why_nothing(bool(self._source.text.strip()))
            silent = () if version is None else (self._silent(version),)
            return Draft(silent, saved_version=version, version=number, nothing=nothing)
        spans = await asyncio.to_thread(layout.cut)
        ids = [
            EpisodeId(derive_id(self._scope, "episode", self._job, position))
            for position in range(len(spans))
        ]
        episodes = [
            Episode(
                id=id,
                job=self._job,
                kind=self._source.kind,
                text=layout.text[span.start : span.end],
                reference_time=self._source.reference_time,
                created_at=self._now,
                tokens=span.tokens,
                position=position,
                session=self._source.session,
                document=self._source.document,
                version=number or None,
                heading=layout.heading_at(span.start),
                title=self._source.title,
                source=self._source.source,
                metadata=self._source.metadata,
            )
            for position, (id, span) in enumerate(zip(ids, spans, strict=True))
        ]
        return Draft(episodes, passages_of(self._scope, layout, spans, ids), version, number)

    def _silent(self, version: DocumentVersion) -> Episode:
        """The episode of a version that says nothing new: what it leaves out is ended by it."""
        source = self._source
        return Episode(
            id=EpisodeId(derive_id(self._scope, "episode", self._job, 0)),
            job=self._job,
            kind=source.kind,
            text="",
            reference_time=source.reference_time,
            created_at=self._now,
            tokens=0,
            document=version.document,
            version=version.version,
            title=source.title,
            source=source.source,
            metadata=source.metadata,
        )


async def earlier_passages(
    text: TextStore, scope: Scope, document: DocumentId, version: int
) -> list[Passage]:
    """Passages of the document's versions before one."""
    earlier: list[Passage] = []
    page = Page(size=1_000)
    while True:
        listed = await text.document_passages(scope, document, version, page)
        earlier += listed.items
        if not listed.after:
            return earlier
        page = Page(page.size, listed.after)


def is_silent(episode: Episode) -> bool:
    """True for the episode of a version that says nothing new; there is nothing in it to understand."""
    return episode.tokens == 0


def why_nothing(says_something: bool) -> NothingReason:
    """Why a job has no episodes: all it says was known, or it says nothing."""
    return NothingReason.DUPLICATE_CONTENT if says_something else NothingReason.NO_DURABLE_FACT
