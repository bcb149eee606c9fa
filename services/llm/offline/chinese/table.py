"""The shapes and words of chinese.toml, read once."""

import re
import tomllib
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib.resources import files

from services.domain.graph import EntityType
from services.llm.offline.lexicon import Frame


class Kind(Enum):
    """How a shape stands in time."""

    STATE = "state"
    BEGINNING = "beginning"
    ENDING = "ending"
    EVENT = "event"


@dataclass(frozen=True, slots=True)
class Shape:
    """A clause's shape, whole: groups `s` (subject), `past`, `future`, `no`, then its own, then `tail`."""

    pattern: re.Pattern[str]
    kind: Kind
    frame: Frame
    says: str


@dataclass(frozen=True, slots=True)
class Table:
    """What the rules know."""

    shapes: tuple[Shape, ...]
    kin: dict[str, str]
    pets: dict[str, str]
    roles: dict[str, str]
    favourites: dict[str, str]
    says: dict[str, str]
    lead: re.Pattern[str]
    doubt: re.Pattern[str]
    occupations: tuple[str, ...]
    organisations: tuple[str, ...]
    companies: frozenset[str]
    groups: tuple[str, ...]
    vague: frozenset[str]
    answers: re.Pattern[str]
    before_verb: str
    """Adverbs, what is over, what is to come, and a negation, as groups."""

    @property
    def kin_word(self) -> str:
        return "|".join(sorted(self.kin, key=len, reverse=True))


_NO = "(?P<no>再也不|已经不|不再|从来没有?|从没有?|从未|没有?|不)?"
_TAIL = "(?P<tail>过?(?:了|的|呢|啦|着)?)"
MEASURE = "(?:[一二两三几]?(?:辆|台|部|只|条|套|个|本|把|件|座|栋))?"


@cache
def table() -> Table:
    """The shipped table. Raises KeyError, ValueError or re.error when its file is not well formed."""
    read = tomllib.loads(files(__package__).joinpath("chinese.toml").read_text("utf-8"))
    words = read["words"]
    # Possessive, the longest first: a run of adverbs is read once, however long it is.
    adverbs = f"(?:{'|'.join(sorted(words['adverbs'].split('|'), key=len, reverse=True))})*+"
    past, future = f"(?P<past>{words['formerly']})?", f"(?P<future>{words['future']})?"
    before = f"{adverbs}{past}{adverbs}{future}{adverbs}{_NO}{adverbs}"
    shapes = tuple(
        _shape(one, text, f"(?P<s>.*?){before}") for one in read["shapes"] for text in one["shapes"]
    )
    return Table(
        shapes=shapes,
        kin=_by_word(read["kin"]),
        pets={word: line.split()[0] for line in read["pets"]["kinds"] for word in line.split()},
        roles=_by_word(read["roles"]),
        favourites=_by_word(read["favourites"]),
        says={shape.frame.predicate: shape.says for shape in shapes},
        lead=re.compile(f"(?:(?:{words['lead']})[,，]?)++"),
        doubt=re.compile(words["doubt"]),
        occupations=tuple(words["occupations"].split("|")),
        organisations=tuple(words["organisations"].split("|")),
        companies=frozenset(words["companies"].split("|")),
        groups=tuple(words["groups"].split("|")),
        vague=frozenset(words["vague"].split("|")),
        answers=re.compile(f"(?:{words['answers']})$"),
        before_verb=before,
    )


def _by_word(lines: dict[str, str]) -> dict[str, str]:
    return {word: predicate for predicate, words in lines.items() for word in words.split()}


def _shape(one: dict[str, str], text: str, before: str) -> Shape:
    inner = text.replace("{o}", "(?P<o>.+?)").replace("{x}", "(?P<x>.+?)").replace("{m}", MEASURE)
    predicate, *types = one["frame"].split()
    subject, target = (EntityType.UNKNOWN if name == "-" else EntityType(name) for name in types)
    return Shape(
        re.compile(f"{before}{inner}{_TAIL}"),
        Kind(one["nature"]),
        Frame(predicate, subject, target),
        one["says"],
    )
