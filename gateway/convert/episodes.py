"""Episodes and passages as the public API shows them, and texts of requests as services take them."""

from gateway.convert.names import episode_kind_in, episode_kind_out, role_in, role_out
from gateway.convert.times import instant_of, timestamp
from palimpsest.internal.v1 import preprocessor_pb2, values_pb2
from palimpsest.v1 import episode_pb2, memory_episodes_pb2, memory_ingest_pb2
from services.domain.instants import Instant
from services.domain.redacted import marks_in


def source_in(request: memory_ingest_pb2.AddEpisodeRequest, accepted_at: Instant) -> preprocessor_pb2.Source:
    """What a request brings; said when it says so, else when it was accepted."""
    said_at = instant_of(request.reference_time) if request.HasField("reference_time") else accepted_at
    return preprocessor_pb2.Source(
        kind=episode_kind_in(request.kind),
        text=request.text,
        messages=[_message(message) for message in request.messages.messages],
        session_id=request.session_id,
        document_id=request.document_id,
        title=request.title,
        source=request.source,
        reference_time=said_at,
        metadata=request.metadata,
    )


def _message(message: memory_ingest_pb2.EpisodeMessage) -> preprocessor_pb2.SourceMessage:
    return preprocessor_pb2.SourceMessage(
        message_id=message.message_id,
        role=role_in(message.role),
        speaker=message.speaker,
        text=message.text,
        said_at=instant_of(message.time) if message.HasField("time") else None,
    )


def episode_out(episode: values_pb2.Episode, graph_id: str) -> episode_pb2.Episode:
    """Without its stage, which the gateway's own job knows."""
    return episode_pb2.Episode(
        episode_id=episode.id,
        graph_id=graph_id,
        job_id=episode.job_id,
        chunk_index=episode.position,
        kind=episode_kind_out(episode.kind),
        session_id=episode.session_id,
        document_id=episode.document_id,
        document_version=episode.version,
        title=episode.title,
        source=episode.source,
        heading_path=episode.heading,
        reference_time=timestamp(episode.reference_time),
        created_at=timestamp(episode.created_at),
        token_count=episode.tokens,
        metadata=episode.metadata,
        redacted=marks_in(episode.text),
    )


def passage_out(passage: values_pb2.Passage) -> episode_pb2.Passage:
    return episode_pb2.Passage(
        passage_id=passage.id,
        episode_id=passage.episode_id,
        index=passage.position,
        role=role_out(passage.role),
        speaker=passage.speaker,
        text=passage.text,
        start_offset=passage.start,
        end_offset=passage.end,
        reference_time=timestamp(passage.said_at),
        message_id=passage.message_id,
    )


def document_out(
    read: preprocessor_pb2.GetDocumentResponse, graph_id: str
) -> memory_episodes_pb2.GetDocumentResponse:
    """The version that was read, and the document with all that are kept."""
    versions = [_version_out(head) for head in read.versions]
    shown = [version for version in versions if version.version == read.version]
    return memory_episodes_pb2.GetDocumentResponse(
        document=episode_pb2.Document(
            document_id=read.document_id,
            graph_id=graph_id,
            title=read.versions[0].title if read.versions else read.title,
            source=read.source,
            versions=versions,
        ),
        version=shown[0] if shown else None,
        text=read.text,
    )


def _version_out(head: preprocessor_pb2.DocumentVersionHead) -> episode_pb2.DocumentVersion:
    return episode_pb2.DocumentVersion(
        version=head.version,
        content_hash=head.hash,
        size_bytes=head.size,
        token_count=head.tokens,
        tokens_saved=max(0, head.tokens - head.tokens_new),
        reference_time=timestamp(head.reference_time),
        created_at=timestamp(head.created_at),
        job_id=head.job_id,
    )
