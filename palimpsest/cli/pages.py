"""Lists that come in pages: read until there are enough, shown as one answer."""

from typing import Annotated, Any

import typer

from palimpsest.cli.shell import Shell

MAX_PAGE = 1_000
"""Items that one call may ask for."""

Limit = Annotated[int, typer.Option(min=1, help="At most so many.")]


async def whole(shell: Shell, method: Any, request: Any, items: str, limit: int = 0) -> Any:
    """The first answer of a list, its field `items` with those of all pages, or with `limit` of them.

    Its `next_page_token` is that of the page after; empty when there is none.
    """
    asked = type(request)()
    asked.CopyFrom(request)
    asked.page_size = min(limit, MAX_PAGE)
    answer = await shell.connection.call(method, asked)
    found = getattr(answer, items)
    while answer.next_page_token and not 0 < limit <= len(found):
        asked.page_size = min(limit - len(found), MAX_PAGE) if limit else 0
        asked.page_token = answer.next_page_token
        page = await shell.connection.call(method, asked)
        found.extend(getattr(page, items))
        answer.next_page_token = page.next_page_token
    del found[limit or len(found) :]
    return answer
