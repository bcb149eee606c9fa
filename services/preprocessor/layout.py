"""Layout: a job's text with the place of every message or paragraph in it, ready to be cut.

A conversation reads `Speaker: text`, a line break after each message; a text stays as it is.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from services.domain.headings import Heading
from services.domain.instants import Instant
from services.domain.memory import EpisodeKind, Role
from services.preprocessor.blocks import Block, Path, blocks, paragraph_starts
from services.preprocessor.chunking import Span, chunks
from services.preprocessor.source import Message, Source, digest


@dataclass(frozen=True, slots=True)
class Piece:
    """One message or paragraph of a layout's text, `[start, end)`; what becomes a passage.

    `hash` is None where a passage is hashed by its own text alone (documents).
    """

    start: int
    end: int
    role: Role = Role.NONE
    speaker: str = ""
    message_id: str = ""
    said_at: Instant | None = None
    hash: str | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """A text, its pieces in order, and where it may be cut (see services/preprocessor/chunking.py)."""

    text: str
    pieces: tuple[Piece, ...] = ()
    paragraphs: tuple[int, ...] = ()
    units: tuple[int, ...] = ()
    blocks: tuple[Block, ...] = ()

    def cut(self) -> list[Span]:
        return chunks(self.text, self.paragraphs, self.units)

    def heading_at(self, offset: int) -> tuple[str, ...]:
        """Titles of the headings above what begins at `offset`."""
        index = bisect_right(self.blocks, offset, key=lambda block: block.end)
        return titles(self.blocks[index].path) if index < len(self.blocks) else ()


def titles(path: Sequence[Heading]) -> tuple[str, ...]:
    return tuple(heading.title for heading in path)


def message_hash(message: Message) -> str:
    """Of speaker, text and the time it was said: what makes a message known."""
    return digest(message.speaker or message.role, message.text, message.said_at)


def of_messages(messages: Sequence[Message]) -> Layout:
    """Messages without a word are left out."""
    parts: list[str] = []
    pieces: list[Piece] = []
    paragraphs: list[int] = []
    units: list[int] = []
    at = 0
    for message in messages:
        if not message.text.strip():
            continue
        name = message.speaker or message.role
        label = f"{name}: " if name else ""
        start = at + len(label)
        end = start + len(message.text)
        units.append(at)
        paragraphs += [start + inner for inner in paragraph_starts(blocks(message.text))[1:]]
        pieces.append(
            Piece(
                start,
                end,
                message.role,
                message.speaker,
                message.message_id,
                message.said_at,
                message_hash(message),
            )
        )
        parts.append(f"{label}{message.text}\n")
        at = end + 1
    return Layout("".join(parts), tuple(pieces), tuple(paragraphs), tuple(units))


def of_document(text: str, said_at: Instant, above: Path = ()) -> Layout:
    """A text whose words are nobody's in particular."""
    found = tuple(blocks(text, above))
    pieces = tuple(Piece(block.start, block.end, said_at=said_at) for block in found)
    return Layout(text, pieces, tuple(paragraph_starts(found)), (), found)


def spoken_paragraphs(source: Source) -> list[Message]:
    """The paragraphs of a conversation that came as one text, as turns without a name."""
    return [_spoken(source, source.text[block.start : block.end]) for block in blocks(source.text)]


def of_spoken_text(text: str, source: Source) -> Layout:
    """A text of a conversation that came without messages; its paragraphs are turns."""
    found = tuple(blocks(text))
    pieces = tuple(
        Piece(
            block.start,
            block.end,
            source.role,
            said_at=source.reference_time,
            hash=message_hash(_spoken(source, text[block.start : block.end])),
        )
        for block in found
    )
    return Layout(text, pieces, tuple(paragraph_starts(found)), (), found)


def of_source(source: Source) -> Layout:
    """All that a source brings, known or not."""
    if source.messages:
        return of_messages(source.messages)
    if source.kind is EpisodeKind.CONVERSATION:
        return of_spoken_text(source.text, source)
    return of_document(source.text, source.reference_time)


def _spoken(source: Source, paragraph: str) -> Message:
    return Message(paragraph, "", source.role, "", source.reference_time)
