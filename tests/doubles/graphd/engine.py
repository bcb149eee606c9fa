"""The cluster behind graphd: its hosts and spaces, and the execution of a statement."""

import threading
import time
from collections.abc import Callable, Mapping

from tests.doubles.graphd import reads, writes
from tests.doubles.graphd.evaluate import Evaluator
from tests.doubles.graphd.parsing import parse
from tests.doubles.graphd.refusals import execution_error, semantic_error
from tests.doubles.graphd.sessions import Session
from tests.doubles.graphd.space import Contents, Space
from tests.doubles.graphd.statements import (
    AddHosts,
    CreateSchema,
    CreateSpace,
    Describe,
    DropSpace,
    Fetch,
    Go,
    Piped,
    Show,
    Use,
)
from tests.doubles.graphd.values import Bad, Table, Value

_VERSION = b"3.8.0"


class GraphEngine:
    """Executes one statement at a time."""

    def __init__(self, heartbeat_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._heartbeat_seconds = heartbeat_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._hosts: list[tuple[bytes, int]] = [(b"127.0.0.1", 9779)]
        self._spaces: dict[str, Space] = {}

    def contents(self, space: str) -> Contents:
        with self._lock:
            return self._space(space).contents()

    def restore(self, space: str, contents: Contents) -> None:
        with self._lock:
            self._space(space).restore(contents)

    def execute(
        self, session: Session, statement: str, parameters: Mapping[str, Value], *, partially: bool
    ) -> Table | None:
        """See service.Engine."""
        with self._lock:
            parsed = parse(statement)
            evaluator = Evaluator(parameters)
            match parsed:
                case Use(name):
                    session.space = self._space(name).name
                    return None
                case AddHosts(hosts):
                    self._add_hosts(hosts)
                    return None
                case Show("HOSTS"):
                    return self._show_hosts()
                case Show("SPACES"):
                    return Table(["Name"], [[name.encode()] for name in sorted(self._spaces)])
                case Describe("SPACE", name):
                    return _described_space(self._space(name))
                case CreateSpace():
                    self._create_space(parsed)
                    return None
                case DropSpace(name):
                    self._spaces.pop(name, None)
                    return None
            space = self._chosen(session)
            match parsed:
                case Show(what):
                    names = space.tags.all if what == "TAGS" else space.edges.all
                    return Table(["Name"], [[name.encode()] for name in sorted(names)])
                case Describe(what, name):
                    return _described(space, what, name)
                case CreateSchema(what, schema):
                    declared = space.tags if what == "TAG" else space.edges
                    declared.add(schema.name, schema)
                    return None
                case Fetch() | Go() | Piped():
                    return None if partially else reads.read(space, parsed, evaluator)
                case _:
                    return writes.write(space, parsed, evaluator, partially=partially)

    def remains(self, space: str) -> list[Mapping[str, Value]]:
        """See Space.remains."""
        with self._lock:
            return list(self._space(space).remains())

    def _space(self, name: str) -> Space:
        if name not in self._spaces:
            raise execution_error(f"SpaceNotFound: SpaceName `{name}`")
        return self._spaces[name]

    def _chosen(self, session: Session) -> Space:
        if not session.space:
            raise semantic_error("Space was not chosen.")
        return self._space(session.space)

    def _add_hosts(self, hosts: tuple[tuple[bytes, int], ...]) -> None:
        if any(host in self._hosts for host in hosts):
            raise execution_error("Existed!")
        self._hosts.extend(hosts)

    def _show_hosts(self) -> Table:
        columns = [
            "Host",
            "Port",
            "Status",
            "Leader count",
            "Leader distribution",
            "Partition distribution",
            "Version",
        ]
        none = b"No valid partition"
        rows: list[list[Value]] = [
            [host, port, b"ONLINE", 0, none, none, _VERSION] for host, port in self._hosts
        ]
        rows.append([b"Total", Bad.EMPTY, Bad.EMPTY, 0, Bad.EMPTY, Bad.EMPTY])  # one value short, as it is
        return Table(columns, rows)

    def _create_space(self, told: CreateSpace) -> None:
        if told.replicas > len(self._hosts):
            raise execution_error("Host not enough!")
        if told.name not in self._spaces:
            self._spaces[told.name] = Space(
                told.name,
                told.vid_length,
                told.partitions,
                told.replicas,
                self._heartbeat_seconds,
                self._clock,
            )


def _described_space(space: Space) -> Table:
    columns = [
        "ID",
        "Name",
        "Partition Number",
        "Replica Factor",
        "Charset",
        "Collate",
        "Vid Type",
        "Comment",
    ]
    vid_type = f"FIXED_STRING({space.vid_length})".encode()
    name = space.name.encode()
    return Table(
        columns, [[1, name, space.partitions, space.replicas, b"utf8", b"utf8_bin", vid_type, Bad.EMPTY]]
    )


def _described(space: Space, what: str, name: str) -> Table:
    declared = space.tags if what == "TAG" else space.edges
    if name not in declared.all:
        kind = what.capitalize()
        raise execution_error(f"{kind}NotFound: {kind} not existed!")
    columns = ["Field", "Type", "Null", "Default", "Comment"]
    return Table(
        columns,
        [
            [column.name.encode(), column.type.encode(), b"NO", Bad.EMPTY, Bad.EMPTY]
            for column in declared.all[name].columns.values()
        ],
    )
