"""The planner: names, times, intent and cues, read without a model."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.domain.graph import EntityType
from services.domain.ids import EntityId
from services.domain.names import name_key
from services.domain.predicates import default_vocabulary
from services.recall.cues import Intent, PredicateWords
from services.recall.mentions import AliasTable, speaks_of_assistant
from services.recall.plan import Asked, Plan, make_plan
from services.stores.graph.port import Alias
from tests.builders import on

NOW = on("2026-06-30")


def alias(name: str, id: str = "", type: EntityType = EntityType.CONCEPT) -> Alias:
    return Alias(name_key(name), type, EntityId(id or name), name)


TABLE = AliasTable(
    [
        alias("Wen", type=EntityType.PERSON),
        alias("Apple", "apple-company", EntityType.ORGANIZATION),
        alias("apple", "apple-fruit"),
        alias("Project Atlas"),
        alias("Atlas"),
        alias("C"),
        alias("C++"),
        alias("主数据库"),
        alias("数据库"),
        alias("IT", "it-department"),
        alias("May", "may", EntityType.PERSON),
        alias("Caroline", type=EntityType.PERSON),
        alias("User", "user", EntityType.PERSON),
        *(
            Alias(n, EntityType.PREDICATE, EntityId(n), n)
            for n in ("works_at", "storage_binding", "lives_in")
        ),
    ]
)
PREDICATES = PredicateWords(TABLE.predicates, default_vocabulary())


def plan(query: str, user_name: str = "") -> Plan:
    return make_plan(Asked(query, NOW, "UTC", user_name), TABLE, PREDICATES)


def mentioned(query: str, user_name: str = "") -> list[str]:
    return [entity.id for entity in plan(query, user_name).entities]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("What does WEN maintain?", ["Wen"]),
        ("wen's storage", ["Wen"]),
        ("Wen’s storage", ["Wen"]),
        ("What is Project Atlas?", ["Project Atlas"]),
        ("is atlas a project", ["Atlas"]),
        ("Wendy and Atlases", []),
        ("C++ or C?", ["C++", "C"]),
        ("主数据库是什么", ["主数据库"]),
        ("Wen的数据库", ["Wen", "数据库"]),
        ("I like apple", ["apple-company", "apple-fruit", "user"]),
        ("is it in the IT department", ["it-department"]),
        ("what is it", []),
        ("may I ask about a visit", ["user"]),
        ("what did May say", ["may"]),
        ("???", []),
        ("", []),
    ],
)
def test_names_in_a_question(query: str, expected: list[str]) -> None:
    assert mentioned(query) == expected


def test_i_is_the_user_by_name_when_it_is_known() -> None:
    assert mentioned("where do I live", "Caroline") == ["Caroline"]
    assert mentioned("where do I live", "Zoe") == ["user"]
    assert mentioned("我住在哪里", "Caroline") == ["Caroline"]
    assert mentioned("where does he live", "Caroline") == []


@pytest.mark.parametrize(
    ("query", "of_assistant"),
    [
        ("What painters did you recommend to me?", True),
        ("你给我推荐过哪些画家？", True),
        ("What was your advice?", True),
        ("Do you remember where I went?", False),
        ("你还记得我当时看了什么展览吗？", False),
        ("Can you tell me what you recommended?", True),
        ("Where is Young Street?", False),
    ],
)
def test_you_is_the_assistant_unless_it_only_asks_them(query: str, of_assistant: bool) -> None:
    assert speaks_of_assistant(query) is of_assistant


@pytest.mark.parametrize(
    ("query", "intent"),
    [
        ("When did Caroline go to the group?", Intent.TEMPORAL),
        ("How long has she lived there?", Intent.TEMPORAL),
        ("他什么时候搬家的", Intent.TEMPORAL),
        ("What changed at Atlas?", Intent.WHAT_CHANGED),
        ("Where did she use to work? She no longer works there", Intent.WHAT_CHANGED),
        ("What did Atlas use before?", Intent.WHAT_CHANGED),
        ("以前用的什么数据库", Intent.WHAT_CHANGED),
        ("What does Caroline prefer?", Intent.PREFERENCES),
        ("她喜欢什么", Intent.PREFERENCES),
        ("What is the relationship between Wen and May?", Intent.RELATIONSHIP),
        ("How does Atlas compare with Project Atlas?", Intent.RELATIONSHIP),
        ("what is the difference between wen's and may's jobs", Intent.RELATIONSHIP),
        ("主数据库和数据库有什么区别", Intent.RELATIONSHIP),
        ("主数据库换成什么了", Intent.WHAT_CHANGED),
        ("Where does Wen live?", Intent.ATTRIBUTE),
        ("主数据库是什么", Intent.ATTRIBUTE),
        ("Atlas", Intent.OPEN),
        ("", Intent.OPEN),
    ],
)
def test_intent(query: str, intent: Intent) -> None:
    assert plan(query).intent is intent


@pytest.mark.parametrize(
    ("query", "start", "end"),
    [
        ("What did Wen do in 2024?", "2024-01-01", "2025-01-01"),
        ("Where did I live in February?", "2026-02-01", "2026-03-01"),
        ("What was true before June 2023?", None, "2023-06-01"),
        ("Anything after June 2023?", "2023-07-01", None),
        ("What happened since 2020?", "2020-01-01", None),
        ("between 2020 and 2022", "2020-01-01", "2023-01-01"),
        ("last week", "2026-06-22", "2026-06-29"),
        ("2023年6月之前用的什么", None, "2023-06-01"),
        ("2023年6月以后呢", "2023-07-01", None),
        ("自从2020年以来发生了什么", "2020-01-01", None),
        ("2024年Wen做了什么", "2024-01-01", "2025-01-01"),
    ],
)
def test_a_time_in_the_question_is_its_period(query: str, start: str | None, end: str | None) -> None:
    read = plan(query)
    assert read.as_of is None
    assert read.period is not None
    assert read.period.start == (on(start) if start else None)
    assert read.period.end == (on(end) if end else None)
    assert read.looks_back


@pytest.mark.parametrize(
    ("query", "last"),
    [
        ("Who led Atlas as of March 2025?", "2025-04-01"),
        ("as of 2025-03-01", "2025-03-02"),
        ("As of 2024", "2025-01-01"),
    ],
)
def test_as_of_is_the_last_instant_of_what_it_names(query: str, last: str) -> None:
    read = plan(query)
    assert read.as_of == on(last) - 1
    assert read.period is None


def test_what_is_asked_is_left_without_its_times() -> None:
    assert plan("What did Wen do in 2024?").timeless.split() == ["What", "did", "Wen", "do", "in", "?"]
    assert plan("Who is Wen?").timeless == "Who is Wen?"


def test_a_question_without_time_has_none() -> None:
    assert plan("Who is Wen?").period is None
    assert plan("Who is Wen?").as_of is None
    assert not plan("Who is Wen?").looks_back


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Where does Wen work?", set()),
        ("Which company employs her, where is she working at?", {"works_at"}),
        ("who is her employer", {"works_at"}),
        ("storage bindings of Atlas", {"storage_binding"}),
        ("storage", set()),
        ("她住在哪里", {"lives_in"}),
    ],
)
def test_predicates_that_words_point_to(query: str, expected: set[str]) -> None:
    assert expected <= {str(id) for id in plan(query).cues.predicates}


@given(st.text(max_size=300))
def test_any_question_has_a_plan(query: str) -> None:
    read = plan(query)
    assert read.intent in Intent
    assert {entity.id for entity in read.entities} <= {named.id for named in TABLE.nodes}


@given(st.text(max_size=40), st.sampled_from(["Wen", "Project Atlas", "主数据库"]), st.text(max_size=40))
def test_a_name_between_spaces_is_always_seen(before: str, name: str, after: str) -> None:
    # Longer names may swallow a shorter one, so only those are asked for that nothing else contains.
    found = mentioned(f"{before} . {name} . {after}")
    assert name in found or len(found) >= 16
