"""What the model server makes of a text: a table for the repository's cases, plain splitting for the rest.

It stands in for a model that does as it is told. It is no model: a text of neither kind yields little.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from tests import yaml_files
from tests.doubles.model_replies import Asked, Reply, answer, text

MAX_FACTS = 12
"""Of one chunk, in plain splitting."""

_SMALL_TALK = re.compile(
    r"(ok|okay|thanks?|thank you|hi|hello|bye|great|cool|好的|谢谢)\b[^.?]{0,20}[!.?]*", re.IGNORECASE
)
_NO_FACT = re.compile(r"(let me think|hmm+|wait)\b[^a-z]*", re.IGNORECASE)
_SENTENCE = re.compile(r".+?(?:[.!?]+(?=\s|$)|[。！？]|$)", re.MULTILINE)
_TRIPLE = re.compile(
    r"(?P<subject>I|We|My \w+|(?:The |Our )?\w[\w'-]*(?: [A-Z0-9][\w.-]*){0,3})"
    r" (?P<verb>[a-z]\w+) (?P<object>.{2,80})"
)
_TRIPLE_ZH = re.compile(
    r"(?P<subject>\S{1,12}?)(?P<verb>喜欢|住在|在|是|用|有|去|买)了?(?P<object>\S.{0,40})"
)
_VOICE = re.compile(
    r"(always|never|don't|please always"
    r"|i (?:really )?(?:prefer|like|love|hate|want|plan|believe|usually|hope)\b|我(?:喜欢|想|打算|希望))",
    re.IGNORECASE,
)
_ORDER = re.compile(r"ignore (all |the )?previous|system prompt", re.IGNORECASE)

_KINDS = (
    (re.compile(r"always|never|don't|please", re.IGNORECASE), "Directive"),
    (re.compile(r"usually|every (day|week)|often", re.IGNORECASE), "Habit"),
    (re.compile(r"believe|think that", re.IGNORECASE), "Belief"),
    (re.compile(r"want|hope|goal|想|希望", re.IGNORECASE), "Goal"),
    (re.compile(r"plan|todo|打算", re.IGNORECASE), "Task"),
)
_SIMPLIFIED = str.maketrans("張偉陳麗國學華劉", "张伟陈丽国学华刘")
_COMMON = {"works", "lives", "likes", "knows", "uses", "with", "from", "that"}
_IDENTITY = {"lives_in", "works_at", "member_of"}


def understand(asked: Asked) -> Reply:
    """The answer of a model that does as it is told."""
    return _TASKS[asked.task](asked)


@cache
def table() -> Sequence[Mapping[str, Any]]:
    entries: Sequence[Mapping[str, Any]] = yaml_files.read(Path(__file__).with_suffix(".yaml"))
    return entries


def _normalise(asked: Asked) -> Reply:
    texts = [turn["text"].strip() for turn in _said(asked)]
    if not texts:
        return text("<output>NOTHING_TO_REMEMBER RECALLED_TEXT</output>")
    if all(_SMALL_TALK.fullmatch(one) for one in texts):
        return text("<output>NOTHING_TO_REMEMBER SMALL_TALK</output>")
    if all(_is_talk(one) for one in texts):
        return text("<output>NOTHING_TO_REMEMBER NO_DURABLE_FACT</output>")
    user = _user(asked)
    return text("<output>" + "\n".join(re.sub(r"\bI\b", user, one) for one in texts) + "</output>")


def _extract_world(asked: Asked) -> Reply:
    facts: list[dict[str, Any]] = []
    for turn in _said(asked):
        known = _known(turn)
        rows = [(entry["text"], row) for entry in known for row in entry.get("world", [])]
        facts += [_fact(asked, turn, quote, row) for quote, row in rows]
        if not known:
            facts += list(_plain(asked, turn))[: max(0, MAX_FACTS - len(facts))]
    return answer({"facts": facts})


def _extract_voice(asked: Asked) -> Reply:
    found: list[dict[str, Any]] = []
    for turn in _said(asked):
        known = _known(turn)
        voiced = [entry for entry in known if entry.get("voice")]
        found += [_sentence(turn, one["text"], one.get("ends_earlier", False)) for one in voiced]
        if not known and not _ORDER.search(turn["text"]):
            found += [_sentence(turn, one) for one in sentences(turn["text"]) if _VOICE.match(one)]
    return answer({"sentences": found[:MAX_FACTS]})


def _reflect(asked: Asked) -> Reply:
    return answer({"noise_world": [], "noise_voice": []})


def _classify(asked: Asked) -> Reply:
    world = [
        {
            "number": fact["number"],
            "aspect": "Identity" if fact["triple"][1] in _IDENTITY else "Knowledge",
            "event_at": None,
        }
        for fact in asked.blocks.get("world_facts", [])
    ]
    voice = [
        {"number": fact["number"], "aspect": _voice_kind(fact["sentence"])}
        for fact in asked.blocks.get("voice_facts", [])
    ]
    return answer({"world": world, "voice": voice})


def _judge_entities(asked: Asked) -> Reply:
    """SAME for names that can be one thing's where something else speaks for it; in doubt nothing."""
    verdicts = []
    for new, candidate in asked.blocks["pairs"]:
        one, other = asked.blocks["new"][new], asked.blocks["candidates"][candidate]
        if not _one_name(one["name"], other["name"]):
            word = "DIFFERENT"
        elif other["in_text"] or _shared_facts(one, other):
            word = "SAME"
        else:
            continue
        verdicts.append(
            {"new": new, "candidate": candidate, "verdict": word, "why": "by what is said of them"}
        )
    return answer({"verdicts": verdicts})


def _judge_statements(asked: Asked) -> Reply:
    verdicts = []
    for new, candidate in asked.blocks.get("pairs", ()):
        left, right = (
            asked.blocks[name][at]["fact"].lower() for name, at in (("new", new), ("candidates", candidate))
        )
        if left == right:
            verdict = "DUPLICATE"
        elif _opposite(left, right):
            verdict = "CONTRADICTS"
        elif "apple" in left and "apple" in right:
            verdict = "COMPATIBLE"
        else:
            continue
        verdicts.append({"new": new, "candidate": candidate, "verdict": verdict, "why": "as the table says"})
    return answer({"verdicts": verdicts})


def _judge_voice(asked: Asked) -> Reply:
    verdicts = []
    for new, candidate in asked.blocks["pairs"]:
        left = asked.blocks["new"][new]["sentence"].lower()
        right = asked.blocks["candidates"][candidate]["fact"].lower()
        if left == right or _opposite(left, right):
            word = "DUPLICATE" if left == right else "REPLACES"
            verdicts.append({"new": new, "candidate": candidate, "verdict": word, "why": ""})
    return answer({"verdicts": verdicts})


def _summarise(asked: Asked) -> Reply:
    facts = asked.blocks["facts"]
    told = [{"text": fact["fact"], "facts": [fact["number"]]} for fact in facts[:12]]
    label = (asked.blocks.get("labels") or ["Talk"])[0]
    return answer({"title": "What was told there", "labels": [label], "sentences": told})


def _portray(asked: Asked) -> Reply:
    told = [{"text": fact["fact"], "facts": [fact["number"]]} for fact in asked.blocks["facts"]]
    return answer({"sentences": told})


_TASKS: Mapping[str, Callable[[Asked], Reply]] = {
    "normalise": _normalise,
    "extract_world": _extract_world,
    "extract_voice": _extract_voice,
    "reflect": _reflect,
    "classify": _classify,
    "judge_entities": _judge_entities,
    "judge_statements": _judge_statements,
    "judge_voice": _judge_voice,
    "summarise": _summarise,
    "portray": _portray,
}


def _is_talk(said: str) -> bool:
    return bool(_SMALL_TALK.fullmatch(said) or _NO_FACT.fullmatch(said))


def _said(asked: Asked) -> list[Mapping[str, Any]]:
    """The turns that are evidence: not an assistant's."""
    return [turn for turn in asked.blocks["turns"] if turn.get("role") != "assistant"]


def _known(turn: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [entry for entry in table() if entry["text"] in turn["text"]]


def sentences(said: str) -> list[str]:
    """The sentences of a text, each literally in it."""
    return [match.group().strip() for match in _SENTENCE.finditer(said) if match.group().strip()]


def _plain(asked: Asked, turn: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """`X verb Y` as a claim; sentences of another shape, orders, wishes and questions yield nothing."""
    for sentence in sentences(turn["text"]):
        bare = sentence.rstrip(".!。！ ")
        match = _TRIPLE.fullmatch(bare) or _TRIPLE_ZH.fullmatch(bare)
        if match is None or sentence.endswith(("?", "？")):
            continue
        if _VOICE.match(sentence) or _ORDER.search(sentence) or _is_talk(sentence):
            continue
        subject, verb, target = match["subject"], match["verb"], match["object"]
        if subject in {"I", "我"}:
            subject = turn.get("speaker") or _user(asked)
        yield _fact(asked, turn, sentence, ["claim", subject, verb, target, f"{subject} {verb} {target}."])


def _fact(asked: Asked, turn: Mapping[str, Any], quote: str, row: Sequence[Any]) -> dict[str, Any]:
    kind, subject, predicate, target, fact, *rest = row
    more: Mapping[str, Any] = rest[0] if rest else {}
    types = more.get("types", ("Unknown", "Unknown"))
    user = turn.get("speaker") or _user(asked)
    return {
        "kind": kind,
        "subject": subject.replace("{user}", user),
        "subject_type": types[0],
        "predicate": predicate,
        "object": target.replace("{user}", user),
        "object_type": types[1],
        "fact": fact.replace("{user}", user),
        "turn": turn["turn"],
        "quote": quote,
        "start": _time(asked, turn, more.get("start")),
        "end": _time(asked, turn, more.get("end")),
        "seen": None,
        "confidence": 0.9,
        "confirmed_by": None,
    }


def _sentence(turn: Mapping[str, Any], quote: str, ends_earlier: bool = False) -> dict[str, Any]:
    return {"text": quote, "turn": turn["turn"], "quote": quote, "ends_earlier": ends_earlier}


def _time(asked: Asked, turn: Mapping[str, Any], word: str | None) -> str | None:
    said = datetime.fromisoformat(turn.get("said_at") or asked.blocks["setting"][0]["reference_time"]).date()
    match word:
        case "reference":
            return said.isoformat()
        case "last_week":
            return f"{said - timedelta(days=7):%G-W%V}"
        case "last_january":
            return f"{date(said.year, 1, 1):%Y-%m}"
        case "january_last_year":
            return f"{date(said.year - 1, 1, 1):%Y-%m}"
        case _:
            return word


def _user(asked: Asked) -> str:
    return str(asked.blocks["setting"][0]["user"])


def _voice_kind(sentence: str) -> str:
    return next((kind for pattern, kind in _KINDS if pattern.search(sentence)), "Preference")


def _opposite(left: str, right: str) -> bool:
    """Loves and hates of the same thing."""
    feelings = ("loves", "love", "hates", "hate")
    stems = [re.sub(r"\b(loves?|hates?|now)\b|[ .]", "", one) for one in (left, right)]
    felt = [next((word[:4] for word in feelings if word in one), "") for one in (left, right)]
    return stems[0] == stems[1] and set(felt) == {"love", "hate"}


def _one_name(one: str, other: str) -> bool:
    """Whether two names can be one thing's: by initials, as an acronym, in either Chinese script."""
    short, full = sorted((one.lower().translate(_SIMPLIFIED), other.lower().translate(_SIMPLIFIED)), key=len)
    initials = "".join(word[0] for word in full.split())
    begins = short.removesuffix(".").split()
    parts = zip(begins, full.split(), strict=False)
    return short in (full, initials, full[::2]) or (
        len(begins) == len(full.split()) and all(word.startswith(begin) for begin, word in parts)
    )


def _shared_facts(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether something that is no part of their names is said of both."""
    names = set(re.findall(r"\w+", f"{one['name']} {other['name']}".lower()))
    said = [
        set(re.findall(r"\w{4,}", " ".join(fact["fact"] for fact in side["facts"]).lower()))
        for side in (one, other)
    ]
    return bool((said[0] & said[1]) - names - _COMMON)
