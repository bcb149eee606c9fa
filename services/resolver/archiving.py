"""Archiving: what long ended leaves what is searched every day, and comes back when it is asked for.

Both are revisions, which change no belief: so they are serial with every other writer, complete after a
crash, and known to whoever follows the log. Whatever is told anew of an archived statement brings it back as
well, see publish.py.
"""

from collections.abc import Callable, Mapping, Sequence

from palimpsest.internal.v1 import resolver_archiving_pb2 as pb
from services.domain.errors import StatementNotFound
from services.domain.ids import Revision, StatementId, derive_id
from services.domain.instants import Instant
from services.domain.scope import Scope
from services.resolver.change import Draft, Published
from services.resolver.deciding import Action, By, decide
from services.resolver.publish import Publisher, Stores
from services.stores.graph.port import AsOf, StatementView
from services.stores.paging import Page

PAGE = 500
"""Statements looked at by one call, and moved by one revision: what other writers wait for."""
RETENTION = "retention"

Rules = Mapping[str, Instant]
"""For aspects (and "", all without a rule of their own) the instant by which something must have ended."""


class Archiving:
    """Moves statements between what is hot and the archive."""

    def __init__(self, stores: Stores, publisher: Publisher, now: Callable[[], Instant]) -> None:
        self._stores = stores
        self._graph = stores.graph
        self._archive = stores.archive
        self._publisher = publisher
        self._now = now

    async def archive(self, scope: Scope, request: pb.ArchiveRequest) -> pb.ArchiveResponse:
        """Of a page of the graph, in order of creation. Idempotent by commit id. Raises Conflict."""
        rules = {rule.aspect: Instant(rule.ended_by) for rule in request.rules}
        listed = await self._graph.scan(scope, Page(PAGE, request.page_token))

        async def build(known: Revision, revision: Revision) -> Draft:
            due = await self._due(scope, listed.items, rules, known)
            draft = Draft(revision, archived=due)
            if due:
                by = By(request.actor, RETENTION)
                decide(scope, draft, self._now(), Action.ARCHIVE, _named(scope, request.commit_id), by)
            return draft

        published = await self._publisher.publish(scope, f"archive:{request.commit_id}", build)
        return pb.ArchiveResponse(
            archived=published.outcome.archived,
            next_page_token=listed.after,
            revision=published.revision,
        )

    async def restore(self, scope: Scope, request: pb.RestoreArchivedRequest) -> pb.RestoreArchivedResponse:
        """Brings these back, or all. Idempotent by commit id: a call that was cut short goes on.

        Raises StatementNotFound, Conflict.
        """
        ids = [StatementId(id) for id in request.statement_ids]
        await self._there(scope, ids)
        restored, part = 0, 0
        while True:
            published = await self._restore(scope, request, ids, f"{request.commit_id}:{part}")
            restored += published.outcome.unarchived
            if published.outcome.unarchived < PAGE:
                return pb.RestoreArchivedResponse(restored=restored, revision=published.revision)
            part += 1

    async def _restore(
        self,
        scope: Scope,
        request: pb.RestoreArchivedRequest,
        ids: Sequence[StatementId],
        commit_id: str,
    ) -> Published:
        """At most a page of them, as one revision."""

        async def build(_known: Revision, revision: Revision) -> Draft:
            found = await self._found(scope, ids)
            draft = Draft(revision, restored=set(found))
            if found:
                by = By(request.actor, request=request.request_id)
                decide(scope, draft, self._now(), Action.RESTORE_ARCHIVED, _named(scope, commit_id), by)
            return draft

        return await self._publisher.publish(scope, f"restore-archived:{commit_id}", build)

    async def _there(self, scope: Scope, ids: Sequence[StatementId]) -> None:
        """Raises StatementNotFound for one that the published graph has not."""
        current = await self._stores.revisions.current(scope)
        views = await self._graph.views(scope, ids, AsOf(current)) if ids else ()
        for missing in sorted(set(ids) - {view.statement.id for view in views}):
            raise StatementNotFound(missing)

    async def _found(self, scope: Scope, ids: Sequence[StatementId]) -> Sequence[StatementId]:
        if ids:
            return sorted(await self._archive.among(scope, ids))[:PAGE]
        return (await self._archive.archived(scope, Page(PAGE))).items

    async def _due(
        self, scope: Scope, ids: Sequence[StatementId], rules: Rules, known: Revision
    ) -> set[StatementId]:
        """Those that ended, are believed no more, or came back, before the time that their rule names."""
        moves = {one.statement: one for one in await self._archive.moves(scope, ids)}
        hot = [id for id in ids if id not in moves or not moves[id].archived]
        views = [
            view
            for view in (await self._graph.views(scope, hot, AsOf(known)) if hot else ())
            if view.statement.fact and _rule(view, rules) is not None
        ]
        since = {id: moves[id].restored_at for id in hot if id in moves}
        gone = [view.statement.id for view in views if not view.spans]
        for id, revision in (await self._given_up(scope, gone)).items():
            since[id] = max(revision, since.get(id, revision))
        clocks = await self._stores.revisions.clocks(scope, sorted(set(since.values()))) if since else {}
        due: set[StatementId] = set()
        for view in views:
            id, by = view.statement.id, _rule(view, rules)
            assert by is not None, "those without a rule are left out"
            if id in since and clocks.get(since[id], by + 1) > by:
                continue
            if all(span.invalid_at is not None and span.invalid_at <= by for span in view.spans):
                due.add(id)
        return due

    async def _given_up(self, scope: Scope, ids: Sequence[StatementId]) -> Mapping[StatementId, Revision]:
        """For statements that are not believed, since when: since they came, if they never were."""
        if not ids:
            return {}
        records = await self._graph.records(scope, ids)
        since = {one.id: one.created_at for one in records.statements}
        for span in records.spans:
            if span.known_to is not None:
                since[span.statement] = max(since.get(span.statement, span.known_to), span.known_to)
        return since


class Shelving:
    """A part of the resolver service, which sets `_archiving`."""

    _archiving: Archiving

    async def archive(self, scope: Scope, request: pb.ArchiveRequest) -> pb.ArchiveResponse:
        """See Archiving.archive."""
        return await self._archiving.archive(scope, request)

    async def restore_archived(
        self, scope: Scope, request: pb.RestoreArchivedRequest
    ) -> pb.RestoreArchivedResponse:
        """See Archiving.restore."""
        return await self._archiving.restore(scope, request)


def _rule(view: StatementView, rules: Rules) -> Instant | None:
    """By when this one must have ended."""
    aspect = view.statement.aspect
    return rules.get("") if aspect is None else rules.get(aspect, rules.get(""))


def _named(scope: Scope, commit_id: str) -> str:
    """What a decision about many statements is about: the call."""
    return derive_id(scope, "archiving", commit_id)
