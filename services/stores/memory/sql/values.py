"""Episodes, passages, versions, voice records and readings as rows, and back."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from services.domain.identity import Merge, MergeKind
from services.domain.ids import (
    DocumentId,
    EntityId,
    EpisodeId,
    JobId,
    PassageId,
    RecordId,
    Revision,
    SessionId,
    VoiceId,
)
from services.domain.instants import Instant
from services.domain.memory import (
    DocumentVersion,
    Episode,
    EpisodeKind,
    Passage,
    Role,
    VersionHead,
    VoiceAspect,
    VoiceClaim,
    VoiceEnd,
    VoiceKind,
)
from services.domain.predicates import Cardinality, Declaration, Declared
from services.domain.records import Judge
from services.domain.scope import Scope
from services.stores.sql.rows import Row, check_storable

Stored = Mapping[str, Any]


def digest(name: str | None) -> str | None:
    """What indexes hold instead of a name that a tenant chose; None stays None."""
    if name is None:
        return None
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def episode_row(scope: Scope, episode: Episode) -> Row:
    # As JSON these would be stored escaped; they are refused like every other text.
    check_storable({"heading": text} for text in episode.heading)
    check_storable({"metadata": text} for pair in episode.metadata for text in pair)
    return {
        "scope": scope.key,
        "id": episode.id,
        "job": episode.job,
        "kind": episode.kind.value,
        "text": episode.text,
        "reference_time": episode.reference_time,
        "created_at": episode.created_at,
        "tokens": episode.tokens,
        "position": episode.position,
        "session": episode.session,
        "session_key": digest(episode.session),
        "document": episode.document,
        "document_key": digest(episode.document),
        "version": episode.version,
        "heading": json.dumps(episode.heading, ensure_ascii=False),
        "title": episode.title,
        "source": episode.source,
        "metadata": json.dumps(episode.metadata, ensure_ascii=False),
        "deleted_at": episode.deleted_at,
        "unlearned_at": episode.unlearned_at,
        "held": episode.held or None,
    }


EMPTY_EPISODE: Row = {"text": "", "heading": "[]", "title": "", "source": "", "metadata": "[]"}
"""What stays of the texts of a deleted episode."""


def episode_of(row: Stored) -> Episode:
    return Episode(
        id=EpisodeId(row["id"]),
        job=JobId(row["job"]),
        kind=EpisodeKind(row["kind"]),
        text=row["text"],
        reference_time=Instant(row["reference_time"]),
        created_at=Instant(row["created_at"]),
        tokens=row["tokens"],
        position=row["position"],
        session=None if row["session"] is None else SessionId(row["session"]),
        document=None if row["document"] is None else DocumentId(row["document"]),
        version=row["version"],
        heading=tuple(json.loads(row["heading"])) if row["heading"] != "[]" else (),
        title=row["title"],
        source=row["source"],
        metadata=tuple((name, value) for name, value in json.loads(row["metadata"]))
        if row["metadata"] != "[]"
        else (),
        deleted_at=None if row["deleted_at"] is None else Instant(row["deleted_at"]),
        unlearned_at=None if row["unlearned_at"] is None else Instant(row["unlearned_at"]),
        held=bool(row["held"]),
    )


def passage_row(scope: Scope, passage: Passage, episode: Stored) -> Row:
    """`episode` has the columns of its row that passages repeat."""
    return {
        "scope": scope.key,
        "id": passage.id,
        "episode": passage.episode,
        "position": passage.position,
        "text": passage.text,
        "start": passage.start,
        "end": passage.end,
        "hash": passage.hash,
        "speaker": passage.speaker,
        "role": passage.role.value,
        "message_id": passage.message_id,
        "message_key": digest(passage.message_id or None),
        "said_at": passage.said_at,
        "held": passage.held or None,
        "session_key": episode["session_key"],
        "document_key": episode["document_key"],
        "version": episode["version"],
    }


def passage_of(row: Stored) -> Passage:
    return Passage(
        id=PassageId(row["id"]),
        episode=EpisodeId(row["episode"]),
        position=row["position"],
        text=row["text"],
        start=row["start"],
        end=row["end"],
        hash=row["hash"],
        speaker=row["speaker"],
        role=Role(row["role"]),
        message_id=row["message_id"],
        said_at=None if row["said_at"] is None else Instant(row["said_at"]),
        held=bool(row["held"]),
    )


def version_row(scope: Scope, version: DocumentVersion) -> Row:
    return {
        "scope": scope.key,
        "document_key": digest(version.document),
        "version": version.version,
        "document": version.document,
        "hash": version.hash,
        "text": version.text,
        "reference_time": version.reference_time,
        "created_at": version.created_at,
        "job": version.job,
        "title": version.title,
        "tokens": version.tokens or None,
    }


def version_of(row: Stored) -> DocumentVersion:
    return DocumentVersion(
        document=DocumentId(row["document"]),
        version=row["version"],
        hash=row["hash"],
        text=row["text"],
        reference_time=Instant(row["reference_time"]),
        created_at=Instant(row["created_at"]),
        job=JobId(row["job"]),
        title=row["title"],
        tokens=row["tokens"] or 0,
    )


HEAD_COLUMNS = ("version", "hash", "tokens", "reference_time", "created_at", "job", "title")


def head_of(row: Stored) -> VersionHead:
    """Of a row with `size` in place of its text."""
    return VersionHead(
        version=row["version"],
        hash=row["hash"],
        size=row["size"],
        tokens=row["tokens"] or 0,
        reference_time=Instant(row["reference_time"]),
        created_at=Instant(row["created_at"]),
        job=JobId(row["job"]),
        title=row["title"],
    )


def voice_row(scope: Scope, aspect: VoiceAspect) -> Row:
    return {
        "scope": scope.key,
        "id": aspect.id,
        "kind": aspect.kind.value,
        "text": aspect.text,
        "created_at": aspect.created_at,
        "forgotten_at": None,
    }


def voice_claim_row(scope: Scope, claim: VoiceClaim) -> Row:
    return {
        "scope": scope.key,
        "voice": claim.voice,
        "id": claim.id,
        "episode": claim.episode,
        "passage": claim.passage,
        "quote": claim.quote,
        "attested_at": claim.attested_at,
        "recorded_at": claim.recorded_at,
    }


def voice_end_row(scope: Scope, end: VoiceEnd) -> Row:
    return {
        "scope": scope.key,
        "voice": end.voice,
        "id": end.id,
        "at": end.at,
        "by": end.by,
        "episode": end.episode,
        "why": end.why,
        "recorded_at": end.recorded_at,
    }


def voice_claim_of(row: Stored) -> VoiceClaim:
    return VoiceClaim(
        id=RecordId(row["id"]),
        voice=VoiceId(row["voice"]),
        episode=EpisodeId(row["episode"]),
        passage=None if row["passage"] is None else PassageId(row["passage"]),
        quote=row["quote"],
        attested_at=Instant(row["attested_at"]),
        recorded_at=Revision(row["recorded_at"]),
        revoked_at=_revision(row["revoked_at"]),
    )


def voice_end_of(row: Stored) -> VoiceEnd:
    return VoiceEnd(
        id=RecordId(row["id"]),
        voice=VoiceId(row["voice"]),
        at=Instant(row["at"]),
        by=None if row["by"] is None else VoiceId(row["by"]),
        episode=None if row["episode"] is None else EpisodeId(row["episode"]),
        why=row["why"],
        recorded_at=Revision(row["recorded_at"]),
        revoked_at=_revision(row["revoked_at"]),
    )


def voice_of(row: Stored, claims: tuple[VoiceClaim, ...], ends: tuple[VoiceEnd, ...]) -> VoiceAspect:
    return VoiceAspect(
        id=VoiceId(row["id"]),
        kind=VoiceKind(row["kind"]),
        text=row["text"],
        claims=claims,
        ends=ends,
        created_at=Revision(row["created_at"]),
    )


def merge_row(scope: Scope, merge: Merge) -> Row:
    return {
        "scope": scope.key,
        "id": merge.id,
        "entity": merge.entity,
        "into": merge.into,
        "kind": merge.kind.value,
        "judge": merge.judge.value,
        "attested_at": merge.attested_at,
        "why": merge.why,
        "model": merge.model,
        "prompt_version": merge.prompt_version,
        "episode": merge.episode,
        "recorded_at": merge.recorded_at,
    }


def merge_of(row: Stored) -> Merge:
    return Merge(
        id=RecordId(row["id"]),
        entity=EntityId(row["entity"]),
        into=EntityId(row["into"]),
        kind=MergeKind(row["kind"]),
        judge=Judge(row["judge"]),
        attested_at=Instant(row["attested_at"]),
        why=row["why"],
        model=row["model"],
        prompt_version=row["prompt_version"],
        episode=None if row["episode"] is None else EpisodeId(row["episode"]),
        recorded_at=Revision(row["recorded_at"]),
        revoked_at=_revision(row["revoked_at"]),
    )


def declared_row(scope: Scope, declared: Declared) -> Row:
    one = declared.declaration
    check_storable({"aliases": text} for text in one.aliases)
    return {
        "scope": scope.key,
        "id": declared.id,
        "name": one.name,
        "cardinality": one.cardinality.value,
        "aliases": json.dumps(one.aliases, ensure_ascii=False),
        "inverse": one.inverse,
        "recorded_at": declared.recorded_at,
    }


def declared_of(row: Stored) -> Declared:
    return Declared(
        id=RecordId(row["id"]),
        declaration=Declaration(
            row["name"], Cardinality(row["cardinality"]), tuple(json.loads(row["aliases"])), row["inverse"]
        ),
        recorded_at=Revision(row["recorded_at"]),
        revoked_at=_revision(row["revoked_at"]),
    )


def _revision(value: int | None) -> Revision | None:
    return None if value is None else Revision(value)
