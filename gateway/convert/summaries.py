"""Summaries, labels and personas, public to internal and back."""

from gateway.convert.times import timestamp
from palimpsest.internal.v1 import summaries_pb2 as internal
from palimpsest.v1 import recall_summaries_pb2 as pb


def summary_out(summary: internal.SessionSummary, graph_id: str) -> pb.SessionSummary:
    return pb.SessionSummary(
        graph_id=graph_id,
        session_id=summary.session_id,
        title=summary.title,
        labels=summary.labels,
        sentences=[
            pb.SummarySentence(text=one.text, statement_ids=one.statement_ids, voice_aspect_ids=one.voice_ids)
            for one in summary.sentences
        ],
        updated_at=timestamp(summary.updated_at if summary.HasField("updated_at") else None),
        revision=summary.revision,
    )


def persona_out(persona: internal.Persona, graph_id: str) -> pb.Persona:
    return pb.Persona(
        graph_id=graph_id,
        sections=[_section_out(section) for section in persona.sections],
        version=persona.version,
        updated_at=timestamp(persona.updated_at),
        revision=persona.revision,
    )


def _section_out(section: internal.PersonaSection) -> pb.PersonaSection:
    """Of the service's own sections the text is a list in Markdown."""
    listed = "\n".join(f"- {sentence.text}" for sentence in section.sentences)
    return pb.PersonaSection(
        section_id=section.id,
        title=section.title,
        text=section.text if section.protected else listed,
        protected=section.protected,
    )


def section_in(section: pb.PersonaSection) -> internal.PersonaSection:
    return internal.PersonaSection(
        id=section.section_id, title=section.title, text=section.text, protected=section.protected
    )
