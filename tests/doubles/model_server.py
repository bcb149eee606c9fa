"""An OpenAI-compatible server on loopback: understands the repository's cases, answers by script, misbehaves.

    with ModelServer(Rule("extract_world", "Bob", fenced({"facts": []}))) as server:
        settings = server.settings(medium_model="test")

Rules are tried in order, the first that fits answers; without one, tests/doubles/understanding.py does. Also
`python -m tests.doubles.model_server --port 0 --delay-ms 800`, which prints its base URL as a JSON line.
"""

import argparse
import asyncio
import json
import re
import signal
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from services.llm.settings import EmbeddingSettings, ModelSettings
from tests.doubles.combining import combined
from tests.doubles.embedder import hashed
from tests.doubles.http_server import HttpReply, HttpRequest, HttpServer
from tests.doubles.model_replies import Asked, Reply, Responder, Rule, failing
from tests.doubles.understanding import understand

DIMENSION = 64
MODELS = ("test-medium", "test-low", "test-embedding")

_TASK = re.compile(r"^# task: (\w+) ", re.MULTILINE)
_BLOCK = re.compile(r"^<(\w+)>\n(.*?)^</\1>$", re.MULTILINE | re.DOTALL)
_FEATURES = {
    "json_schema": ("response_format", "response_format"),
    "tool": ("tools", "tools"),
    "temperature": ("temperature", "temperature"),
    "max_tokens": ("max_tokens", "max_tokens"),
}


class ModelServer:
    """One server with its script and the record of what it was asked.

    `lacks` names features that it refuses with a 400: json_schema, tool, temperature, max_tokens.
    """

    def __init__(
        self,
        *rules: Rule,
        lacks: Sequence[str] = (),
        delay_ms: float = 0,
        fallback: Responder = understand,
        dimension: int = DIMENSION,
        api_key: str = "",
        port: int = 0,
    ) -> None:
        self.rules = list(rules)
        self.asked: list[Asked] = []
        self.embedded: list[list[str]] = []
        self.most_at_once = 0
        self._lacks = frozenset(lacks)
        self._delay_ms = delay_ms
        self._fallback = fallback
        self._dimension = dimension
        self._api_key = api_key
        self._at_once = 0
        self._prefixes: set[str] = set()
        self._http = HttpServer(self._handle, port)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._http.port}/v1"

    def settings(self, **changes: Any) -> ModelSettings:
        """Settings of an engine on this server that waits little."""
        patience = {"retry_initial_wait_seconds": 0.001, "retry_max_wait_seconds": 0.01, "max_attempts": 3}
        models = {"medium_model": MODELS[0], "low_model": MODELS[1]}
        return ModelSettings.model_validate({"base_url": self.base_url, **patience, **models, **changes})

    def embedding_settings(self, **changes: Any) -> EmbeddingSettings:
        patience = {"retry_initial_wait_seconds": 0.001, "retry_max_wait_seconds": 0.01, "max_attempts": 3}
        model = {"model": MODELS[2], "dimension": self._dimension}
        return EmbeddingSettings.model_validate({"base_url": self.base_url, **patience, **model, **changes})

    def of_task(self, task: str) -> list[Asked]:
        return [asked for asked in self.asked if asked.task == task]

    def start(self) -> None:
        self._http.start()

    def stop(self) -> None:
        self._http.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def _handle(self, request: HttpRequest) -> HttpReply:
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            reply = self._route(request)
            await asyncio.sleep(reply.delay_ms / 1000)  # here, so that it counts as in flight
            return replace(reply, delay_ms=0)
        finally:
            self._at_once -= 1

    def _route(self, request: HttpRequest) -> HttpReply:
        if self._api_key and request.headers.get("authorization") != f"Bearer {self._api_key}":
            return HttpReply(401, failing(401, "invalid_api_key").body)
        if request.path == "/v1/models":
            return HttpReply(
                body={"object": "list", "data": [{"id": name, "object": "model"} for name in MODELS]}
            )
        body = json.loads(request.body)
        if body.get("model") not in MODELS:
            return HttpReply(404, failing(404, "model_not_found", "model").body)
        if request.path == "/v1/chat/completions":
            return self._chat(body, request.headers)
        if request.path == "/v1/embeddings":
            return self._embed(body)
        return HttpReply(404, failing(404, "not_found").body)

    def _chat(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> HttpReply:
        asked = _asked(body, headers)
        self.asked.append(asked)
        for feature in sorted(self._lacks):
            key, param = _FEATURES[feature]
            if key in body:
                return HttpReply(400, failing(400, "invalid_request_error", param).body)
        reply = self._answer(asked)
        body = self._completion(asked, reply) if reply.body is None else reply.body
        delay = self._delay_ms + reply.delay_ms
        return HttpReply(reply.status, body, reply.headers, delay, reply.body_delay_ms, reply.drop)

    def _answer(self, asked: Asked) -> Reply:
        rule = next((rule for rule in self.rules if rule.fits(asked)), None)
        if rule is not None:
            return rule.answer(asked)
        return combined(asked, self._answer) or self._fallback(asked)

    def _completion(self, asked: Asked, reply: Reply) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": reply.content, "refusal": reply.refusal}
        if asked.form == "tool" and reply.refusal is None:
            call = {"name": asked.task, "arguments": reply.content}
            message |= {
                "content": None,
                "tool_calls": [{"id": "call_1", "type": "function", "function": call}],
            }
        choice = {"index": 0, "message": message, "finish_reason": reply.finish}
        done = {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": asked.model}
        usage = self._usage(asked, reply) if reply.usage else None
        return {**done, "choices": [choice], "usage": usage}

    def _usage(self, asked: Asked, reply: Reply) -> dict[str, Any]:
        """Counts of four characters a token; a prefix that was seen before counts as cached."""
        prompt = sum(len(str(message["content"])) for message in asked.messages) // 4
        cached = len(asked.system) // 4 if asked.system in self._prefixes else 0
        self._prefixes.add(asked.system)
        answered = len(reply.content) // 4
        details = {"cached_tokens": cached}
        total = {"total_tokens": prompt + answered, "prompt_tokens_details": details}
        return {"prompt_tokens": prompt, "completion_tokens": answered, **total}

    def _embed(self, body: Mapping[str, Any]) -> HttpReply:
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        self.embedded.append(list(texts))
        vectors = hashed(texts, body.get("dimensions") or self._dimension)
        data = [
            {"object": "embedding", "index": index, "embedding": [float(value) for value in vector]}
            for index, vector in enumerate(vectors)
        ]
        data.reverse()  # the order is told by `index` alone
        usage = {"prompt_tokens": sum(map(len, texts)) // 4, "total_tokens": sum(map(len, texts)) // 4}
        answer = {"object": "list", "model": body["model"], "data": data, "usage": usage}
        return HttpReply(body=answer, delay_ms=self._delay_ms)


def _asked(body: Mapping[str, Any], headers: Mapping[str, str]) -> Asked:
    messages = body["messages"]
    system, user = messages[0]["content"], messages[1]["content"]
    found = _TASK.search(system)
    blocks = {name: [json.loads(line) for line in lines.splitlines()] for name, lines in _BLOCK.findall(user)}
    return Asked(found[1] if found else "", body["model"], system, user, messages, body, headers, blocks)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="A model server for tests and benchmarks.")
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--delay-ms", type=float, default=0, help="of each answer")
    parser.add_argument("--dimension", type=int, default=DIMENSION, help="of embeddings")
    options = parser.parse_args(arguments)
    done = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: done.set())
    with ModelServer(delay_ms=options.delay_ms, dimension=options.dimension, port=options.port) as server:
        sys.stdout.write(json.dumps({"base_url": server.base_url, "models": MODELS}) + "\n")
        sys.stdout.flush()
        done.wait()


if __name__ == "__main__":
    main()
