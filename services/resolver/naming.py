"""Naming: which entity or predicate a mention means. Equal keys of compatible types are one.

Finer resolution (similar names, acronyms, merges) builds on this: it adds candidates, never moves ids.
"""

from collections.abc import Iterable, Sequence

from services.domain.errors import EntityNotFound
from services.domain.facts import Mention
from services.domain.graph import Entity, EntityType, Literal
from services.domain.ids import EntityId, Revision, derive_id
from services.domain.lexicon import Lexicon, predicate_id
from services.domain.names import compatible, literal, name_key
from services.domain.near_keys import near_keys
from services.domain.scope import Scope
from services.resolver.change import Draft
from services.stores.graph.port import Alias, GraphStore


def sentence(subject: Entity, predicate: Entity, target: Entity | Literal) -> str:
    """A triple in plain words, for want of a sentence that somebody said."""
    named = target.text if isinstance(target, Literal) else target.name
    return f"{subject.name} {predicate.name.replace('_', ' ')} {named}"


async def draft_predicates(graph: GraphStore, scope: Scope, draft: Draft, keys: Iterable[str]) -> None:
    """Drafts the nodes of predicates that are not there, or were forgotten. Raises StoreUnavailable."""
    ids = {predicate_id(scope, key): key for key in keys}
    there = {one.id for one in await graph.entities(scope, sorted(ids)) if one.key} if ids else set()
    for id, key in ids.items():
        if id not in there and id not in draft.entities:
            draft.entities[id] = Entity(id, key, key, EntityType.PREDICATE, created_at=draft.revision)
            draft.aliases[(key, EntityType.PREDICATE, id)] = Alias(key, EntityType.PREDICATE, id, key)
        draft.keys[id] = key


class Naming:
    """Finds or drafts the nodes of one draft. Reads as known at `known`; new nodes go into the draft."""

    def __init__(
        self, graph: GraphStore, lexicon: Lexicon, scope: Scope, known: Revision, draft: Draft
    ) -> None:
        self._graph = graph
        self.lexicon = lexicon
        self._scope = scope
        self.known = known
        self._draft = draft
        self._found: dict[str, list[Entity]] = {}
        self._by_id: dict[str, Entity] = {}

    async def prepare(self, mentions: Sequence[Mention], predicates: Sequence[str]) -> None:
        """Looks all keys and ids up at once. `entity` and `predicate` then answer without the store.

        Raises EntityNotFound for an id that is no entity of the graph.
        """
        ids = sorted({EntityId(mention.id) for mention in mentions if mention.id} - self._by_id.keys())
        for entity in await self._graph.entities(self._scope, ids) if ids else ():
            if entity.name:  # one whose text was forgotten is gone for callers
                self.keep(entity)
        for unknown in set(ids) - self._by_id.keys():
            raise EntityNotFound(unknown)
        keys = {name_key(mention.name) for mention in mentions if not mention.id}
        keys |= {self.lexicon.key(name) for name in predicates}
        missing = sorted(keys - self._found.keys())
        found = await self._graph.find_entities(self._scope, missing, self.known)
        for key in missing:
            self._found[key] = list(found.get(key, ()))
            for entity in self._found[key]:
                self.keep(entity)

    def entity(self, mention: Mention) -> Entity:
        """The entity a mention means: an exact type first, then the oldest compatible one, else a new one."""
        if mention.id:
            return self._by_id[mention.id]
        key = name_key(mention.name)
        known = [e for e in self._found[key] if e.type is not EntityType.PREDICATE]
        exact = [e for e in known if e.type is mention.type]
        fitting = exact or [e for e in known if compatible(e.type, mention.type)]
        return fitting[0] if fitting else self._create(key, mention.name, mention.type)

    def find(self, mention: Mention) -> Entity | None:
        """Like `entity`, but drafts nothing."""
        if mention.id:
            return self._by_id[mention.id]
        known = [e for e in self._found[name_key(mention.name)] if compatible(e.type, mention.type)]
        return known[0] if known else None

    def predicate(self, name: str) -> Entity:
        """The predicate entity under which a name is recorded."""
        key = self.lexicon.key(name)
        known = [e for e in self._found[key] if e.type is EntityType.PREDICATE]
        return known[0] if known else self._create(key, key, EntityType.PREDICATE)

    def target(self, target: Mention | Literal) -> EntityId | Literal:
        if isinstance(target, Literal):
            return literal(target.kind, target.text)
        return self.entity(target).id

    def known_as(self, entity: EntityId) -> Entity:
        """An entity that was found, drafted or kept here."""
        return self._by_id[entity]

    def sentence(self, subject: EntityId, predicate: EntityId, target: EntityId | Literal) -> str:
        """A triple of such entities in plain words."""
        named = target if isinstance(target, Literal) else self._by_id[target]
        return sentence(self._by_id[subject], self._by_id[predicate], named)

    def keep(self, entity: Entity) -> EntityId:
        """Remembers an entity that was met elsewhere."""
        self._by_id[entity.id] = entity
        self._draft.keys[entity.id] = entity.key
        return entity.id

    def _create(self, key: str, name: str, kind: EntityType) -> Entity:
        made = EntityId(derive_id(self._scope, "entity", kind, key))
        entity = Entity(made, name.strip(), key, kind, created_at=self._draft.revision)
        self._draft.entities[made] = entity
        for each in (key, *sorted(near_keys(name, kind))):
            self._draft.aliases[(each, kind, made)] = Alias(each, kind, made, name.strip())
        self._found[key].append(entity)
        self.keep(entity)
        return entity
