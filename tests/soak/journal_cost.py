"""What journalling costs: `dotr feed` against `dotr run` on the same input, CPU time of whole processes.

    python -m tests.soak.journal_cost

Place:   started by hand, its lines are in LOG.md.
Method:  one-triple graphs as JSON lines; once a rule that remembers little, once one that remembers every
         graph, 20 MB in the end. Runs and feeds take turns; the medians are compared. Of a feed's time, what
         its commits took is reported by the feed itself.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import tempfile
from pathlib import Path
from statistics import median

from dotr.service.journal import Journal
from tests.soak.processes import spent

SMALL = """PREFIX : <urn:x:>
RULE Fire DEFINE { dotr_x a :Fire ; :in ?room }
FROM Smoke := { SELECT ?room { ?room :smoke ?density FILTER(?density > 90) } }
AND LAST Hot := { SELECT ?room ?v { ?room :celsius ?v FILTER(?v > 60) } }
    WITHIN 5 min FROM Smoke ON Hot.?room = Smoke.?room
WITH ?room := Smoke.?room
"""
SAVING = re.compile(r"commits? in ([0-9.]+) s")
LARGE = SMALL.replace("LAST Hot", "LAST 3 Hot").replace("5 min", "30 d").replace("?v > 60", "?v > 0")


def write_stream(path: Path, graphs: int, seed: int = 3) -> None:
    """One reading a second, of one of 500 rooms."""
    noise = random.Random(seed)
    with path.open("w") as file:
        for time in range(graphs):
            what = "smoke" if noise.random() < 0.1 else "celsius"
            room = f"<urn:x:a-room-with-a-rather-long-name-{noise.randrange(500)}>"
            graph = f"{room} <urn:x:{what}> {noise.randrange(100)} ."
            file.write(json.dumps({"time": time, "graph": graph}) + "\n")


def compared(folder: Path, name: str, rules: str, graphs: int, repeats: int) -> str:
    """Run and feed `repeats` times each, in turns; one line of figures."""
    (folder / "rules.dotr").write_text(rules)
    write_stream(folder / "in.jsonl", graphs)
    runs, feeds, saving = [], [], []
    for turn in range(repeats + 1):
        for stale in ("run.jsonl", "feed.jsonl"):
            (folder / stale).unlink(missing_ok=True)
        shutil.rmtree(folder / ".dotr", ignore_errors=True)
        spent("deploy", "rules.dotr", cwd=folder)
        run = spent("run", "rules.dotr", "in.jsonl", "-q", "-o", "run.jsonl", cwd=folder).cpu
        feed = spent("feed", "in.jsonl", "-o", "feed.jsonl", cwd=folder)
        assert (folder / "run.jsonl").read_bytes() == (folder / "feed.jsonl").read_bytes()
        if turn:  # the first one warms up
            runs.append(run)
            feeds.append(feed.cpu)
            saving.append(float(SAVING.search(feed.reported)[1]) / feed.cpu)  # type: ignore[index]  # every feed commits
    with Journal(str(folder / ".dotr"), exclusive=False) as journal:
        state = len(json.dumps(journal.snapshot()))
    more = median(feeds) / median(runs) - 1
    return (
        f"{name}: {graphs:,} graphs, state {state / 1e6:.1f} MB: run {median(runs):.2f} s, feed "
        f"{median(feeds):.2f} s of CPU ({more:+.0%}: throughput {-more / (1 + more):+.0%}), of it commits "
        f"{median(saving):.0%} (medians of {repeats}, in turns)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=120_000)
    parser.add_argument("--large-graphs", type=int, default=300_000)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(compared(folder, "small state", SMALL, given.graphs, given.repeats), flush=True)
        print(compared(folder, "large state", LARGE, given.large_graphs, given.repeats), flush=True)


if __name__ == "__main__":
    main()
