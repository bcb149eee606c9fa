"""Orphaned: entities whose words go, since nothing names them any more that has words itself."""

from collections.abc import Sequence

from services.domain.graph import Literal
from services.domain.ids import EntityId, Revision
from services.domain.scope import Scope
from services.resolver.change import Change
from services.stores.graph.port import GraphStore
from services.stores.paging import Page

_PAGE = 200


async def orphaned(graph: GraphStore, scope: Scope, change: Change, revision: Revision) -> Sequence[EntityId]:
    """Of a change that is applied, but for what it makes forgotten. Raises StoreUnavailable.

    What a text said by an earlier reading has words, though no record of it counts: it names its entities.
    """
    found = await graph.orphans(scope, change.orphans, revision) if change.orphans else ()
    named: set[EntityId] = set()
    after: str | None = "" if found else None
    while after is not None:
        listed = await graph.naming(scope, found, Page(_PAGE, after))
        rest = sorted(set(listed.items) - set(change.unsupported))
        for one in (await graph.records(scope, rest)).statements if rest else ():
            if one.fact:
                nodes = (one.subject, one.predicate, one.object)
                named |= {EntityId(node) for node in nodes if not isinstance(node, Literal)}
        after = listed.after or None
    return [id for id in found if id not in named]
