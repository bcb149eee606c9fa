"""Predicates: what a caller means by the name or id of one, and the list of a graph's."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from palimpsest.internal.v1 import recall_lists_pb2 as pb
from services.domain.errors import ValidationFailed, Violation
from services.domain.graph import Entity, EntityType
from services.domain.ids import EntityId, Revision
from services.domain.lexicon import Lexicon, predicate_id
from services.domain.predicates import Vocabulary
from services.domain.scope import Scope
from services.recall.ids import is_our_id
from services.recall.revisions import Revisions
from services.stores.graph.port import GraphStore
from services.stores.memory.lexicons import Lexicons
from services.stores.memory.port import RevisionLog
from services.wire.predicates import predicate_out

MAX_PAGE = 1_000
DEFAULT_PAGE = 50


@dataclass(frozen=True, slots=True)
class Meant:
    """A predicate as asked for, `shown`; nothing may be recorded under it itself.

    `near`: predicates that are recorded and read as it. `far`: those that say it from the object's end.
    """

    shown: Entity
    near: Sequence[EntityId]
    far: Sequence[EntityId]


class Predicates:
    """Reads the predicates of graphs. Every method raises StoreUnavailable."""

    def __init__(self, graph: GraphStore, lexicons: Lexicons, log: RevisionLog, revisions: Revisions) -> None:
        self._graph = graph
        self._lexicons = lexicons
        self._log = log
        self._revisions = revisions

    async def lexicon(self, scope: Scope, known_at: Revision) -> Lexicon:
        return await self._lexicons.at(scope, known_at)

    async def meant(self, scope: Scope, named: str, known_at: Revision) -> Meant | None:
        """By id, or by a name in any spelling or alias; None for one that nothing was ever said by here."""
        lexicon = await self._lexicons.at(scope, known_at)
        key = await self._key(scope, named, known_at, lexicon)
        if key is None:
            return None
        canonical = lexicon.known.canonical(key)
        inverse = lexicon.known.inverse(canonical)
        near_keys = lexicon.keys(canonical)
        far_keys = lexicon.keys(inverse) if inverse else []
        found = await self._graph.find_entities(scope, sorted({*near_keys, *far_keys}), known_at)

        def there(keys: Iterable[str]) -> list[Entity]:
            every = (one for key in keys for one in found.get(key, ()))
            return [one for one in every if one.type is EntityType.PREDICATE]

        near, far = there(near_keys), there(far_keys)
        if not near and not far:
            return None
        own = [one for one in near if one.key == canonical]
        made = Entity(predicate_id(scope, canonical), canonical, canonical, EntityType.PREDICATE)
        return Meant(own[0] if own else made, [one.id for one in near], [one.id for one in far])

    async def list(self, scope: Scope, request: pb.ListPredicatesRequest) -> pb.ListPredicatesResponse:
        """Declared, shipped and met ones by name. Raises ValidationFailed, RevisionNotReady."""
        known = await self._revisions.known(scope, request.known_at)
        lexicon = await self._lexicons.at(scope, known.at)
        met = {
            alias.key: alias
            for alias in await self._graph.aliases(scope, known.at)
            if alias.type is EntityType.PREDICATE and lexicon.known.canonical(alias.key) == alias.key
        }
        names = set(lexicon.declared)
        if not request.declared_only:
            names |= {*met, *_names(lexicon.known)}
        after = request.after
        if after and not after.startswith("="):
            raise ValidationFailed(Violation("page_token", "not a token of this list"))
        size = min(request.page_size, MAX_PAGE) if request.page_size > 0 else DEFAULT_PAGE
        rest = sorted(name for name in names if not after or name > after[1:])
        page = rest[:size]
        since = {name: met[name].recorded_at for name in page if name in met}
        since |= {name: one.recorded_at for name, one in lexicon.declared.items() if name in page}
        clocks = await self._log.clocks(scope, sorted(set(since.values())))
        return pb.ListPredicatesResponse(
            predicates=[
                predicate_out(lexicon, name, since.get(name), clocks.get(since.get(name, Revision(0))))
                for name in page
            ],
            after=f"={page[-1]}" if len(rest) > size else "",
            revision=known.at,
        )

    async def _key(self, scope: Scope, named: str, known_at: Revision, lexicon: Lexicon) -> str | None:
        if not is_our_id(named):
            try:
                return lexicon.known.canonical(named)
            except ValueError:
                return None
        if key := lexicon.name_of(EntityId(named)):
            return key
        found = await self._graph.entities(scope, [EntityId(named)])
        fitting = [one for one in found if one.created_at <= known_at and one.type is EntityType.PREDICATE]
        return fitting[0].key or None if fitting else None


def _names(vocabulary: Vocabulary) -> set[str]:
    return {*vocabulary.aliases.values(), *vocabulary.cardinalities, *vocabulary.inverses} - set(
        vocabulary.aliases
    )
