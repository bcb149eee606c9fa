"""From the client's errors to the port's. No message of one is passed on: it may quote the prompt."""

import email.utils
import time

import openai

from services.llm.openai_engine.cassettes import UnknownRecording
from services.llm.port import (
    EngineError,
    ModelMisconfigured,
    ModelRateLimited,
    ModelRefused,
    ModelUnavailable,
)

_REFUSALS = frozenset({"content_filter", "content_policy_violation"})
_TRANSIENT = frozenset({408, 409, 425})


class RequestRefused(ModelMisconfigured):
    """The endpoint takes no request of this form (400, 422). `hint` is what it said, in lower case."""

    def __init__(self, status: int, hint: str) -> None:
        super().__init__(f"the model endpoint refused the request (HTTP {status})")
        self.hint = hint


class WaitUntold(ModelRateLimited):
    """429 without a Retry-After that can be read: our own backoff decides."""


def translate(error: openai.OpenAIError, default_wait_seconds: float) -> EngineError:
    """The port's error; `default_wait_seconds` stands in for a Retry-After that is missing."""
    if isinstance(error.__cause__, UnknownRecording):
        return error.__cause__
    if isinstance(error, openai.APIStatusError):
        return _of_status(error, default_wait_seconds)
    if isinstance(error, openai.APITimeoutError):
        return ModelUnavailable("the model endpoint took too long")
    if isinstance(error, openai.APIConnectionError):
        return ModelUnavailable("the model endpoint can't be reached")
    if isinstance(error, openai.APIError):
        return ModelUnavailable("the model endpoint answered something unreadable")
    return ModelMisconfigured(f"the model client refused its settings ({type(error).__name__})")


def _of_status(error: openai.APIStatusError, default_wait_seconds: float) -> EngineError:
    status = error.status_code
    if status == 429:
        if error.code == "insufficient_quota":
            return ModelMisconfigured("the quota of the model endpoint is used up")
        wait = _retry_after(error)
        if wait is None:
            return WaitUntold("the model endpoint limits our rate", default_wait_seconds)
        return ModelRateLimited("the model endpoint asks to wait", wait)
    if status >= 500 or status in _TRANSIENT:
        return ModelUnavailable(f"the model endpoint failed (HTTP {status})")
    if error.code in _REFUSALS:
        return ModelRefused("the model endpoint's filter declined the text")
    if error.code == "context_length_exceeded":
        return ModelMisconfigured("the text does not fit into the model's context")
    if status in {400, 422}:
        return RequestRefused(status, f"{error.param} {error.message}".lower())
    return ModelMisconfigured(f"the model endpoint refused the call (HTTP {status})")


def _retry_after(error: openai.APIStatusError) -> float | None:
    """Seconds of `retry-after-ms` or Retry-After (seconds or a date); None when neither can be read."""
    headers = error.response.headers
    try:
        if (milliseconds := headers.get("retry-after-ms")) is not None:
            return max(0.0, float(milliseconds) / 1000)
        text = headers.get("retry-after", "")
        if text.replace(".", "", 1).isdigit():
            return float(text)
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, TypeError):
        return None
