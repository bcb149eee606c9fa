"""Episodes and passages to the messages between services."""

from collections.abc import Sequence

from palimpsest.internal.v1 import preprocessor_pb2
from palimpsest.internal.v1 import values_pb2 as pb
from services.domain.instants import Instant
from services.domain.memory import DocumentVersion, Episode, Passage, VersionHead


def passage_out(passage: Passage, reference_time: Instant) -> pb.Passage:
    return pb.Passage(
        id=passage.id,
        episode_id=passage.episode,
        position=passage.position,
        text=passage.text,
        speaker=passage.speaker,
        role=passage.role,
        message_id=passage.message_id,
        said_at=reference_time if passage.said_at is None else passage.said_at,
        start=passage.start,
        end=passage.end,
    )


def episode_out(episode: Episode, passages: Sequence[Passage]) -> pb.Episode:
    return pb.Episode(
        id=episode.id,
        job_id=episode.job,
        kind=episode.kind,
        text=episode.text,
        reference_time=episode.reference_time,
        created_at=episode.created_at,
        tokens=episode.tokens,
        position=episode.position,
        session_id=episode.session or "",
        document_id=episode.document or "",
        version=episode.version or 0,
        heading=episode.heading,
        title=episode.title,
        source=episode.source,
        deleted_at=episode.deleted_at,
        passages=[passage_out(passage, episode.reference_time) for passage in passages],
        metadata=dict(episode.metadata),
    )


def document_out(
    version: DocumentVersion, heads: Sequence[VersionHead], episodes: Sequence[Episode]
) -> preprocessor_pb2.GetDocumentResponse:
    """`episodes`: of all versions, deleted ones included."""
    new: dict[int, int] = {}
    for episode in episodes:
        new[episode.version or 0] = new.get(episode.version or 0, 0) + episode.tokens
    mine = (one.source for one in episodes if one.version == version.version and one.source)
    return preprocessor_pb2.GetDocumentResponse(
        document_id=version.document,
        version=version.version,
        text=version.text,
        title=version.title,
        reference_time=version.reference_time,
        created_at=version.created_at,
        source=next(mine, ""),
        versions=[
            preprocessor_pb2.DocumentVersionHead(
                version=head.version,
                hash=head.hash,
                size=head.size,
                tokens=head.tokens,
                tokens_new=new.get(head.version, 0),
                reference_time=head.reference_time,
                created_at=head.created_at,
                job_id=head.job,
                title=head.title,
            )
            for head in heads
        ],
    )
