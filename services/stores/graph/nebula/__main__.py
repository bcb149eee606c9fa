"""`python -m services.stores.graph.nebula --statements`: what the store can send, one sentence a line."""

import argparse
import json
import sys

from services.stores.graph.nebula.samples import samples


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m services.stores.graph.nebula", description=__doc__)
    parser.add_argument("--statements", action="store_true", required=True, help="print every sentence")
    parser.add_argument(
        "--parameters", action="store_true", help="after each, a tab and its parameters as one JSON object"
    )
    told = parser.parse_args(arguments)
    for sentence in samples():
        assert "\n" not in sentence.text, "a sentence is one line"
        values = f"\t{json.dumps(dict(sentence.parameters))}" if told.parameters else ""
        sys.stdout.write(f"{sentence.text}{values}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
