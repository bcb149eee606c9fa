"""What one Chinese clause says: triples by its shape, before times and quotes are added."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from services.domain.facts import FactKind, Mention
from services.domain.graph import EntityType, Literal, LiteralKind
from services.domain.names import literal
from services.llm.offline.chinese.clause import Clause
from services.llm.offline.chinese.people import Kinship, People
from services.llm.offline.chinese.table import MEASURE, Kind, Shape, table
from services.llm.offline.clauses import Tense
from services.llm.offline.drafts import LIKELY, TOLD, Nature


@dataclass(frozen=True, slots=True)
class Said:
    """A triple without its times. `timeless` ones are told in passing."""

    kind: FactKind
    subject: Mention
    predicate: str
    object: Mention | Literal
    sentence: str
    nature: Nature = Nature.STATE
    tense: Tense = Tense.PRESENT
    never: bool = False
    timeless: bool = False
    confidence: float = TOLD


def sentence_of(says: str, subject: Mention, target: Mention | Literal) -> str:
    """The fact as a sentence that stands alone."""
    return says.format(s=subject.name, o=target.text if isinstance(target, Literal) else target.name)


def read_clause(clause: Clause, people: People) -> list[Said]:
    """What a clause says; the first of the rules that says anything is taken."""
    for rule in (_kinships, _pets, _roles, _kinds, _left, _shapes):
        if said := [one for one in rule(clause, people) if _is_sound(one)]:
            for one in said:
                if one.predicate == "works_at" and isinstance(one.object, Mention):
                    people.employer = one.subject, one.object
            return said
    return []


def _is_sound(said: Said) -> bool:
    return not (isinstance(said.object, Mention) and said.object.name == said.subject.name)


def of_kinship(kin: Kinship, *, timeless: bool = False) -> Said:
    """`Ana的妹妹是小红`, as (Ana, sister, 小红)."""
    words = f"{kin.owner.name}的{kin.word}是{kin.person.name}。"
    return Said(FactKind.CLAIM, kin.owner, kin.predicate, kin.person, words, timeless=timeless)


def _kinships(clause: Clause, people: People) -> Iterator[Said]:
    for kin in people.kinships(clause):
        people.carried = kin.person
        yield of_kinship(kin)


def _pets(clause: Clause, people: People) -> Iterator[Said]:
    pets = "|".join(sorted(table().pets, key=len, reverse=True))
    found = re.fullmatch(
        rf"(?P<s>.*?)(?:(?:养了?|有){MEASURE}|的?)(?P<pet>{pets})(?:的名字)?(?:叫做?|名叫|名字叫|是)(?P<o>.+?)",
        clause.text,
    )
    if found is None:
        return
    owner, _ = people.subject(clause, *found.span("s"))
    name = clause.name(*found.span("o"))
    if owner is None or name is None or len(name.name) > 8:
        return
    pet = Mention(name.name)
    yield Said(FactKind.CLAIM, owner, "has_pet", pet, f"{owner.name}养了{pet.name}。")
    kind = Mention(table().pets[found["pet"]], EntityType.CONCEPT)
    yield Said(FactKind.CLAIM, pet, "is_a", kind, f"{pet.name}是{kind.name}。", timeless=True)


_LITERAL = frozenset({"email", "phone_number", "birthday", "deadline"})
_POSTS = frozenset({"chief_executive", "cto", "president", "founder", "owner"})


def _roles(clause: Clause, people: People) -> Iterator[Said]:
    """As in "阿特拉斯的主数据库是MySQL", "王芳是谷歌的CEO", "我最喜欢的颜色是蓝色"."""
    roles = "|".join(sorted(table().roles, key=len, reverse=True))
    favourites = "|".join(sorted(table().favourites, key=len, reverse=True))
    if found := re.fullmatch(
        rf"(?P<s>.+?)最(?:喜欢|爱)的(?P<role>{favourites})(?:就)?是(?P<o>.+?)", clause.text
    ):
        yield from _role(clause, people, found, table().favourites[found["role"]], "最喜欢的")
    elif found := re.fullmatch(
        rf"(?P<s>.+?)的?(?P<role>{roles})(?:现在|目前)?(?:就)?(?:是|为|叫)(?P<o>.+?)", clause.text
    ):
        yield from _role(clause, people, found, table().roles[found["role"]], "的")
    elif found := re.fullmatch(
        rf"(?P<o>.+?)(?:现在|目前)?(?P<no>不再)?是(?P<s>.+?)的?(?P<role>{roles})(?P<tail>了)?", clause.text
    ):
        predicate = table().roles[found["role"]]
        person = clause.person(*found.span("o"))
        owner = people.owner(clause, *found.span("s")) or clause.organisation(*found.span("s"))
        if predicate in _POSTS and person is not None and owner is not None:
            kind = FactKind.END if found["no"] else FactKind.CLAIM
            people.carried = person
            yield Said(kind, owner, predicate, person, f"{owner.name}的{found['role']}是{person.name}。")


def _role(clause: Clause, people: People, found: re.Match[str], predicate: str, words: str) -> Iterator[Said]:
    owner, _ = people.subject(clause, *found.span("s"))
    target: Mention | Literal | None
    if predicate in _LITERAL:
        target = literal(LiteralKind.STRING, found["o"])
    else:
        target = clause.name(*found.span("o"), also=frozenset({"a"}))
    if owner is None or target is None:
        return
    if predicate == "job_title" and isinstance(target, Mention):
        target = Mention(target.name, EntityType.CONCEPT)
    people.carried = owner
    sentence = sentence_of("{s}" + words + found["role"] + "是{o}。", owner, target)
    yield Said(FactKind.CLAIM, owner, predicate, target, sentence)


_AGE = re.compile(r"(?P<s>.*?)(?:今年|现在|已经)?(?P<n>\d{1,3})岁(?:了)?")
_KIND = re.compile(
    r"(?P<s>.*?)(?:现在|目前|也|就)?(?P<no>已经不|不再)?是(?P<one>一?[名位个])?(?:(?P<at>.+?)的)?(?P<o>.+?)(?P<tail>了)?"
)


def _kinds(clause: Clause, people: People) -> Iterator[Said]:
    """As in "我34岁", "王芳是一名医生", "她是谷歌的工程师"."""
    if found := _AGE.fullmatch(clause.text):
        owner, _ = people.subject(clause, *found.span("s"))
        if owner is not None and owner.type in {EntityType.PERSON, EntityType.UNKNOWN}:
            people.carried = owner
            age = literal(LiteralKind.NUMBER, found["n"])
            yield Said(FactKind.CLAIM, owner, "age", age, f"{owner.name}的年龄是{age.text}岁。")
        return
    found = _KIND.fullmatch(clause.text)
    if found is None or not found["o"].endswith(table().occupations):
        return
    owner, kin = people.subject(clause, *found.span("s"))
    target = clause.name(*found.span("o"), also=frozenset({"a", "v"}))
    if owner is None or target is None or (found["o"].endswith(tuple(table().kin)) and not found["one"]):
        return
    people.carried = owner = replace(owner, type=EntityType.PERSON)
    if kin is not None:
        yield of_kinship(kin, timeless=True)
    kind = FactKind.END if found["no"] else FactKind.CLAIM
    target = Mention(target.name, EntityType.CONCEPT)
    yield Said(kind, owner, "is_a", target, f"{owner.name}是{target.name}。")
    employer = clause.organisation(*found.span("at")) if found["at"] else None
    if employer is not None and kind is FactKind.CLAIM:
        yield Said(kind, owner, "works_at", employer, sentence_of(table().says["works_at"], owner, employer))


def _shapes(clause: Clause, people: People) -> Iterator[Said]:
    for shape in table().shapes:
        found = shape.pattern.fullmatch(clause.text)
        if found is None:
            continue
        told = [people.subject(clause, *stretch) for stretch in _subjects(clause, *found.span("s"))]
        subjects = [subject for subject, _ in told if subject is not None]
        said = [one for subject in subjects for one in _of_shape(clause, shape, found, subject)]
        if said and len(subjects) == len(told):
            people.carried = said[0].subject if len(told) == 1 else None
            yield from (of_kinship(kin, timeless=True) for _, kin in told if kin is not None)
            yield from said
            return


def _subjects(clause: Clause, begin: int, end: int) -> list[tuple[int, int]]:
    """The subjects of "李雷和韩梅梅住在成都"; one that is left out is one too."""
    return list(clause.parts(begin, end)) or [(begin, end)]


_LEFT = re.compile(r"(?P<s>.*?)(?:已经|正式|刚刚|刚)?(?:离职|辞职|辞了职|退休|离开公司)了?")


def _left(clause: Clause, people: People) -> Iterator[Said]:
    """As in "2024年离职": of the employer that the sentence has named."""
    found = _LEFT.fullmatch(clause.text)
    employer = people.employer
    if found is None or employer is None:
        return
    subject, _ = people.subject(clause, *found.span("s"))
    if subject is not None and subject.name == employer[0].name:
        sentence = sentence_of(table().says["works_at"], *employer)
        yield Said(FactKind.END, subject, "works_at", employer[1], sentence)


def _of_shape(clause: Clause, shape: Shape, found: re.Match[str], subject: Mention) -> Iterator[Said]:
    frame, kind, predicate = shape.frame, _kind(shape, found), shape.frame.predicate
    if kind is None or (
        subject.type is EntityType.UNKNOWN and frame.subject is EntityType.PERSON and _is_thing(subject)
    ):
        return
    if frame.subject is not EntityType.UNKNOWN and subject.type is not EntityType.PERSON:
        subject = replace(subject, type=frame.subject)
    groups, says = found.groupdict(), shape.says
    if role := groups.get("role"):
        named = table().roles.get(role.strip())
        if named is None:
            return
        predicate, says = named, "{s}的" + role + "是{o}。"
    tense = (
        Tense.FUTURE if found["future"] else (Tense.PAST if shape.kind is not Kind.STATE else Tense.PRESENT)
    )
    nature = Nature(shape.kind.value) if shape.kind is not Kind.ENDING else Nature.STATE
    never = kind is FactKind.DENIAL and found["no"].startswith(("从", "没"))
    if groups.get("x"):
        left = _target(clause, shape, found.span("x"))
        if left is None or kind is not FactKind.CLAIM:
            return
        yield Said(FactKind.END, subject, predicate, left, sentence_of(says, subject, left), tense=tense)
    stretches = [found.span("language")] if groups.get("language") else _members(clause, *found.span("o"))
    for stretch in stretches:
        target = _target(clause, shape, stretch)
        if target is None:
            return
        at, words = predicate, says
        if predicate == "works_at" and target.type is EntityType.PLACE:
            at, words = "works_in", "{s}在{o}工作。"
        yield Said(kind, subject, at, target, sentence_of(words, subject, target), nature, tense, never)
        if kind is FactKind.DENIAL and at == "likes":
            yield Said(FactKind.CLAIM, subject, "dislikes", target, f"{subject.name}不喜欢{target.name}。")
    if (job := groups.get("job")) and (post := clause.name(*found.span("job"), also=frozenset({"a", "v"}))):
        title = Mention(post.name, EntityType.CONCEPT)
        words = f"{subject.name}的职位是{job}。"
        yield Said(kind, subject, "job_title", title, words, nature, tense, never, confidence=LIKELY)


def _members(clause: Clause, begin: int, end: int) -> list[tuple[int, int]]:
    """The members of a list; "晴朗、温暖的天气" is none."""
    parts = list(clause.parts(begin, end))
    return [(begin, end)] if any(clause.tags(*part) == {"a"} for part in parts[:-1]) else parts


def _is_thing(subject: Mention) -> bool:
    return subject.name.endswith(table().organisations) or subject.name in table().companies


def _kind(shape: Shape, found: re.Match[str]) -> FactKind | None:
    """Whether the clause claims, ends or denies; None where what it says is not plain."""
    no, over = found["no"] or "", found["tail"].endswith("了")
    outside = found.string[found.end("s") :].replace("过敏", "")
    experienced = "过" in outside and shape.kind is Kind.STATE
    if shape.kind is Kind.ENDING:
        return FactKind.END if not no else None
    if not no:
        return FactKind.END if shape.kind is Kind.STATE and (found["past"] or experienced) else FactKind.CLAIM
    if no in {"不再", "再也不", "已经不"} or (over and shape.kind is Kind.STATE):
        return FactKind.END if shape.kind is Kind.STATE else None
    if no.startswith("从") or "过" in outside:
        return FactKind.DENIAL if no != "不" else None
    return FactKind.DENIAL if no == "不" and shape.kind is Kind.STATE else None


def _target(clause: Clause, shape: Shape, span: tuple[int, int]) -> Mention | None:
    """The object of a shape, if it is of the kind that the shape asks for."""
    predicate, joins = shape.frame.predicate, shape.kind is not Kind.STATE
    match shape.frame.object:
        case EntityType.PLACE:
            return clause.place(*span, home=predicate == "lives_in")
        case EntityType.PERSON:
            return clause.person(*span)
        case EntityType.ORGANIZATION:
            found = clause.organisation(*span)
            if found is None and predicate == "works_at" and (place := clause.place(*span)):
                return Mention(place.name, EntityType.ORGANIZATION) if joins else place
            return found
        case _:
            return _thing(clause, shape, span)


_PROPER = frozenset({"uses", "owns", "works_on", "runs_on", "deployed_on", "depends_on", "subscribes_to"})
_TASTES = frozenset({"likes", "loves", "hates", "interested_in", "allergic_to"})


def _thing(clause: Clause, shape: Shape, span: tuple[int, int]) -> Mention | None:
    predicate = shape.frame.predicate
    if predicate == "speaks":
        words = clause.text[span[0] : span[1]]
        return Mention(words, EntityType.CONCEPT)
    found = clause.name(*span, also=frozenset({"v", "a", "u", "ns"}) if predicate in _TASTES else frozenset())
    if found is None or table().answers.search(found.name):
        return None
    if predicate in _PROPER and not clause.is_proper(*span) and shape.kind is not Kind.ENDING:
        return None
    if predicate in _TASTES and any(word in found.name for word in ("一些", "东西", "事情")):
        return None
    given = shape.frame.object
    return Mention(found.name, given) if found.type is EntityType.UNKNOWN else found
