"""World facts: what single sentences say, when it holds, and what they do not say."""

import pytest

from services.domain.facts import FactKind, Mention
from services.domain.graph import EntityType
from services.domain.memory import EpisodeKind
from tests.unit.llm.offline.reading import USER, short, shown, understand

CLAIMS = [
    ("I live in Graz.", ("Ana", "lives_in", "Graz")),
    ("I'm married to Tom.", ("Ana", "married_to", "Tom")),
    ("My wife's name is Elena.", ("Ana", "wife", "Elena")),
    ("My cat is called Miso.", ("Ana", "has_pet", "Miso")),
    ("I have a dog named Rex.", ("Rex", "is_a", "dog")),
    ("I am from Sweden.", ("Ana", "comes_from", "Sweden")),
    ("My favorite color is blue.", ("Ana", "favorite_color", "blue")),
    ("I am 34 years old.", ("Ana", "age", "34")),
    ("I'm vegan and allergic to peanuts.", ("Ana", "allergic_to", "peanuts")),
    ("Priya is a software engineer at Acme.", ("Priya", "works_at", "Acme")),
    ("Priya is a software engineer at Acme.", ("Priya", "is_a", "software engineer")),
    ("I work as a nurse at St. Mary's Hospital.", ("Ana", "works_at", "St. Mary's Hospital")),
    ("Anna, who works at Equinor, likes tea.", ("Anna", "works_at", "Equinor")),
    ("The capital of Australia is Canberra.", ("Australia", "capital", "Canberra")),
    ("Tom is the CEO of Acme.", ("Acme", "CEO".lower(), "Tom")),
    ("Our primary database is MySQL 8.0.", ("Ana", "primary_database", "MySQL 8.0")),
    ("Atlas's primary database is PostgreSQL 16 now.", ("Atlas", "primary_database", "PostgreSQL 16")),
    ("Tom and Lea live in Vienna.", ("Lea", "lives_in", "Vienna")),
    ("I use Python and Go.", ("Ana", "uses", "Go")),
    ("I'm working at Initech.", ("Ana", "works_at", "Initech")),
    ("I went to Rome.", ("Ana", "visited", "Rome")),
    ("I ran a charity race last Saturday – it was hard.", ("Ana", "ran", "charity race")),
    ("Alice became CTO of Initech.", ("Initech", "cto", "Alice")),
    ("I got a new job at Stripe.", ("Ana", "works_at", "Stripe")),
    ("Sofia got married to Luca.", ("Sofia", "married_to", "Luca")),
    ("Atlas moved its primary database to PostgreSQL 16.", ("Atlas", "primary_database", "PostgreSQL 16")),
    ("The message broker of Ledger is RabbitMQ.", ("Ledger", "message_broker", "RabbitMQ")),
    ("Quill stores files in S3.", ("Quill", "stores_files_in", "S3")),
    ("My email is ana@example.com.", ("Ana", "email", "ana@example.com")),
    ("The deadline for Atlas is 3 March 2026.", ("Atlas", "deadline", "2026-03-03")),
    ("My birthday is May 7.", ("Ana", "birthday", "May 7")),
    ("I work for Siemens as a data engineer.", ("Ana", "job_title", "data engineer")),
    ("Please note that I moved to Oslo.", ("Ana", "lives_in", "Oslo")),
    ("Moved to Porto last week.", ("Ana", "lives_in", "Porto")),
]


@pytest.mark.parametrize(("text", "triple"), CLAIMS)
async def test_a_sentence_claims(text: str, triple: tuple[str, str, str]) -> None:
    assert ("claim", *triple) in (await understand(text)).triples


ENDS = [
    ("I used to live in Berlin.", ("Ana", "lives_in", "Berlin")),
    ("We no longer use Redis.", ("Ana", "uses", "Redis")),
    ("Atlas doesn't use Redis anymore.", ("Atlas", "uses", "Redis")),
    ("I don't live in Rome any more.", ("Ana", "lives_in", "Rome")),
    ("I stopped using Spotify.", ("Ana", "uses", "Spotify")),
    ("Eve left Google.", ("Eve", "works_at", "Google")),
    ("Eve quit her job at Acme.", ("Eve", "works_at", "Acme")),
    ("I sold my car.", ("Ana", "owns", "car")),
    ("I moved out of Berlin.", ("Ana", "lives_in", "Berlin")),
    ("Tom is no longer the CEO of Acme.", ("Acme", "ceo", "Tom")),
    ("Atlas dropped MongoDB.", ("Atlas", "uses", "MongoDB")),
    ("I cancelled my Netflix subscription.", ("Ana", "subscribes_to", "Netflix")),
]


@pytest.mark.parametrize(("text", "triple"), ENDS)
async def test_a_sentence_ends(text: str, triple: tuple[str, str, str]) -> None:
    assert (await understand(text)).triples == {("end", *triple)}


async def test_never_denies_for_all_time_and_does_not_from_now_on() -> None:
    (never,) = (await understand("I never lived in Paris.")).world
    assert (never.kind, never.start, never.end) == ("denial", None, None)
    (now,) = (await understand("Atlas does not use Kafka.")).world
    assert (now.kind, shown(now.start), now.end) == ("denial", "2026-06-30/INSTANT", None)


async def test_not_liking_is_disliking() -> None:
    assert (await understand("I don't like olives.")).triples == {
        ("denial", "Ana", "likes", "olives"),
        ("claim", "Ana", "dislikes", "olives"),
    }


@pytest.mark.parametrize(
    "text",
    [
        "If we move to AWS, we will use S3.",
        "I think Bob works at Google.",
        "Maybe Atlas uses Redis.",
        "Atlas could use Redis.",
        "We should move to Kafka.",
        "I wish I lived in Rome.",
        "Bob says that Eve works at Acme.",
        "I want to live in Rome.",
        "Use Redis for the cache.",
        "I love your painting!",
        "I like the idea.",
        "It was a blast.",
        "She lives in Oslo.",
        "You live in Boston.",
        "I feel great today.",
        "Dance is my escape.",
        "I need a break.",
    ],
)
async def test_what_is_supposed_wished_reported_or_vague_is_no_fact(text: str) -> None:
    assert list((await understand(text)).world) == []


TIMES = [
    ("I worked at Google from 2019 to 2022.", "2019-01-01/YEAR", "2022-01-01/YEAR", "2019-01-01/YEAR"),
    ("I've lived in Boston for 4 years.", "2022-06-30/YEAR", "", ""),
    ("Mara has lived in Paris since May 2020.", "2020-05-01/MONTH", "", ""),
    ("I moved to Oslo in 2021.", "2021-01-01/YEAR", "", "2021-01-01/YEAR"),
    ("I moved to Oslo three months ago.", "2026-03-01/MONTH", "", ""),
    ("I was born in Lyon in 1990.", "1990-01-01/YEAR", "", "1990-01-01/YEAR"),
    ("I will move to Lisbon next month.", "2026-07-01/MONTH", "", ""),
    ("I work on project Beta this year.", "", "", ""),
    ("I visited Rome in May.", "2026-05-01/MONTH", "", "2026-05-01/MONTH"),
]


@pytest.mark.parametrize(("text", "start", "end", "seen"), TIMES)
async def test_times_of_a_claim(text: str, start: str, end: str, seen: str) -> None:
    (fact,) = (await understand(text)).world
    assert (shown(fact.start), shown(fact.end), shown(fact.seen)) == (start, end, seen)


async def test_each_verb_has_its_own_time() -> None:
    got = await understand("I left Acme in May 2025 and joined Globex in June 2025.")
    assert sorted((fact.predicate, shown(fact.start) or shown(fact.end)) for fact in got.world) == [
        ("works_at", "2025-05-01/MONTH"),
        ("works_at", "2025-06-01/MONTH"),
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "I lived in Paris and moved to Rome in May 2024.",
            [("end", "Paris", ""), ("claim", "Rome", "2024-05-01/MONTH")],
        ),
        (
            "I worked at Acme and joined Globex in May 2024.",
            [("end", "Acme", ""), ("claim", "Globex", "2024-05-01/MONTH")],
        ),
        ("Study used MySQL and moved to Redis in May 2024.", [("claim", "Redis", "2024-05-01/MONTH")]),
        ("The shop used Excel and switched to Odoo in May 2024.", []),
    ],
)
async def test_the_date_of_a_change_is_not_that_of_the_state_before_it(
    text: str, told: list[tuple[str, str, str]]
) -> None:
    world = (await understand(text)).world
    assert [(*(short(fact)[::3]), shown(fact.start) or shown(fact.end)) for fact in world] == told


async def test_states_told_alike_share_their_time() -> None:
    got = await understand("I lived in Paris and worked at Acme in 2019.")
    assert [shown(fact.start) for fact in got.of(FactKind.CLAIM)] == ["2019-01-01/YEAR"] * 2


async def test_who_founded_is_not_founded() -> None:
    (fact,) = (await understand("Lena founded Acme in 2019.")).world
    assert fact.fact == "Lena founded Acme."


async def test_each_speaker_says_i_of_themself() -> None:
    got = await understand((USER, "I live in Oslo.", "Caroline"), (USER, "I play clarinet.", "Melanie"))
    assert got.triples == {
        ("claim", "Caroline", "lives_in", "Oslo"),
        ("claim", "Melanie", "plays", "clarinet"),
    }


async def test_the_user_without_a_name_is_user() -> None:
    assert (await understand("I live in Oslo.", user="")).triples == {("claim", "User", "lives_in", "Oslo")}


async def test_a_pronoun_means_the_only_thing_it_can_mean_or_nothing() -> None:
    one = await understand("Anna works at Equinor. She lives in Oslo.")
    assert ("claim", "Anna", "lives_in", "Oslo") in one.triples
    two = await understand("Anna knows Berta. She lives in Oslo.")
    assert not any(predicate == "lives_in" for _, _, predicate, _ in two.triples)


async def test_documents_may_speak_of_things_by_their_kind() -> None:
    lines = [
        "# Atlas",
        "The gateway uses gRPC and listens on port 8443.",
        "- The primary database of Atlas is MySQL 8.0.",
    ]
    text = "\n\n".join(lines)
    got = await understand(text, kind=EpisodeKind.DOCUMENT)
    assert got.triples == {
        ("claim", "gateway", "uses", "gRPC"),
        ("claim", "gateway", "listens_on", "port 8443"),
        ("claim", "Atlas", "primary_database", "MySQL 8.0"),
    }


async def test_types_come_from_the_predicate_and_known_technologies() -> None:
    (fact,) = (await understand("John works at Google.")).world
    assert (fact.subject.type, fact.object) == (EntityType.PERSON, Mention("Google", EntityType.ORGANIZATION))
    (fact,) = (await understand("Service A uses Redis.")).world
    assert (fact.subject.type, fact.object) == (EntityType.UNKNOWN, Mention("Redis", EntityType.TECHNOLOGY))


async def test_facts_stand_alone_as_sentences() -> None:
    got = await understand(
        "My cat is called Miso. I moved to Oslo. The primary database of Atlas is MySQL 8.0."
    )
    assert [fact.fact for fact in got.world] == [
        "Ana has a pet, Miso.",
        "Miso is a cat.",
        "Ana lives in Oslo.",
        "Atlas's primary database is MySQL 8.0.",
    ]
