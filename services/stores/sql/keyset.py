"""Pages by position: the columns that order a list say where the next page begins."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.elements import KeyedColumnElement

from services.stores.paging import Listed, NotAPosition, Page
from services.stores.storable import is_storable


async def page_of(
    connection: AsyncConnection,
    query: Select[Any],
    order: Sequence[KeyedColumnElement[Any]],
    page: Page,
    descending: bool = False,
) -> Listed[Mapping[str, Any]]:
    """A page of the query's rows in the order of these columns (integers and ids, unique together).

    Raises ValueError if the page continues after what is no position in such a list.
    """
    query = query.order_by(*(column.desc() if descending else column for column in order))
    if page.after:
        here, position = tuple_(*order), tuple_(*_position(page.after, order))
        query = query.where(here < position if descending else here > position)
    rows = [dict(row) for row in (await connection.execute(query.limit(page.size + 1))).mappings()]
    shown = rows[: page.size]
    more = len(rows) > page.size and bool(shown)
    return Listed(shown, json.dumps([shown[-1][column.key] for column in order]) if more else "")


def _position(token: str, order: Sequence[KeyedColumnElement[Any]]) -> list[int | str]:
    try:
        values = json.loads(token)
    except ValueError:
        values = None
    kinds = [column.type.python_type for column in order]
    if not isinstance(values, list) or [type(value) for value in values] != kinds:
        raise NotAPosition
    if not all(_fits(value) for value in values):
        raise NotAPosition
    return values


def _fits(value: int | str) -> bool:
    return is_storable(value) if isinstance(value, str) else -(2**63) <= value < 2**63
