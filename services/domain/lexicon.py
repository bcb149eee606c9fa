"""Lexicon: what the predicates of one graph mean as known at a revision: what ships, declarations on top, and
what was found to be another word for these.

What ships is spelling: a name is recorded under its shipped canonical form, a pair of inverses in one
direction. What is declared is reading alone: a statement keeps the predicate that its own name gives, and the
lexicon says as what it reads. So a declaration made before or after a text gives the same, and one taken back
leaves nothing. A synonym that a model found (services/resolver/likening.py) is reading, too, and the least:
it counts for a name that neither what ships nor a declaration knows.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from services.domain.beliefs import in_force
from services.domain.graph import EntityType
from services.domain.identity import Merge, MergeKind
from services.domain.ids import EntityId, RecordId, Revision, derive_id
from services.domain.inflections import inflections
from services.domain.predicates import Cardinality, Declared, Vocabulary, spelling
from services.domain.scope import Scope


def predicate_id(scope: Scope, key: str) -> EntityId:
    """The entity of a predicate that is recorded under `key`."""
    return EntityId(derive_id(scope, "entity", EntityType.PREDICATE, key))


@dataclass(frozen=True, slots=True)
class Synonym:
    """A SYNONYM record with the keys of its two predicates: `name` reads as `other`."""

    record: Merge
    name: str
    other: str

    @property
    def id(self) -> RecordId:
        return self.record.id

    @property
    def recorded_at(self) -> Revision:
        return self.record.recorded_at

    @property
    def revoked_at(self) -> Revision | None:
        return self.record.revoked_at


def synonyms_in(merges: Iterable[Merge], keys: Mapping[EntityId, str]) -> list[Synonym]:
    """The SYNONYM records among these; `keys` of predicates. One whose name was forgotten says nothing."""
    return [
        Synonym(merge, keys.get(merge.entity, ""), keys.get(merge.into, ""))
        for merge in merges
        if merge.kind is MergeKind.SYNONYM
    ]


class Lexicon:
    """Immutable. `known` is how names read; `merged` and `inverses` say it of entities."""

    def __init__(
        self,
        scope: Scope,
        shipped: Vocabulary,
        records: Sequence[Declared] = (),
        known_at: Revision | None = None,
        synonyms: Sequence[Synonym] = (),
    ) -> None:
        """`records`, `synonyms`: all of the graph, revoked ones included. None: as known now."""
        self._scope = scope
        self._shipped = shipped
        self._records = [one for one in records if known_at is None or one.recorded_at <= known_at]
        counting = in_force(self._records, known_at)
        self.declared: Mapping[str, Declared] = {spelling(one.declaration.name): one for one in counting}
        """Declarations that count, by name."""
        self._told = shipped.declaring(one.declaration for one in counting) if counting else shipped
        self._synonyms = [one for one in synonyms if known_at is None or one.recorded_at <= known_at]
        found = _found(in_force(self._synonyms, known_at), self._told)
        self.known = replace(self._told, aliases={**self._told.aliases, **found}) if found else self._told
        self._own = self._names_of_their_own()
        self._reading = self._own | found.keys() if found else self._own
        keys = {key for key in self._reading if self.known.canonical(key) != key}
        self._keys = {predicate_id(scope, key): key for key in keys}
        self.merged: Mapping[EntityId, EntityId] = {
            id: predicate_id(scope, self.known.canonical(key)) for id, key in self._keys.items()
        }
        """Predicates that read as others."""
        groups: dict[EntityId, set[EntityId]] = {}
        for id, shown in self.merged.items():
            groups.setdefault(shown, {shown}).add(id)
        self._groups = {shown: frozenset(ids) for shown, ids in groups.items()}
        pairs = self.known.inverses
        named = {name: predicate_id(scope, name) for pair in pairs.items() for name in pair}
        self.inverses: Mapping[EntityId, EntityId] = {
            named[one]: named[other] for one, other in pairs.items()
        }
        """Predicates that say the same from object to subject, both ways; as others read."""
        self._keys |= {id: name for name, id in named.items()}
        self._keys |= {id: self.known.canonical(self._keys[one]) for one, id in self.merged.items()}

    @property
    def synonyms(self) -> Sequence[Synonym]:
        """All that were found, revoked ones included."""
        return self._synonyms

    def after(
        self, records: Iterable[Declared], revoked: Iterable[RecordId], synonyms: Iterable[Synonym] = ()
    ) -> "Lexicon":
        """With what a revision is about to declare, to find and to take back, as known from it on."""
        records, synonyms, gone = list(records), list(synonyms), set(revoked)
        if not records and not synonyms and not gone:
            return self
        kept = [replace(one, revoked_at=one.recorded_at) if one.id in gone else one for one in self._records]
        found = [one for one in self._synonyms if one.id not in gone]
        return Lexicon(self._scope, self._shipped, [*kept, *records], synonyms=[*found, *synonyms])

    def knows(self, name: str) -> bool:
        """Whether what ships or a declaration gives this spelling a meaning."""
        return _knows(self._told, name)

    @property
    def words(self) -> Mapping[str, str]:
        """Every name that ships or is declared, with its canonical form."""
        return {name: self._told.canonical(name) for name in self._told.names}

    @property
    def recorded(self) -> frozenset[str]:
        """Keys whose meaning declarations may have changed: all that one names, and what ships for these."""
        return self._reading | {self._shipped.canonical(name) for name in self._reading}

    def key(self, name: str) -> str:
        """The form under which a name is recorded. Raises ValueError when no word is in it."""
        spelt = spelling(name)
        return spelt if spelt in self._own else self._shipped.canonical(spelt)

    def turned(self, name: str) -> str | None:
        """The name under which it is recorded from object to subject, if it is: by what ships alone."""
        key = self.key(name)
        return self._shipped.inverse(key) if key in self._shipped.turned else None

    def shipped_inverse(self, name: str) -> str | None:
        """The inverse that ships, which no declaration may change: it is how statements are recorded."""
        return self._shipped.inverse(self.key(name))

    def keys(self, name: str) -> list[str]:
        """All forms under which statements are recorded that read as this name; its canonical form first."""
        canonical = self.known.canonical(name)
        others = sorted(
            key for key in self._reading if self.known.canonical(key) == canonical and key != canonical
        )
        return [canonical, *others]

    def alike(self, predicate: EntityId) -> Collection[EntityId]:
        """Predicates that read as one with this one, itself included."""
        shown = self.merged.get(predicate, predicate)
        return self._groups.get(shown, frozenset((shown,)))

    def inverse_of(self, predicate: EntityId) -> EntityId | None:
        """As what reads the predicate that says the same from object to subject."""
        return self.inverses.get(self.merged.get(predicate, predicate))

    def id_of(self, name: str) -> EntityId:
        """The entity of a canonical name, whether or not anything was said by it."""
        return predicate_id(self._scope, name)

    def aliases(self, name: str) -> list[str]:
        """Other names that read as this canonical one, in order."""
        return sorted(alias for alias, canonical in self.known.aliases.items() if canonical == name)

    def name_of(self, predicate: EntityId) -> str:
        """The key of a predicate that reads as another, or as which others read; else ""."""
        return self._keys.get(predicate, "")

    def cardinality(self, key: str) -> Cardinality:
        """Of a predicate's key; MULTI of one that was forgotten."""
        return self.known.cardinality(key) if key else Cardinality.MULTI

    def _names_of_their_own(self) -> frozenset[str]:
        """Names that are recorded as they are spelt, since a declaration names them or did."""
        named: set[str] = set()
        for record in self._records:
            declaration = record.declaration
            name = spelling(declaration.name)
            target = self._shipped.canonical(name)
            named |= {name} | ({declaration.inverse} if declaration.inverse else set())
            # An alias that ships with the same meaning needs no entity of its own.
            named |= {
                one for one in map(spelling, declaration.aliases) if self._shipped.aliases.get(one) != target
            }
        named |= {inverse for name in named if (inverse := self._shipped.inverse(name))}
        named |= {
            form for name in named for form in inflections(name) if self._shipped.canonical(form) == form
        }
        return frozenset(map(spelling, named))


def _knows(vocabulary: Vocabulary, name: str) -> bool:
    return (
        name in vocabulary.aliases
        or name in vocabulary.forms
        or name in vocabulary.cardinalities
        or name in vocabulary.inverses
        or name in vocabulary.aliases.values()
    )


def _found(synonyms: Iterable[Synonym], told: Vocabulary) -> dict[str, str]:
    """Canonical forms of names that `told` has none for, by synonyms that count; a circle says nothing.

    Of several for a name the heaviest counts: user over model over rule, then attested last.
    """
    ranked = sorted(synonyms, key=lambda one: (one.record.judge, one.record.attested_at, one.other))
    heaviest = {
        one.name: one.other for one in ranked if one.name and one.other and not _knows(told, one.name)
    }
    found: dict[str, str] = {}
    for name in heaviest:
        seen, other = {name}, heaviest[name]
        while other in heaviest and other not in seen:
            seen.add(other)
            other = heaviest[other]
        if other not in seen:
            found[name] = told.canonical(other)
    return found
