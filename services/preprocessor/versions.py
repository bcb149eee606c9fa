"""Versions: what a new text of a document says that those before it did not, and what it no longer says.

Sentences are compared by their words, wherever they stand, so moving a paragraph, joining two or breaking
lines anew is no change. What a paragraph had said beside a sentence that is gone is said anew: claims belong
to passages, and a passage that lost a sentence is gone as a whole. A changed paragraph is kept whole,
unless it is too long for a chunk: then what is new in it, with the sentences around that.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby, takewhile, zip_longest

from services.domain.ids import PassageId
from services.domain.instants import Instant
from services.domain.memory import Passage
from services.domain.sentences import sentence_spans, sentences
from services.llm import tokens
from services.preprocessor.blocks import Block, Path, blocks, is_fenced
from services.preprocessor.chunking import MINIMUM, THRESHOLD
from services.preprocessor.layout import Layout, of_document

_CUT_BYTES = THRESHOLD - 2 * MINIMUM - 50
"""Only a sentence that fills the whole stretch where a chunk may end is cut: so many tokens at least."""

_AROUND = 2
"""Sentences before and after a new one that are kept of a paragraph that is too long to be kept whole."""


class Contents:
    """What paragraphs say, for asking whether they say something else as well."""

    def __init__(self, said: Sequence[str]) -> None:
        self._paragraphs = {_words(paragraph) for paragraph in said}
        self._sentences = {_words(sentence) for paragraph in said for sentence in sentences(paragraph)}
        self._long = [one for one in self._sentences if len(one.encode("utf-8", "replace")) >= _CUT_BYTES]

    @classmethod
    def of(cls, text: str) -> "Contents":
        return cls([text[block.start : block.end] for block in blocks(text)])

    def has(self, paragraph: str) -> bool:
        """True when a paragraph of the text reads so, or each sentence stands somewhere in it."""
        return _words(paragraph) in self._paragraphs or all(
            _words(sentence) in self._sentences for sentence in sentences(paragraph)
        )

    def has_sentence(self, sentence: str) -> bool:
        return _words(sentence) in self._sentences

    def has_pieces(self, paragraph: str) -> bool:
        """As `has`; a long sentence of the paragraph may be here in pieces, as chunks cut it."""
        return all(
            (words := _words(sentence)) in self._sentences
            or (len(words.encode("utf-8", "replace")) >= _CUT_BYTES and self._has_piece_of(words))
            for sentence in sentences(paragraph)
        )

    def _has_piece_of(self, words: str) -> bool:
        return any(one in words for one in self._long)

    def has_part(self, part: str) -> bool:
        """As `has`, for the first or last passage of a chunk, at whose ends a long sentence may be cut."""
        if self.has(part):
            return True
        pieces = [_words(sentence) for sentence in sentences(part)]
        ends = {0, len(pieces) - 1}
        return all(
            piece in self._sentences or (index in ends and any(piece in one for one in self._long))
            for index, piece in enumerate(pieces)
        )


def missed_sentences(missed: str, learned: str) -> frozenset[str]:
    """The sentences of what could not be understood that stand in nothing that was; for `changes`."""
    return frozenset(map(_words, sentences(missed))) - frozenset(map(_words, sentences(learned)))


def changes(
    text: str,
    before: str,
    earlier: Sequence[Passage],
    said_at: Instant,
    missed: frozenset[str] = frozenset(),
) -> Layout | None:
    """The paragraphs of `text` that say what is new, as a text of their own; None without any.

    New is what no passage of `earlier` says that stays: one that `text` and `before`, the version before it,
    say whole. `missed` are sentences that count as not said. A heading is context: kept above what changed
    under it, no change by itself unless nothing is under it.
    """
    gone = {*removed(earlier, before), *removed(earlier, text)}
    known = Contents([passage.text for passage in earlier if passage.id not in gone])
    same = Contents.of(before)
    found = blocks(text)
    changed = [
        block
        for block, following in zip_longest(found, found[1:])
        if (block.heading is None or _stands_alone(block, following))
        and (not _is_known(said := text[block.start : block.end], known, same) or _says_one(said, missed))
    ]
    if not changed:
        return None
    above = _shared(changed)
    kept = _with_headings(found, changed, len(above))
    shown = (text[block.start : block.end] for block in kept)
    together = "\n\n".join(part for said in shown for part in _what_is_new(said, known, missed))
    return of_document(together, said_at, above)


def removed(passages: Iterable[Passage], text: str) -> list[PassageId]:
    """Which of a document's earlier passages `text` does not say any more."""
    now = Contents.of(text)
    gone: list[PassageId] = []
    ordered = sorted(passages, key=lambda passage: (passage.episode, passage.position))
    for _, chunk in groupby(ordered, key=lambda passage: passage.episode):
        members = list(chunk)
        for index, passage in enumerate(members):
            outer = index in (0, len(members) - 1)
            if not (now.has_part(passage.text) if outer else now.has(passage.text)):
                gone.append(passage.id)
    return gone


def _is_known(paragraph: str, known: Contents, same: Contents) -> bool:
    return known.has(paragraph) or (same.has(paragraph) and known.has_pieces(paragraph))


def _says_one(paragraph: str, wanted: frozenset[str]) -> bool:
    return bool(wanted) and any(_words(sentence) in wanted for sentence in sentences(paragraph))


def _what_is_new(paragraph: str, known: Contents, missed: frozenset[str]) -> list[str]:
    """A paragraph whole; of one that no chunk can hold the new sentences, each with its neighbours."""
    if len(paragraph.encode("utf-8", "replace")) < THRESHOLD or is_fenced(paragraph):
        return [paragraph]
    if tokens.count(paragraph) < THRESHOLD:
        return [paragraph]
    spans = list(sentence_spans(paragraph))
    said = [paragraph[start:end] for start, end in spans]
    new = [at for at, one in enumerate(said) if not known.has_sentence(one) or _words(one) in missed]
    kept = sorted(
        {near for at in new for near in range(at - _AROUND, at + _AROUND + 1)} & set(range(len(spans)))
    )
    stretches: list[tuple[int, int]] = []
    for at in kept:
        if stretches and stretches[-1][1] == at:
            stretches[-1] = (stretches[-1][0], at + 1)
        else:
            stretches.append((at, at + 1))
    parts = [paragraph[spans[first][0] : spans[end - 1][1]] for first, end in stretches]
    # Where a stretch by itself would read as a heading the paragraph is one that can't be cut.
    plain = all([block.heading for block in blocks(part)] == [None] for part in parts)
    return parts if parts and plain else [paragraph]


def _words(text: str) -> str:
    return " ".join(text.split())


def _stands_alone(block: Block, following: Block | None) -> bool:
    """True for a heading with nothing under it."""
    if block.heading is None or following is None:
        return True
    return following.heading is not None and following.heading.level <= block.heading.level


def _shared(changed: Sequence[Block]) -> Path:
    """The headings that stand above every changed block."""
    shared = changed[0].path
    for block in changed[1:]:
        pairs = takewhile(lambda pair: pair[0] == pair[1], zip(shared, block.path, strict=False))
        shared = tuple(one for one, _ in pairs)
    return shared


def _with_headings(found: Sequence[Block], changed: Sequence[Block], skip: int) -> list[Block]:
    """The changed blocks, each under those headings above it that are neither shared nor shown already."""
    wanted = {block.start for block in changed}
    kept: list[Block] = []
    open_headings: list[Block] = []
    shown: set[int] = set()
    for block in found:
        if block.heading is not None:
            level = block.heading.level
            open_headings = [one for one in open_headings if one.heading and one.heading.level < level]
        if block.start in wanted:
            fresh = [one for one in (*open_headings[skip:], block) if one.start not in shown]
            kept += fresh
            shown.update(one.start for one in fresh)
        if block.heading is not None:
            open_headings.append(block)
    return kept
