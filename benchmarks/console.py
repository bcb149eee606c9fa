"""The console's page with a long timeline: how much it works and how long it stops, beside a short one.

The page is read from a server that answers by script, by a headless Chromium of this machine. It is loaded,
scrolled for a minute's reading, and searched. Milliseconds of CPU on the page's main thread, as Chromium
counts them; the longest stretch in which the page could not answer; frames that came late (above 50 ms) while
it scrolled.

Run: python -m benchmarks.console [--statements 5000]
"""

import argparse
import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass

from playwright.async_api import Browser, CDPSession

from gateway.console import ConsoleOptions, open_console
from tests.browser import Reader, chromium, reader
from tests.doubles.long_life import GRAPH, NAME, remember
from tests.unit.cli.serving import Scripted, serving

PEER = 200
SCROLLS = 60
_WATCH = """
window.stops = [];
new PerformanceObserver(list => { for (const one of list.getEntries()) window.stops.push(one.duration); })
  .observe({ type: "longtask", buffered: true });
"""
_SCROLL = """
async steps => {
  const late = [];
  let before = performance.now();
  for (let step = 0; step < steps; step += 1) {
    window.scrollBy(0, 100);
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    late.push(now - before);
    before = now;
  }
  return late;
}
"""


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one page, milliseconds."""

    load: float
    """CPU until every statement is drawn."""
    scroll: float
    """CPU of SCROLLS steps of 100 pixels."""
    search: float
    """CPU of one search."""
    stop: float
    """The longest stop, of all three."""
    late: int
    """Frames of SCROLLS that came late."""


async def measure(server: Scripted, browser: Browser, count: int) -> Figures:
    """One page, in a fresh profile."""
    remember(server, count)
    async with AsyncExitStack() as stack:
        url = await open_console(server.target, ConsoleOptions(port=0), stack)
        one = await stack.enter_async_context(reader(browser, url))
        await one.page.add_init_script(_WATCH)
        await one.enter("pk_any")
        await one.page.locator("nav").wait_for()
        session = await one.page.context.new_cdp_session(one.page)
        await session.send("Performance.enable", {"timeDomain": "threadTicks"})
        began = await work(session)
        await one.go("timeline", graph=GRAPH, entity=NAME)
        await drawn(one, count)
        loaded = await work(session)
        frames = await one.page.evaluate(_SCROLL, SCROLLS)
        scrolled = await work(session)
        await one.page.locator("input[type=search]").fill(f"Thing {count - 1}")
        await drawn(one, 1)
        searched = await work(session)
        stops = await one.page.evaluate("window.stops")
    late = sum(frame > 50 for frame in frames)
    return Figures(loaded - began, scrolled - loaded, searched - scrolled, max(stops, default=0.0), late)


async def drawn(one: Reader, count: int) -> None:
    """Waits until so many statements are drawn."""
    await one.page.wait_for_function(f"() => document.querySelectorAll('.entry').length === {count}")


async def work(session: CDPSession) -> float:
    """Milliseconds that the page's main thread has worked."""
    found = await session.send("Performance.getMetrics")
    return next(float(one["value"]) * 1000 for one in found["metrics"] if one["name"] == "TaskDuration")


def show(name: str, found: Figures) -> None:
    """One line."""
    print(
        f"  {name:18} load {found.load:7.0f}   scroll {found.scroll:7.0f}   search {found.search:7.0f}   "
        f"longest stop {found.stop:6.0f}   late frames {found.late} of {SCROLLS}",
        flush=True,
    )


async def main(statements: int) -> None:
    """Both pages, and how they compare."""
    with serving() as server:
        async with chromium() as browser:
            await measure(server, browser, PEER)  # what is loaded once is loaded
            short = await measure(server, browser, PEER)
            long = await measure(server, browser, statements)
    print("Timeline of one subject, milliseconds of the page's main thread")
    show(f"{PEER} statements", short)
    show(f"{statements} statements", long)
    print(
        f"  × {statements / PEER:.0f} statements: load × {long.load / short.load:.1f}, "
        f"scroll × {long.scroll / short.scroll:.1f}, search × {long.search / short.search:.1f}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--statements", type=int, default=5_000)
    asyncio.run(main(parser.parse_args().statements))
