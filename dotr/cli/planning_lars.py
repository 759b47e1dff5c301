"""What `dotr plan` says about what holds: the timeline, the rules by layer, what bounds their state.

Place:   under planning.py.
Method:  language.md, "A .lars file". The bounds are those of dotr/lars/reach.py: the sum of windows and
         offsets along a path of heads; none where a head reads itself through a window, or where facts are
         counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dotr.core.deployment import Deployment
from dotr.ir import Every, LarsProgram, Program
from dotr.ir.lars import FactWindow, Modality, TimeWindow, WindowAggregate, WindowAtom
from dotr.lang.lars_printer import lars_rule_text
from dotr.lars.reach import depths, horizon
from dotr.temporal.durations import duration_text

DENSE = "a fact at every point at which it holds: ISTREAM has each beginning once"


def holding(deployment: Deployment) -> dict[str, Any] | None:
    """The timeline and the layers in evaluation order; None without LARS rules."""
    program = deployment.program
    lars = program.lars
    if not lars.rules:
        return None
    reaches = _reach(lars)
    _, ahead = horizon(lars)
    return {
        "points": "one unit of integer time"
        if lars.step is None
        else f"multiples of {duration_text(lars.step)}",
        "ahead": duration_text(ahead),
        "tables": _tables(lars),
        "layers": [
            {
                "after": [program.rules[i].name for i in program.dependencies[: layer.before]],
                "heads": [_head(program, name, reaches) for name in layer.names],
                "rules": [lars_rule_text(lars.rules[i], program.prefixes) for i in layer.rules],
            }
            for layer in lars.layers
        ],
    }


def _tables(program: LarsProgram) -> list[dict[str, str]]:
    """What is remembered of each name under each window that rules have for it, and for how long."""
    scattered = {rule.head.atom.name for rule in program.rules if rule.head.at is not None}
    found: dict[str, str] = {}
    for literal in (literal for rule in program.rules for literal in rule.body):
        if isinstance(literal, WindowAtom):
            modality = literal.modality or Modality.SOMETIME
        elif isinstance(literal, WindowAggregate):
            modality = Modality.AT
        else:
            continue
        name, window = literal.atom.name, literal.window
        shown = _MODALITIES[modality]
        if isinstance(literal, WindowAtom) and modality is Modality.AT_LEAST:
            shown = f" AT LEAST {literal.count}"
        if isinstance(window, FactWindow):
            counted = ", ".join(window.streams)
            text = f"{name}{shown} WITHIN {window.count} FACTS OF ({counted})"
            kept = f"the last {window.count} atoms of {counted}"
            found[text] = kept if name in window.streams else f"{kept}, and of {name} what came since"
        else:
            length = window.duration if isinstance(window, TimeWindow) else 0
            text = f"{name}{shown} WITHIN {duration_text(length)}" if length else name
            found[text] = _kept(modality, length, name in scattered)
        if isinstance(literal, WindowAggregate):
            found[f"{literal.function} OVER {text}"] = "a total for each group that has an atom there"
    return [{"window": window, "keeps": keeps} for window, keeps in found.items()]


_MODALITIES = {Modality.SOMETIME: "", Modality.AT: " AT", Modality.ALWAYS: " ALWAYS", Modality.AT_LEAST: ""}


def _kept(modality: Modality, length: int, scattered: bool) -> str:
    """The rows of a table over a window of time."""
    if not length:
        return "each atom while it holds"
    match modality:
        case Modality.SOMETIME:
            return f"each atom, for {duration_text(length)} after it last held"
        case Modality.AT:
            return f"each atom at each of its points, for {duration_text(length)}"
        case Modality.ALWAYS if not scattered:
            return "the stretch for which each atom holds without a gap, and no further back"
        case _:
            return f"the stretches for which each atom holds, for {duration_text(length)}"


def _head(program: Program, name: str, reaches: Mapping[str, int | None]) -> dict[str, Any]:
    users = {
        rule.name: position.stream
        for rule in program.rules
        for position in rule.positions
        if position.held and position.stream.rpartition(" ")[2] == name
    }
    dense = [
        rule.name
        for rule in program.rules
        if not isinstance(rule.trigger, Every) and rule.trigger.held and rule.trigger.stream == name
    ]
    reach = reaches[name]
    return {
        "name": name,
        "attributes": list(program.lars.attributes[name]),
        "reach": None if reach is None else duration_text(reach),
        "rules": list(users),
        "dense": dense,
    }


def _reach(program: LarsProgram) -> dict[str, int | None]:
    """Head → how far back what it depends on can lie, in µs; None: without bound."""
    found: dict[str, int | None] = {}
    for name, streams in depths(program).items():
        lengths = [length for length in streams.values() if length is not None]
        found[name] = None if len(lengths) < len(streams) else max(lengths, default=0)
    return found


def holding_lines(shown: dict[str, Any]) -> list[str]:
    """The same as text."""
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
