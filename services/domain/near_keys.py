"""Near keys: further keys of an entity, by which other spellings of its name find it in one look-up.

They stand in the alias table beside the names' own keys, in a form that no name's key has: exact naming never
reads them, and nor does whoever looks for the names in a text.
"""

from collections.abc import Iterable

from services.domain.graph import EntityType
from services.domain.likeness import Name
from services.domain.scripts import is_cjk

_MARK = "Near:"
"""Keys of names and predicates are case-folded: none begins like this."""
_MIN_ACRONYM = 3
"""Letters of a stored acronym: of two, each would be borne by a hundred names of a large graph."""
_MAX_TURNED = 3
_MAX_KEY = 120
"""Characters; what is longer is no name that anybody shortens."""


def is_near_key(key: str) -> bool:
    """Whether an alias with this key is for finding candidates alone."""
    return key.startswith(_MARK)


def near_keys(text: str, type: EntityType) -> frozenset[str]:
    """The near keys under which an entity is stored: of its plain spelling, initials and acronym."""
    name = Name(text, type)
    if type is EntityType.PREDICATE or not name.words or len(name.key) > _MAX_KEY:
        return frozenset()
    plain = _spelt(name.words)
    found = {_word(each) for each in (plain, _spelt(name.without_form)) if each and each != name.key}
    if type is not EntityType.PERSON:
        long = [each for each in name.acronyms if len(each) >= _MIN_ACRONYM or name.is_cjk]
        found |= {f"{_MARK}a {each}" for each in long}
    return frozenset(found | _initials(name))


def keys_to_ask(text: str, type: EntityType) -> frozenset[str]:
    """The keys, near ones and plain ones, under which entities of a like name would be found."""
    name = Name(text, type)
    if type is EntityType.PREDICATE or not name.words or len(name.key) > _MAX_KEY:
        return frozenset()
    spellings = {_spelt(name.words), _spelt(name.without_form), *name.acronyms}
    if len(name.words) <= _MAX_TURNED:
        spellings |= {_spelt(name.words[at:] + name.words[:at]) for at in range(1, len(name.words))}
    if name.may_be_person and len(name.words) > 1:
        spellings.add(name.words[0])
    spellings.discard("")
    found = spellings | {_word(each) for each in spellings} | _initials(name)
    # By its own acronym it finds who else has it: the short name may mean them.
    found |= {f"{_MARK}a {each}" for each in name.acronyms}
    if len(name.words) == 1:
        found.add(f"{_MARK}a {name.joined}")
    return frozenset(found - {name.key})


def _initials(name: Name) -> set[str]:
    """First name with the initial of the last, and the other way round; of what may be a person."""
    if not name.may_be_person or not 2 <= len(name.words) <= _MAX_TURNED + 1:
        return set()
    first, last = name.words[0], name.words[-1]
    if not (first[0].isalpha() and last[0].isalpha()) or is_cjk(first[0]) or is_cjk(last[0]):
        return set()
    pairs = ((first, last[0]), (first[0], last))
    return {f"{_MARK}i {one} {other}" for one, other in pairs if len(one) > 1 or len(other) > 1}


def _word(spelling: str) -> str:
    return f"{_MARK}w {spelling}"


def _spelt(words: Iterable[str]) -> str:
    return " ".join(words)
