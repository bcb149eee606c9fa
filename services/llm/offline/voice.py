"""Voice facts: whole sentences in which the user directs, prefers, is used to, believes, aims at or must do.

No parse is needed: these are told by how a sentence begins and by its person (voice.toml).
"""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from services.domain.facts import Turn, VoiceFact
from services.domain.memory import EpisodeKind, Role, VoiceKind
from services.llm.offline.script import is_chinese
from services.llm.offline.sentences import Sentence, Talk
from services.llm.offline.speaking import speaker_of
from services.llm.tasks import Setting

_MIN_WORDS, _MAX_WORDS = 3, 60
_MIN_CHARACTERS, _MAX_CHARACTERS = 4, 120
"""Of a Chinese sentence, whose words don't stand apart."""


@dataclass(frozen=True, slots=True)
class _Cues:
    encouraging: re.Pattern[str]
    kinds: tuple[tuple[VoiceKind, re.Pattern[str]], ...]
    chinese: "_Cues | None" = None


@cache
def _cues() -> _Cues:
    """Raises KeyError or re.error when voice.toml is not well formed."""
    table = tomllib.loads(files(__package__).joinpath("voice.toml").read_text("utf-8"))
    lead, words = table["openings"]["lead"], table["words"]

    def pattern(alternatives: Sequence[str]) -> re.Pattern[str]:
        joined = "|".join(alternatives)
        for name, fragment in words.items():
            joined = joined.replace("{" + name + "}", fragment)
        return re.compile(rf"{lead}(?:{joined})", re.IGNORECASE)

    kinds = tuple((VoiceKind(name), pattern(found)) for name, found in table["kinds"].items())
    return _Cues(pattern(table["openings"]["encouraging"]), kinds, _chinese(table["chinese"]))


def _chinese(table: dict[str, Any]) -> _Cues:
    lead = table["lead"]
    kinds = tuple(
        (VoiceKind(name), re.compile(f"{lead}(?:{'|'.join(found)})"))
        for name, found in table["kinds"].items()
    )
    return _Cues(re.compile(lead + table["never"]), kinds)


def voice_kind(text: str) -> VoiceKind | None:
    """What a sentence of the user's voice is, or None if it is none."""
    plain, cues = text.strip().replace("’", "'"), _cues()
    if is_chinese(plain):
        assert cues.chinese is not None, "read from the same file"
        cues, fits = cues.chinese, _MIN_CHARACTERS <= len(plain) <= _MAX_CHARACTERS
    else:
        fits = _MIN_WORDS <= len(plain.split()) <= _MAX_WORDS
    if not fits or plain.rstrip("\"'”) ").endswith(("?", "？")):
        return None
    if cues.encouraging.match(plain):
        return None
    return next((kind for kind, pattern in cues.kinds if pattern.match(plain)), None)


def voice_facts(turns: Sequence[tuple[Turn, Sequence[Sentence]]], setting: Setting) -> list[VoiceFact]:
    """The user's own sentences that last. A document is nobody's voice, except where it says "I"."""
    mine = _own(turns, setting)
    found: list[VoiceFact] = []
    for turn, sentences in turns:
        if turn.position not in mine:
            continue
        for item in sentences:
            kind = voice_kind(item.text) if item.talk is Talk.STATEMENT else None
            if kind is None or (setting.kind is EpisodeKind.DOCUMENT and not _in_document(kind, item.text)):
                continue
            found.append(VoiceFact(item.text, turn.position, item.text, kind))
    return found


_FIRST_PERSON = re.compile(r"\b(?:i|i'm|i'd|i've|my)\b|我", re.IGNORECASE)


def _in_document(kind: VoiceKind, text: str) -> bool:
    return kind is not VoiceKind.DIRECTIVE and _FIRST_PERSON.search(text) is not None


def _own(turns: Sequence[tuple[Turn, Sequence[Sentence]]], setting: Setting) -> frozenset[int]:
    """The turns that are the user's. Where several people talk, only those under the user's name."""
    candidates = [turn for turn, _ in turns if turn.role in {Role.USER, Role.NONE}]
    speakers = {speaker_of(turn, setting) for turn in candidates}
    if len(speakers) > 1:
        named = setting.user_name.strip().casefold()
        candidates = [turn for turn in candidates if speaker_of(turn, setting).casefold() == named]
    return frozenset(turn.position for turn in candidates)
