"""In which order what holds and what happens are found out at one time point.

Place:   called by resolve.py when all rules are known; `Program.dependencies` and `LarsProgram.layers` are
         its result. Without LARS rules chaining.py alone has the order.
Method:  components (Tarjan 1972) of one graph over heads of .lars files and composite event rules. A head
         waits for the rules and heads that it reads, a rule for the heads and rules that it does not read
         strictly. Layers as strata of Datalog (Apt, Blair, Walker 1988): the layer of a head is above that of
         every rule it reads, and of every head that it negates or aggregates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from dotr.datalog.dependency import components, path
from dotr.errors import Diagnostics
from dotr.ir import FactWindow, LarsLayer, LarsProgram, LarsRule, Rule, WindowAggregate, WindowAtom
from dotr.source import Span
from dotr.tesla.references import strictness


class _LayerEdge(Struct, frozen=True):
    """`user` waits for `needed`; `why`: "NOT", "an aggregate" or "". `span`: where it says so."""

    user: str
    needed: str
    why: str
    span: Span | None


def head_of(stream: str, lars: LarsProgram) -> str | None:
    """The head that a stream of a rule is about: of `alarm`, `ISTREAM alarm` and `DSTREAM alarm`."""
    name = stream.rpartition(" ")[2]
    return name if name in lars.attributes else None


def layered(
    rules: Sequence[Rule], chained: tuple[int, ...], lars: LarsProgram, found: Diagnostics
) -> tuple[tuple[int, ...], LarsProgram]:
    """Rules in an order that suits the heads, too, and the LARS program with its layers. `chained`: rules in
    an order that suits rules alone. Findings are recorded; then the layers are of no use.
    """
    names = {rule.name for rule in rules}
    edges = [*_lars_edges(lars, names), *_rule_edges(rules, lars)]
    graph: dict[str, list[str]] = {name: [] for name in (*lars.attributes, *(r.name for r in rules))}
    by_user: dict[str, list[_LayerEdge]] = {name: [] for name in graph}
    for edge in edges:
        graph[edge.user].append(edge.needed)
        by_user[edge.user].append(edge)
    levels: dict[str, int] = {}
    for component in components(graph):
        members = set(component)
        level = 0
        inside: list[_LayerEdge] = []
        for edge in (edge for node in component for edge in by_user[node]):
            if edge.needed in members:
                inside.append(edge)
            else:
                above = edge.user in lars.attributes and (edge.why or edge.needed in names)
                level = max(level, levels[edge.needed] + bool(above))
        _check_component(members, inside, graph, names, found)
        levels.update(dict.fromkeys(component, level))
    order = tuple(sorted(chained, key=lambda i: levels[rules[i].name]))  # stable: `chained` within a level
    return order, replace(lars, layers=_layers(lars, levels, [rules[i].name for i in order]))


def _layers(lars: LarsProgram, levels: Mapping[str, int], order: Sequence[str]) -> tuple[LarsLayer, ...]:
    found: list[LarsLayer] = []
    for level in sorted({levels[name] for name in lars.attributes}):
        names = tuple(name for name in lars.attributes if levels[name] == level)
        rules = tuple(i for i, rule in enumerate(lars.rules) if levels[rule.head.atom.name] == level)
        before = sum(levels[name] < level for name in order)
        found.append(LarsLayer(names, rules, before))
    return tuple(found)


def lars_reads(rule: LarsRule) -> Iterator[tuple[str, str, Span | None]]:
    """(name, "NOT" | "an aggregate" | "", place) of every atom of a body."""
    for literal in rule.body:
        if not isinstance(literal, WindowAtom | WindowAggregate):
            continue
        why = "NOT" if isinstance(literal, WindowAtom) and literal.negated else ""
        why = "an aggregate" if isinstance(literal, WindowAggregate) else why
        yield literal.atom.name, why, literal.span
        if isinstance(literal.window, FactWindow):
            yield from ((name, why, literal.span) for name in literal.window.streams)


def _lars_edges(lars: LarsProgram, names: set[str]) -> Iterator[_LayerEdge]:
    for rule in lars.rules:
        for name, why, span in lars_reads(rule):
            if name in lars.attributes or name in names:
                yield _LayerEdge(rule.head.atom.name, name, why, span)


def _rule_edges(rules: Sequence[Rule], lars: LarsProgram) -> Iterator[_LayerEdge]:
    known = {rule.name for rule in rules}
    for rule in rules:
        for position, strict in strictness(rule):
            if strict:
                continue
            head = head_of(position.stream, lars)
            if head is not None:
                yield _LayerEdge(rule.name, head, "", position.span)
            elif position.chained and position.stream in known:
                yield _LayerEdge(rule.name, position.stream, "", position.span)


def _check_component(
    members: set[str],
    inside: Sequence[_LayerEdge],
    graph: Mapping[str, Sequence[str]],
    rules: set[str],
    found: Diagnostics,
) -> None:
    if members <= rules:
        return  # chaining.py has reported it
    if members & rules:
        edge = next(e for e in inside if e.user in rules and e.needed not in rules)
        found.error(
            "D1616",
            f"rule `{edge.user}` waits for itself within one instant, by way of what holds",
            edge.span,
            hint=f"make it look back strictly: `{edge.needed}` WITHIN … BEFORE …",
            notes=(_cycle(edge, graph, members),),
        )
        return
    for edge in [e for e in inside if e.why][:1]:
        found.error(
            "D1615",
            f"recursion through {edge.why}: `{edge.user}` depends on itself",
            edge.span,
            hint="derive what is negated or counted without it",
            notes=(_cycle(edge, graph, members),),
        )


def _cycle(edge: _LayerEdge, graph: Mapping[str, Sequence[str]], members: set[str]) -> str:
    steps = path(graph, edge.needed, edge.user, members)
    return "the cycle: " + " ← ".join([edge.user, f"{edge.why} {steps[0]}".strip(), *steps[1:]])
