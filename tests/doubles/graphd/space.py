"""One graph space: its declarations, and its vertices and edges as storaged keeps them."""

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tests.doubles.graphd.refusals import storage_error
from tests.doubles.graphd.schema import Declared
from tests.doubles.graphd.values import EdgeValue, Value

Properties = dict[str, Value]
_Ends = dict[tuple[bytes, str], dict[tuple[int, bytes], Properties]]


@dataclass(frozen=True, slots=True)
class Contents:
    """All data of a space: vertices with their tags, and edges by source and by destination."""

    vertices: Mapping[bytes, Mapping[str, Properties]]
    forth: _Ends
    back: _Ends


@dataclass(frozen=True, slots=True)
class EdgeKey:
    src: bytes
    name: str
    rank: int
    dst: bytes


class Space:
    """`vid_length`: longer vertex ids are refused. `partitions`: rows come partition by partition.

    An edge is kept at both of its ends, and a write that fails midway can leave one of them.
    """

    def __init__(
        self,
        name: str,
        vid_length: int,
        partitions: int,
        replicas: int,
        heartbeat_seconds: float,
        clock: Callable[[], float],
    ) -> None:
        self.name = name
        self.vid_length = vid_length
        self.partitions = partitions
        self.replicas = replicas
        self.tags = Declared(heartbeat_seconds, clock)
        self.edges = Declared(heartbeat_seconds, clock)
        self._vertices: dict[bytes, dict[str, Properties]] = {}
        self._forth: _Ends = {}
        self._back: _Ends = {}
        self._edges_at: dict[bytes, set[EdgeKey]] = {}

    def checked(self, vid: bytes) -> bytes:
        if len(vid) > self.vid_length:
            raise storage_error(
                "The VID must be a 64-bit integer or a string fitting space vertex id length limit."
            )
        return vid

    def partition(self, vid: bytes) -> int:
        return zlib.crc32(vid) % self.partitions

    def place(self, vid: bytes) -> tuple[int, bytes]:
        """Rows come partition by partition: no order that a statement may rely on."""
        return self.partition(vid), vid

    def tags_of(self, vid: bytes) -> Mapping[str, Properties]:
        """The tags of a vertex; of one that is absent, none."""
        return self._vertices.get(vid, {})

    def put_tag(self, vid: bytes, tag: str, props: Properties) -> None:
        self._vertices.setdefault(vid, {})[tag] = props

    def drop_vertex(self, vid: bytes) -> None:
        self._vertices.pop(vid, None)

    def put_forth(self, key: EdgeKey, props: Properties, *, keep: bool) -> None:
        """At its source. `keep`: what is there stays as it is."""
        self._put(self._forth, (key.src, key.name), (key.rank, key.dst), props, keep)
        self._edges_at.setdefault(key.src, set()).add(key)

    def put_back(self, key: EdgeKey, props: Properties, *, keep: bool) -> None:
        """At its destination."""
        self._put(self._back, (key.dst, key.name), (key.rank, key.src), props, keep)
        self._edges_at.setdefault(key.dst, set()).add(key)

    @staticmethod
    def _put(
        ends: _Ends, end: tuple[bytes, str], other: tuple[int, bytes], props: Properties, keep: bool
    ) -> None:
        found = ends.setdefault(end, {})
        if not (keep and other in found):
            found[other] = props

    def drop_forth(self, key: EdgeKey) -> None:
        self._forth.get((key.src, key.name), {}).pop((key.rank, key.dst), None)
        self._forget(key, key.src)

    def drop_back(self, key: EdgeKey) -> None:
        self._back.get((key.dst, key.name), {}).pop((key.rank, key.src), None)
        self._forget(key, key.dst)

    def _forget(self, key: EdgeKey, at: bytes) -> None:
        begins = at == key.src and (key.rank, key.dst) in self._forth.get((key.src, key.name), {})
        ends = at == key.dst and (key.rank, key.src) in self._back.get((key.dst, key.name), {})
        if not (begins or ends):
            self._edges_at.get(at, set()).discard(key)

    def contents(self) -> Contents:
        """A copy: later writes don't change it."""
        vertices = {vid: dict(tags) for vid, tags in self._vertices.items() if tags}
        return Contents(vertices, _copied(self._forth), _copied(self._back))

    def restore(self, contents: Contents) -> None:
        """Puts back all data as they were."""
        self._vertices = {vid: dict(tags) for vid, tags in contents.vertices.items()}
        self._forth, self._back = _copied(contents.forth), _copied(contents.back)
        self._edges_at = {}
        for (src, name), found in self._forth.items():
            self._edges_at.setdefault(src, set()).update(EdgeKey(src, name, *other) for other in found)
        for (dst, name), found in self._back.items():
            keys = {EdgeKey(src, name, rank, dst) for rank, src in found}
            self._edges_at.setdefault(dst, set()).update(keys)

    def edges_from(self, vid: bytes, name: str) -> Iterator[EdgeValue]:
        """Edges that begin here, by rank and destination."""
        found = self._forth.get((vid, name), {})
        for rank, dst in sorted(found):
            yield EdgeValue(vid, dst, name, rank, 1, found[rank, dst])

    def edges_to(self, vid: bytes, name: str) -> Iterator[EdgeValue]:
        """Edges that end here, seen backwards, by rank and source."""
        found = self._back.get((vid, name), {})
        for rank, src in sorted(found):
            yield EdgeValue(vid, src, name, rank, -1, found[rank, src])

    def remains(self) -> list[Properties]:
        """What every vertex and every end of an edge holds: for tests of deletions."""
        ends = (*self._forth.values(), *self._back.values())
        tags = [props for tags in self._vertices.values() for props in tags.values()]
        return [*tags, *(props for end in ends for props in end.values())]

    def keys_at(self, vid: bytes) -> set[EdgeKey]:
        """All edges that begin or end here, as far as this end knows of them."""
        return set(self._edges_at.get(vid, ()))


def _copied(ends: _Ends) -> _Ends:
    return {end: dict(found) for end, found in ends.items() if found}
