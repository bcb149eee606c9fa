"""Lists that come in pages: read until there are enough, shown as one answer."""

from typing import Annotated, Any, TypeVar

import typer
from google.protobuf.message import Message

from palimpsest.cli.shell import Shell

MAX_PAGE = 1_000
"""Items that one call may ask for."""

Limit = Annotated[int, typer.Option(min=1, help="At most so many.")]

Response = TypeVar("Response", bound=Message)


async def whole(
    shell: Shell, method: Any, request: Message, answer: Response, items: str, limit: int
) -> Response:
    """`answer` with up to `limit` items in its field `items`, and the token of the page after them."""
    found = getattr(answer, items)
    token = ""
    while len(found) < limit:
        asked = type(request)()
        asked.CopyFrom(request)
        setattr(asked, "page_size", min(limit - len(found), MAX_PAGE))  # noqa: B010 - each request has its own class
        setattr(asked, "page_token", token)  # noqa: B010
        page = await shell.connection.call(method, asked)
        found.extend(getattr(page, items))
        token = page.next_page_token
        if not token:
            break
    setattr(answer, "next_page_token", token)  # noqa: B010
    return answer
