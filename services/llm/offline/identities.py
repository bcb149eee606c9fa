"""Which new names are other spellings of known ones, by form and by what the text spells out. Rather none."""

from collections.abc import Iterator, Sequence

from services.domain.likeness import Likeness, Name, fuller, likeness, spelled_out
from services.llm.tasks import EntityVerdict, JudgeEntities, NamedEntity

_MIN_CJK = 2
"""Characters of a Chinese name that is spelled in two scripts."""


def judge_entities(task: JudgeEntities) -> list[EntityVerdict]:
    """SAME where the text puts one name in brackets after the other, or where one text has both.

    The latter: a full name and its initials or another spelling of it, and nobody else is known whom the
    shorter may mean. Never says that two are different: form can't tell.
    """
    every = list(dict.fromkeys(_name(one) for one in (*task.new, *task.candidates)))
    found: list[EntityVerdict] = []
    for new, candidate, one, other in _pairs(task):
        if any(spelled_out(text, one, other) for text in task.said):
            found.append(EntityVerdict(new, candidate, same=True, why="the text spells it out"))
        elif (
            task.new[new].here
            and task.candidates[candidate].here
            and _two_spellings(one, other)
            and not _others(one, other, every)
        ):
            found.append(EntityVerdict(new, candidate, same=True, why="two spellings in one text"))
    return found


def _pairs(task: JudgeEntities) -> Iterator[tuple[int, int, Name, Name]]:
    for pair in task.pairs:
        if 0 <= pair.new < len(task.new) and 0 <= pair.candidate < len(task.candidates):
            yield pair.new, pair.candidate, _name(task.new[pair.new]), _name(task.candidates[pair.candidate])


def _two_spellings(one: Name, other: Name) -> bool:
    match likeness(one, other):
        case Likeness.INITIALS:
            return True
        case Likeness.SPELLING:
            return len(one.words) > 1 or (one.is_cjk and len(one.joined) >= _MIN_CJK)
        case _:
            return False


def _others(one: Name, other: Name, every: Sequence[Name]) -> bool:
    """Whether the shorter name may mean a third one."""
    full, short = (one, other) if fuller(one, other) else (other, one)
    third = [name for name in every if name not in (one, other)]
    return any(likeness(name, short) is not None and likeness(name, full) is None for name in third)


def _name(entity: NamedEntity) -> Name:
    return Name(entity.name, entity.type)
