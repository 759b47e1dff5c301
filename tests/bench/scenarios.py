"""The paper's evaluation, one function a figure. Each returns its rows and what must hold of them.

Place:   called by __main__.py with a `Size`; runs runners over workloads through harness.py.
Method:  a scenario is a sweep over one parameter of the default scenario, as in section 5 of the paper.
         `checks` are the figures to reach, computed from the same run: ratios, never absolute times.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from . import background as indexes
from . import budget as charges
from . import chains as searches
from . import citybench, formats, phases, runners, workloads
from . import columns as columnar
from . import counting as funnel_counts
from . import kafka as topics
from . import lars as laser
from . import mqtt as broker
from . import places as zones
from . import sequences as rows_in_order
from . import serve as serving
from . import tables as mapped
from .harness import compare, once, same


@dataclass(frozen=True)
class Size:
    """How much of a scenario to run: graphs (None: what the scenario says) and repeats."""

    quick: bool = False
    graphs: int | None = None
    repeats: int | None = None

    def of(self, full: int, quick: int) -> int:
        return self.graphs or (quick if self.quick else full)

    @property
    def times(self) -> int:
        return self.repeats or (4 if self.quick else 7)


@dataclass
class Result:
    """`rows` are the table; `figures` go into the JSON line beside them; `checks`: what must hold."""

    scenario: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    checks: dict[str, bool] = field(default_factory=dict)
    x: str = ""
    """The column that a chart of this scenario has on its horizontal axis."""


def table1(size: Size) -> Result:
    """The default scenario: ten rules, 30k graphs."""
    workload = workloads.default(size.of(30_000, 4_000))
    timings = compare(
        {
            "dotr": partial(runners.prepare_dotr, workload),
            "floor": partial(runners.prepare_floor, workload),
            "parse": lambda: runners.parse_only,
        },
        workload.documents,
        size.times,
    )
    naive = naive_of(workload, 400 if size.quick else 2_000)
    dotr, floor, parse = (timings[name].best for name in ("dotr", "floor", "parse"))
    pushing = {"push": partial(runners.prepare_pushing, workload)}
    push = compare(pushing, workload.documents, min(size.times, 3))["push"].best
    split = phases.split(workload)
    result = Result("table1")
    result.rows = [
        {"what": name, "µs a graph": value, "of dotr": f"{value / dotr:.2f}"}
        for name, value in (
            ("dotr", dotr),
            ("dotr, graph by graph", push),
            ("floor", floor),
            ("naive", naive),
            ("parse", parse),
        )
    ]
    total = sum(split.values())
    result.rows += [
        {"what": f"  phase: {name}", "µs a graph": value, "of dotr": f"{100 * value / total:.0f} %"}
        for name, value in split.items()
    ]
    result.figures = {
        "graphs": len(workload.documents),
        "events_a_graph": timings["dotr"].events,
        "dotr_us": dotr,
        "dotr_median_us": timings["dotr"].typical,
        "push_us": push,
        "floor_us": floor,
        "naive_us": naive,
        "parse_us": parse,
        "phases_us": split,
    }
    result.checks = {
        "floor ≤ 3 × parse": floor <= 3 * parse,
        "dotr ≤ 2 × floor": dotr <= 2 * floor,
        "dotr ≥ 30 × faster than naive": naive >= 30 * dotr,
    }
    return result


def naive_of(workload: workloads.Workload, graphs: int, prefixes: str = "") -> float:
    """Microseconds a graph of the naive loop over the first graphs, once; it must write what dotr writes."""
    documents = workload.documents[:graphs]
    seconds, output = once(partial(runners.prepare_naive, workload, prefixes), documents)
    same("dotr", runners.prepare_dotr(workload)(documents), "naive", output)
    return seconds / len(documents) * 1e6


def fig4(size: Size) -> Result:
    """CityBench Q1 and Q2, 1 to 1,000 graphs a second by re-stamping."""
    graphs = size.of(1_000, 400)
    rates = (1, 1000) if size.quick else (1, 10, 50, 100, 200, 500, 1000)
    result = Result("fig4", x="graphs a second", figures={"graphs": graphs})
    times: dict[tuple[str, int], float] = {}
    events: dict[tuple[str, int], float] = {}
    floors: dict[tuple[str, int], float] = {}
    for query in ("q1", "q2"):
        for rate in rates:
            workload = citybench.citybench(query, graphs, rate)
            timings = compare(
                {
                    "dotr": partial(runners.prepare_dotr, workload),
                    "floor": partial(runners.prepare_floor_citybench, workload),
                    "parse": lambda: runners.parse_only,
                },
                workload.documents,
                min(size.times, 2 if size.quick else 3),
                warm_up=100,
                turn=50,  # a thousand events a graph, at most
            )
            naive = naive_of(workload, 50, citybench.PREFIXES) if rate == rates[-1] else None
            key = (query, rate)
            times[key], floors[key] = timings["dotr"].best, timings["floor"].best
            events[key] = timings["dotr"].events
            result.rows.append(
                {
                    "query": query,
                    "graphs a second": rate,
                    "events a graph": events[key],
                    "dotr µs": times[key],
                    "floor µs": floors[key],
                    "parse µs": timings["parse"].best,
                    "naive µs": naive,
                }
            )
    first, last = rates[0], rates[-1]
    base = times["q1", first]
    more = (times["q1", last] - base) / (events["q1", last] - events["q1", first])
    result.figures["q1_us_per_event"] = more
    result.checks = {
        "Q2 is flat": max(times["q2", r] for r in rates) <= 1.3 * min(times["q2", r] for r in rates),
        "Q1 is base + ≤ 2 µs an event": more <= 2,
        "Q1 base ≤ 2 × floor": base <= 2 * floors["q1", first],
        "Q2 base ≤ 2 × floor": times["q2", first] <= 2 * floors["q2", first],
    }
    return result


def fig5(size: Size) -> Result:
    """1 to 100k Datalog rules, 1k to 1M background triples; what no query reaches is pruned, or not."""
    graphs = size.of(10_000, 2_000)
    counts = (1, 1_000) if size.quick else (1, 10, 100, 1_000, 10_000, 100_000)
    sizes = (1_000, 100_000) if size.quick else (1_000, 10_000, 100_000, 1_000_000)
    result = Result("fig5", x="size", figures={"graphs": graphs})
    for what, sweep, materialize in (
        ("rules", counts, "needed"),
        ("rules, all materialised", counts, "all"),
        ("triples", sizes, "needed"),
        ("triples, all materialised", sizes, "all"),
    ):
        times = []
        for count in sweep:
            rules, extra = (count, 10_000) if what.startswith("rules") else (11, count)
            workload = workloads.default(graphs, rules=rules, extra=extra)
            prepare = partial(runners.prepare_dotr, workload, materialize=materialize)
            start = perf_counter()
            prepare()
            deploy = perf_counter() - start
            timings = compare({"dotr": prepare}, workload.documents, min(size.times, 3))
            times.append(timings["dotr"].best)
            result.rows.append({"of": what, "size": count, "dotr µs": times[-1], "deploy s": deploy})
            gc.collect()
        if materialize == "needed":
            result.checks[f"flat over {what}"] = max(times) <= 1.3 * min(times)
    return result


def fig6(size: Size) -> Result:
    """2 to 10 events a pattern, `last` and `each`; what a match costs beyond `last` on the same stream."""
    graphs = size.of(6_000, 1_500)
    lengths = (2, 4, 6) if size.quick else tuple(range(2, 11))
    repeats = min(size.times, 3)
    result = Result("fig6", x="events a pattern", figures={"graphs": graphs})
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for selection, length in ((s, n) for s in ("LAST", "EACH") for n in lengths):
        workload = workloads.sequence(graphs, length, selection)
        timings = compare(
            {
                "dotr": partial(runners.prepare_dotr, workload),
                "floor": partial(runners.prepare_floor_sequence, workload),
                "silent": partial(runners.prepare_detection, workload),
            },
            workload.documents,
            repeats,
        )
        rows[selection, length] = {
            "selection": selection.lower(),
            "events a pattern": length,
            "events a graph": timings["dotr"].events,
            "dotr µs": timings["dotr"].best,
            "unprinted µs": timings["silent"].best,
            "floor µs": timings["floor"].best,
        }
    printed, matched = [], []
    for length in lengths:
        last, each = rows["LAST", length], rows["EACH", length]
        more = each["events a graph"] - last["events a graph"]
        if more > 1:
            printed.append((each["dotr µs"] - last["dotr µs"]) / more)
            matched.append((each["unprinted µs"] - last["unprinted µs"]) / more)
            each |= {"a match": matched[-1], "an event printed": printed[-1]}
    result.rows = list(rows.values())
    first, final = rows["LAST", lengths[0]]["dotr µs"], rows["LAST", lengths[-1]]["dotr µs"]
    result.checks = {
        "last is at most linear in length": final <= first * lengths[-1] / lengths[0],
        "each ≤ 0.5 µs a match beyond base": bool(matched) and matched[-1] <= 0.5,
        "each ≤ 1.5 µs an event printed beyond base": bool(printed) and printed[-1] <= 1.5,
    }
    return result


def fig7(size: Size) -> Result:
    """1 to 1,000 rules that differ in a constant, none, 1 % or all firing; and rules of different shape."""
    graphs = size.of(3_000, 2_000)
    counts = (1, 1_000) if size.quick else (1, 10, 100, 1_000)
    repeats = min(size.times, 2 if size.quick else 3)
    result = Result("fig7", x="rules", figures={"graphs": graphs})
    floors: dict[float, float] = {}
    for firing in ("none", "1%", "all"):
        times: list[float] = []
        for count in counts:
            workload = workloads.default(graphs, thresholds=workloads.thresholds(count, firing))
            prepare: Mapping[str, Callable[[], runners.Run]] = {
                "dotr": partial(runners.prepare_dotr, workload)
            }
            if firing == "all":
                prepare = {**prepare, "floor": partial(runners.prepare_floor, workload)}
            timings = compare(prepare, workload.documents, repeats)
            floor = timings["floor"].best if firing == "all" else None
            times.append(timings["dotr"].best)
            events = timings["dotr"].events
            if floor is not None:
                floors[count] = floor
                if count == counts[-1]:  # with few rules this is the default scenario, which table1 bounds
                    result.checks[f"all of {count:,} firing ≤ 1.5 × floor"] = times[-1] <= 1.5 * floor
            result.rows.append(
                {
                    "firing": firing,
                    "rules": count,
                    "events a graph": events,
                    "dotr µs": times[-1],
                    "floor µs": floor,
                }
            )
        if firing == "none":
            result.checks["none firing: ≤ 1.3 × of one rule"] = max(times) <= 1.3 * times[0]
    for count in counts:
        workload = workloads.different_shapes(graphs, count)
        timings = compare({"dotr": partial(runners.prepare_dotr, workload)}, workload.documents, repeats)
        dotr = timings["dotr"].best
        result.rows.append(
            {
                "firing": "different shapes",
                "rules": count,
                "events a graph": timings["dotr"].events,
                "dotr µs": dotr,
                "floor µs": floors[count],
            }
        )
        if count == counts[-1]:
            result.checks[f"{count:,} shapes ≤ 4 × floor"] = dotr <= 4 * floors[count]
    return result


def memory(size: Size) -> Result:
    """Ever-new IRIs, with triggers and without: what is resident must not grow after warm-up."""
    graphs = size.of(1_000_000, 100_000)
    result = Result("memory", x="graphs")
    for triggers in (0.2, 0.0):
        engine = runners.engine_of(workloads.endless(1, triggers))
        samples = []
        step = graphs // 20
        for done in range(step, graphs + 1, step):
            for start in range(done - step, done, 1_000):  # few documents at a time: they are memory, too
                documents = workloads.endless(min(1_000, done - start), triggers, start=start).documents
                for time, text in documents:
                    engine.push(text, at=time)
            gc.collect()
            samples.append(resident())
            result.rows.append({"triggers": triggers, "graphs": done, "resident MB": samples[-1]})
        warm = samples[len(samples) // 4 :]
        result.checks[f"flat (± 5 %) with {triggers:.0%} triggers"] = max(warm) <= 1.05 * warm[0]
    return result


def resident() -> float:
    """Megabytes of this process that are in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def ingest(size: Size) -> Result:
    """Reading alone, by format, beside a loop by hand and pyoxigraph's own rate on the same bytes."""
    result = Result("ingest")
    result.rows = formats.measure(size.of(20_000, 4_000), min(size.times, 3))
    result.figures = {"graphs": size.of(20_000, 4_000)}
    for row in result.rows:
        result.checks[f"{row['format']} ≤ 3 × pyoxigraph"] = row["ratio"] <= 3
        result.checks[f"{row['format']} ≤ 1.25 × by hand"] = row["to by hand"] <= 1.25
    return result


def lars(size: Size) -> Result:
    """Laser's five programs over windows and rates; a day of silence.

    The work an atom is the same whatever the window, but 80 × 800 atoms and their answers do not fit into a
    cache as 1 × 200 do: "flat" is a factor of 2.5 for 80 times the window.
    """
    result = Result("lars")
    windows, rates = ((1, 20), (200,)) if size.quick else ((1, 20, 40, 80), (200, 400, 800))
    found: dict[tuple[str, int, int], float] = {}
    for case in laser.CASES:
        for rate in rates:
            best: dict[int, dict[str, Any]] = {}
            for _ in range(min(size.times, 3)):
                for window in windows:  # in turns: a machine that is busy for a while is so for all
                    row = laser.measure(case, window, rate, size.of(40, 10))
                    if window not in best or row["µs an atom"] < best[window]["µs an atom"]:
                        best[window] = row
            found |= {(case.name, window, rate): row["µs an atom"] for window, row in best.items()}
            result.rows += best.values()
    for name, most in (("diamond", 5), ("join", 20), ("cooling", 10)):
        result.checks[f"{name} 20 × 200 ≤ {most} µs an atom"] = found[name, 20, 200] <= most
    for name in ("diamond", "join"):
        for rate in rates:
            flat = found[name, windows[-1], rate] <= 2.5 * found[name, 1, rate]
            result.checks[f"{name} × {rate}: window {windows[-1]} ≤ 2.5 × window 1"] = flat
    milliseconds, visits = laser.silence()
    result.figures = {"a day of silence, ms": milliseconds, "points visited": visits}
    result.checks["a day of silence ≤ 20 ms"] = milliseconds <= 20
    return result


def kb(size: Size) -> Result:
    """The knowledge base over LUBM: single facts, closing, files, memory."""
    from . import kb as knowledge  # noqa: PLC0415  # it imports rdflib and owlrl

    found = knowledge.run(size.quick)
    figures = {part: found[part] for part in ("saved", "owlrl", "memory")}
    return Result("kb", found["rows"], figures, found["checks"])


def imars(size: Size) -> Result:
    """Windows over a transitive property: recomputed, delete and rederive, and dotr, as in IMaRS."""
    from . import lasting  # noqa: PLC0415  # other scenarios do not need it

    result = Result("imars", x="entering %")
    window, steps = 5_000, 11 if size.quick else 21
    for share in (0.01, 0.05, 0.10, 0.25, 0.40, 0.50):
        took = lasting.imars_step(window, share, steps)
        result.rows.append({"entering %": round(share * 100), **{n: round(ms, 3) for n, ms in took.items()}})
        if share < 0.5:  # what enters and what leaves are as much as there is
            result.checks[f"{share:.0%}: ahead of naive"] = took["ours"] <= took["naive"]
        result.checks[f"{share:.0%}: at most 1.3 times dred"] = took["ours"] <= 1.3 * took["dred"]
        if share == 0.01:
            result.checks["1%: 20 times ahead of naive"] = took["naive"] >= 20 * took["ours"]
    whole = {share: lasting.replaced_step(window, share) for share in (0.6, 1.0)}
    result.figures["more than half of the window replaced, ms a message with its events"] = {
        f"{share:.0%}": {name: round(ms, 1) for name, ms in took.items()} for share, took in whole.items()
    }
    result.checks["more than half replaced: closed anew, ahead of maintaining"] = all(
        took["replaced"] <= took["maintained"] for took in whole.values()
    )
    sizes = [1_000, 10_000] if size.quick else [1_000, 10_000, 100_000]
    sweep = {n: lasting.imars_step(n, 10 / n, 10 * steps) for n in sizes}
    each = {n: {name: ms / 10 * 1e3 for name, ms in took.items()} for n, took in sweep.items()}
    looks = {n: lasting.look_ns(n) for n in sizes}
    work = {n: lasting.imars_work(n) for n in sizes}
    result.figures["a change by window"] = {
        "rows looked at, and that come and go": work,
        **{f"{name} us": {n: round(us[name], 1) for n, us in each.items()} for name in ("ours", "dred")},
        "one look for a pair ns": {n: round(ns, 1) for n, ns in looks.items()},
    }
    grown = {
        "ours": max(us["ours"] for us in each.values()) / each[sizes[0]]["ours"],
        "dred": max(us["dred"] for us in each.values()) / each[sizes[0]]["dred"],
        "a look": max(looks.values()) / looks[sizes[0]],
    }
    result.figures["the largest window against the smallest"] = {n: round(x, 2) for n, x in grown.items()}
    result.checks["a change looks at no more rows in a larger window"] = (
        max(work.values()) <= 1.1 * work[sizes[0]]
    )
    result.checks["a change's time grows with the window no more than that of sets or looks"] = grown[
        "ours"
    ] <= 1.3 * max(grown["dred"], grown["a look"])
    return result


def volz(size: Size) -> Result:
    """Facts and rules that change, against recomputation."""
    from . import lasting  # noqa: PLC0415  # see above

    result = Result("volz")
    facts, rules = size.of(20_000, 2_000), 6 if size.quick else 20
    for kind in ("taxonomy", "database", "dl"):
        for depth in (3, 4) if size.quick else (3, 4, 5):
            row = lasting.volz_kind(kind, depth, facts, rules)
            result.rows.append({"ontology": kind, "depth": depth, **{n: round(v, 3) for n, v in row.items()}})
            name = f"{kind} {depth}"
            result.checks[f"{name}: 10 % of the facts in a third"] = row["facts 10%"] <= 1 / 3
            result.checks[f"{name}: a rule at most 1.2 times"] = row["rule worst"] <= 1.2
            if depth == 5:
                result.checks[f"{name}: a rule in a fifth"] = row["rule median"] <= 1 / 5
    for kind in ("taxonomy", "database", "dl"):
        sizes = lasting.volz_sizes(kind, 4, (2_000, 20_000))
        each = [found["row us"] for found in sizes.values()]
        result.figures[f"{kind} 4: single facts among so many"] = {
            str(facts): {n: round(us, 1) for n, us in found.items()} for facts, found in sizes.items()
        }
        result.checks[f"{kind} 4: a fact costs as much among 20,000 as among 2,000"] = (
            each[1] <= 1.3 * each[0]
        )
    return result


def delta(size: Size) -> Result:
    """Standing answers over a communication graph, against asking again."""
    from . import lasting  # noqa: PLC0415  # see above

    result = Result("delta")
    changes = lasting.updates(size.of(60_000, 6_000), 2_000)
    for name, query in lasting.PATTERNS.items():
        row = lasting.delta_pattern(query, changes, 50 if size.quick else 200)
        ratio, least = (row[name] / row["ours us"] for name in ("again us", "in a new store us"))
        ratios = {"ratio": round(ratio, 1), "to a new store": round(least, 1)}
        result.rows.append({"pattern": name, **{n: round(v, 2) for n, v in row.items()}, **ratios})
        result.checks[f"{name}: 10 times ahead of asking a store that is new"] = least >= 10
        if not size.quick:  # after so many updates the store has removed as much as there is many times over
            result.checks[f"{name}: 100 times ahead of asking again"] = ratio >= 100
    return result


def windows(size: Size) -> Result:
    """Two streams joined with a background over windows of 3 s and 10 s, 1,000 triples a second."""
    from . import lasting  # noqa: PLC0415  # see above

    row = lasting.windows_rate(size.of(60, 12), 1_000)
    result = Result("windows", rows=[{n: round(v, 3) for n, v in row.items()}])
    result.checks["it keeps up with the stream"] = row["of real time"] < 1
    return result


def state(size: Size) -> Result:
    """States that events begin and end, against the same changes by messages."""
    from . import state as states  # noqa: PLC0415  # other scenarios do not need it

    result = Result("state", x="holders")
    for holders in (10, 1_000) if size.quick else (10, 1_000, 100_000):
        took = states.change_us(holders, size.of(10_000, 2_000))
        ratio = took["effects"] / took["messages"]
        lars = took["inertia"] / took["messages"]
        row = {f"{kind} µs": round(us, 1) for kind, us in took.items()}
        result.rows.append({"holders": holders, **row, "ratio": round(ratio, 2), "of LARS": round(lars, 2)})
        result.checks[f"{holders:,}: an effect costs at most 1.3 × a message"] = ratio <= 1.3
        result.checks[f"{holders:,}: inertia of LARS costs at most twice a message"] = lars <= 2
    return result


def tables(size: Size) -> Result:
    """Rows of tables through a compiled mapping."""
    rows = mapped.measure(size.of(100_000, 10_000), size.times)
    checks = {
        f"{row['table']}: the template costs at most {TEMPLATE} µs a row": row["template µs"] <= TEMPLATE
        for row in rows
    }
    checks["a template costs at most a fifth of parsing"] = all(row["to by hand"] <= 0.2 for row in rows)
    return Result("tables", rows, {}, checks)


TEMPLATE = 3.0
"""µs: what is promised of templates, an absolute time unlike the others."""


def columns(size: Size) -> Result:
    """A table of a million rows, the same events as an RDF log, and what others take."""
    rows, checks = columnar.figures(size.of(1_000_000, 100_000), size.repeats or 2, size.quick)
    return Result("columns", rows, checks=checks)


def corrections(size: Size) -> Result:
    """A log in which graphs come late, with what they refute taken back, beside the log in order."""
    from . import corrections as corrected  # noqa: PLC0415  # other scenarios do not need it

    rows, same = corrected.measure(size.of(200_000, 40_000), size.repeats or 2)
    seconds, sizes = ({row["log"]: row[unit] for row in rows} for unit in ("s", "MB"))
    checks = {
        "what remains are the events of the log in order": same,
        "a run with late graphs costs at most twice": seconds["1 in 20 late"] <= 2 * seconds["in order"],
        "a feed with late graphs costs at most twice": seconds["fed, 1 in 20 late"]
        <= 2 * seconds["fed in order"],
        "memory is flat": sizes["five times as long"] <= 1.2 * sizes["1 in 20 late"],
    }
    return Result("corrections", rows, checks=checks)


def budget(size: Size) -> Result:
    """What counting work costs, end to end and in kernels alone."""
    result = Result("budget")
    graphs, ends = size.of(80, 20), size.of(12_000, 3_000)
    for row, holds in charges.overheads(ends, graphs, size.times):
        result.rows.append(row)
        result.checks[f"{row['case']}: at most {row['most']} × as long as without charges"] = holds
    return result


def counting(size: Size) -> Result:
    """What it costs to count how far each rule came, end to end."""
    result = Result("counting")
    for row, holds in funnel_counts.overheads(size.of(12_000, 3_000), size.times):
        result.rows.append(row)
        result.checks[f"{row['case']}: at most {row['most']} × as long as without counting"] = holds
    return result


def background(size: Size) -> Result:
    """A million triples in dicts, and mapped from a file: lookups, opening, what a worker holds."""
    result = Result("background")
    result.rows, result.figures, result.checks = indexes.run(size.quick, min(size.times, 3))
    return result


def serve(size: Size) -> Result:
    """A server: what it takes in, how soon events are seen, what readers cost."""
    rows, figures, checks = serving.figures(size.quick, size.of(1_000_000, 50_000))
    return Result("serve", rows, figures, checks, "readers")


def kafka(size: Size) -> Result:
    """Kafka in and out of a server, beside the client library alone."""
    rows, figures, checks = topics.figures(size.of(400_000, 60_000))
    return Result("kafka", rows, figures, checks)


def mqtt(size: Size) -> Result:
    """A broker: what a server takes in, and what that costs beside a bare client."""
    rows, figures, checks = broker.figures(size.of(50_000, 10_000))
    return Result("mqtt", rows, figures, checks, "what")


def places(size: Size) -> Result:
    """A point in zones of the background: what the filter costs."""
    rows, checks = zones.figures(size.of(20_000, 4_000))
    return Result("places", rows, checks=checks)


def chains(size: Size) -> Result:
    """Chains of 3 to 24 EACH over windows of 100 to 10,000 facts, with few matches or none."""
    length, window, most = searches.DEAD
    result = Result("chains", list(searches.rows(size.quick, 3 * size.times)))
    dead = next(searches.measured([length], window, "none", size.times))["ms a trigger"]
    worst = max(float(row["of shortest"]) for row in result.rows)
    result.figures = {"dead_ms": dead, "worst": worst}
    result.checks = {
        f"a candidate costs ≤ {searches.MOST} × what it costs in a chain of 3": worst <= searches.MOST,
        f"a trigger of a chain of {length} over {window} dead ends takes ≤ {most} ms": dead <= most,
    }
    return result


def sequences(size: Size) -> Result:
    """Brute force, V shapes and sessions over 1,000 keys, in a narrow window and in a wide one."""
    count = size.of(300_000, 30_000)
    found = list(rows_in_order.figures(count, min(3, size.times)))
    result = Result("sequences", found)
    most = rows_in_order.SAME
    # the wide window holds all facts; sessions are cut by it, and so have other matches
    worst = max(float(row["of narrow"]) for row in found)
    few, many = (rows_in_order.kept(clicks) for clicks in (10_000, size.of(1_000_000, 50_000)))
    result.figures = {"facts": count, "worst": worst, "kept": [few, many]}
    result.checks = {
        f"a row in a window of {rows_in_order.WINDOWS[1]} costs ≤ {most} × one of 100 s": worst <= most,
        "a session keeps as much, however many clicks it has": few == many,
    }
    return result


SCENARIOS: Mapping[str, Callable[[Size], Result]] = {
    scenario.__name__: scenario
    for scenario in (
        table1,
        fig4,
        fig5,
        fig6,
        fig7,
        memory,
        ingest,
        tables,
        columns,
        lars,
        kb,
        imars,
        volz,
        delta,
        windows,
        state,
        budget,
        counting,
        chains,
        sequences,
        corrections,
        background,
        serve,
        kafka,
        mqtt,
        places,
    )
}
