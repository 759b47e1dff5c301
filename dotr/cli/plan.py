"""`dotr plan RULES…`: what will run, for people and programs to read.

Place:   service/overview.py has it as plain values; they are written here as text, JSON, Graphviz, Mermaid
         or HTML.
Method:  the deployment is compiled as `dotr run` compiles it, over the real background: the plans shown are
         those that would run.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from dotr.cli import options
from dotr.cli.show import visible
from dotr.core.deployment import Deployment, Settings
from dotr.io.rules_and_background import read_background, read_rules_text
from dotr.lang import load_program
from dotr.pictures.graph import Arrow, Box, graph
from dotr.pictures.markup import Html, joined, page
from dotr.program.names import UNITS
from dotr.service.overview import DENSE, Shown, overview

if TYPE_CHECKING:
    from dotr.io.tables.mapping import TableMapping


def holding_lines(shown: Shown) -> list[str]:
    """What holds, as text."""
    lines = [f"WHAT HOLDS at {shown['points']}"]
    if shown["ahead"] != "0 s":
        lines.append(f"  atoms wait for a later point for at most {shown['ahead']}")
    for number, layer in enumerate(shown["layers"], 1):
        after = f", after {', '.join(layer['after'])}" if layer["after"] else ""
        lines.append(f"  layer {number}{after}")
        lines += [f"    {rule}" for rule in layer["rules"]]
        for head in layer["heads"]:
            attributes = "".join(f" ?{name}" for name in head["attributes"])
            users = f", read by {', '.join(head['rules'])}" if head["rules"] else ""
            far = "depends on the whole past" if head["reach"] is None else f"looks back {head['reach']}"
            lines.append(f"    {head['name']}{attributes}: {far}{users}")
            if head["dense"]:
                lines.append(f"      {', '.join(head['dense'])}: {DENSE}")
    lines.append("  remembered")
    lines += [f"    {table['window']}: {table['keeps']}" for table in shown["tables"]]
    return lines


_SHOWN = 12
"""Lines of a long list that the text format shows."""


@click.command()
@click.argument("rules", metavar="RULES...", nargs=-1, required=True)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "json", "dot", "mermaid", "html"]),
    default="text",
    help="Default: text.",
)
@click.option("--code", is_flag=True, help="Show the code that is generated for the queries, too.")
@click.option("--background", multiple=True, metavar="FILE", help="Background beside that of the program.")
@options.functions
@options.budget
@click.option(
    "--map",
    "mappings",
    type=options.mapping,
    multiple=True,
    metavar="FILE",
    help="Mappings of tables: report whether their rows are taken as columns.",
)
def command(
    rules: tuple[str, ...],
    format_: str,
    code: bool,
    background: tuple[str, ...],
    budget: int,
    mappings: tuple[TableMapping, ...],
) -> int:
    """Show what will run, without running it.

    For each rule: its trigger, its windows with their ends, keys, horizon and what bounds its state; how each
    query is evaluated and which rules share it; what of Datalog and background is reached; how Spark would
    divide the work; with --map, whether rows of tables are taken as columns.
    """
    program = load_program(rules, read_rules_text)
    triples = read_background([*program.background, *background], named=program.named)
    deployment = Deployment(program, triples, Settings(budget=budget))
    shown = overview(deployment, code=code)
    if mappings:
        shown["tables"] = [_table(deployment, mapping) for mapping in mappings]
    match format_:
        case "json":
            text = json.dumps(shown, ensure_ascii=False, indent=2)
        case "dot":
            text = "\n".join(dot(shown))
        case "mermaid":
            text = "\n".join(mermaid(shown))
        case "html":
            sys.stdout.write(page(" ".join(map(os.path.basename, rules)), plan_picture(shown)))
            return 0
        case _:
            text = "\n".join(as_text(shown))
    sys.stdout.write(visible(text) + "\n")
    return 0


def _table(deployment: Deployment, mapping: TableMapping) -> Shown:
    """How `dotr run` takes the rows of a table; `why`: why not as columns."""
    from dotr.io.tables.compiled import cells_used, compile_mapping  # noqa: PLC0415  # start-up: few have tables

    compiled = compile_mapping(mapping, list(cells_used(mapping)), UNITS["s"], "UTC", mapping.name)
    why = "the graph of a row says its time" if compiled.time_at < 0 else ""
    if not compiled.form:
        why = "a row is more than a graph, or two of its triples can be the same"
    return {"mapping": mapping.name, "why": why or deployment.why_graphs(compiled.form)}


# -- text -------------------------------------------------------------------------------------------


def as_text(shown: Shown) -> Iterator[str]:
    """The plan for a terminal."""
    for rule in shown["rules"]:
        yield from rule_lines(rule)
        yield ""
    for query in shown["queries"]:
        yield from query_lines(query)
    if shown["queries"]:
        yield ""
    yield from _knowledge(shown)
    yield ""
    if shown["functions"]:
        yield "FUNCTIONS OF YOUR OWN"
        yield from (f"  {_function(entry)}" for entry in shown["functions"])
        yield ""
    if shown["lasting"]:
        yield "STATE"
        yield from (f"  {entry['what']}: {entry['bound']}" for entry in shown["lasting"])
        yield ""
    if shown["holding"]:
        yield from holding_lines(shown["holding"])
        yield ""
    if shown.get("tables"):
        yield "TABLES"
        for table in shown["tables"]:
            how = f"row by row, as graphs: {table['why']}" if table["why"] else "column by column"
            yield f"  {table['mapping']}: {how}"
        yield ""
    yield "CUT INTO PARTS by dotr batch and Spark"
    yield from (f"  {line}" for line in shown["spark"])


def _function(entry: Shown) -> str:
    version = f" {entry['version']}" if entry["version"] else ""
    return f"{entry['name']}: {entry['from'] or 'of this process alone'}{version}"


def rule_lines(rule: Shown) -> Iterator[str]:
    """How a rule runs, for a terminal."""
    trigger = rule["trigger"]
    if "automaton" in trigger:
        yield f"SEQUENCE {rule['name']} := {trigger['pattern']}"
        yield from _automaton(trigger)
        yield from _reach(rule)
        return
    yield f"{'PRIVATE ' if rule['private'] else ''}RULE {rule['name']}"
    children: dict[str, list[Shown]] = {}
    for conjunct in rule["conjuncts"]:
        children.setdefault(conjunct["parent"], []).append(conjunct)
    if "every" in trigger:
        yield f"  {trigger['name']}  every {trigger['every']}"
    else:
        attributes = "".join(f" ?{name}" for name in trigger["attributes"])
        yield f"  {trigger['name']}  each fact of {_stream(trigger)}{attributes}"
    yield from _branches(trigger["name"], children, "  ")
    if "after" in trigger:
        yield f"  {trigger['due']}  {trigger['after']} after {trigger['name']}"
        yield from _branches(trigger["due"], children, "  ")
    if rule["where"] is not None:
        yield f"  where {rule['where']}"
    yield from (f"  {line}" for line in rule["search"])
    for what in ("deletes", "states"):
        yield from (f"  at the next moment {what} {triple}" for triple in rule[what])
    yield from _reach(rule)


def _automaton(trigger: Shown) -> Iterator[str]:
    """A sequence: its rows, its states, what it keeps."""
    yield f"  rows of {', '.join(map(_stream, trigger['sources']))}"
    if trigger["per"]:
        yield f"  by {' '.join(f'?{name}' for name in trigger['per'])}"
    gap = "" if trigger["gap"] is None else f", neighbours at most {trigger['gap']} apart"
    yield f"  within {trigger['within']}{gap}"
    yield f"  begins in {_then(trigger['begins'])}"
    states = [
        f"  {n} {state['element']} → {_then(state['then'])}"
        for n, state in enumerate(trigger["automaton"], 1)
    ]
    yield from _some(states)
    yield f"  keeps {trigger['keeps']}"


def _then(states: Sequence[int | str]) -> str:
    return ", ".join(map(str, states))


def _reach(rule: Shown) -> Iterator[str]:
    """How far back a rule looks, and what it reads."""
    yield f"  horizon: {rule['horizon']}"
    if rule["influence"] is None:
        yield f"  depends on the whole past: {rule['influence_reason']}"
    elif rule["influence"] != rule["horizon"]:
        yield f"  depends on {rule['influence']}, with what it reads of other rules"
    others = [name for name in rule["reads_rules"] if name != rule["name"] and name not in _read(rule)]
    if others:
        yield f"  reads the events of {', '.join(others)}"


def _read(rule: Shown) -> set[str]:
    """The sequences that a rule reads."""
    positions = [rule["trigger"], *rule["trigger"].get("sources", ()), *rule["conjuncts"]]
    return {position["stream"] for position in positions if position.get("sequence")}


def _stream(position: Shown) -> str:
    """The stream of a position, where it is not plain from its name."""
    kind = "sequence " if position["sequence"] else "rule " if position["chained"] else "query "
    kind = "" if position["held"] else kind
    changes = position["stream"].startswith(("ISTREAM ", "DSTREAM "))
    return f"{'' if changes else kind}{position['stream']}"


def _branches(name: str, children: dict[str, list[Shown]], indent: str) -> Iterator[str]:
    """The conjuncts measured from `name`, as a tree. A conjunct is drawn once: each has one parent."""
    own = children.pop(name, [])
    for number, conjunct in enumerate(own):
        last = number == len(own) - 1
        yield (
            f"{indent}{'└' if last else '├'}─ {conjunct['choice']} {conjunct['name']}  {conjunct['interval']}"
            f"  of {_stream(conjunct)}"
        )
        below = indent + ("   " if last else "│  ")
        if conjunct["keys"]:
            yield f"{below}   key {', '.join(conjunct['keys'])}"
        if conjunct["condition"] is not None:
            yield f"{below}   on {conjunct['condition']}"
        consumed = "; consumed when used" if conjunct["consumed"] else ""
        yield f"{below}   keeps {conjunct['keeps']}{consumed}"
        if conjunct["sharers"]:
            yield f"{below}   shared with {_sharers(conjunct)}"
        yield from _branches(conjunct["name"], children, below)


def query_lines(query: Shown) -> Iterator[str]:
    yield f"QUERY {query['name']}" + "".join(f" ?{name}" for name in query["attributes"])
    users = ", ".join(query["rules"])
    yield f"  used by {users}" if users else "  used by no rule"
    reason = f": {query['reason']}" if query["reason"] else ""
    yield f"  {query['engine']}{reason}"
    if "lasting" in query:
        yield f"  {query['lasting']}"
    if query["sharers"]:
        yield f"  evaluated together with {_sharers(query)}"
    yield from (f"    {line}" for line in query["plans"])
    for source in query.get("code", ()):
        yield from (f"    | {line}" for line in source.rstrip().split("\n"))


def _sharers(entry: Shown) -> str:
    """Who shares something, not too many of them by name."""
    more = entry["sharers"] - len(entry["shared_with"])
    return ", ".join(entry["shared_with"]) + (f" and {more:,} more" if more else "")


def _knowledge(shown: Shown) -> Iterator[str]:
    datalog, background = shown["datalog"], shown["background"]
    yield (
        f"DATALOG {datalog['rules'] - len(datalog['pruned'])} of {datalog['rules']} rules are reached, "
        f"{len(datalog['pruned'])} pruned; entailment {datalog['entailment']}"
    )
    yield from _some([f"  {rule}" for rule in datalog["reachable"]])
    yield from _some([f"  until a stream states owl:sameAs: {rule}" for rule in datalog["dormant"]])
    yield from _some([f"  pruned: {rule}" for rule in datalog["pruned"]])
    kept = sum(background["reachable"].values())
    yield f"BACKGROUND {kept:,} of {background['triples']:,} triples are reached"
    yield from _some([f"  {name} {count:,}" for name, count in background["reachable"].items()])
    yield from _some([f"  pruned: {name} {count:,}" for name, count in background["pruned"].items()])


def _some(lines: Sequence[str]) -> Iterator[str]:
    yield from lines[:_SHOWN]
    if len(lines) > _SHOWN:
        yield f"  … and {len(lines) - _SHOWN} more"


# -- graphs -----------------------------------------------------------------------------------------


def dot(shown: Shown) -> Iterator[str]:
    """The plan as a Graphviz graph: queries and rules, an edge for every position."""
    yield "digraph plan {"
    yield "  rankdir=LR; node [fontname=Helvetica, fontsize=11]; edge [fontname=Helvetica, fontsize=9];"
    for query in shown["queries"]:
        yield f"  {_quoted('query ' + query['name'])} [shape=box, label={_quoted(query['name'])}];"
    for rule in shown["rules"]:
        label = f"{_titled(rule)}\nhorizon {rule['horizon']}"
        shape = "octagon" if rule["kind"] == "sequence" else "ellipse"
        yield f"  {_quoted('rule ' + rule['name'])} [shape={shape}, style=bold, label={_quoted(label)}];"
        if "every" in rule["trigger"]:
            clock = _quoted("clock " + rule["name"])
            yield f"  {clock} [shape=circle, label={_quoted(rule['trigger']['every'])}];"
    for name in _heads(shown):
        yield f"  {_quoted('head ' + name)} [shape=hexagon, label={_quoted(name)}];"
    for start, end, label, dashed in _edges(shown):
        style = ", style=dashed" if dashed else ""
        yield f"  {_quoted(start)} -> {_quoted(end)} [label={_quoted(label)}{style}];"
    yield "}"


def _titled(rule: Shown) -> str:
    """The name of a rule; of a sequence with its pattern."""
    pattern: str = rule["trigger"].get("pattern", "")
    return f"{rule['name']} := {pattern}" if pattern else str(rule["name"])


def mermaid(shown: Shown) -> Iterator[str]:
    """The plan as a Mermaid flow chart."""
    yield "flowchart LR"
    names: dict[str, str] = {}

    def node(name: str) -> str:
        return names.setdefault(name, f"n{len(names)}")

    for query in shown["queries"]:
        yield f"  {node('query ' + query['name'])}[{_entities(query['name'])}]"
    for rule in shown["rules"]:
        label = _entities(f"{_titled(rule)} · {rule['horizon']}")
        box = f"[[{label}]]" if rule["kind"] == "sequence" else f"([{label}])"
        yield f"  {node('rule ' + rule['name'])}{box}"
        if "every" in rule["trigger"]:
            yield f"  {node('clock ' + rule['name'])}(({_entities(rule['trigger']['every'])}))"
    for name in _heads(shown):
        yield f"  {node('head ' + name)}{{{{{_entities(name)}}}}}"
    for start, end, label, dashed in _edges(shown):
        arrow = "-.->" if dashed else "-->"
        yield f"  {node(start)} {arrow}|{_entities(label)}| {node(end)}"


def plan_picture(shown: Shown) -> Html:
    """The plan as a drawing: queries, clocks and what holds on the left, rules behind what they read."""
    boxes = [Box(f"query {query['name']}", [query["name"], "query"]) for query in shown["queries"]]
    boxes += [Box(f"head {name}", [name, "holds"]) for name in _heads(shown)]
    for rule in shown["rules"]:
        if "every" in rule["trigger"]:
            boxes.append(Box(f"clock {rule['name']}", ["EVERY", rule["trigger"]["every"]]))
        boxes.append(Box(f"rule {rule['name']}", [_titled(rule), f"horizon {rule['horizon']}"], strong=True))
    arrows = [
        Arrow(start, end, "" if label == "trigger" else _short(label), dashed)
        for start, end, label, dashed in _edges(shown)
    ]
    drawn = [rule["trigger"] for rule in shown["rules"] if "automaton" in rule["trigger"]]
    return joined([graph(boxes, arrows), *map(_automaton_picture, drawn)])


def _automaton_picture(trigger: Shown) -> Html:
    """The states of a sequence; a state that is preferred to another has the lesser number on its arrow."""
    name, states = trigger["name"], trigger["automaton"][:_SHOWN]
    boxes = [Box("begin", [name, trigger["pattern"]], strong=True)]
    boxes += [Box(str(n), [f"{n} {state['element']}"]) for n, state in enumerate(states, 1)]
    boxes.append(Box("end", ["match"], strong=True))
    ways = [("begin", trigger["begins"]), *((str(n), state["then"]) for n, state in enumerate(states, 1))]
    arrows = [
        Arrow(start, str(then), "" if len(follow) == 1 else str(place))
        for start, follow in ways
        for place, then in enumerate(follow, 1)
    ]
    return graph(boxes, arrows, f"states of {name}")


def _short(label: str) -> str:
    """The word of a conjunct; of AFTER with its duration."""
    return label if label.startswith("AFTER ") else re.split(r"[ (]", label, maxsplit=1)[0]


def _heads(shown: Shown) -> list[str]:
    layers = shown["holding"]["layers"] if shown["holding"] else []
    return [head["name"] for layer in layers for head in layer["heads"]]


def _edges(shown: Shown) -> Iterator[tuple[str, str, str, bool]]:
    """(from, to, label, whether it is a NOT) of every position of every rule."""
    for rule in shown["rules"]:
        trigger = rule["trigger"]
        target = f"rule {rule['name']}"
        if "every" in trigger:
            yield f"clock {rule['name']}", target, "trigger", False
        elif "automaton" in trigger:
            for source in trigger["sources"]:
                yield _source(source), target, f"{_changes(source)} rows".lstrip(), False
        else:
            after = f"AFTER {trigger['after']}" if "after" in trigger else "trigger"
            yield _source(trigger), target, f"{_changes(trigger)} {after}".lstrip(), False
        for conjunct in rule["conjuncts"]:
            label = f"{conjunct['choice']} {conjunct['interval']}"
            yield _source(conjunct), target, label, conjunct["choice"] == "NOT"


def _changes(position: Shown) -> str:
    """ISTREAM or DSTREAM, if it is one."""
    found: str = "" if position["held"] else position["stream"].rpartition(" ")[0]
    return found


def _source(position: Shown) -> str:
    kind = "rule" if position["chained"] else "head" if position["held"] else "query"
    return f"{kind} {position['stream'].rpartition(' ')[2]}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _entities(text: str) -> str:
    """A Mermaid label: in quotation marks, what could end it as entities."""
    escaped = text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
    return f'"{escaped}"'
