"""Block: what was found, as items of the prompt block, each with its dates and the names of its evidence."""

from collections.abc import Iterable, Iterator, Sequence

from services.domain.graph import Literal, Span
from services.domain.instants import Precision
from services.domain.voice import claims_at
from services.recall.causes import end_precision, start_precision
from services.recall.describe import Described
from services.recall.evidence import EvidenceNames
from services.recall.lines import FactLine, PassageLine, VoiceLine, date_text
from services.recall.pack import Item
from services.recall.passages import PassageFound
from services.recall.ranking import FactFound
from services.recall.standing import Time, interval
from services.recall.voices import VoiceFound
from services.stores.graph.port import StatementView


def merged(
    facts: Iterable[tuple[float, Sequence[Item]]],
    voices: Iterable[tuple[float, Item]],
    passages: Iterable[tuple[float, Item]],
) -> list[Item]:
    """All items, most important first: by score, at equal scores facts, then voice, then passages.

    A fact brings what it replaced along, right after it.
    """
    scored = [(-score, 0, place, list(items)) for place, (score, items) in enumerate(facts)]
    scored += [(-score, 1, place, [item]) for place, (score, item) in enumerate(voices)]
    scored += [(-score, 2, place, [item]) for place, (score, item) in enumerate(passages)]
    seen: set[object] = set()
    items: list[Item] = []
    for *_, each in sorted(scored, key=lambda entry: entry[:3]):
        items += [item for item in each if item.key not in seen]
        seen |= {item.key for item in each}
    return items


def fact_items(
    facts: Sequence[FactFound], described: Described, names: EvidenceNames, time: Time
) -> Iterator[tuple[float, list[Item]]]:
    """Each fact with its score, followed by what it replaced."""
    for fact in facts:
        views = [fact.view, *fact.replaced]
        yield fact.fused.score, [_fact_item(view, described, names, time) for view in views]


def _fact_item(view: StatementView, described: Described, names: EvidenceNames, time: Time) -> Item:
    evidence = names.of_records(described.causes.evidence(view.statement.id, described.known_at))
    span = shown_span(view.spans, time)
    target = view.statement.object
    literal = target.text if isinstance(target, Literal) else ""
    line = FactLine(
        subject=view.subject.name,
        predicate=view.predicate.name,
        text=view.object.name if view.object is not None else literal,
        since=date_text(span.valid_at, start_precision(span, described.causes)) if span else "",
        until=date_text(span.invalid_at, end_precision(span, described.causes)) if span else "",
        reference=evidence[0] if evidence else "",
    )
    return Item(view.statement.id, line, view.subject.id)


def shown_span(spans: Sequence[Span], time: Time) -> Span | None:
    """The span that a line shows: that of the time asked about, else that of now, else the latest."""
    for at in (time.as_of, time.now):
        for span in spans:
            if at is not None and interval(span).contains(at):
                return span
    within = time.within or time.period
    meeting = [span for span in spans if within is not None and interval(span).meets(within)]
    shown = meeting or list(spans)
    return shown[-1] if shown else None


def voice_items(
    voices: Sequence[VoiceFound], described_at: Described, names: EvidenceNames
) -> Iterator[tuple[float, Item]]:
    for voice in voices:
        claim = claims_at(voice.aspect, described_at.known_at)[0]
        line = VoiceLine(
            text=voice.aspect.text,
            since=date_text(voice.interval.start),
            until=date_text(voice.interval.end),
            reference=names.of(claim.episode, claim.passage, claim.attested_at, claim.quote),
        )
        yield voice.fused.score, Item(voice.aspect.id, line)


def passage_items(passages: Sequence[PassageFound], names: EvidenceNames) -> Iterator[tuple[float, Item]]:
    for found in passages:
        passage = found.passage
        line = PassageLine(
            said_on=date_text(found.said.at, Precision.DAY),
            speaker=passage.speaker,
            text=passage.text,
            reference=names.of(passage.episode, passage.id, found.said.at),
        )
        yield found.fused.score, Item(passage.id, line, passage.episode)
