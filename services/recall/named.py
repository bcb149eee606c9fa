"""Named: what a text about to be understood names that its graph knows, by any of the names it goes by.

Looked up in the alias table by what may be a name in the text: no scan of the graph, and no embedding.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from services.domain.graph import Entity
from services.domain.ids import Revision
from services.domain.lexicon import Lexicon
from services.domain.names import name_key
from services.domain.scope import Scope
from services.recall.seeds import Names
from services.recall.stopwords import ENGLISH
from services.recall.terms import CJK

MAX_NAMED = 20
"""Entities that are offered by name."""
MAX_PREDICATES = 20
"""Predicates that are offered because the text has a word for them."""
_MAX_STRETCHES = 600
"""Stretches of the text that are looked up: all of a short one, of a long one its beginning."""
_WORDS = 4
"""Words of the longest name that is looked for, and characters of a Chinese one."""
_READ_CHARACTERS = 8_000
_WORD = re.compile(rf"[{CJK}]+|[^\W_]+(?:[.+#&'’/-]+[^\W_]+)*[+#]*")
_CJK = re.compile(f"[{CJK}]")
_PLAIN = re.compile(r"[^\W\d_]+")


async def named_in(
    names: Names, scope: Scope, texts: Iterable[str], known_at: Revision
) -> tuple[Sequence[Entity], Sequence[tuple[str, Entity]]]:
    """The entities that texts name, and beside some of them what the texts call these instead."""
    stretches = list(dict.fromkeys(_stretches(texts)))[:_MAX_STRETCHES]
    if not stretches:
        return (), ()
    found = await names.every(scope, stretches, known_at)
    named: dict[str, Entity] = {}
    also: list[tuple[str, Entity]] = []
    # The longest first: "New York" is no York.
    taken = ""
    for stretch in sorted((one for one in stretches if found[one]), key=lambda one: -len(one)):
        if f"\0{name_key(stretch)}\0" in taken or _inside(stretch, taken):
            continue
        taken += f"\0{name_key(stretch)}\0"
        for entity in found[stretch]:
            named.setdefault(entity.id, entity)
            if name_key(stretch) not in {entity.key, name_key(entity.name)}:
                also.append((stretch, entity))
    kept = list(named.values())[:MAX_NAMED]
    ids = {entity.id for entity in kept}
    return kept, [(stretch, entity) for stretch, entity in also if entity.id in ids]


def predicates_in(texts: Iterable[str], lexicon: Lexicon) -> list[str]:
    """Canonical predicates for which texts have a word, in order."""
    words: Mapping[str, str] = {**lexicon.words, **lexicon.known.aliases}
    found: dict[str, None] = {}
    for text in texts:
        plain = [word.lower() for word in _PLAIN.findall(text[:_READ_CHARACTERS])]
        for at in range(len(plain)):
            for length in range(1, _WORDS + 1):
                canonical = words.get("_".join(plain[at : at + length]))
                if canonical is not None and at + length <= len(plain):
                    found[lexicon.known.canonical(canonical)] = None
    return list(found)[:MAX_PREDICATES]


def _stretches(texts: Iterable[str]) -> Iterator[str]:
    """What may be a name, those that look like one first: with a capital, a digit, or Chinese."""
    likely: list[str] = []
    other: list[str] = []
    for text in texts:
        words = [(match.start(), match.end()) for match in _WORD.finditer(text[:_READ_CHARACTERS])]
        for at, (start, end) in enumerate(words):
            if _CJK.match(text, start):
                likely += _chinese(text[start:end])
                continue
            for last in range(at, min(at + _WORDS, len(words))):
                stretch = text[start : words[last][1]]
                if "\n" in stretch or _CJK.search(stretch):
                    break
                if stretch.lower() in ENGLISH or len(stretch) < 2:  # letters name nobody
                    continue
                name_like = stretch[0].isupper() or any(one.isdigit() for one in stretch)
                (likely if name_like else other).append(stretch)
    yield from likely
    yield from other


def _chinese(run: str) -> Iterator[str]:
    for length in range(_WORDS, 1, -1):
        for start in range(len(run) - length + 1):
            yield run[start : start + length]


def _inside(stretch: str, taken: str) -> bool:
    """Whether a longer name that was found has this one as words of its own."""
    key = re.escape(name_key(stretch))
    pattern = key if _CJK.search(stretch) else rf"(?<!\w){key}(?!\w)"
    return re.search(pattern, taken) is not None
