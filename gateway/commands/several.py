"""Recall over several graphs: each is asked, the best of all are kept, one block is made of theirs."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from palimpsest.internal.v1 import recall_pb2 as internal
from services.domain.errors import EntityNotFound
from services.domain.scope import Scope

_LINE_BREAK = 1
"""Tokens between two blocks."""
_HEADING = 64
"""Tokens that the heading of a graph may take at most; a longer id takes them from its lines."""
_SPARE_NAMES = 32
"""For what is new to a graph when it is asked again."""

Ask = Callable[[Scope, internal.RecallRequest], Awaitable[internal.RecallResponse]]


@dataclass(frozen=True, slots=True)
class Share:
    """What one graph gives of the whole answer."""

    facts: int
    passages: int
    tokens: int


async def ask_all(
    ask: Ask, scopes: Sequence[Scope], questions: Sequence[internal.RecallRequest]
) -> list[internal.RecallResponse]:
    """The answer of each graph, cut so that together they keep the limits of one question.

    Each graph is asked alone first: its best have a score near 1 whatever its size, so that a small one
    beside a large one loses nothing. Then each is asked again for what it gives of the whole, with a heading
    of its own and short names of evidence that no other has. Both questions are of one kind and read only.
    Raises EntityNotFound when no graph knows an id that was hinted.
    """
    first = await _hinted(ask, scopes, questions)
    shares = shared(first, questions[0].max_facts, questions[0].max_passages, questions[0].token_budget)
    after = 0
    again: list[internal.RecallRequest] = []
    for scope, question, answer, share in zip(scopes, questions, first, shares, strict=True):
        asked = internal.RecallRequest()
        asked.CopyFrom(question)
        asked.max_facts, asked.max_passages, asked.token_budget = share.facts, share.passages, share.tokens
        asked.title, asked.names_after = scope.graph, after
        after += len(answer.evidence) + _SPARE_NAMES
        again.append(asked)
    return await _hinted(ask, scopes, again)


async def _hinted(
    ask: Ask, scopes: Sequence[Scope], questions: Sequence[internal.RecallRequest]
) -> list[internal.RecallResponse]:
    """A hinted id is one graph's; the others are asked without hints."""

    async def one(scope: Scope, question: internal.RecallRequest) -> internal.RecallResponse | EntityNotFound:
        try:
            return await ask(scope, question)
        except EntityNotFound as error:
            return error

    found = await asyncio.gather(*map(one, scopes, questions))
    refused = [answer for answer in found if isinstance(answer, EntityNotFound)]
    if len(refused) == len(found):
        raise refused[0]
    answers: list[internal.RecallResponse] = []
    for scope, question, answer in zip(scopes, questions, found, strict=True):
        if isinstance(answer, EntityNotFound):
            plain = internal.RecallRequest()
            plain.CopyFrom(question)
            plain.ClearField("entity_hints")
            answer = await ask(scope, plain)
        answers.append(answer)
    return answers


def shared(answers: Sequence[internal.RecallResponse], facts: int, passages: int, tokens: int) -> list[Share]:
    """How many of the best facts and passages each graph has, and how many tokens it may fill."""
    of_facts = _best([[one.score for one in answer.facts] for answer in answers], facts)
    of_passages = _best([[one.score for one in answer.passages] for answer in answers], passages)
    of_tokens = _filled([answer.context_tokens for answer in answers], tokens)
    return [Share(*each) for each in zip(of_facts, of_passages, of_tokens, strict=True)]


def _best(scores: Sequence[Sequence[float]], most: int) -> list[int]:
    """How many of each list are among the best of all; equal ones in the order of the lists."""
    every = sorted(
        (-score, graph, place) for graph, own in enumerate(scores) for place, score in enumerate(own)
    )
    kept = [graph for _, graph, _ in every[:most]]
    return [kept.count(graph) for graph in range(len(scores))]


def _filled(wanted: Sequence[int], tokens: int) -> list[int]:
    """Shares of the budget: those that want less than an equal one get all, the others the rest alike."""
    left = tokens - _LINE_BREAK * (len(wanted) - 1)
    shares = [0] * len(wanted)
    waiting = sorted(range(len(wanted)), key=lambda graph: (wanted[graph], graph))
    for at, graph in enumerate(waiting):
        equal = left // (len(waiting) - at)
        # The heading of its own comes on top of what a graph filled when it was asked alone.
        shares[graph] = max(1, min(equal, wanted[graph] + _HEADING))
        left -= shares[graph]
    return shares
