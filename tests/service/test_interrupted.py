"""Random streams in sources of every kind, fed with stops anywhere: the outputs are those of a quiet feed."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dotr.io.decode.rdf import parse_triples
from dotr.io.sources import SourceOptions
from dotr.rdf.terms import integer
from tests.service.deployments import RULES, deploy, feed, stream
from tests.service.test_feed import Stop

STAMP = "<http://www.w3.org/ns/prov#generatedAtTime>"
SCHEMA = "<urn:x:Smoke> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <urn:x:Event> ."
KINDS = (["a.jsonl"], ["a.nq"], ["a.trig"], ["log.ttl"], ["a.jsonl", "b.nq", "log.ttl", "d.trig", "e/"])


def disordered(noise: random.Random, count: int) -> list[dict[str, Any] | None]:
    """Graphs with their times, out of order, some with triples of the schema; None is an unreadable line."""
    found: list[dict[str, Any] | None] = []
    for line in stream(count, seed=noise.randrange(10**6), bad=False):
        graph = json.loads(line)
        graph["time"] = max(0, graph["time"] + noise.choice([0, 0, 0, 0, -1, -3, -8, 2]))
        found.append(graph)
        if noise.random() < 0.08:
            found.append({**graph, "graph": SCHEMA})
        if noise.random() < 0.05:
            found.append(None)
    return found


def write_sources(folder: Path, noise: random.Random, count: int) -> None:
    """The stream dealt out to files of one kind, or of several."""
    folder.mkdir()
    texts = dict.fromkeys(noise.choice(KINDS), "")
    for number, graph in enumerate(disordered(noise, count)):
        name = noise.choice(sorted(texts))
        ending = name.rpartition(".")[2]
        if graph is None:
            texts[name] += "garbage\n" if ending in ("jsonl", "nq") else ""
            continue
        time, turtle = graph["time"], graph["graph"]
        match ending:
            case "jsonl":
                texts[name] += json.dumps(graph) + "\n"
            case "nq":
                texts[name] += f"<urn:g{number}> {STAMP} {integer(time)} .\n"
                texts[name] += "".join(
                    f"{s} {p} {o} <urn:g{number}> .\n" for s, p, o in parse_triples(turtle)
                )
            case "ttl":
                texts[name] = texts[name] or 'VERSION "1.2-messages"\n'
                texts[name] += f"{turtle} <> {STAMP} {time} .\nMESSAGE\n"
            case "trig":
                texts[name] += f"<urn:t{number}> {{ {turtle} }} <urn:t{number}> {STAMP} {time} .\n"
            case _:
                (folder / name).mkdir(exist_ok=True)
                (folder / name / f"{number}@{time}.ttl").write_text(turtle)
    for name, text in texts.items():
        if not name.endswith("/"):
            (folder / name).write_text(text)


@settings(max_examples=settings().max_examples // 8)
@given(st.integers(0, 10**6))
def test_stops_do_not_show_in_events_dead_letters_and_late_graphs(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    noise = random.Random(seed)
    folder = tmp_path_factory.mktemp("feed")
    write_sources(folder / "in", noise, noise.choice([5, 20, 60]))
    lateness = noise.choice([0, 0, 1, 5]) * 1_000_000
    options = SourceOptions(whole=noise.choice([1, 1 << 22]), cache=noise.choice([0, 10**7]))
    outputs: list[list[bytes]] = []
    for name in ("quiet", "stopped"):
        own = folder / name
        own.mkdir()
        state = deploy(own, RULES.replace("PREFIX", "ENTAILMENT rdfs PREFIX", 1))
        files = [str(own / file) for file in ("events.nq", "dead.jsonl", "late.jsonl")]
        stops = name == "stopped"
        while True:
            try:
                feed(
                    state,
                    [str(folder / "in")],
                    files[:1],
                    letters=files[1],
                    late=files[2],
                    options=options,
                    lateness=lateness,
                    every=noise.choice([1, 3, 16, 100]) if stops else 10**9,
                    stopping=Stop(noise.randrange(9) if stops else 10**9),
                )
            except KeyboardInterrupt:
                continue
            break
        outputs.append([Path(file).read_bytes() for file in files])
    assert outputs[0] == outputs[1]
