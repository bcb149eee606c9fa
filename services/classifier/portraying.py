"""Portraying: the document about the user. The service writes its sections, and never one that a user did."""

from dataclasses import replace

from palimpsest.internal.v1 import summaries_pb2 as pb
from services.classifier.parts import Parts
from services.classifier.told import Told, id_of
from services.domain.errors import Conflict, ValidationFailed, Violation
from services.domain.graph import GraphAspect
from services.domain.ids import Revision, derive_id
from services.domain.memory import VoiceKind
from services.domain.scope import Scope
from services.domain.summaries import (
    Cited,
    Persona,
    PersonaSection,
    Section,
    basis_of_all,
    edited_sections,
    machine_sections,
)
from services.llm import tasks
from services.llm.port import Receipt
from services.stores.errors import WriteConflict
from services.stores.memory.port import Decision
from services.wire.facts import receipt_out, setting_in

UPDATE_PERSONA = "update_persona"
"""The action under which an edit is in the log of decisions."""
_ATTEMPTS = 20
_SECTIONS = {
    GraphAspect.IDENTITY.value: Section.IDENTITY,
    VoiceKind.PREFERENCE.value: Section.PREFERENCES,
    VoiceKind.DIRECTIVE.value: Section.DIRECTIVES,
}
_TITLES = {
    Section.IDENTITY: ("About {user}", "关于{user}"),
    Section.PREFERENCES: ("Preferences", "偏好"),
    Section.DIRECTIVES: ("Directives", "要求"),
}


class Portraying:
    """Writes the persona, and takes edits of it."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._engine = parts.engine
        self._summaries = parts.summaries

    async def update(self, scope: Scope, request: pb.UpdatePersonaRequest) -> pb.UpdatePersonaResponse:
        """Makes what is not the user's anew, from all facts that hold; the same facts make nothing."""
        receipts: list[Receipt] = []
        for _ in range(_ATTEMPTS):
            before = await self._summaries.persona(scope)
            told = Told([one for one in request.facts.facts if _is_ours(one, before)])
            made_from = told.made_from(self._engine.name, request.setting.user_name)
            if before.made_from == made_from if before else not told.messages:
                return pb.UpdatePersonaResponse(receipts=map(receipt_out, receipts))
            if before and before.revision > request.facts.revision:
                return pb.UpdatePersonaResponse(receipts=map(receipt_out, receipts))
            sections, receipt = await self._portrayed(scope, told, before, request)
            receipts += [receipt] if receipt else []
            persona = self._changed(before, machine_sections(before, sections))
            persona = replace(
                persona,
                revision=Revision(request.facts.revision),
                made_from=made_from,
                model=receipt.model if receipt else "",
                prompt_version=receipt.prompt_version if receipt else "",
            )
            if await self._saved(scope, persona, before, request.facts.generation):
                return pb.UpdatePersonaResponse(made=True, receipts=map(receipt_out, receipts))
        raise Conflict

    async def edit(self, scope: Scope, request: pb.EditPersonaRequest) -> pb.EditPersonaResponse:
        """Sets sections. Where all of it is so already nothing changes, whichever version was expected."""
        edits = [
            PersonaSection(one.id, one.title, one.text if one.protected else "", (), one.protected)
            for one in request.sections
        ]
        for _ in range(_ATTEMPTS):
            before = await self._summaries.persona(scope)
            version = before.version if before else 0
            sections = edited_sections(before, edits)
            if sections == (before.sections if before else ()):
                return pb.EditPersonaResponse(version=version)
            if request.expected_version not in (0, version):
                raise Conflict
            persona = replace(self._changed(before, sections), made_from="")
            if await self._saved(scope, persona, before, None):
                await self._decided(scope, request, persona)
                return pb.EditPersonaResponse(version=persona.version)
        raise Conflict

    async def _portrayed(
        self, scope: Scope, told: Told, before: Persona | None, request: pb.UpdatePersonaRequest
    ) -> tuple[list[PersonaSection], Receipt | None]:
        """What an engine says of the facts; a fact that it says nothing of is told as it is."""
        if not told.messages:
            return [], None
        try:
            setting = setting_in(request.setting)
        except ValueError as error:
            raise ValidationFailed(Violation("setting", str(error), "enum")) from error
        facts = told.facts
        standing, gone = _before(before, told)
        answer = await self._engine.portray(scope, tasks.Portray(facts, standing, gone, setting))
        sentences = list(answer.value.sentences)
        silent = set(range(len(facts))) - {position for one in sentences for position in one.facts}
        sentences += [tasks.ToldSentence(facts[position].fact, (position,)) for position in sorted(silent)]
        found: dict[Section, list[Cited]] = {section: [] for section in Section}
        for one in sentences:
            found[_SECTIONS[facts[one.facts[0]].kind]].append(told.cited(one))
        chinese = sum(map(_is_chinese, facts)) * 2 > len(facts)
        user = setting.user
        return [
            PersonaSection(section, _TITLES[section][chinese].format(user=user), sentences=tuple(cited))
            for section, cited in found.items()
        ], answer.receipt

    def _changed(self, before: Persona | None, sections: tuple[PersonaSection, ...]) -> Persona:
        """A version counts what readers see."""
        if before is None:
            return Persona(sections, 1, self._parts.now())
        if before.sections == sections:
            return before
        return replace(before, sections=sections, version=before.version + 1, updated_at=self._parts.now())

    async def _saved(
        self, scope: Scope, persona: Persona, before: Persona | None, generation: int | None
    ) -> bool:
        try:
            await self._summaries.save_persona(scope, persona, before.version if before else 0, generation)
        except WriteConflict:
            return False
        return True

    async def _decided(self, scope: Scope, request: pb.EditPersonaRequest, persona: Persona) -> None:
        """Who edited which sections, without their text."""
        decision = Decision(
            id=derive_id(scope, "decision", UPDATE_PERSONA, persona.version),
            revision=await self._parts.revisions.current(scope),
            at=self._parts.now(),
            action=UPDATE_PERSONA,
            target="persona",
            actor=request.actor,
            why="",
        )
        await self._parts.decisions.record(scope, [decision])


def _is_ours(fact: pb.ToldFact, before: Persona | None) -> bool:
    """Of a section that the service writes."""
    section = _SECTIONS.get(fact.kind)
    return section is not None and section not in (before.protected if before else ())


def _before(before: Persona | None, told: Told) -> tuple[list[tasks.ToldSentence], list[str]]:
    """The sentences that still stand, by positions of their facts, and those that don't any more."""
    places = {id_of(fact): position for position, fact in enumerate(told.messages)}
    standing: list[tasks.ToldSentence] = []
    gone: list[str] = []
    for sentence in (one for section in (before.sections if before else ()) for one in section.sentences):
        positions = [places[id] for id in sentence.ids if id in places]
        read = basis_of_all((id_of(told.messages[at]), told.messages[at].basis) for at in positions)
        if len(positions) == len(sentence.ids) and read == sentence.basis:
            standing.append(tasks.ToldSentence(sentence.text, positions))
        else:
            gone.append(sentence.text)
    return standing, gone


def _is_chinese(fact: tasks.ToldFact) -> bool:
    return any("\u3400" <= character <= "\u9fff" for character in fact.fact)
