"""Passages: the messages or paragraphs of each chunk, with exact offsets into its text."""

from collections.abc import Sequence

from services.domain.ids import EpisodeId, PassageId, derive_id
from services.domain.memory import Passage
from services.domain.scope import Scope
from services.preprocessor.chunking import Span
from services.preprocessor.layout import Layout, Piece
from services.preprocessor.source import text_hash


def passages_of(
    scope: Scope, layout: Layout, spans: Sequence[Span], episodes: Sequence[EpisodeId]
) -> list[Passage]:
    """The passages of the chunks `spans`, whose episodes are `episodes`, in order.

    A piece that lies in several chunks gives each of them the part it holds; parts without a word give none.
    For each passage, `episode.text[passage.start:passage.end] == passage.text`.
    """
    found: list[Passage] = []
    first = 0
    for span, episode in zip(spans, episodes, strict=True):
        while first < len(layout.pieces) and layout.pieces[first].end <= span.start:
            first += 1
        position = 0
        for index in range(first, len(layout.pieces)):
            piece = layout.pieces[index]
            if piece.start >= span.end:
                break
            start, end = _part(layout.text, piece, span)
            if start < end:
                text = layout.text[start:end]
                found.append(_passage(scope, episode, position, text, start - span.start, piece))
                position += 1
    return found


def paragraph_hash(text: str) -> str:
    """Of the text alone; how its lines are broken does not matter."""
    return text_hash(" ".join(text.split()))


def _part(text: str, piece: Piece, span: Span) -> tuple[int, int]:
    """What of a piece lies in a chunk; a cut part is without the white space at the cut."""
    start, end = max(piece.start, span.start), min(piece.end, span.end)
    raw = text[start:end]
    if not raw.strip():
        return start, start
    if start > piece.start:
        start += len(raw) - len(raw.lstrip())
    if end < piece.end:
        end -= len(raw) - len(raw.rstrip())
    return start, end


def _passage(scope: Scope, episode: EpisodeId, position: int, text: str, start: int, piece: Piece) -> Passage:
    return Passage(
        id=PassageId(derive_id(scope, "passage", episode, position)),
        episode=episode,
        position=position,
        text=text,
        start=start,
        end=start + len(text),
        hash=piece.hash or paragraph_hash(text),
        speaker=piece.speaker,
        role=piece.role,
        message_id=piece.message_id,
        said_at=piece.said_at,
    )
