"""A server that answers by script what a subject with many statements has: for the console's page alone."""

from palimpsest.v1 import (
    credits_pb2,
    entity_pb2,
    graph_pb2,
    jobs_pb2,
    memory_entities_pb2,
    memory_statements_pb2,
    statement_pb2,
)
from tests.unit.cli.serving import Scripted

GRAPH, NAME = "long", "Mara"
PAGE = 1_000
PREDICATES = ("attended", "knows", "likes", "lives_in", "met", "owns", "uses", "visited")
_BEGAN, _STEP, _STAY = 1_500_000_000, 40_000, 2_600_000


def remember(server: Scripted, count: int) -> int:
    """From now on the server knows so many facts about NAME; returns how many of them have ended."""
    entity = entity_pb2.Entity(entity_id="e0", name=NAME, type=entity_pb2.ENTITY_TYPE_PERSON)
    server.answers("ListGraphs", graph_pb2.ListGraphsResponse(graphs=[graph_pb2.Graph(graph_id=GRAPH)]))
    server.answers("GetGraph", graph_pb2.GetGraphResponse(graph=graph_pb2.Graph(graph_id=GRAPH)))
    balance = credits_pb2.Balance(available_micros=1)
    server.answers("GetBalance", credits_pb2.GetBalanceResponse(balance=balance))
    server.answers("ListJobs", jobs_pb2.ListJobsResponse())
    server.answers("ListPredicates", graph_pb2.ListPredicatesResponse())
    server.answers("GetEntity", memory_entities_pb2.GetEntityResponse(entity=entity))
    server.answers("ListEntities", memory_entities_pb2.ListEntitiesResponse(entities=[entity]))
    facts = [_statement(number, entity) for number in range(count)]
    pages = [facts[first : first + PAGE] for first in range(0, count, PAGE)]
    server.answers(
        "ListStatements",
        *(
            memory_statements_pb2.ListStatementsResponse(
                statements=page, next_page_token="" if number == len(pages) else "more"
            )
            for number, page in enumerate(pages, start=1)
        ),
    )
    return sum(fact.spans[0].HasField("invalid_at") for fact in facts)


def _statement(number: int, subject: entity_pb2.Entity) -> statement_pb2.Statement:
    target = entity_pb2.Entity(entity_id=f"e{number + 1}", name=f"Thing {number}")
    predicate = PREDICATES[number % len(PREDICATES)]
    statement = statement_pb2.Statement(
        statement_id=f"s{number}",
        subject=subject,
        predicate=entity_pb2.Predicate(predicate_id=predicate, name=predicate),
        object=entity_pb2.ObjectValue(entity=target),
        fact=f"{NAME} {predicate} {target.name}.",
    )
    span = statement.spans.add()
    span.valid_at.FromSeconds(_BEGAN + number * _STEP)
    if number % 3 == 0:
        span.invalid_at.FromSeconds(_BEGAN + number * _STEP + _STAY)
        span.end_cause.kind = statement_pb2.CAUSE_KIND_CLAIM
        span.end_cause.statement_id = f"s{number + len(PREDICATES)}"
        span.end_cause.episode_id = "t1"
    return statement
