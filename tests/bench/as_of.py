"""A keyed LAST over closed batches as a sorted merge over arrays, beside the engine: what columns would gain.

Run:     python -m tests.bench.as_of [--facts N] [--json]
Place:   a measurement, not a part of dotr: PEERS.md tells what it said. Stream and rule are detect.py's.
Method:  a batch's facts become arrays of times and of numbered keys; readings are sorted by key and time, and
         one bisection of all triggers at once (an as-of join) gives each its last reading; the latest of
         each key is carried to the next batch. Compared are the engine over the same batches, the arrays
         being made and nothing else, and the loop by hand. The matches are the same, tuple by tuple.
"""

from __future__ import annotations

import argparse
import gc
import json
from collections.abc import Callable, Mapping, Sequence
from time import process_time
from typing import Any

import numpy as np

from dotr.detect.detector import TeslaDetector
from dotr.events import Clock, Fact, RawMatch
from dotr.program.names import counts

from . import detect

SIZES = (1_000, 10_000, 100_000)
WIDTH = 300 * detect.SECOND
_KEY = np.int64(1) << 44  # greater than every time of the stream

InstantFacts = Sequence[tuple[int, Any, Mapping[str, Sequence[Fact]], bool]]
Columns = tuple[list[int], list[int], list[Fact]]


def columns(batch: InstantFacts, codes: dict[Any, int]) -> tuple[Columns, Columns]:
    """(times, numbers of keys, facts) of readings and of triggers."""
    heat: Columns = [], [], []
    smoke: Columns = [], [], []
    for time, _, facts, _ in batch:
        for name, (times, keys, kept) in (("Heat", heat), ("Smoke", smoke)):
            for fact in facts.get(name, ()):
                times.append(time)
                keys.append(codes.setdefault(fact[1][0], len(codes)))
                kept.append(fact)
    return heat, smoke


def merged(batch: InstantFacts, codes: dict[Any, int], latest: dict[int, Fact]) -> list[RawMatch]:
    """The matches of a batch; `latest` is the last reading of each key so far."""
    (times, keys, facts), (triggered, of, triggers) = columns(batch, codes)
    if not triggered:
        latest.update(zip(keys, facts, strict=True))
        return []
    for code, fact in latest.items():
        times.append(fact[0])
        keys.append(code)
        facts.append(fact)
    if not times:
        return []
    time, key = np.array(times, np.int64), np.array(keys, np.int64)
    order = np.lexsort((time, key))
    at_time, at_key = np.array(triggered, np.int64), np.array(of, np.int64)
    place = np.searchsorted(key[order] * _KEY + time[order], at_key * _KEY + at_time, side="right") - 1
    chosen = order[place]
    passed = (place >= 0) & (key[chosen] == at_key) & (time[chosen] >= at_time - WIDTH)
    last = order[np.nonzero(np.diff(key[order], append=-1))[0]]
    latest.update((keys[i], facts[i]) for i in last.tolist())
    found = np.nonzero(passed)[0]
    return [
        ((0,), triggered[i], (triggers[i], facts[j]), ())
        for i, j in zip(found.tolist(), chosen[found].tolist(), strict=True)
    ]


def engine(batches: Sequence[InstantFacts]) -> list[RawMatch]:
    detector = TeslaDetector(detect.rules("last"), Clock())
    seen, quiet = counts(), counts()
    return [m for batch in batches for _, found in detector.detected(batch, seen, quiet) for m in found]


def merge(batches: Sequence[InstantFacts]) -> list[RawMatch]:
    codes: dict[Any, int] = {}
    latest: dict[int, Fact] = {}
    return [match for batch in batches for match in merged(batch, codes, latest)]


def measure(facts: int, size: int, repeats: int = 3) -> dict[str, float]:
    """µs a fact of each way, in turns, best of `repeats`."""
    stream = detect.stream(max(facts, size))
    known: InstantFacts = [(time, None, found, True) for time, found in stream]
    batches = [known[place : place + size] for place in range(0, len(known), size)]
    assert engine(batches) == merge(batches)
    ways: dict[str, Callable[[], object]] = {
        "engine": lambda: engine(batches),
        "merge": lambda: merge(batches),
        "columns": lambda: [columns(batch, {}) for batch in batches],
        "by hand": lambda: detect.floor(stream),
    }
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(repeats):
        for name, run in ways.items():
            gc.collect()
            start = process_time()
            run()
            best[name] = min(best[name], (process_time() - start) / len(known) * 1e6)
    return best


def main(arguments: Sequence[str] | None = None) -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--facts", type=int, default=200_000)
    options.add_argument("--json", action="store_true")
    given = options.parse_args(arguments)
    rows = {size: measure(given.facts, size) for size in SIZES}
    if given.json:
        print(json.dumps(rows))
        return
    for size, row in rows.items():
        costs = "  ".join(f"{name} {cost:5.2f}" for name, cost in row.items())
        print(f"{size:8,} a batch: {costs} us a fact; engine / merge {row['engine'] / row['merge']:.2f}")


if __name__ == "__main__":
    main()
