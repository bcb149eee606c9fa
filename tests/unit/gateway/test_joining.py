"""Joining: several episodes in one request, and of each what is its own."""

from gateway.ingest.joining import SHORT_TOKENS, companions, joined, parted
from palimpsest.internal.v1 import recall_pb2, values_pb2
from palimpsest.v1 import episode_pb2
from palimpsest.v1.memory_ingest_pb2 import AddEpisodeRequest

SAID = (("I live in Graz.",), ("You could move.", "Yes."), ("Thanks for that.",))


def contexts() -> list[recall_pb2.GatherContextResponse]:
    return [
        recall_pb2.GatherContextResponse(
            turns=[
                values_pb2.Turn(position=at, text=text, passage_id=f"{episode}/{at}")
                for at, text in enumerate(texts)
            ],
            setting=values_pb2.Setting(
                kind="conversation",
                reference_time=episode,
                recent=["before", *(SAID[0] if episode else ())],
                similar=[f"like {episode}", "like all", *SAID[1]],
                known_facts=[values_pb2.KnownFact(fact="f", statement_id=f"s{episode % 2}")],
                known_entities=["Ana"],
                known_names=[values_pb2.KnownName(name="Ana", also=f"A{episode}")],
            ),
        )
        for episode, texts in enumerate(SAID)
    ]


def fact(turn: int, confirmed_by: int | None = None) -> values_pb2.WorldFact:
    return values_pb2.WorldFact(turn=turn, predicate=f"p{turn}", confirmed_by=confirmed_by)


def test_turns_are_numbered_through_and_what_surrounds_them_is_told_once() -> None:
    joint = joined(contexts())
    request = joint.request
    assert [turn.text for turn in request.turns] == [text for texts in SAID for text in texts]
    assert [turn.position for turn in request.turns] == [0, 1, 2, 3]
    assert (list(request.begins), list(joint.begins)) == ([1, 3], [0, 1, 3, 4])
    setting = request.setting
    assert (list(setting.recent), setting.reference_time) == (["before"], 2)
    assert list(setting.similar) == ["like 0", "like all", "like 1", "like 2"]
    assert [one.statement_id for one in setting.known_facts] == ["s0", "s1"]
    assert list(setting.known_entities) == ["Ana"]
    assert [one.also for one in setting.known_names] == ["A0", "A1", "A2"]


def test_each_episode_has_its_own_facts_and_reasons() -> None:
    surrounded = contexts()
    whole = values_pb2.Understood(
        world=[fact(0), fact(1, confirmed_by=2)],
        voice=[values_pb2.VoiceFact(turn=2, text="v")],
        dropped=[
            values_pb2.DroppedFact(reason="RECALLED_TEXT", turn=3),
            values_pb2.DroppedFact(reason="UNKNOWN_TURN", turn=9),
        ],
        classified=True,
    )
    first, second, third = parted(joined(surrounded), surrounded, whole)
    assert [(one.turn, one.predicate) for one in first.world] == [(0, "p0")]
    assert [(one.turn, one.confirmed_by) for one in second.world] == [(0, 1)]
    assert [one.turn for one in second.voice] == [1]
    assert [(one.reason, one.turn) for one in first.dropped] == [("UNKNOWN_TURN", 9)]
    assert [(one.reason, one.turn) for one in third.dropped] == [("RECALLED_TEXT", 0)]
    assert (first.nothing, second.nothing, third.nothing) == ("", "", "RECALLED_TEXT")
    assert [one.setting.reference_time for one in (first, second, third)] == [0, 1, 2]
    assert all(one.classified for one in (first, second, third))


def test_the_reason_for_nothing_at_all_is_everybodys() -> None:
    surrounded = contexts()
    parts = parted(joined(surrounded), surrounded, values_pb2.Understood(nothing="SMALL_TALK"))
    assert [one.nothing for one in parts] == ["SMALL_TALK"] * 3


def test_only_short_messages_of_one_session_go_together() -> None:
    def key(tokens: tuple[int, ...] = (9,), **changes: object) -> str:
        asked = AddEpisodeRequest(
            kind=episode_pb2.EPISODE_KIND_CONVERSATION, session_id="s", source="chat", text="x"
        )
        for name, value in changes.items():
            setattr(asked, name, value)
        return companions(asked, tokens)

    assert key() == key(text="y") != ""
    assert len({key(), key(session_id="t"), key(source="mail"), key(time_zone="Asia/Shanghai")}) == 4
    alone = [
        key((SHORT_TOKENS + 1,)),
        key((9, 9)),
        key(()),
        key(session_id=""),
        key(document_id="d"),
        key(kind=episode_pb2.EPISODE_KIND_DOCUMENT),
    ]
    assert set(alone) == {""}
