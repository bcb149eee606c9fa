"""Settings of the model side, as the composition root fills them. Nothing here reads the environment."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from services.llm.port import Tier


class EndpointSettings(BaseModel):
    """How one OpenAI-compatible endpoint is reached, and how patient we are with it."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    base_url: str = Field(min_length=1)
    """With its version, for example `https://host/v1`."""
    provider: str = Field(default="openai", min_length=1, max_length=128)
    """The name by which graphs let it see their texts (`models.allowed_providers`)."""
    api_key: SecretStr = SecretStr("")
    """Empty for a local server that asks for none."""
    connect_timeout_seconds: float = Field(default=5.0, gt=0)
    """Until a connection stands."""
    call_timeout_seconds: float = Field(default=120.0, gt=0)
    """From the first byte sent to the last received, of one HTTP call."""
    task_timeout_seconds: float = Field(default=300.0, gt=0)
    """Of a whole task: queueing, every retry, every wait that the endpoint asks for, the repair."""
    max_attempts: int = Field(default=6, ge=1, le=20)
    """HTTP calls for one message, the first included; only what is retryable is tried again. A step of a job
    that was refused for our rate (429) so often is not tried again."""
    retry_initial_wait_seconds: float = Field(default=0.5, ge=0)
    """Before the second call; doubled from then on, with jitter."""
    retry_max_wait_seconds: float = Field(default=20.0, ge=0)
    """No wait between calls is longer, unless the endpoint asks for one."""
    max_retry_after_seconds: float = Field(default=60.0, ge=0)
    """An endpoint that asks for a longer wait than this gets its wish from the caller (ModelRateLimited)."""
    max_concurrency: int = Field(default=32, ge=1)
    """HTTP calls in flight to the endpoint, of all tenants."""
    max_concurrency_per_tenant: int = Field(default=8, ge=1)
    """Of these, calls of one tenant."""
    max_tokens_per_minute_per_tenant: int = Field(default=0, ge=0)
    """Tokens, sent and received, that a process spends for one tenant in a minute, on average; its calls
    wait beyond that, those of others don't. 0: no limit."""
    breaker_failures: int = Field(default=8, ge=1)
    """Failures in a row after which calls fail at once."""
    breaker_open_seconds: float = Field(default=15.0, gt=0)
    """How long, before one call is let through to see."""
    cassette: Path | None = None
    """File of recorded exchanges, for development: it holds the texts that were sent. Without one, every
    call goes to the endpoint."""
    cassette_mode: Literal["replay", "record"] = "replay"
    """`replay` answers from the file alone, and refuses what it lacks by its key; `record` asks the endpoint
    for that and keeps it."""


class ModelSettings(EndpointSettings):
    """The endpoint of the language model and its two tiers."""

    medium_model: str = Field(min_length=1)
    """Normalises, extracts, classifies."""
    low_model: str = Field(default="")
    """Reflects and resolves; the medium one when empty."""
    max_output_tokens: int = Field(default=8_192, ge=256)
    """Longest answer asked for."""
    structured_output: Literal["auto", "json_schema", "tool", "plain"] = "auto"
    """`auto` tries JSON schema, then a tool call, then plain JSON, and remembers what each model takes."""

    def model_of(self, tier: Tier, medium: str = "", low: str = "") -> str:
        """The model of a tier. `medium` and `low` are a graph's own, "" where it has none."""
        if tier is Tier.LOW:
            return low or self.low_model or self.medium_model
        return medium or self.medium_model


class EmbeddingSettings(EndpointSettings):
    """The endpoint of an embedding model."""

    model: str = Field(min_length=1)
    """Its name at the endpoint."""
    dimension: int = Field(gt=0, le=8_192)
    """Floats of its vectors."""
    query_prefix: str = ""
    """Put before each question, for models that tell questions from passages by it."""
    passage_prefix: str = ""
    """Put before each passage, likewise."""
    batch_size: int = Field(default=64, ge=1, le=2_048)
    """Texts in one call."""
    max_tokens_per_text: int = Field(default=8_000, ge=1)
    """Longer texts are embedded by their beginning; endpoints refuse what is longer than they take."""
    send_dimension: bool = False
    """Asks the endpoint for `dimension`, for models that can shorten their vectors."""


class LocalEmbedderSettings(BaseModel):
    """The packaged model."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    workers: int = Field(default=2, ge=1, le=64)
    """Threads that embed at the same time; the engine computes without Python's lock."""
    batch_size: int = Field(default=16, ge=1, le=256)
    """Texts that one thread takes at a time, so that a question need not wait for a whole document."""
    max_characters_per_text: int = Field(default=2_000, ge=1)
    """Longer texts are embedded by their beginning: about one window of the model, a third of a second."""
    max_characters_per_query: int = Field(default=512, ge=1)
    """The same for questions, which wait for it: a word of ten thousand letters costs as many tokens."""
    cache_entries: int = Field(default=4_096, ge=0)
    """Vectors kept by text, 1.5 kB each."""
