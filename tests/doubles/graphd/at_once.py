"""Sessions of a store with a double in its own process: sentences are answered where they are sent.

Values go through their Thrift forms as ever. There is no socket, no thread, and no second attempt.
"""

from collections.abc import Iterable, Sequence

from services.stores.graph.nebula.sessions import Sessions
from services.stores.graph.nebula.settings import NebulaSettings
from services.stores.graph.nebula.statements import Sentence, use
from services.stores.graph.nebula.wire import Answer, Wire
from tests.doubles.graphd.server import Graphd


class SessionsAtOnce(Sessions):
    """One session, for one story at a time."""

    def __init__(self, settings: NebulaSettings, double: Graphd) -> None:
        super().__init__(settings)
        self._wire = _WireAtOnce(double)
        self._wire.sign_in(settings.user, settings.password.get_secret_value(), settings.call_timeout_ms)
        self._wire.send(use(settings.space))

    async def send(self, sentence: Sentence) -> Answer:
        return self._wire.send(sentence)

    async def send_all(self, sentences: Iterable[Sentence]) -> Sequence[Answer]:
        return [self._wire.send(sentence) for sentence in sentences]

    async def close(self) -> None:
        await super().close()
        self._wire.close()


class _NoLine:
    """There is no connection that could break."""

    def hang_up(self) -> None: ...

    def wait_for_hang_up(self) -> None: ...


class _WireAtOnce(Wire):
    """Calls the service of a double instead of a client of it."""

    def __init__(self, double: Graphd) -> None:
        self._client = double.service(_NoLine())
        self._session = None

    def sign_in(self, user: str, password: str, call_timeout_ms: int) -> None:
        self._session = self._client.authenticate(user.encode(), password.encode()).session_id

    def close(self) -> None:
        self._client.signout(self._session)
