"""A service that does what it is told: answers, refuses, breaks, dawdles. For contracts of the runtimes."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass

from palimpsest.internal.v1 import extractor_pb2
from palimpsest.internal.v1.extractor_pb2 import ExtractRequest, ExtractResponse
from services.domain.errors import DocumentTooLarge
from services.domain.scope import Scope
from services.runtime.assertion import Signer
from services.runtime.front import Front
from services.runtime.resources import clock

APPLICATION = "odd"
SECRET = b"a secret of contract tests"
DESCRIPTOR = extractor_pb2.DESCRIPTOR.services_by_name["ExtractorService"]
LIMIT, SIZE = 10, 12
LONG_SECONDS = 60.0


class Odd:
    """Stands in for the extractor. What it is to do is the user's name in the setting."""

    def __init__(self) -> None:
        self._begun = 0
        self._cancelled = 0

    async def extract(self, scope: Scope, request: ExtractRequest) -> ExtractResponse:
        match request.setting.user_name:
            case "refuse":
                raise DocumentTooLarge("text", LIMIT, SIZE)
            case "break":
                raise RuntimeError("my cat is called Miso")
            case "echo":
                return ExtractResponse(nothing=request.setting.time_zone)
            case "dawdle":
                return await self._dawdle()
            case "count":
                return ExtractResponse(warnings=["begun"] * self._begun + ["cancelled"] * self._cancelled)
        return ExtractResponse(nothing=f"{scope.tenant}/{scope.graph}")

    async def _dawdle(self) -> ExtractResponse:
        self._begun += 1
        try:
            await asyncio.sleep(LONG_SECONDS)
        except asyncio.CancelledError:
            self._cancelled += 1
            raise
        return ExtractResponse()


def front() -> Front:
    """A fresh one."""
    return Front(APPLICATION, Odd(), Signer(SECRET, clock))


@dataclass(frozen=True, slots=True)
class OpenOdd:
    """Opens it in a replica."""

    async def __call__(self, stack: AsyncExitStack) -> Front:
        del stack  # nothing to close
        return front()
