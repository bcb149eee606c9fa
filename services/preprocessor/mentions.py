"""Erasing mentions: passages that name somebody go; what else is kept of their texts loses the name.

A passage that also says something of others goes as a whole: what is left of it would tell of whom it was
(docs/adr/0022-erasing.md).
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from palimpsest.internal.v1 import erasing_pb2 as pb
from services.domain.ids import EpisodeId
from services.domain.memory import DocumentVersion, Episode, Passage
from services.domain.mentions import FILL, Mentions
from services.domain.scope import Scope
from services.preprocessor.index import PassageIndex
from services.stores.memory.fences import Rewritten, check_generation
from services.stores.memory.port import ErasableMemory, TextStore
from services.stores.paging import Page

_PAGE = 500
_BATCH = 100
"""Episodes that are written anew in one transaction."""


class MentionErasing:
    """Goes through all text of a graph. Idempotent; a second time finds nothing."""

    def __init__(self, text: TextStore, memory: ErasableMemory, index: PassageIndex) -> None:
        self._text = text
        self._memory = memory
        self._index = index

    async def __call__(self, scope: Scope, request: pb.EraseMentionsRequest) -> pb.EraseMentionsResponse:
        """Which passages went, and how much else was changed; with `count_only` what would."""
        if request.HasField("generation"):
            await check_generation(self._memory.fences, scope, request.generation)
        mentions = Mentions(request.erased.names, request.erased.others)
        gone = await self._passages(scope, mentions, set(request.erased.passage_ids))
        episodes = await self._episodes(scope, mentions, gone)
        versions = await self._versions(scope, mentions, gone)
        if not request.count_only:
            # Vectors first: once the passages are gone nothing tells which vectors were theirs.
            await self._index.remove(scope, gone)
            for begin in range(0, len(episodes), _BATCH):
                some = episodes[begin : begin + _BATCH]
                await self._memory.rewrite(scope, Rewritten(episodes=some))
            rewritten = Rewritten(versions=versions, passages=[one.id for one in gone])
            await self._memory.rewrite(scope, rewritten)
        rows = {"passages": len(gone), "episodes": len(episodes), "versions": len(versions)}
        return pb.EraseMentionsResponse(
            passage_ids=[one.id for one in gone], rows={kind: n for kind, n in rows.items() if n}
        )

    async def _passages(self, scope: Scope, mentions: Mentions, cited: set[str]) -> list[Passage]:
        found: list[Passage] = []
        page = Page(_PAGE)
        while True:
            listed = await self._text.scan_passages(scope, page)
            found += [one for one in listed.items if one.id in cited or mentions.named_in(one.with_speaker)]
            if not listed.after:
                return found
            page = Page(_PAGE, listed.after)

    async def _episodes(self, scope: Scope, mentions: Mentions, gone: Sequence[Passage]) -> list[Episode]:
        """Those that change, as they read then."""
        taken: defaultdict[EpisodeId, list[Passage]] = defaultdict(list)
        for passage in gone:
            taken[passage.episode].append(passage)
        found: list[Episode] = []
        page = Page(_PAGE)
        while True:
            listed = await self._text.scan_episodes(scope, page)
            for one in listed.items:
                anew = _without(one, mentions, taken[one.id])
                if anew != one:
                    found.append(anew)
            if not listed.after:
                return found
            page = Page(_PAGE, listed.after)

    async def _versions(
        self, scope: Scope, mentions: Mentions, gone: Sequence[Passage]
    ) -> list[DocumentVersion]:
        ids = sorted({one.episode for one in gone})
        homes = {one.id: one.document for one in await self._text.episodes(scope, ids)}
        texts: defaultdict[str, list[str]] = defaultdict(list)
        for passage in gone:
            document = homes.get(passage.episode)
            if document is not None:
                texts[document].append(passage.text)
        found: list[DocumentVersion] = []
        page = Page(_PAGE)
        while True:
            listed = await self._text.scan_versions(scope, page)
            for one in listed.items:
                text = one.text
                for passage_text in sorted(texts[one.document], key=len, reverse=True):
                    text = text.replace(passage_text, _fill(passage_text))
                anew = replace(one, text=mentions.without(text), title=mentions.without(one.title))
                if anew != one:
                    found.append(anew)
            if not listed.after:
                return found
            page = Page(_PAGE, listed.after)


def _without(episode: Episode, mentions: Mentions, gone: Sequence[Passage]) -> Episode:
    """Places of the passages that stay are the same: what goes is filled."""
    text = episode.text
    for passage in gone:
        part = text[passage.start : passage.end]
        text = text[: passage.start] + _fill(part) + text[passage.end :]
    return replace(
        episode,
        text=mentions.without(text),
        heading=tuple(map(mentions.without, episode.heading)),
        title=mentions.without(episode.title),
        source=mentions.without(episode.source),
        metadata=tuple((mentions.without(key), mentions.without(value)) for key, value in episode.metadata),
    )


def _fill(text: str) -> str:
    return "".join(character if character.isspace() else FILL for character in text)
