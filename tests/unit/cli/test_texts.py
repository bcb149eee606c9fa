"""Files as requests: documents, lines of JSON, a chat export; and what can't be taken, told one by one."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from palimpsest import chats
from palimpsest.chats import MOST_MESSAGES, Unreadable, chosen_id
from palimpsest.texts import Format, NotTaken, Request, Text, find, named_by_content, read
from palimpsest.v1 import episode_pb2

USER, ASSISTANT = episode_pb2.MESSAGE_ROLE_USER, episode_pb2.MESSAGE_ROLE_ASSISTANT


def taken(path: Path, format: Format | None = None) -> tuple[list[Text], dict[str, str]]:
    """The texts of all files, and what is not taken, with why."""
    found = [one for file in find(path, format) for one in read(file)]
    not_taken = {one.name: one.why for one in found if isinstance(one, NotTaken)}
    return [one for one in found if isinstance(one, Text)], not_taken


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    os.utime(path, (1_750_000_000, 1_750_000_000))
    return path


def test_a_folder_is_documents_by_their_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "notes" / "b.txt", "Ana likes tea.")
    write(tmp_path / "notes" / "a" / "深.md", "\ufeff# 我的笔记\n\n我住在北京。")
    texts, not_taken = taken(Path("notes"))
    assert not_taken == {}
    assert [text.name for text in texts] == ["notes/a/深.md", "notes/b.txt"]
    chinese, english = (text.request for text in texts)
    assert (chinese.document_id, chinese.title) == ("notes/a/深.md", "我的笔记")
    assert (english.text, english.title, english.kind) == ("Ana likes tea.", "b", 2)
    assert english.reference_time.seconds == 1_750_000_000


def test_nothing_is_passed_over_in_silence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    broken = {
        "binary.txt": (b"PNG\0\1", "binary, not text"),
        "latin.md": ("Müller".encode("latin-1"), "not UTF-8"),
        "empty.txt": (b" \n", "empty"),
        "other.json": (b'{"a": 1}', "no chat export"),
        "bad.json": (b"{", "not JSON"),
    }
    for name, (content, _) in broken.items():
        write(tmp_path / "all" / name, content)
    write(tmp_path / "all" / "photo.png", b"PNG")
    write(tmp_path / "all" / ".git" / "config", "x")
    (tmp_path / "all" / "link.md").symlink_to(tmp_path / "all" / "latin.md")
    found = [one for file in find(Path("all")) for one in read(file)]
    why = {one.name.removeprefix("all/"): one for one in found if isinstance(one, NotTaken)}
    assert len(why) == len(found) == len(broken) + 3
    for name, (_, told) in broken.items():
        assert told in why[name].why
        assert why[name].broken
    assert not any(why[name].broken for name in ("photo.png", ".git", "link.md"))
    (alone, *_), _ = taken(write(tmp_path / "x.log", "Ana likes tea."))
    assert alone.request.text == "Ana likes tea.", "named by itself it is taken"


def test_lines_of_json_are_messages_conversations_or_requests(tmp_path: Path) -> None:
    lines = [
        {"role": "user", "content": "I moved to Linz.", "time": "2025-06-02T09:00:00Z", "session": "s"},
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "Nice!"}, {"type": "image"}],
            "session": "s",
        },
        {"role": "human", "text": "Alone.", "name": "Ana", "id": "m1", "time": 1_748_851_200},
        {"messages": [{"role": "user", "content": "Hello."}], "id": "c1"},
        {"text": "Ana likes tea.", "sessionId": "t", "referenceTime": "2025-06-02T00:00:00Z"},
    ]
    bad = [
        "{",
        "[]",
        '{"role": "cook", "content": "x"}',
        '{"txt": 1}',
        '{"role": "user", "content": 5}',
        "{}",
    ]
    bad += ['{"role": "user", "content": "x", "time": "soon"}', '{"messages": [3]}', '{"messages": []}']
    file = write(tmp_path / "chat.jsonl", "\n".join([*map(json.dumps, lines), *bad, ""]))
    texts, not_taken = taken(file)
    assert len(not_taken) == len(bad), not_taken
    by_session = {text.request.session_id: text.request for text in texts}
    said = [(one.role, one.text, one.speaker) for one in by_session["s"].messages.messages]
    assert said == [(USER, "I moved to Linz.", ""), (ASSISTANT, "Nice!", "")]
    assert by_session["s"].reference_time.ToJsonString() == "2025-06-02T09:00:00Z"
    (alone,) = by_session[str(file)].messages.messages
    assert (alone.message_id, alone.speaker, alone.time.seconds) == ("m1", "Ana", 1_748_851_200)
    assert by_session["c1"].messages.messages[0].text == "Hello."
    assert by_session["t"].text == "Ana likes tea."
    assert {text.request.kind for text in texts} == {episode_pb2.EPISODE_KIND_CONVERSATION}


def node(id: str, parent: str | None, role: str, *parts: Any, kind: str = "text", at: float = 0) -> Any:
    message = {
        "id": f"m-{id}",
        "author": {"role": role, "name": None},
        "create_time": at or None,
        "content": {"content_type": kind, "parts": list(parts)},
    }
    return {"id": id, "message": message, "parent": parent, "children": []}


def test_an_export_is_read_along_its_current_branch(tmp_path: Path) -> None:
    nodes = [
        {"id": "root", "message": None, "parent": None, "children": ["sys"]},
        node("sys", "root", "system", ""),
        node(
            "q",
            "sys",
            "user",
            "I work at Initech.",
            {"asset_pointer": "x"},
            kind="multimodal_text",
            at=1_700_000_000.5,
        ),
        node("old", "q", "assistant", "An answer that was made again."),
        node("code", "q", "assistant", "print(1)", kind="code"),
        node("new", "code", "assistant", "Noted."),
    ]
    mapping = {one["id"]: one for one in nodes}
    exported = [
        {"title": "Work\n  and more", "conversation_id": "c1", "mapping": mapping, "current_node": "new"},
        {"title": "", "mapping": {"x": {"message": None, "parent": "gone"}}, "current_node": "x"},
    ]
    texts, not_taken = taken(write(tmp_path / "conversations.json", json.dumps(exported)))
    (request,) = (text.request for text in texts)
    assert (request.session_id, request.title) == ("c1", "Work and more")
    assert [(one.message_id, one.role, one.text) for one in request.messages.messages] == [
        ("m-q", USER, "I work at Initech."),
        ("m-new", ASSISTANT, "Noted."),
    ]
    assert request.messages.messages[0].time.ToMilliseconds() == 1_700_000_000_500
    assert list(not_taken.values()) == ["a conversation whose messages don't hang together"]


def test_a_tree_that_runs_in_circles_ends() -> None:
    mapping = {"a": node("a", "b", "user", "Hello."), "b": node("b", "a", "assistant", "Hi.")}
    (part,) = chats.export_of(json.dumps({"mapping": mapping, "current_node": "a"}))
    assert part.request is not None
    assert [one.text for one in part.request.messages.messages] == ["Hi.", "Hello."]
    with pytest.raises(Unreadable, match="not JSON"):
        list(chats.export_of("[" * 100_000))


def test_a_long_conversation_is_several_requests_of_one_session() -> None:
    lines = "\n".join(
        json.dumps({"role": "user", "content": f"I have {n} cats."}) for n in range(MOST_MESSAGES + 1)
    )
    first, second = (part.request for part in chats.lines_of(lines, "s"))
    assert first is not None
    assert second is not None
    assert (first.session_id, second.session_id) == ("s", "s")
    ids = [one.message_id for request in (first, second) for one in request.messages.messages]
    assert len(set(ids)) == MOST_MESSAGES + 1


def test_request_ids_follow_content_alone() -> None:
    one = Request(graph_id="g", text="Ana likes tea.")
    asked = Request(graph_id="g", text="Ana likes tea.", validate_only=True, max_credits_micros=5)
    assert named_by_content(one) == named_by_content(asked)
    assert len(named_by_content(one)) <= 64
    for other in (Request(graph_id="h", text=one.text), Request(graph_id="g", text="Ana likes tea")):
        assert named_by_content(other) != named_by_content(one)


def test_ids_that_are_too_long_stay_apart() -> None:
    long = [chosen_id("深" * 200 + end) for end in "ab"]
    assert len(set(long)) == 2
    assert all(len(one.encode()) <= 256 for one in long)
    assert chosen_id("a\nb") != chosen_id("a b") == "a b"
