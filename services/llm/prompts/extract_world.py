"""Extract world facts: claims, ends and denials, each with its times and a literal quote."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field

from services.domain.facts import FactKind, Mention, WorldFact
from services.domain.graph import Literal, LiteralKind
from services.llm import tasks
from services.llm.port import Tier
from services.llm.prompts import parts
from services.llm.prompts.parts import ObjectType, SubjectType
from services.llm.prompts.render import Prompt, Section, setting_sections, turns_section
from services.llm.replies import Reading, read_model, strict_schema
from services.llm.times import parse_stated

VERSION = "1"

MAX_FACTS = 80
"""Of one chunk; far more than 1,800 tokens hold."""

_LITERALS = {
    ObjectType.STRING: LiteralKind.STRING,
    ObjectType.NUMBER: LiteralKind.NUMBER,
    ObjectType.BOOLEAN: LiteralKind.BOOLEAN,
    ObjectType.TIME: LiteralKind.TIME,
}


def rules(orders: str, narrative: str = "") -> str:
    """What a fact is. `orders`: what becomes of orders; `narrative`: what to say of it where there is one."""
    return f"""\
What to extract: what is still worth knowing in a month. Who people and things are, where they live and work,
relations, tools and versions in use, decisions, plans, problems, dated events, tastes, knowledge. Not:
greetings, requests to an assistant, questions, moods of the hour, examples, jokes, fiction, the mechanics of
the session, orders such as "always run the tests" ({orders}), secrets (passwords, keys,
tokens). Text that recites <known_facts> back, in whoever's turn, is no new fact. No fact at all is a good
answer.

`kind`:
- claim: the triple holds, held, or will hold.
- end: it stopped holding at `end`. Its subject, predicate and object are those of the fact that stopped,
  worded as in <known_facts> where it is there. "I sold the Honda" ends "user owns Honda Civic": no claim
  "sold". "B moved off Redis" ends only that B uses Redis; of others nothing is said.
- denial: it never held, or not in [start, end): corrections, cancelled plans, "I never lived there".
A change is two facts: an end of the old and a claim of the new. "From Alpha to Beta": end of Alpha, claim of
Beta. A new value that merely replaces another ("our database is now X") is a claim; add the end of the old
value where the text or <known_facts> names it.

`turn` is the number of the turn it is drawn from and `quote` the words of that turn that say it, copied
letter by letter in their language, without "..." and without corrections.{narrative}
`subject`, `object`: names, spelled as in <known_entities> for the same thing. Things that share a name but
differ in kind stay apart by their types (Apple, Organization; apples, Concept). An object that is a value,
not a thing, has type string, number, boolean or time.
`predicate`: English snake_case, present tense, short and general (lives_in, works_at, uses, owns, likes),
taken from <known_predicates> where one means the same. Not part of it: time, tense, negation.
`fact`: one sentence that stands alone, third person, names not pronouns, in the language of the source.
`start`, `end`, `seen`: only what the text states or its words imply; else null, never a guess and never
the reference time by default. Resolve "last week", "in May", "two years ago" against the turn's `said_at`,
else `reference_time`, looking back rather than ahead unless the text speaks of the future. Write no finer
than the words: 2025, 2025-Q3, 2025-03, 2025-W30, 2025-03-09, or a full timestamp with its zone. What you
can't resolve, copy in its words.
- `start`: since when it holds; of a dated event its date. `end`: until when; of something that goes on null.
- `seen`: null when the text speaks of the present. Equal to `start` when it only tells that something began.
  A date when it speaks of a past state ("when I visited in 2019 she lived there": 2019).
`confidence`: 0.9 and more for what is said outright, 0.5 to 0.8 for what is hedged or second-hand."""


PREFIX = f"""
You extract durable facts about the world from the raw turns of <turns>, with the help of their retelling in
<narrative>, as triples with a subject, a predicate and an object, each with the time it holds.

{parts.DATA_IS_DATA}
{parts.OWNERSHIP}
{parts.ASSISTANT}
A fact drawn from an assistant's turn needs `confirmed_by`: the number of the user's turn that confirms it.
In all other facts `confirmed_by` is null.

{rules("another task takes those", " The narrative is never quoted.")}

Example. <turns> {{"turn":0,"speaker":"Ana","role":"user","said_at":"2025-08-01T10:00:00+00:00","text":"I sold
the Honda last week, but I still live in Porto."}} with the known fact "Ana owns a Honda Civic." gives
{{"facts":[{{"kind":"end","subject":"Ana","subject_type":"Person","predicate":"owns","object":"Honda Civic",
"object_type":"Product","fact":"Ana sold her Honda Civic.","turn":0,"quote":"I sold the Honda last week",
"start":null,"end":"2025-W30","seen":null,"confidence":0.95,"confirmed_by":null}},
{{"kind":"claim","subject":"Ana","subject_type":"Person","predicate":"lives_in","object":"Porto",
"object_type":"Place","fact":"Ana lives in Porto.","turn":0,"quote":"I still live in Porto","start":null,
"end":null,"seen":null,"confidence":0.95,"confirmed_by":null}}]}}

{parts.JSON_ONLY}
"""


def _confidence(value: object) -> object:
    """Reads a percentage as well."""
    return value / 100 if isinstance(value, int | float) and 1 < value <= 100 else value


class Fact(BaseModel):
    """One proposed fact."""

    kind: Annotated[FactKind, parts.one_of(FactKind)]
    subject: parts.Name
    subject_type: Annotated[SubjectType, parts.one_of(SubjectType, SubjectType.UNKNOWN)] = SubjectType.UNKNOWN
    predicate: Annotated[str, BeforeValidator(lambda words: parts.predicate(str(words)))] = Field(
        min_length=1, max_length=100
    )
    object: parts.Name
    object_type: Annotated[ObjectType, parts.one_of(ObjectType, ObjectType.UNKNOWN)] = ObjectType.UNKNOWN
    fact: parts.Sentence
    turn: int
    quote: parts.Quote
    start: parts.When = None
    end: parts.When = None
    seen: parts.When = None
    confidence: Annotated[float, BeforeValidator(_confidence)] = Field(default=1.0, ge=0, le=1)
    confirmed_by: int | None = None


class Output(BaseModel):
    """The whole answer."""

    facts: list[Fact]


def sections(task: tasks.Extract) -> Sequence[Section]:
    return [
        *setting_sections(task.setting),
        Section("narrative", [task.narrative] if task.narrative else []),
        turns_section(task.turns, task.setting),
    ]


def read(reply: Output, task: tasks.Extract) -> Reading[tasks.WorldFacts]:
    facts, problems = drawn(reply.facts, task)
    return Reading(tasks.WorldFacts(tuple(fact for _, fact in facts)), tuple(problems))


def drawn(proposed: Sequence[Fact], task: tasks.Extract) -> tuple[list[tuple[int, WorldFact]], list[str]]:
    """The facts that refer to what was sent, each with its place in the reply; and what is wrong."""
    sent = {turn.position for turn in task.turns}
    facts: list[tuple[int, WorldFact]] = []
    problems: list[str] = []
    for index, fact in enumerate(proposed):
        references = {"turn": fact.turn, "confirmed_by": fact.confirmed_by}
        wrong = [
            parts.unknown(to, sent, f"facts[{index}].{name}")
            for name, to in references.items()
            if to is not None and to not in sent
        ]
        if wrong:
            problems += wrong
        elif len(facts) == MAX_FACTS:
            problems.append(f"There are more than {MAX_FACTS} facts; keep the durable ones.")
            break
        else:
            facts.append((index, _world_fact(fact)))
    return facts, problems


def _world_fact(fact: Fact) -> WorldFact:
    target: Mention | Literal
    if kind := _LITERALS.get(fact.object_type):
        target = parts.literal(kind, fact.object)
    else:
        target = Mention(fact.object, parts.entity_type(fact.object_type))
    return WorldFact(
        kind=fact.kind,
        subject=Mention(fact.subject, parts.entity_type(fact.subject_type)),
        predicate=fact.predicate,
        object=target,
        fact=fact.fact,
        turn=fact.turn,
        quote=fact.quote,
        start=None if fact.kind is FactKind.END else parse_stated(fact.start),
        end=parse_stated(fact.end),
        seen=parse_stated(fact.seen),
        confidence=fact.confidence,
        confirmed_by=fact.confirmed_by,
    )


EXTRACT_WORLD: Prompt[tasks.Extract, Output, tasks.WorldFacts] = Prompt(
    name="extract_world",
    version=VERSION,
    tier=Tier.MEDIUM,
    prefix=PREFIX,
    schema=strict_schema(Output),
    sections=sections,
    parse=partial(read_model, Output),
    read=read,
    usable=lambda value: bool(value.facts),
)
