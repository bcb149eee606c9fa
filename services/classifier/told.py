"""Told: facts to be written about, with what a sentence about some of them rests on."""

from collections.abc import Sequence
from dataclasses import dataclass

from palimpsest.internal.v1 import summaries_pb2 as pb
from services.domain.ids import StatementId, VoiceId
from services.domain.summaries import Cited, basis_of_all
from services.llm.tasks import ToldFact, ToldSentence
from services.wire.fields import maybe


@dataclass(frozen=True, slots=True)
class Told:
    """The facts of one request, by position, as the engine sees them and as they are cited."""

    messages: Sequence[pb.ToldFact]

    @property
    def facts(self) -> list[ToldFact]:
        return [
            ToldFact(
                fact=one.fact,
                kind=one.kind,
                valid_at=maybe(one, "valid_at"),
                invalid_at=maybe(one, "invalid_at"),
                subject=one.subject,
                predicate=one.predicate,
                object=one.object,
            )
            for one in self.messages
        ]

    def cited(self, sentence: ToldSentence) -> Cited:
        """The sentence with the ids that it rests on."""
        found = [self.messages[position] for position in dict.fromkeys(sentence.facts)]
        return Cited(
            text=sentence.text,
            statements=tuple(StatementId(one.statement_id) for one in found if one.statement_id),
            voice=tuple(VoiceId(one.voice_id) for one in found if one.voice_id),
            basis=basis_of_all((id_of(one), one.basis) for one in found),
        )

    def made_from(self, *how: str) -> str:
        """A digest of all that an engine, and what else is told, makes something from."""
        facts = [(id_of(one), one.basis) for one in self.messages]
        return basis_of_all([*((f"/{at}", word) for at, word in enumerate(how)), *facts])


def id_of(fact: pb.ToldFact) -> str:
    return fact.statement_id or fact.voice_id
