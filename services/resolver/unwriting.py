"""Unwriting: what is written about a graph no longer names an entity that is erased."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from services.domain.ids import Revision, SessionId
from services.domain.mentions import Mentions
from services.domain.scope import Scope
from services.domain.summaries import Persona, PersonaSection, SessionSummary
from services.stores.errors import WriteConflict
from services.stores.memory.port import SummaryStore
from services.stores.paging import Page

_PAGE = 200
_ATTEMPTS = 20
_LATEST = Revision(2**62)


@dataclass
class Named:
    """Sessions and sections of the persona that name an entity, or cite what goes with it."""

    sessions: list[SessionId] = field(default_factory=list)
    sections: list[str] = field(default_factory=list)


class Unwriting:
    """Finds and removes. Summaries are made anew from what is left; a user's section goes as a whole."""

    def __init__(self, summaries: SummaryStore) -> None:
        self._summaries = summaries

    async def named(self, scope: Scope, mentions: Mentions, gone: Collection[str]) -> Named:
        """`gone`: ids of statements and voice aspects that go. Raises StoreUnavailable."""
        found = Named()
        page = Page(_PAGE)
        while True:
            listed = await self._summaries.scan_sessions(scope, page)
            found.sessions += [one.session for one in listed.items if _tells(one, mentions, gone)]
            if not listed.after:
                break
            page = Page(_PAGE, listed.after)
        persona = await self._summaries.persona(scope)
        sections = persona.sections if persona else ()
        found.sections = [one.id for one in sections if _section_tells(one, mentions, gone)]
        return found

    async def remove(self, scope: Scope, revision: Revision, named: Named, gone: Collection[str]) -> None:
        """Idempotent. What was read before `revision` is not written any more."""
        await self._summaries.forget(scope, revision, gone)
        for session in named.sessions:
            await self._summaries.drop_session(scope, session, _LATEST)
        for _ in range(_ATTEMPTS if named.sections else 0):
            persona = await self._summaries.persona(scope)
            if persona is None or await self._saved(scope, persona, named.sections):
                break
        if named.sessions or named.sections:
            await self._summaries.start_over(scope)

    async def _saved(self, scope: Scope, persona: Persona, sections: Collection[str]) -> bool:
        kept = tuple(one for one in persona.sections if one.id not in sections)
        left = replace(persona, sections=kept, version=persona.version + 1, made_from="")
        try:
            await self._summaries.save_persona(scope, left, persona.version)
        except WriteConflict:
            return False
        return True


def _tells(summary: SessionSummary, mentions: Mentions, gone: Collection[str]) -> bool:
    texts = (summary.title, *summary.labels, *(one.text for one in summary.sentences))
    cited = {id for one in summary.sentences for id in one.ids}
    return bool(cited.intersection(gone)) or any(mentions.named_in(text) for text in texts)


def _section_tells(section: PersonaSection, mentions: Mentions, gone: Collection[str]) -> bool:
    texts = (section.title, section.text, *(one.text for one in section.sentences))
    cited = {id for one in section.sentences for id in one.ids}
    return bool(cited.intersection(gone)) or any(mentions.named_in(text) for text in texts)
