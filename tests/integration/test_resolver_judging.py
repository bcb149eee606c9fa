"""What users decide: ends, denials and verdicts, each of which can be taken back."""

from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from palimpsest.internal.v1 import resolver_judging_pb2 as pb
from palimpsest.internal.v1 import resolver_pb2
from palimpsest.internal.v1 import values_pb2 as values
from services.domain.errors import EndStated, StatementNotFound, ValidationFailed, VoiceAspectNotFound
from services.domain.ids import EpisodeId, Revision, StatementId, VoiceId
from services.domain.instants import Instant
from services.domain.records import Judge, VerdictKind
from services.domain.voice import held
from services.stores.memory.port import Decision
from services.stores.paging import Page
from tests.builders import a_scope, on
from tests.integration.resolving import TODAY, World, a_world, said
from tests.integration.test_resolver import resolve, voice

CLAIM, END, DENIAL = values.FACT_KIND_CLAIM, values.FACT_KIND_END, values.FACT_KIND_DENIAL
_numbers = count()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path, single=["lives_in"]) as world:
        yield world


async def tell(
    world: World,
    target: str,
    day: str,
    start: str = "",
    end: str = "",
    kind: values.FactKind.ValueType = CLAIM,
    predicate: str = "lives_in",
) -> StatementId:
    """One episode says a triple of Hana; its statement."""
    name = f"e{next(_numbers)}"
    episode = await world.episode(name, on(day))
    times = {"start": on(start) if start else None, "end": on(end) if end else None}
    one = said(kind, ("Hana", predicate, target), on(day), episode, **times)
    return StatementId((await world.tell(name, one)).statement_ids[0])


def asker(why: str = "", commit_id: str = "") -> pb.Asker:
    return pb.Asker(commit_id=commit_id or f"call-{next(_numbers)}", actor="key:k1", why=why)


async def end(world: World, id: str, day: str = "", why: str = "", **more: str) -> pb.EndStatementResponse:
    request = pb.EndStatementRequest(asker=asker(why, **more), statement_id=id)
    if day:
        request.at = on(day)
    return await world.resolver.end_statement(world.scope, request)


async def deny(world: World, id: str, start: str = "", until: str = "") -> pb.DenyStatementResponse:
    request = pb.DenyStatementRequest(asker=asker(), statement_id=id)
    if start:
        request.start = on(start)
    if until:
        request.until = on(until)
    return await world.resolver.deny_statement(world.scope, request)


async def restore(world: World, id: str, **more: str) -> pb.RestoreStatementResponse:
    request = pb.RestoreStatementRequest(asker=asker(**more), statement_id=id)
    return await world.resolver.restore_statement(world.scope, request)


async def judge(world: World, one: str, other: str, kind: VerdictKind) -> pb.JudgePairResponse:
    request = pb.JudgePairRequest(
        asker=asker(), statement_id=one, other_statement_id=other, kind=kind.name.lower()
    )
    return await world.resolver.judge_pair(world.scope, request)


async def decisions(world: World) -> list[Decision]:
    """Newest first."""
    return list((await world.memory.decisions.list_decisions(world.scope, None, Page(1000))).items)


async def contested(world: World, predicate: str = "lives_in") -> list[tuple[str, bool]]:
    return [
        (view.object.name if view.object else "", span.contested)
        for view, span in await world.spans("Hana", predicate)
    ]


async def test_an_end_closes_and_restoring_opens_again(world: World) -> None:
    kyoto = await tell(world, "Kyoto", "2020-01-02", "2020-01-01")
    before = await world.timeline("Hana", "lives_in")
    known = await world.memory.revisions.current(world.scope)
    ended = await end(world, kyoto, "2024-05-01", "she told me", commit_id="r1")
    assert await world.timeline("Hana", "lives_in") == [("Kyoto", on("2020-01-01"), on("2024-05-01"))]
    assert await world.timeline("Hana", "lives_in", known) == before
    assert await end(world, kyoto, "2024-05-01", commit_id="r1") == ended, "a repeated call is the same one"
    undone = await restore(world, kyoto)
    assert list(undone.revoked_record_ids) == [ended.record_id]
    assert await world.timeline("Hana", "lives_in") == before
    newest, oldest = (await decisions(world))[:2]
    assert (newest.action, newest.target, newest.actor) == ("restore_statement", kyoto, "key:k1")
    assert (oldest.action, oldest.target, oldest.other) == ("end_statement", kyoto, ended.record_id)
    assert (oldest.why, oldest.request, oldest.revision) == ("she told me", "r1", ended.revision)


async def test_what_holds_already_is_left_as_it_is(world: World) -> None:
    kyoto = await tell(world, "Kyoto", "2020-01-02", "2020-01-01")
    current = await world.memory.revisions.current(world.scope)
    assert await restore(world, kyoto) == pb.RestoreStatementResponse(revision=current)
    assert "restore_statement" not in {one.action for one in await decisions(world)}


async def test_where_another_statement_closed_it_both_hold_and_are_contested(world: World) -> None:
    kyoto = await tell(world, "Kyoto", "2020-01-02", "2020-01-01")
    osaka = await tell(world, "Osaka", "2023-01-02", "2023-01-01")
    known = await world.memory.revisions.current(world.scope)
    undone = await restore(world, kyoto)
    assert await world.timeline("Hana", "lives_in") == [
        ("Kyoto", on("2020-01-01"), None),
        ("Osaka", on("2023-01-01"), None),
    ]
    assert await contested(world) == [("Kyoto", True), ("Osaka", True)]
    assert not undone.revoked_record_ids
    (verdict,) = (await world.graph.records(world.scope, [kyoto])).verdicts
    assert (verdict.id, verdict.judge, verdict.kind) == (
        undone.verdict_ids[0],
        Judge.USER,
        VerdictKind.COMPATIBLE,
    )
    assert {verdict.left, verdict.right} == {kyoto, osaka}
    past = await world.timeline("Hana", "lives_in", known)
    assert past == [("Kyoto", on("2020-01-01"), on("2023-01-01")), ("Osaka", on("2023-01-01"), None)]


async def test_all_that_took_over_one_after_the_other_is_exempted(world: World) -> None:
    kyoto = await tell(world, "Kyoto", "2015-01-02", "2015-01-01")
    await tell(world, "Osaka", "2018-01-02", "2018-01-01")
    await tell(world, "Nara", "2020-01-02", "2020-01-01")
    assert len((await restore(world, kyoto)).verdict_ids) == 2
    assert ("Kyoto", on("2015-01-01"), None) in await world.timeline("Hana", "lives_in")


async def test_a_corrected_statement_can_be_restored(world: World) -> None:
    kyoto = await tell(world, "Kyoto", "2020-01-02", "2020-01-01")
    await tell(world, "Osaka", "2020-01-09", "2020-01-01")
    assert await world.timeline("Hana", "lives_in") == [("Osaka", on("2020-01-01"), None)]
    await restore(world, kyoto)
    assert ("Kyoto", on("2020-01-01"), None) in await world.timeline("Hana", "lives_in")


async def test_what_an_episode_ended_or_denied_can_be_restored(world: World) -> None:
    kyoto = await tell(world, "Kyoto", "2020-01-02", "2020-01-01")
    await tell(world, "Kyoto", "2023-01-02", end="2022-06-01", kind=END)
    await tell(world, "Kyoto", "2023-02-02", start="2021-01-01", kind=DENIAL)
    assert await world.timeline("Hana", "lives_in") == [("Kyoto", on("2020-01-01"), on("2021-01-01"))]
    assert len((await restore(world, kyoto)).revoked_record_ids) == 2
    assert await world.timeline("Hana", "lives_in") == [("Kyoto", on("2020-01-01"), None)]


async def test_an_earlier_stay_that_ended_stays_ended(world: World) -> None:
    kyoto = await tell(world, "Kyoto", "2010-01-02", "2010-01-01")
    await tell(world, "Kyoto", "2012-01-02", end="2012-01-01", kind=END)
    await tell(world, "Kyoto", "2020-01-02", "2020-01-01")
    await end(world, kyoto, "2023-01-01")
    await restore(world, kyoto)
    assert await world.timeline("Hana", "lives_in") == [
        ("Kyoto", on("2010-01-01"), on("2012-01-01")),
        ("Kyoto", on("2020-01-01"), None),
    ]


async def test_what_its_own_source_ended_is_not_restored(world: World) -> None:
    kyoto = await tell(world, "Kyoto", "2023-01-02", "2020-01-01", "2022-01-01")
    with pytest.raises(EndStated):
        await restore(world, kyoto)
    await end(world, kyoto, "2021-01-01")
    await restore(world, kyoto)
    assert await world.timeline("Hana", "lives_in") == [("Kyoto", on("2020-01-01"), on("2022-01-01"))]
    planned = await tell(world, "Nara", "2023-01-02", "2023-01-01", "2040-01-01")
    current = await world.memory.revisions.current(world.scope)
    assert await restore(world, planned) == pb.RestoreStatementResponse(revision=current), (
        "it holds till then"
    )


async def test_of_what_is_known_by_its_end_alone_nothing_can_be_undone(world: World) -> None:
    kyoto = await tell(world, "Kyoto", "2023-01-02", end="2022-06-01", kind=END)
    with pytest.raises(EndStated):
        await restore(world, kyoto)
    await deny(world, kyoto)
    await restore(world, kyoto)
    assert await world.timeline("Hana", "lives_in") == [("Kyoto", None, on("2022-06-01"))]


async def test_a_user_outweighs_a_source_that_is_dated_ahead_of_the_clock(world: World) -> None:
    kyoto = await tell(world, "Kyoto", "2027-01-02", "2020-01-01")
    assert on("2027-01-02") > TODAY
    await end(world, kyoto, "2026-01-01")
    assert await world.timeline("Hana", "lives_in") == [("Kyoto", on("2020-01-01"), on("2026-01-01"))]
    await restore(world, kyoto)
    await deny(world, kyoto)
    assert await world.timeline("Hana", "lives_in") == []
    await restore(world, kyoto)
    assert await world.timeline("Hana", "lives_in") == [("Kyoto", on("2020-01-01"), None)]


async def test_an_end_before_the_beginning_is_refused(world: World) -> None:
    kyoto = await tell(world, "Kyoto", "2023-01-02", "2020-01-01")
    with pytest.raises(ValidationFailed):
        await end(world, kyoto, "2019-12-31")
    request = pb.EndStatementRequest(
        asker=asker(), statement_id=kyoto, at=on("2020-01-01"), precision=values.PRECISION_YEAR
    )
    await world.resolver.end_statement(world.scope, request)  # some time in the year in which it began
    assumed = await tell(world, "tea", "2023-01-02", predicate="likes")
    await end(world, assumed, "2022-01-01")
    assert await world.timeline("Hana", "likes") == [("tea", None, on("2022-01-01"))]


async def test_statements_that_are_not_there(world: World) -> None:
    kyoto = await tell(world, "Kyoto", "2023-01-02", "2020-01-01")
    nobody = "00000000-0000-5000-8000-000000000000"
    theirs = replace(world, scope=a_scope("other"))
    for where, id in ((world, nobody), (theirs, kyoto)):
        with pytest.raises(StatementNotFound):
            await end(where, id)
        with pytest.raises(StatementNotFound):
            await deny(where, id)
        with pytest.raises(StatementNotFound):
            await restore(where, id)
        with pytest.raises(StatementNotFound):
            await judge(where, kyoto, id, VerdictKind.COMPATIBLE)
    with pytest.raises(ValidationFailed):
        await deny(world, kyoto, "2021-01-01", "2021-01-01")


async def test_of_a_users_verdicts_the_last_counts(world: World) -> None:
    tea = await tell(world, "tea", "2020-01-02", "2020-01-01", predicate="likes")
    rum = await tell(world, "rum", "2022-01-02", "2022-01-01", predicate="likes")
    both = await world.timeline("Hana", "likes")
    await judge(world, tea, rum, VerdictKind.CONTRADICTS)
    assert await world.timeline("Hana", "likes") == [
        ("tea", on("2020-01-01"), on("2022-01-01")),
        ("rum", on("2022-01-01"), None),
    ]
    await judge(world, rum, tea, VerdictKind.DUPLICATE)
    assert await world.timeline("Hana", "likes") == [("tea", on("2020-01-01"), None)]
    last = await judge(world, tea, rum, VerdictKind.COMPATIBLE)
    assert await world.timeline("Hana", "likes") == both
    assert await contested(world, "likes") == [("tea", False), ("rum", False)]
    verdicts = (await world.graph.records(world.scope, [tea])).verdicts
    assert [one.id for one in verdicts if one.revoked_at is None] == [last.verdict_id]
    assert len(verdicts) == 3


async def test_what_has_nothing_in_common_is_only_compatible(world: World) -> None:
    tea = await tell(world, "tea", "2020-01-02", "2020-01-01", predicate="likes")
    episode = await world.episode("other", on("2020-01-02"))
    told = await world.tell("other", said(CLAIM, ("Ben", "tends", "Atlas"), on("2020-01-02"), episode))
    for kind in (VerdictKind.CONTRADICTS, VerdictKind.DUPLICATE):
        with pytest.raises(ValidationFailed):
            await judge(world, tea, told.statement_ids[0], kind)
    await judge(world, tea, told.statement_ids[0], VerdictKind.COMPATIBLE)
    ana = await world.tell("ana", said(CLAIM, ("Ana", "tends", "Atlas"), on("2021-01-02"), episode))
    await judge(world, ana.statement_ids[0], told.statement_ids[0], VerdictKind.CONTRADICTS)
    assert (await world.timeline("Ben", "tends"))[0][2] == on("2021-01-02")


async def test_what_a_user_recorded_goes_with_the_last_text_that_it_spoke_of(world: World) -> None:
    kyoto = await tell(world, "Kyoto", "2020-01-02", "2020-01-01")
    (claim,) = (await world.graph.records(world.scope, [kyoto])).claims
    await end(world, kyoto, "2024-05-01", "the canary told me")
    assert claim.source.episode is not None
    await world.memory.text.delete_episode(world.scope, EpisodeId(claim.source.episode), Instant(1))
    request = resolver_pb2.RevokeRequest(commit_id="d", episode_id=claim.source.episode, actor="user")
    await world.resolver.revoke(world.scope, request)
    assert await world.timeline("Hana", "lives_in") == []
    assert "canary" not in str(await decisions(world))
    with pytest.raises(StatementNotFound):
        await restore(world, kyoto)


async def test_a_user_s_denial_outlives_the_undoing_of_all_that_texts_said_of_its_statement(
    world: World,
) -> None:
    """Two names of one place; of one of them a text tells the end alone. That text is still there."""
    kyoto = await tell(world, "Kyoto", "2020-01-01", "2020-01-01")
    miyako = await tell(world, "Miyako", "2020-01-01", end="2021-01-01", kind=END)
    known = await world.memory.revisions.current(world.scope)
    await judge(world, kyoto, miyako, VerdictKind.DUPLICATE)
    await deny(world, miyako, "2021-01-01", "2023-01-01")
    assert await world.timeline("Hana", "lives_in") == [("Kyoto", on("2020-01-01"), on("2021-01-01"))]
    await restore(world, kyoto)
    assert await world.timeline("Hana", "lives_in") == [
        ("Kyoto", on("2020-01-01"), on("2021-01-01")),
        ("Kyoto", on("2023-01-01"), None),
    ]
    (told,) = (await world.graph.records(world.scope, [miyako])).statements
    assert "Miyako" in told.fact, f"known as of {known}"


async def test_ends_denials_and_assertions_are_decisions(world: World) -> None:
    kyoto = await tell(world, "Kyoto", "2020-01-02", "2020-01-01")
    await tell(world, "Kyoto", "2023-01-02", end="2022-06-01", kind=END)
    found = await decisions(world)
    assert [one.action for one in found if one.revision == 1] == ["assert_triples"]
    assert {(one.action, one.actor) for one in found if one.revision == 2} == {
        ("assert_triples", "call"),
        ("end_statement", "call"),
    }
    assert [one.target for one in found if one.action == "end_statement"] == [kyoto]


async def test_a_sentence_of_the_voice_ends_and_holds_again(world: World) -> None:
    episode = await world.episode("v", on("2024-01-01"), ["I prefer tea."])
    await resolve(world, episode, voice("I prefer tea.", "passage-v-0"))
    (aspect,) = (await world.memory.voice.list_aspects(world.scope, [], Revision(99), Page())).items

    async def interval() -> tuple[Instant | None, Instant | None]:
        (found,) = await world.memory.voice.aspects(world.scope, [aspect.id])
        span = held(found, await world.memory.revisions.current(world.scope))
        assert span is not None
        return span.start, span.end

    async def end_voice(day: str = "") -> None:
        request = pb.EndVoiceAspectRequest(asker=asker("changed"), voice_id=aspect.id)
        if day:
            request.at = on(day)
        await world.resolver.end_voice_aspect(world.scope, request)

    async def restore_voice() -> int:
        request = pb.RestoreVoiceAspectRequest(asker=asker(), voice_id=aspect.id)
        return (await world.resolver.restore_voice_aspect(world.scope, request)).revision

    await end_voice("2025-01-01")
    assert await interval() == (on("2024-01-01"), on("2025-01-01"))
    await end_voice("2025-03-01")
    assert await interval() == (on("2024-01-01"), on("2025-03-01")), "the last word counts"
    revision = await restore_voice()
    assert await interval() == (on("2024-01-01"), None)
    assert await restore_voice() == revision, "it held already"
    (found,) = await world.memory.voice.aspects(world.scope, [aspect.id])
    assert [(one.why, one.revoked_at) for one in found.ends] == [("changed", revision)] * 2
    with pytest.raises(ValidationFailed):
        await end_voice("2023-01-01")
    with pytest.raises(VoiceAspectNotFound):
        await world.resolver.end_voice_aspect(
            world.scope, pb.EndVoiceAspectRequest(asker=asker(), voice_id=VoiceId("nobody"))
        )
    assert [one.action for one in await decisions(world)][:3] == [
        "restore_voice_aspect",
        "end_voice_aspect",
        "end_voice_aspect",
    ]
