"""Random histories for as long as one likes.

    python -m tests.equality [knowledge-bases|streams] --seconds N [--from SEED] [--every N]

Prints how many histories there were; the first that is wrong, with its seed, ends it with exit code 1.
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.equality import knowledge_bases, streams

KINDS = {"knowledge-bases": knowledge_bases.History, "streams": streams.History}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.equality")
    parser.add_argument("kind", nargs="?", choices=list(KINDS), default="knowledge-bases")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument(
        "--every", type=int, default=1, help="seeds FROM, FROM + EVERY, … (several processes)"
    )
    parser.add_argument("--go-on", action="store_true", help="count what is wrong, and go on")
    given = parser.parse_args()
    end = time.monotonic() + given.seconds
    seed, count, states, wrong = given.first, 0, 0, 0
    while time.monotonic() < end:
        try:
            states += KINDS[given.kind](seed).run().checked
        except AssertionError as error:
            wrong += 1
            print(error, flush=True)
            if not given.go_on:
                break
        count += 1
        seed += given.every
    print(f"{count} histories, {states} states compared, {wrong} wrong; next seed {seed}")
    return int(wrong > 0)


sys.exit(main())
