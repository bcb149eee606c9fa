"""An OpenAI-compatible endpoint: one call with its limits, retries and typed errors.

The client's own retries are off: what is tried again, and when, is decided here alone.
"""

import asyncio
import json
import ssl
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar

import httpx2
import openai
import stamina
from openai.types import CreateEmbeddingResponse
from openai.types.chat import ChatCompletion, ChatCompletionMessage
from opentelemetry.trace import SpanKind

from services import metering, tracing
from services.domain.scope import TenantId
from services.llm import tokens
from services.llm.openai_engine import errors
from services.llm.openai_engine.breaker import BreakerOpen, CircuitBreaker
from services.llm.openai_engine.cassettes import Cassette, CassetteTransport
from services.llm.openai_engine.limits import Pace, Slots, TokenBudgets
from services.llm.port import ModelOutputInvalid, ModelRateLimited, ModelRefused, ModelUnavailable
from services.llm.settings import EndpointSettings

T = TypeVar("T")


@dataclass(slots=True)
class Meter:
    """What a task has cost so far: HTTP calls, retries included, and the provider's tokens."""

    calls: int = field(default=0)
    tokens_in: int = field(default=0)
    tokens_out: int = field(default=0)
    tokens_cached: int = field(default=0)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model wrote: its text or the arguments of its tool call. `cut`: it hit the output limit."""

    text: str
    cut: bool


class Endpoint:
    """One endpoint. Belongs to the event loop that first uses it; close it there."""

    def __init__(self, settings: EndpointSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self.settings = settings
        self._client = openai.AsyncOpenAI(
            base_url=settings.base_url,
            # The client insists on a key; a local server ignores it.
            api_key=settings.api_key.get_secret_value() or "none",
            max_retries=0,
            timeout=openai.Timeout(settings.call_timeout_seconds, connect=settings.connect_timeout_seconds),
            http_client=_client(settings),
        )
        # Read by the client from the environment, which is the composition root's alone.
        self._client.organization = self._client.project = None
        self._breaker = CircuitBreaker(settings.breaker_failures, settings.breaker_open_seconds, clock)
        self._slots = Slots(settings.max_concurrency, settings.max_concurrency_per_tenant)
        self._budgets = TokenBudgets(settings.max_tokens_per_minute_per_tenant, clock)
        self._pace = Pace(clock)

    @property
    def wait_seconds(self) -> float:
        """How long the endpoint has asked us to wait; 0 when it may be called."""
        return self._pace.wait_seconds

    async def aclose(self) -> None:
        await self._client.close()

    async def chat(self, tenant: TenantId | None, request: dict[str, Any], meter: Meter) -> Reply:
        """One chat completion. Raises EngineError; RequestRefused when the endpoint takes no such request."""

        async def send() -> ChatCompletion:
            meter.calls += 1
            completion: ChatCompletion = await self._client.chat.completions.create(**request)
            return completion

        completion = await self._retried(tenant, send, _has_choice)
        choice = completion.choices[0]
        text = _text(choice.message)
        self._budgets.spend(tenant, _count(completion, request, text, meter))
        if choice.message.refusal or choice.finish_reason == "content_filter":
            raise ModelRefused("the model declined to answer")
        return Reply(text, choice.finish_reason == "length")

    async def embed(self, model: str, texts: Sequence[str], dimension: int | None) -> list[list[float]]:
        """One vector for each text, in their order. Raises EngineError."""

        async def send() -> CreateEmbeddingResponse:
            shortened = openai.omit if dimension is None else dimension
            return await self._client.embeddings.create(
                model=model, input=list(texts), encoding_format="float", dimensions=shortened
            )

        response = await self._retried(None, send, lambda answer: bool(getattr(answer, "data", None)))
        vectors = {item.index: item.embedding for item in response.data}
        if sorted(vectors) != list(range(len(texts))):
            raise ModelOutputInvalid(f"asked {len(texts)} vectors, got {len(response.data)}")
        return [vectors[index] for index in range(len(texts))]

    async def _retried(
        self, tenant: TenantId | None, send: Callable[[], Awaitable[T]], is_whole: Callable[[T], bool]
    ) -> T:
        settings = self.settings
        try:
            async for attempt in stamina.retry_context(
                on=self._backoff,
                attempts=settings.max_attempts,
                timeout=None,
                wait_initial=settings.retry_initial_wait_seconds,
                wait_max=settings.retry_max_wait_seconds,
                wait_jitter=settings.retry_initial_wait_seconds,
            ):
                with attempt:
                    return await self._once(tenant, send, is_whole)
        except ModelRateLimited as limited:
            limited.waited = settings.max_attempts > 1 and self._may_wait(limited)
            raise
        raise AssertionError("the last attempt returns or raises")

    async def _once(
        self, tenant: TenantId | None, send: Callable[[], Awaitable[T]], is_whole: Callable[[T], bool]
    ) -> T:
        # Before a place is taken: others need not wait for one tenant's budget.
        await self._budgets.wait(tenant, self.settings.max_retry_after_seconds)
        async with self._slots.held(tenant):
            await self._pace.wait()
            with (
                self._breaker.guard(),
                tracing.span("call model", SpanKind.CLIENT),
                metering.timed(metering.MODEL_SECONDS),
            ):
                try:
                    async with asyncio.timeout(self.settings.call_timeout_seconds):
                        answer = await send()
                except TimeoutError as late:
                    raise ModelUnavailable("the model endpoint took too long") from late
                except openai.OpenAIError as error:
                    raise errors.translate(error, self.settings.retry_max_wait_seconds) from error
                except ValueError as garbled:
                    raise ModelUnavailable("the model endpoint answered something unreadable") from garbled
                if not is_whole(answer):
                    # Some gateways answer 200 with an error inside, or with a page of theirs.
                    raise ModelUnavailable("the model endpoint answered without a result")
                return answer

    def _backoff(self, error: Exception) -> bool | float:
        """Whether to try again; a number of seconds when the endpoint named one."""
        if isinstance(error, errors.WaitUntold):
            return True
        if isinstance(error, ModelRateLimited):
            if not self._may_wait(error):
                return False
            self._pace.hold(error.retry_after_seconds)
            return error.retry_after_seconds
        return isinstance(error, ModelUnavailable) and not isinstance(error, BreakerOpen)

    def _may_wait(self, error: ModelRateLimited) -> bool:
        """Whether the wait is short enough to be waited for here; a longer one is the caller's."""
        return error.retry_after_seconds <= self.settings.max_retry_after_seconds


def _client(settings: EndpointSettings) -> httpx2.AsyncClient:
    """The library's own client, or one over the cassette that the settings name."""
    if settings.cassette is None:
        return openai.DefaultAsyncHttpxClient(verify=_authorities())
    record = settings.cassette_mode == "record"
    inner = httpx2.AsyncHTTPTransport(verify=_authorities()) if record else None
    transport = CassetteTransport(Cassette(settings.cassette), settings.base_url, inner)
    return httpx2.AsyncClient(transport=transport, verify=_authorities())


@cache
def _authorities() -> ssl.SSLContext:
    """Whom this machine trusts, read once: a client that reads it by itself takes 30 ms for that."""
    return httpx2.create_ssl_context()


def _has_choice(completion: ChatCompletion) -> bool:
    # The client does not validate what it parses: any of these may be absent.
    choices: list[object] = getattr(completion, "choices", None) or []
    return len(choices) > 0 and getattr(choices[0], "message", None) is not None


def _text(message: ChatCompletionMessage) -> str:
    """The arguments of the first tool call, or else the content. Some servers send arguments as an object."""
    for call in message.tool_calls or []:
        arguments: object = getattr(getattr(call, "function", None), "arguments", None)
        if arguments:
            return arguments if isinstance(arguments, str) else json.dumps(arguments)
    return message.content or ""


def _count(completion: ChatCompletion, request: dict[str, Any], text: str, meter: Meter) -> int:
    """Adds a call's tokens to the meter; answers how many went in and out."""
    usage = completion.usage
    if usage is None:
        # A server that doesn't say: counted by us, so that a receipt never claims a free call.
        sent = sum(tokens.count(str(message["content"])) for message in request["messages"])
        received = tokens.count(text)
    else:
        sent, received = usage.prompt_tokens or 0, usage.completion_tokens or 0
    meter.tokens_in += sent
    meter.tokens_out += received
    metering.MODEL_TOKENS.add(sent, {"direction": "in"})
    metering.MODEL_TOKENS.add(received, {"direction": "out"})
    details = getattr(usage, "prompt_tokens_details", None)
    meter.tokens_cached += getattr(details, "cached_tokens", None) or 0
    return sent + received
