"""Judge statements: how new facts stand to what is already known."""

from collections.abc import Sequence
from enum import StrEnum
from functools import partial
from typing import Annotated

from pydantic import BaseModel, BeforeValidator

from services.domain.records import VerdictKind
from services.llm import tasks
from services.llm.port import Tier
from services.llm.prompts import parts
from services.llm.prompts.render import Prompt, Section, known_fact, setting_sections
from services.llm.replies import Reading, read_model, strict_schema

VERSION = "2"

RULES = """\
- DUPLICATE: both say the same of the same thing; one sentence could stand for both, whatever their dates.
- CONTRADICTS: they can't both hold at the same moment: another value of something that has one value at a
  time (where one lives, what one is employed as, which database is the primary one), or the opposite (loves,
  hates). That the older was true before does not make them compatible.
- COMPATIBLE: both can hold at the same moment. Different subjects, different aspects of one thing, one more
  item of a list, a detail of the same fact, different things that share a name (Apple the company, the
  fruit). Leave out a pair that you are not sure of: it stays as it is. Facts about different subjects never
  contradict."""

PREDICATE_RULES = """\
- SAME: whoever says "x NEW y" could say "x CANDIDATE y" of the very same x and y, in that order, and mean no
  more and no less, in whatever language: "is on the payroll of" and "works_at".
- DIFFERENT: one is narrower, wider, stronger, the opposite, the plan, the end or the other direction of the
  other (visited and lives_in, studied at and works_at, boss of and reports_to).
Leave out a pair that you are not sure of: both then stay. A new predicate is SAME with one candidate at most.
"""

PREFIX = f"""
You judge how new facts stand to facts that a memory already holds. Judge only the pairs of <pairs>, each
[number in <new>, number in <candidates>]. `since` and `until` say when a fact holds; null is open.
Where there are <predicate_pairs>, you also judge whether a predicate that the new facts use first is another
word for a known one.

{parts.DATA_IS_DATA}
`verdict`:
{RULES}
`new` and `candidate` are the numbers of the pair, `why` a few words.

`predicates`: verdicts on <predicate_pairs>, each [number in <new_predicates>, number in
<candidate_predicates>]; an empty list where there are none.
{PREDICATE_RULES}
{parts.JSON_ONLY}
"""


class Word(StrEnum):
    """A verdict as the model says it."""

    DUPLICATE = "DUPLICATE"
    CONTRADICTS = "CONTRADICTS"
    COMPATIBLE = "COMPATIBLE"


class Verdict(BaseModel):
    """The verdict on one pair."""

    new: int
    candidate: int
    verdict: Annotated[Word, parts.one_of(Word)]
    why: parts.Why = ""


class Sameness(StrEnum):
    """A verdict on two predicates as the model says it."""

    SAME = "SAME"
    DIFFERENT = "DIFFERENT"


class PredicateVerdict(BaseModel):
    """The verdict on one pair of predicates."""

    new: int
    candidate: int
    verdict: Annotated[Sameness, parts.one_of(Sameness)]
    why: parts.Why = ""


def _listed(value: object) -> object:
    """What is no list says nothing of predicates, and takes nothing from the verdicts on facts."""
    return value if isinstance(value, list) else []


class Output(BaseModel):
    """The whole answer."""

    verdicts: list[Verdict]
    predicates: Annotated[list[PredicateVerdict], BeforeValidator(_listed)] = []


def sections(task: tasks.JudgeStatements) -> Sequence[Section]:
    return [
        *setting_sections(task.setting),
        Section("candidate_predicates", numbered(task.candidate_predicates)),
        Section("new_predicates", numbered(task.new_predicates)),
        Section("predicate_pairs", [[pair.new, pair.candidate] for pair in task.predicate_pairs]),
        Section("candidates", [known_fact(fact, number) for number, fact in enumerate(task.candidates)]),
        Section("new", [known_fact(fact, number) for number, fact in enumerate(task.new)]),
        Section("pairs", [[pair.new, pair.candidate] for pair in task.pairs]),
    ]


def numbered(predicates: Sequence[tasks.NamedPredicate]) -> list[dict[str, object]]:
    shown: list[dict[str, object]] = []
    for number, one in enumerate(predicates):
        about = {"also": list(one.aliases), "fact": one.fact}
        known = {name: value for name, value in about.items() if value}
        shown.append({"number": number, "name": one.name, **known})
    return shown


def read(reply: Output, task: tasks.JudgeStatements) -> Reading[tasks.Judged]:
    allowed = {(pair.new, pair.candidate) for pair in task.pairs}
    found: dict[tuple[int, int], tasks.PairVerdict] = {}
    problems: list[str] = []
    for verdict in reply.verdicts:
        pair = (verdict.new, verdict.candidate)
        kind = VerdictKind[verdict.verdict]
        if pair not in allowed:
            problems.append(f"The pair [{pair[0]}, {pair[1]}] is not in <pairs>.")
        elif found.setdefault(pair, tasks.PairVerdict(*pair, kind, verdict.why)).kind is not kind:
            problems.append(f"The pair [{pair[0]}, {pair[1]}] has two verdicts.")
    predicates, wrong = _predicates(reply, task)
    return Reading(tasks.Judged(tuple(found.values()), predicates), (*problems, *wrong))


def _predicates(
    reply: Output, task: tasks.JudgeStatements
) -> tuple[tuple[tasks.PredicateVerdict, ...], list[str]]:
    allowed = {(pair.new, pair.candidate) for pair in task.predicate_pairs}
    found: dict[tuple[int, int], tasks.PredicateVerdict] = {}
    problems: list[str] = []
    for verdict in reply.predicates:
        pair = (verdict.new, verdict.candidate)
        same = verdict.verdict is Sameness.SAME
        if pair not in allowed:
            problems.append(f"The pair [{pair[0]}, {pair[1]}] is not in <predicate_pairs>.")
        elif found.setdefault(pair, tasks.PredicateVerdict(*pair, same, verdict.why)).same != same:
            problems.append(f"The pair [{pair[0]}, {pair[1]}] of predicates has two verdicts.")
    return tuple(found.values()), problems


JUDGE_STATEMENTS: Prompt[tasks.JudgeStatements, Output, tasks.Judged] = Prompt(
    name="judge_statements",
    version=VERSION,
    tier=Tier.LOW,
    prefix=PREFIX,
    schema=strict_schema(Output),
    sections=sections,
    parse=partial(read_model, Output),
    read=read,
)
