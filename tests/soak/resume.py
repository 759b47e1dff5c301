"""How long a feed takes to go on: 20 MB of state, a background of 100,000 triples, one more graph.

    python -m tests.soak.resume

Place:   started by hand, its line is in LOG.md. That nothing is closed again is tested by
         tests/service/test_resuming.py.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from dotr.service.journal import Journal
from tests.soak.processes import spent

RULES = """PREFIX : <urn:x:>
BACKGROUND <building.ttl>
RULES <rooms.dlog>
ENTAILMENT rdfs
RULE Fire DEFINE { dotr_x :at ?room ; :peak ?v }
FROM Smoke := { SELECT ?room { ?o a :Smoke ; :sensor/:room ?room } }
AND EACH Hot := { SELECT ?room ?v ?o ?s { ?o :val ?v ; :sensor ?s . ?s :room ?room FILTER(?v > 10) } }
    WITHIN 14 d FROM Smoke ON Hot.?room = Smoke.?room
WITH ?room := Smoke.?room, ?v := Hot.?v
"""
DATALOG = "PREFIX : <urn:x:>\n:room(?s, ?r) :- :is_at(?s, ?l), :in(?l, ?r) .\n"


def prepared(folder: Path, graphs: int, triples: int) -> int:
    """A deployment that remembers all graphs but the last, which `next.jsonl` has; bytes of its state."""
    places = range(triples // 2)
    (folder / "building.ttl").write_text(
        "PREFIX : <urn:x:>\n" + "".join(f":s{i} :is_at :l{i} . :l{i} :in :r{i % 500} .\n" for i in places)
    )
    (folder / "rooms.dlog").write_text(DATALOG)
    (folder / "fire.dotr").write_text(RULES)
    for name, times in (("before", range(graphs)), ("next", range(graphs, graphs + 1))):
        with (folder / f"{name}.jsonl").open("w") as file:
            for time in times:
                sensor = f"<urn:x:s{time * 7 % len(places)}>"
                value = f"<urn:x:val> {20 + time % 50}"
                graph = f"<urn:x:observation-number-{time}> {value} ; <urn:x:sensor> {sensor} ."
                file.write(json.dumps({"time": time, "graph": graph}) + "\n")
    spent("deploy", "fire.dotr", cwd=folder)
    spent("feed", "before.jsonl", "-q", cwd=folder)
    with Journal(str(folder / ".dotr"), exclusive=False) as journal:
        return len(json.dumps(journal.snapshot()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=140_000)
    parser.add_argument("--triples", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        state = prepared(folder, given.graphs, given.triples)
        times = []
        for _ in range(given.repeats):
            times.append(spent("feed", "next.jsonl", "-q", cwd=folder).cpu)
            line = json.loads((folder / "next.jsonl").read_text())
            (folder / "next.jsonl").write_text(json.dumps({**line, "time": line["time"] + 1}) + "\n")
    print(
        f"state {state / 1e6:.1f} MB, background {given.triples:,} triples: one more graph, committed, takes "
        f"{sorted(times)[len(times) // 2]:.2f} s of CPU (median of {len(times)}, most {max(times):.2f})"
    )


if __name__ == "__main__":
    main()
