"""Evidence: the short names (e1, e2, ...) by which an answer points at what was said."""

from collections.abc import Iterable

from palimpsest.internal.v1 import recall_pb2 as pb
from services.domain.ids import EpisodeId, PassageId
from services.domain.instants import Instant
from services.domain.records import Claim, End

MAX_NAMES = 3
"""Sources named for one item; the rest are found through the statement."""

Place = tuple[EpisodeId | None, PassageId | None]


class EvidenceNames:
    """Gives each passage (or episode without one) one name, in the order in which it is first pointed at."""

    def __init__(self, after: int = 0) -> None:
        """`after`: the number before the first."""
        self._after = after
        self._names: dict[Place, str] = {}
        self._given: list[pb.Evidence] = []

    def of_records(self, records: Iterable[Claim | End]) -> list[str]:
        """Names of what records were drawn from, in their order, at most `MAX_NAMES`."""
        names: dict[str, None] = {}
        for record in records:
            source = record.source
            names[self.of(source.episode, source.passage, record.attested_at, source.quote)] = None
            if len(names) == MAX_NAMES:
                break
        return list(names)

    def of(
        self, episode: EpisodeId | None, passage: PassageId | None, said_at: Instant, quote: str = ""
    ) -> str:
        """The name of a passage, or of an episode where no passage is known."""
        place = (None, passage) if passage else (episode, None)
        if place not in self._names:
            self._names[place] = f"e{self._after + len(self._names) + 1}"
            self._given.append(
                pb.Evidence(
                    name=self._names[place],
                    passage_id=passage or "",
                    episode_id=episode or "",
                    quote=quote,
                    said_at=said_at,
                )
            )
        return self._names[place]

    @property
    def given(self) -> list[pb.Evidence]:
        """Everything named so far, in order."""
        return list(self._given)
