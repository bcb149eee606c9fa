"""Draws docs/timeline.svg: what a graph believes of somebody's home, revision by revision.

    python scripts/timeline_figure.py

The records are those below; every bar is a span that the time kernel derives from them. A test holds the
picture in step with the kernel.
"""

import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

if __name__ == "__main__":  # as a script, the folder of this file is what Python looks in
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from services.domain.ids import RecordId, StatementId
from services.domain.instants import Instant, Precision, instant
from services.domain.kernel.rivals import Rivals
from services.domain.records import Claim, Denial, Source
from services.domain.timeline import DerivedSpan, timeline

ROOT: Final = Path(__file__).resolve().parent.parent
FIGURE: Final = ROOT / "docs" / "timeline.svg"


def on(day: str) -> Instant:
    return instant(datetime.fromisoformat(day).replace(tzinfo=UTC))


def claim(home: str, said: str, since: str | None = None, precision: Precision = Precision.INSTANT) -> Claim:
    """Somebody says on a day where she lives, and perhaps since when."""
    return Claim(
        id=RecordId(f"{home} {said}"),
        statement=StatementId(home),
        start=None if since is None else on(since),
        end=None,
        attested_at=on(said),
        seen=on(said),
        source=Source(None),
        start_precision=precision,
    )


@dataclass(frozen=True, slots=True)
class Told:
    """What a revision adds, and how the picture calls it."""

    title: str
    what: str
    record: Claim | Denial


STORY: Final = (
    Told("revision 1", "“I live in Graz.” (said 2024-03-01)", claim("Graz", "2024-03-01")),
    Told(
        "revision 2",
        "“I moved to Linz in May 2025.” (said 2025-06-02)",
        claim("Linz", "2025-06-02", "2025-05-01", Precision.MONTH),
    ),
    Told(
        "revision 3",
        "an old mail arrives late: “I live in Graz.” (said 2024-11-20)",
        claim("Graz", "2024-11-20"),
    ),
    Told(
        "revision 4",
        "“Back in Graz since January 2026.” (said 2026-02-10)",
        claim("Graz", "2026-02-10", "2026-01-01", Precision.MONTH),
    ),
    Told(
        "revision 5",
        "the user denies Linz for 2025-09 to 2026-01",
        Denial(
            id=RecordId("denied"),
            statement=StatementId("Linz"),
            start=on("2025-09-01"),
            until=on("2026-01-01"),
            attested_at=on("2026-03-01"),
            source=Source(None),
        ),
    ),
)
COLOURS: Final = {"Graz": "#2f6f9f", "Linz": "#b5651d"}
FIRST, LAST = on("2024-01-01"), on("2026-07-01")
LEFT, WIDTH, TOP, ROW = 20, 760, 64, 62


def believed() -> list[tuple[Told, tuple[DerivedSpan, ...]]]:
    """The spans that hold, as believed after each revision."""
    slot = Rivals({StatementId(home): "home" for home in COLOURS})
    rows = []
    for number in range(1, len(STORY) + 1):
        records = [told.record for told in STORY[:number]]
        claims = [record for record in records if isinstance(record, Claim)]
        denials = [record for record in records if isinstance(record, Denial)]
        rows.append((STORY[number - 1], timeline(claims, [], denials, slot)))
    return rows


def figure() -> str:
    """docs/timeline.svg as it should be."""
    rows = believed()
    height = TOP + ROW * len(rows) + 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT * 2 + WIDTH} {height}" '
        'font-family="system-ui, sans-serif" font-size="13">',
        "<title>What is believed of Mara's home, by revision</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="24" font-weight="600">World time runs to the right, system time downwards: '
        "a row is what is believed after a revision</text>",
    ]
    for year in (2024, 2025, 2026):
        for month in (1, 7):
            at = on(f"{year}-{month:02}-01")
            anchor = {FIRST: "start", LAST: "end"}.get(at, "middle")
            parts.append(
                f'<path d="M{_x(at)} {TOP - 14}V{height - 30}" stroke="#dddddd"/>'
                f'<text x="{_x(at)}" y="{TOP - 18}" text-anchor="{anchor}" '
                f'fill="#666666" font-size="11">{year}-{month:02}</text>'
            )
    for number, (told, spans) in enumerate(rows):
        parts += _row(told, spans, TOP + ROW * number)
    parts.append(
        f'<text x="{LEFT}" y="{height - 10}" fill="#666666" font-size="11">'
        "A bar with an arrow still holds. A dashed left border: known only from when it was said.</text>"
    )
    return "\n".join([*parts, "</svg>", ""])


def _row(told: Told, spans: tuple[DerivedSpan, ...], y: int) -> list[str]:
    parts = [
        f'<text x="{LEFT}" y="{y + 16}"><tspan font-weight="600">{told.title}</tspan> {told.what}</text>'
    ]
    for span in spans:
        home = str(span.statement)
        start = FIRST if span.valid_at is None else span.valid_at
        end = LAST if span.invalid_at is None else span.invalid_at
        left, right = _x(start), _x(end)
        colour = COLOURS[home]
        parts.append(f'<rect x="{left}" y="{y + 24}" width="{right - left}" height="22" fill="{colour}"/>')
        if span.assumed:
            parts.append(
                f'<path d="M{left} {y + 22}v26" stroke="#000000" stroke-width="2" stroke-dasharray="3 3"/>'
            )
        if span.invalid_at is None:
            parts.append(f'<path d="M{right} {y + 24}l12 11l-12 11z" fill="{colour}"/>')
        parts.append(f'<text x="{left + 6}" y="{y + 40}" fill="#ffffff">{home}</text>')
    return parts


def _x(at: Instant) -> int:
    return LEFT + round(WIDTH * (at - FIRST) / (LAST - FIRST))


if __name__ == "__main__":
    FIGURE.write_text(figure(), encoding="utf-8")
