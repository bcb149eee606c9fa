"""The terms of statements: the words of the sentence, and those of the triple that it lacks."""

from collections.abc import Iterable, Sequence
from functools import cache

from services.domain.graph import Literal
from services.domain.ids import EntityId, StatementId
from services.recall.hot.nodes import HotNodes
from services.recall.terms import terms
from services.stores.graph.plain import Row
from services.stores.graph.port import StatementView


def cut_statements(statements: Iterable[Row], nodes: HotNodes) -> list[tuple[StatementId, list[str]]]:
    """The words of some statements, whose nodes are there."""

    @cache
    def of_node(id: EntityId) -> list[str]:
        return terms(nodes[id].name)

    @cache
    def of_predicate(id: EntityId) -> list[str]:
        return terms(_spaced(nodes[id].name))

    return [
        (
            id,
            _with_triple(
                fact,
                (
                    of_node(subject),
                    of_predicate(predicate),
                    terms(text) if node is None else of_node(node),
                ),
            ),
        )
        for id, subject, predicate, node, _, text, fact, *_ in statements
        if fact
    ]


def statement_terms(view: StatementView) -> list[str]:
    """The words of the sentence, and those of the triple that it lacks."""
    target = view.statement.object
    named = target.text if isinstance(target, Literal) else view.object.name if view.object else ""
    triple = (view.subject.name, _spaced(view.predicate.name), named)
    return _with_triple(view.statement.fact, map(terms, triple))


def _spaced(predicate: str) -> str:
    return predicate.replace("_", " ")


def _with_triple(fact: str, triple: Iterable[Sequence[str]]) -> list[str]:
    """The terms of a sentence, and those of its triple, each cut from its name or text, that it lacks."""
    found = terms(fact)
    have = set(found)
    return found + [term for name in triple for term in name if term not in have]
