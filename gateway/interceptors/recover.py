"""The step that turns any exception into a status with details; a bug into INTERNAL with constant text."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import grpc.aio
import structlog

from gateway.errors import InternalFailure, abort, error_of
from gateway.interceptors.call import Call

log = structlog.get_logger(__name__)

_CODES = {code.value[0]: code for code in grpc.StatusCode}


class Recover:
    """Ends a call that failed with its status, and notes the code for the steps around it."""

    @asynccontextmanager
    async def around(self, call: Call) -> AsyncIterator[None]:
        try:
            yield
        except grpc.aio.AbortError:
            # A servicer that is not ours (health, reflection) has told its status itself.
            call.code = _told(call.context.code())
            raise
        except asyncio.CancelledError as cancelled:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                call.code = grpc.StatusCode.CANCELLED
                raise
            # Nobody cancelled this call: what it waited for was cancelled by somebody else.
            call.code = grpc.StatusCode.INTERNAL
            log.error("internal failure", method=call.method, raised=_where(cancelled))
            await abort(call.context, InternalFailure(), call.request_id)
        except Exception as exception:  # noqa: BLE001 - the one place where any of them becomes a status
            error = error_of(exception)
            call.code = _CODES[int(error.code)]
            if isinstance(error, InternalFailure):
                # The type and place alone: the text of an exception may hold what a user wrote.
                log.error("internal failure", method=call.method, raised=_where(exception))
            await abort(call.context, error, call.request_id)


def _told(code: object) -> grpc.StatusCode:
    """The code that a servicer set; grpc.aio answers its number."""
    if isinstance(code, grpc.StatusCode):
        return code
    return _CODES.get(code, grpc.StatusCode.UNKNOWN) if isinstance(code, int) else grpc.StatusCode.UNKNOWN


def _where(exception: BaseException) -> list[str]:
    places = [type(exception).__qualname__]
    trace = exception.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        places.append(f"{code.co_filename.rpartition('/')[2]}:{trace.tb_lineno} {code.co_name}")
        trace = trace.tb_next
    return places
