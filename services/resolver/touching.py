"""Touching: which statements, entities and voice aspects read otherwise since a change, by id."""

from services.domain.graph import EntityType
from services.domain.ids import EntityId, StatementId, VoiceId
from services.domain.records import Claim, Denial, End
from services.resolver.change import Change, Draft, Touched


def touched(change: Change, draft: Draft) -> Touched:
    """All that a change writes to or forgets, but for what the outcome tells as added.

    Entities that it may orphan are among them: which it does is found when it is written.
    """
    commit = change.commit
    statements: set[StatementId] = set(change.unsupported)
    records: list[Claim | End | Denial] = [*commit.claims, *commit.ends, *commit.denials]
    statements |= {record.statement for record in records}
    statements |= {side for verdict in commit.verdicts for side in (verdict.left, verdict.right)}
    statements |= {one.statement for one in (*commit.revocations, *change.emptied)}
    statements |= {span.statement for span in commit.opened} | {span.statement for span in commit.closed}
    statements |= {id for id, _ in change.retold}
    entities: set[EntityId] = {*change.orphans, *(alias.entity for alias in commit.aliases)}
    entities |= {one.id for one in commit.entities if one.type is EntityType.PREDICATE}
    voice: set[VoiceId] = {*change.unsupported_voice, *draft.voice_undone.values()}
    voice |= {claim.voice for claim in change.voice_claims} | {end.voice for end in change.voice_ends}
    emptied = change.voice_emptied or ()
    voice |= {id for id, _ in (*change.voice_revoked, *emptied, *change.voice_retold)}
    added = {one.id for one in commit.entities if one.type is not EntityType.PREDICATE}
    return Touched(
        tuple(sorted(statements - {one.id for one in commit.statements})),
        tuple(sorted(entities - added)),
        tuple(sorted(voice - {one.id for one in change.voice})),
    )
