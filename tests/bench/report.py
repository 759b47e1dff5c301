"""README's performance section, made from the JSON lines of the scenarios.

    python -m tests.bench table1 --json >> results.jsonl     (and the other scenarios)
    python -m tests.bench.report results.jsonl               prints the section
    python -m tests.bench.report results.jsonl README.md     puts it between the two marks of README.md

Of several lines of one scenario the last one counts. A scenario that is missing is left out; a check that
failed is printed as such.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .harness import shown

BEGIN, END = "<!-- performance: made by tests/bench/report.py -->", "<!-- /performance -->"

PAPER = {
    "table1": "12,090 µs a graph",
    "fig4": "Q1 under 4,000 µs, up to 7,000 at high rates; Q2 under 3,000",
    "fig5": "unchanged from 1 to 1k rules, × 30 from 1k to 100k; unchanged from 1k to 1M triples",
    "fig6": "`each` grows with the length, `last` less (a chart without figures)",
    "fig7": "up to 400,000 µs at 1,000 rules; 7,000 with its merged queries",
    "lars": "charts; of cooling it says at most 100 µs an atom (PyPy, 32 cores)",
}


def section(results: Mapping[str, Mapping[str, Any]]) -> str:
    """The section as Markdown, without a newline at the end."""
    any_result = next(iter(results.values()))
    machine = any_result["machine"]
    head = (
        f"Measured with `python -m tests.bench SCENARIO` on {machine['cores']} cores of an {machine['cpu']}, "
        f"Python {machine['python']}, one process. The paper's figures are of 2018, an Intel Core i7-4850HQ, "
        "RDFox and T-Rex: **different hardware**, so look at the shapes, and at the two baselines of the "
        "same run: `floor` is hand-written code for the one workload, `naive` a loop over a pyoxigraph "
        "store. All write the same events."
    )
    lines = [
        head,
        "",
        "| | paper | dotr |",
        "|---|---|---|",
        *(f"| `{name}`: {title} | {PAPER.get(name, '')} | {text} |" for name, title, text in rows(results)),
    ]
    failed = [
        f"{name}: {check}"
        for name, result in results.items()
        for check, holds in result["checks"].items()
        if not holds
    ]
    if failed:
        lines += ["", "Not reached in this run: " + "; ".join(failed) + "."]
    return "\n".join(lines)


def rows(results: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """(scenario, what it is, what dotr did) of those that there are."""
    for name, (title, summary) in SUMMARIES.items():
        if name in results:
            yield name, title, summary(results[name])


def default(result: Mapping[str, Any]) -> str:
    dotr, floor, naive, parse = (result[f"{name}_us"] for name in ("dotr", "floor", "naive", "parse"))
    return (
        f"**{shown(dotr)} µs a graph** ({shown(1e6 / dotr)} graphs/s; graph by graph "
        f"{shown(result['push_us'])}); floor {shown(floor)}, "
        f"naive {shown(naive)}, Turtle parsing alone {shown(parse)}"
    )


def citybench(result: Mapping[str, Any]) -> str:
    texts = []
    for query in ("q1", "q2"):
        own = [row for row in result["rows"] if row["query"] == query]
        texts.append(
            f"{query.upper()} {shown(own[0]['dotr µs'])} µs at {own[0]['graphs a second']} graph a second, "
            f"{shown(own[-1]['dotr µs'])} at {own[-1]['graphs a second']:,} "
            f"({shown(own[-1]['events a graph'])} events a graph)"
        )
    return "; ".join(texts)


def background(result: Mapping[str, Any]) -> str:
    texts = []
    for what in dict.fromkeys(row["of"] for row in result["rows"]):
        own = [row for row in result["rows"] if row["of"] == what]
        texts.append(
            f"{own[0]['size']:,} → {own[-1]['size']:,} {what}: "
            f"{shown(own[0]['dotr µs'])} → {shown(own[-1]['dotr µs'])} µs"
        )
    return "; ".join(texts)


def patterns(result: Mapping[str, Any]) -> str:
    texts = []
    for selection in ("last", "each"):
        own = [row for row in result["rows"] if row["selection"] == selection]
        first, last = own[0], own[-1]
        texts.append(
            f"`{selection}` {first['events a pattern']} → {last['events a pattern']} events: "
            f"{shown(first['dotr µs'])} → {shown(last['dotr µs'])} µs "
            f"({shown(last['events a graph'])} composite events a graph)"
        )
    return "; ".join(texts)


def rules(result: Mapping[str, Any]) -> str:
    texts = []
    for firing in dict.fromkeys(row["firing"] for row in result["rows"]):
        own = [row for row in result["rows"] if row["firing"] == firing]
        what = firing if firing == "different shapes" else f"{firing} firing"
        texts.append(
            f"{what}, {own[0]['rules']} → {own[-1]['rules']:,} rules: "
            f"{shown(own[0]['dotr µs'])} → {shown(own[-1]['dotr µs'])} µs"
        )
    return "; ".join(texts)


def memory(result: Mapping[str, Any]) -> str:
    own = [row for row in result["rows"] if row["triggers"] == result["rows"][0]["triggers"]]
    quarter = own[len(own) // 4]
    return (
        f"{shown(quarter['resident MB'])} MB after {quarter['graphs']:,} graphs, "
        f"{shown(own[-1]['resident MB'])} MB after {own[-1]['graphs']:,}"
    )


def ingest(result: Mapping[str, Any]) -> str:
    return "; ".join(
        f"{row['format'].rpartition('stream.')[2]} {shown(row['dotr µs'])} µs "
        f"(a loop by hand {shown(row['by hand µs'])}, parsing alone {shown(row['pyoxigraph µs'])})"
        for row in result["rows"]
    )


def lars(result: Mapping[str, Any]) -> str:
    texts = []
    for program in dict.fromkeys(row["program"] for row in result["rows"]):
        own = [row for row in result["rows"] if row["program"] == program]
        middle = next(row for row in own if (row["window"], row["atoms a point"]) == (20, 200))
        others = (
            f"{r['window']} × {r['atoms a point']}: {shown(r['µs an atom'])}" for r in (own[0], own[-1])
        )
        texts.append(f"{program} **{shown(middle['µs an atom'])}** ({', '.join(others)})")
    return "; ".join(texts) + f"; a day of silence at one point a second {shown(result[SILENCE])} ms"


SILENCE = "a day of silence, ms"

SUMMARIES = {
    "table1": ("default scenario (table 1)", default),
    "fig4": ("CityBench, 1 to 1,000 graphs a second (fig. 4)", citybench),
    "fig5": ("Datalog rules, background triples (fig. 5)", background),
    "fig6": ("length of patterns (fig. 6)", patterns),
    "fig7": ("number of rules (fig. 7)", rules),
    "memory": ("memory, ever-new IRIs", memory),
    "ingest": ("reading alone, five triples a graph", ingest),
    "lars": ("Laser's programs, µs an atom at 20 points × 200 atoms a point, the engine alone", lars),
}


def read(file: Path) -> dict[str, Mapping[str, Any]]:
    """Scenario → its last result, in the order of SUMMARIES. Raises SystemExit when there is none."""
    found: dict[str, Mapping[str, Any]] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("{"):
            result = json.loads(line)
            found[result["scenario"]] = result
    if not found:
        raise SystemExit(f"{file}: no results; write them with `python -m tests.bench SCENARIO --json`")
    return {name: found[name] for name in SUMMARIES if name in found}


def put(text: str, readme: Path) -> None:
    """Replace what is between the marks. Raises SystemExit without them."""
    old = readme.read_text(encoding="utf-8")
    before, mark, rest = old.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (mark and end):
        raise SystemExit(f"{readme}: it has no `{BEGIN}` … `{END}`")
    readme.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.report", description="README's performance section."
    )
    parser.add_argument("results", type=Path)
    parser.add_argument("readme", type=Path, nargs="?")
    options = parser.parse_args(arguments)
    text = section(read(options.results))
    if options.readme is None:
        print(text)
    else:
        put(text, options.readme)
    return 0


if __name__ == "__main__":
    sys.exit(main())
