"""What every catalogue of the archive must do. A store's test gives the fixture `memory`."""

from itertools import permutations

from services.domain.ids import Revision, StatementId
from services.stores.memory.archive import Moved
from services.stores.memory.fences import Purged
from services.stores.memory.sql import SqlMemory
from services.stores.paging import Page
from tests.contracts.memory_base import SCOPE, TWINS, all_pages

A, B, C, D = (StatementId(id) for id in "abcd")


def moved(statement: StatementId, archived: int = 0, restored: int = 0) -> Moved:
    return Moved(statement, Revision(archived), Revision(restored))


class ArchiveContract:
    """Idempotent, in any order, of one scope alone."""

    async def test_the_latest_revision_says_where_a_statement_lies(self, memory: SqlMemory) -> None:
        steps = [moved(A, archived=2), moved(A, restored=4), moved(A, archived=6), moved(A, restored=7)]
        for number, order in enumerate(permutations(steps[:3])):
            await memory.archive.apply(TWINS[number % 2], order)
            await memory.archive.apply(TWINS[number % 2], order)
        # Whatever came first, what is archived at 6 was brought back before.
        assert await memory.archive.moves(TWINS[0], [A]) == [moved(A, 6, 4)]
        assert await memory.archive.among(TWINS[1], [A, B]) == {A}
        await memory.archive.apply(TWINS[0], steps[3:])
        assert await memory.archive.among(TWINS[0], [A]) == frozenset()
        assert await memory.archive.latest(TWINS[0]) == 7
        assert await memory.archive.latest(SCOPE) == 0
        for scope, archived in ((TWINS[0], True), (SCOPE, False)):
            assert (await memory.revisions.state(scope, "any")).archived is archived

    async def test_what_was_never_archived_needs_no_bringing_back(self, memory: SqlMemory) -> None:
        await memory.archive.apply(SCOPE, [moved(A, restored=3), moved(B, archived=1)])
        assert await memory.archive.moves(SCOPE, [A, B, C, StatementId("\x00")]) == [moved(B, 1)]
        assert await memory.archive.moves(TWINS[0], [B]) == []
        assert await memory.archive.count(SCOPE) == 1

    async def test_lists_are_by_id_and_page(self, memory: SqlMemory) -> None:
        await memory.archive.apply(SCOPE, [moved(C, 1), moved(A, 1), moved(B, 1, 2), moved(D, 3)])
        await memory.archive.apply(TWINS[1], [moved(B, 9)])
        assert await all_pages(lambda page: memory.archive.archived(SCOPE, page), 2) == [A, C, D]
        scanned = await all_pages(lambda page: memory.archive.scan(SCOPE, page), 3)
        assert scanned == [moved(A, 1), moved(B, 1, 2), moved(C, 1), moved(D, 3)]
        assert [one.as_of(Revision(2)).archived for one in scanned] == [True, False, True, False]

    async def test_it_is_erased_and_purged(self, memory: SqlMemory) -> None:
        for scope in (SCOPE, TWINS[0]):
            await memory.archive.apply(scope, [moved(A, 1), moved(B, 1)])
        assert (await memory.rows(SCOPE))["archive"] == 2
        await memory.purge(SCOPE, Purged(statements=[A]))
        assert (await memory.archive.archived(SCOPE, Page())).items == [B]
        await memory.erase(SCOPE)
        assert await memory.rows(SCOPE) == {}
        assert await memory.archive.count(TWINS[0]) == 2
