"""Lexicon: what the predicates of one graph mean as known at a revision: what ships, declarations on top.

What ships is spelling: a name is recorded under its shipped canonical form, a pair of inverses in one
direction. What is declared is reading alone: a statement keeps the predicate that its own name gives, and the
lexicon says as what it reads. So a declaration made before or after a text gives the same, and one taken back
leaves nothing.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from services.domain.beliefs import in_force
from services.domain.graph import EntityType
from services.domain.ids import EntityId, RecordId, Revision, derive_id
from services.domain.inflections import inflections
from services.domain.predicates import Cardinality, Declared, Vocabulary, spelling
from services.domain.scope import Scope


def predicate_id(scope: Scope, key: str) -> EntityId:
    """The entity of a predicate that is recorded under `key`."""
    return EntityId(derive_id(scope, "entity", EntityType.PREDICATE, key))


class Lexicon:
    """Immutable. `known` is how names read; `merged` and `inverses` say it of entities."""

    def __init__(
        self,
        scope: Scope,
        shipped: Vocabulary,
        records: Sequence[Declared] = (),
        known_at: Revision | None = None,
    ) -> None:
        """`records`: every declaration of the graph, revoked ones included. None: as known now."""
        self._scope = scope
        self._shipped = shipped
        self._records = [one for one in records if known_at is None or one.recorded_at <= known_at]
        counting = in_force(self._records, known_at)
        self.declared: Mapping[str, Declared] = {spelling(one.declaration.name): one for one in counting}
        """Declarations that count, by name."""
        self.known = shipped.declaring(one.declaration for one in counting) if counting else shipped
        self._own = self._names_of_their_own()
        keys = {key for key in self._own if self.known.canonical(key) != key}
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

    def after(self, records: Iterable[Declared], revoked: Iterable[RecordId]) -> "Lexicon":
        """With what a revision is about to declare and to take back, as known from it on."""
        records, gone = list(records), set(revoked)
        if not records and not gone:
            return self
        kept = [replace(one, revoked_at=one.recorded_at) if one.id in gone else one for one in self._records]
        return Lexicon(self._scope, self._shipped, [*kept, *records])

    @property
    def recorded(self) -> frozenset[str]:
        """Keys whose meaning declarations may have changed: all that one names, and what ships for these."""
        return self._own | {self._shipped.canonical(name) for name in self._own}

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
            key for key in self._own if self.known.canonical(key) == canonical and key != canonical
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
