"""Who or what the subject of a Chinese clause is: 我, 她, 我妹妹, 张伟的妻子, a name."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from services.domain.facts import Mention
from services.domain.graph import EntityType
from services.llm.offline.chinese.clause import Clause
from services.llm.offline.chinese.table import table
from services.llm.offline.speaking import Speaking

_I = frozenset({"我", "本人", "我们", "咱们", "俺"})
_YOU = frozenset({"你", "您", "你们"})


@dataclass(frozen=True, slots=True)
class Kinship:
    """`person` is the `predicate` (sister, colleague) of `owner`."""

    owner: Mention
    predicate: str
    word: str
    person: Mention


@dataclass(slots=True)
class People:
    """Resolves the subjects of one sentence.

    `carried` is that of the clause before, `employer` the last (person, employer) told of.
    """

    speaking: Speaking
    carried: Mention | None = None
    first: bool = True
    employer: tuple[Mention, Mention] | None = None

    def subject(self, clause: Clause, begin: int, end: int) -> tuple[Mention | None, Kinship | None]:
        """The subject that a stretch names, and a kinship told in passing ("我妹妹小红")."""
        words = clause.text[begin:end].strip(" ")
        if not words:
            return self._elided(), None
        if words in _I | _YOU or words in {"他", "她", "它"}:
            return self._pronoun(words), None
        if kin := self._kin(clause, begin, end):
            return kin
        if words.endswith("项目") or words.startswith("项目"):
            inner = (begin + 2, end) if words.startswith("项目") else (begin, end - 2)
            named = clause.name(*inner)
            return (Mention(named.name, EntityType.PROJECT) if named else None), None
        mention = clause.name(begin, end)
        if mention is None or not clause.is_proper(begin, end):
            return None, None
        return (
            replace(mention, type=EntityType.PROJECT) if mention.name in self.speaking.projects else mention
        ), None

    def _pronoun(self, words: str) -> Mention | None:
        if words in _I | _YOU:
            speaks = (words in _YOU) == self.speaking.assistant
            return Mention(self.speaking.speaker, EntityType.PERSON) if speaks else None
        if self.carried is not None:
            person = self.carried.type is EntityType.PERSON and self.carried.name != self.speaking.speaker
            if person == (words != "它"):
                return self.carried
        return self.speaking.antecedent(person=words != "它")

    def _elided(self) -> Mention | None:
        """Chinese leaves out what is plain: the subject before, else the one who talks."""
        if self.carried is not None or not self.first:
            return self.carried
        silent = self.speaking.document or self.speaking.assistant or any(self.speaking.recent)
        return None if silent else Mention(self.speaking.speaker, EntityType.PERSON)

    def _kin(self, clause: Clause, begin: int, end: int) -> tuple[Mention | None, Kinship | None] | None:
        pattern = f"(?P<owner>.+?)的?(?P<kin>{table().kin_word})(?P<name>.*)"
        found = re.compile(pattern).fullmatch(clause.text, begin, end)
        if found is None:
            return None
        owner = self.owner(clause, *found.span("owner"))
        if owner is None:
            return None, None
        word, key = found["kin"], (owner.name, found["kin"])
        if found["name"]:
            person = clause.person(*found.span("name"))
            if person is None:
                return None, None
            self.speaking.relatives[key] = person.name
            return person, Kinship(owner, table().kin[word], word, person)
        return Mention(self.speaking.relatives.get(key, f"{owner.name}的{word}"), EntityType.PERSON), None

    def owner(self, clause: Clause, begin: int, end: int) -> Mention | None:
        """Whose something is: 我, 他, a name; nobody where it is not plain."""
        words = clause.text[begin:end]
        if words in _I | _YOU or words in {"他", "她", "它"}:
            return self._pronoun(words)
        mention = clause.name(begin, end)
        return mention if mention is not None and clause.is_proper(begin, end) else None

    def kinships(self, clause: Clause) -> Iterator[Kinship]:
        """As in "我妹妹叫小红", "小红是我的妹妹"."""
        kin = f"(?P<kin>{table().kin_word})"
        for pattern in (
            f"(?P<owner>.+?)的?{kin}(?:的名字)?(?:叫做?|名叫|名字叫|是|为)(?P<name>.+?)",
            f"(?P<name>.+?)(?:现在)?是(?P<owner>.+?)的?{kin}",
        ):
            found = re.fullmatch(pattern, clause.text)
            if found is None:
                continue
            owner = self.owner(clause, *found.span("owner"))
            person = clause.person(*found.span("name"))
            if owner is not None and person is not None and owner.name != person.name:
                self.speaking.relatives[owner.name, found["kin"]] = person.name
                yield Kinship(
                    replace(owner, type=EntityType.PERSON), table().kin[found["kin"]], found["kin"], person
                )
                return
