"""The built page: read once, served from memory, so that no path of a request ever meets a file system."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import Response

from palimpsest.console.refusals import refused

INDEX = "index.html"
_TYPES: Mapping[str, str] = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}


class PageMissing(Exception):
    """The package holds no built page: it was taken from a tree in which it was removed."""


@dataclass(frozen=True, slots=True)
class File:
    """A file of the page."""

    content: bytes
    media_type: str
    tag: str


class Page:
    """The files of the page by name. Raises PageMissing."""

    def __init__(self, folder: Traversable | None = None) -> None:
        found = folder or resources.files("palimpsest.console") / "page"
        self.files = {one.name: _file(one) for one in _of(found) if one.name.rpartition(".")[2] in _TYPES}
        if INDEX not in self.files:
            raise PageMissing("the console's page is not built: `make console` builds it (Node.js and npm)")

    async def answer(self, request: Request) -> Response:
        """Answers `GET /` and `GET /<file>`. Raises Refused."""
        file = self.files.get(request.path_params.get("name", INDEX))
        if file is None:
            raise refused(404, "NO_SUCH_PAGE", "there is nothing here; the console is at /")
        # Kept by the browser, asked for each time: a console that was upgraded shows its own page.
        headers = {"ETag": file.tag, "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == file.tag:
            return Response(status_code=304, headers=headers)
        return Response(file.content, media_type=file.media_type, headers=headers)


def _of(folder: Traversable) -> list[Traversable]:
    return [one for one in folder.iterdir() if one.is_file()] if folder.is_dir() else []


def _file(one: Traversable) -> File:
    content = one.read_bytes()
    return File(content, _TYPES[one.name.rpartition(".")[2]], f'"{hashlib.sha256(content).hexdigest()[:32]}"')
