"""One Chinese clause: its words, and which stretches of it are names of what."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from services.domain.facts import Mention
from services.domain.graph import EntityType
from services.llm.offline.chinese.segments import Segment
from services.llm.offline.chinese.table import table
from services.llm.offline.lexicon import lexicon

_QUOTES = "《》「」『』“”‘’\"' "
_MAX_NAME = 30
_NAMING = frozenset({"PER", "LOC", "ORG", "nz", "nw"})
_NOMINAL = _NAMING | {"n", "vn", "m", "an"}
_TYPES = {"PER": EntityType.PERSON, "LOC": EntityType.PLACE, "ORG": EntityType.ORGANIZATION}
_PLACE_ENDINGS = ("市", "县", "区", "镇", "村", "省", "州", "国", "路", "街")
_LATIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9 .+#/_'&-]*")


@dataclass(frozen=True, slots=True)
class Clause:
    """The words of a clause; times are already out of it."""

    text: str
    segments: Sequence[Segment]

    def over(self, begin: int, end: int) -> list[Segment]:
        """The words that have a part in `text[begin:end]`."""
        return [one for one in self.segments if one.begin < end and begin < one.end]

    def parts(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """The members of a list: "Python、Go和Redis"."""
        start = begin
        for one in self.over(begin, end):
            joins = one.text in {"、", "以及"} or (
                one.tag in {"c", "p"} and one.text in {"和", "与", "及", "跟"}
            )
            if joins and one.begin > start:
                yield start, one.begin
                start = one.end
        if start < end:
            yield start, end

    def tags(self, begin: int, end: int) -> frozenset[str]:
        """The parts of speech of a stretch, but for Latin script, which is always a name."""
        return frozenset(
            one.tag for one in self.over(begin, end) if not _LATIN.fullmatch(one.text.strip() or "a")
        )

    def name(self, begin: int, end: int, *, also: frozenset[str] = frozenset()) -> Mention | None:
        """What `text[begin:end]` names, or None where it is no plain noun.

        `also` are further parts of speech that may stand in it.
        """
        words = self.text[begin:end].strip(_QUOTES)
        if not words or len(words) > _MAX_NAME or words in table().vague or words[0] in "的了着过":
            return None
        if not any(letter.isalnum() for letter in words) or words.isdecimal():
            return None
        if not self.tags(begin, end) <= _NOMINAL | also or self._cuts(begin, end):
            return None
        return Mention(words, self.type_of(begin, end))

    def _cuts(self, begin: int, end: int) -> bool:
        """True where a border lies within a name."""
        return any(
            one.tag in _NAMING and (one.begin < begin < one.end or one.begin < end < one.end)
            for one in self.over(begin, end)
        )

    def type_of(self, begin: int, end: int) -> EntityType:
        words = self.text[begin:end].strip(_QUOTES)
        if lexicon().is_technology(words):
            return EntityType.TECHNOLOGY
        if words in table().companies or words.endswith(table().organisations):
            return EntityType.ORGANIZATION
        tags = [one.tag for one in self.over(begin, end)]
        if set(tags) == {"LOC"} or len(tags) == 1:
            return _TYPES.get(tags[0], EntityType.UNKNOWN)
        return EntityType.UNKNOWN

    def is_proper(self, begin: int, end: int) -> bool:
        """True for what is a name rather than a common noun."""
        words = self.text[begin:end].strip(_QUOTES)
        return (
            words in table().companies
            or _LATIN.fullmatch(words) is not None
            or any(one.tag in _NAMING for one in self.over(begin, end))
        )

    def person(self, begin: int, end: int) -> Mention | None:
        """The person that a stretch names."""
        mention = self.name(begin, end)
        if mention is None or not self.is_proper(begin, end) or "ORG" in self.tags(begin, end):
            return None
        return Mention(mention.name, EntityType.PERSON)

    def place(self, begin: int, end: int, *, home: bool = False) -> Mention | None:
        """The place that a stretch names. Where one lives is one, though the tagger took it for a person."""
        mention, tags = self.name(begin, end), self.tags(begin, end)
        alone = home and len(self.over(begin, end)) == 1 and tags <= {"PER", "nz"}
        if mention is None or (not alone and {"PER", "ORG"} & tags):
            return None
        sure = alone or "LOC" in tags or _LATIN.fullmatch(mention.name)
        if mention.name in table().companies or not (sure or mention.name.endswith(_PLACE_ENDINGS)):
            return None
        return Mention(mention.name, EntityType.PLACE)

    def organisation(self, begin: int, end: int) -> Mention | None:
        """The company or school that a stretch names; a club or a team is none."""
        mention = self.name(begin, end, also=frozenset({"v"}))
        if mention is None or mention.name.endswith(table().groups) or mention.name in table().organisations:
            return None
        known = mention.name in table().companies
        if not (known or self.is_proper(begin, end)) or {"PER"} == self.tags(begin, end):
            return None
        if self.tags(begin, end) == {"LOC"} and not known:
            return None
        return Mention(mention.name, EntityType.ORGANIZATION)
