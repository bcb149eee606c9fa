"""`python -m tests.doubles.graphd --port 0`: a double in a process. Prints its port; SIGTERM ends it."""

import argparse
import signal
import sys
import threading

from tests.doubles.graphd.server import Graphd


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.doubles.graphd", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="on 127.0.0.1; 0 for any that is free")
    parser.add_argument("--heartbeat-seconds", type=float, default=0.0)
    told = parser.parse_args()
    stopped = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: stopped.set())
    with Graphd(port=told.port, heartbeat_seconds=told.heartbeat_seconds) as graphd:
        sys.stdout.write(f"{graphd.port}\n")
        sys.stdout.flush()
        stopped.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
