"""What will run, as plain values: what `dotr plan` prints in four formats.

Place:   puts together what tesla, sparql, datalog and spark say about one program; under plan.py.
Method:  the parts of a deployment are made as for a run, over the real background, and asked to explain
         themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from typing import Any, assert_never

from dotr.batch.partitioning import describe, plan_batch
from dotr.core.enrich import enricher
from dotr.core.extract import Extractor, needed
from dotr.datalog.materialiser import Materialiser
from dotr.datalog.relations_read import reach
from dotr.events import Clock
from dotr.ir import (
    Absent,
    Between,
    Choose,
    Conjunct,
    DatalogRule,
    Every,
    Expression,
    Program,
    Rule,
    Summarise,
    Window,
    Within,
)
from dotr.lang.printer import datalog_rule_text, duration_text
from dotr.rdf.terms import RDF_TYPE, Term, Triple
from dotr.sparql.printing import Writer
from dotr.tesla.conditions import equality, parts
from dotr.tesla.detector import TeslaDetector
from dotr.tesla.plan import FactLog, LastValue, MonotonicStack, Ranked, RulePlan, RunningTotal, Step
from dotr.tesla.references import depths, horizons

Shown = dict[str, Any]


def overview(program: Program, background: Collection[Triple], *, code: bool = False) -> Shown:
    """Everything about a program that `dotr plan` tells, JSON-able. Closes and indexes the background."""
    writer = Writer(program.prefixes)
    materialiser = enricher(program, background)
    return {
        "rules": _rules(program, writer),
        "queries": _queries(program, materialiser, writer, code),
        "datalog": _datalog(program),
        "background": _background(background, materialiser, writer.term),
        "spark": describe(program, plan_batch(program)),
    }


# -- rules ------------------------------------------------------------------------------------------


def _rules(program: Program, writer: Writer) -> list[Shown]:
    plans = {plan.rule.name: plan for plan in TeslaDetector(program, Clock()).network.plans}
    shown = []
    for number, (rule, horizon) in enumerate(zip(program.rules, horizons(program), strict=True)):
        shown.append(
            {
                "name": rule.name,
                "private": rule.private,
                "trigger": _trigger(rule),
                "conjuncts": _conjuncts(rule, plans[rule.name], writer),
                "where": None if rule.where is None else writer.expression(rule.where),
                "consuming": list(rule.consuming),
                "horizon": None if horizon is None else duration_text(horizon),
                "own_horizon": duration_text(max(depths(rule).values())),
                "reads_rules": sorted({p.stream for p in rule.positions if p.chained}),
                "order": program.dependencies.index(number),
            }
        )
    return shown


def _trigger(rule: Rule) -> Shown:
    if isinstance(rule.trigger, Every):
        return {"name": rule.trigger.name, "every": duration_text(rule.trigger.duration)}
    return {
        "name": rule.trigger.name,
        "stream": rule.trigger.stream,
        "attributes": list(rule.trigger.variables),
        "chained": rule.trigger.chained,
    }


def _conjuncts(rule: Rule, plan: RulePlan, writer: Writer) -> list[Shown]:
    steps = {step.conjunct.position.name: step for step in plan.steps}
    shown = []
    for conjunct in rule.conjuncts:
        position = conjunct.position
        keys, rest = _keys(conjunct, writer)
        shown.append(
            {
                "name": position.name,
                "choice": choice(conjunct, writer),
                "stream": position.stream,
                "chained": position.chained,
                "parent": parent(conjunct.window),
                "interval": interval(conjunct.window),
                "keys": keys,
                "condition": rest,
                "keeps": _kept(steps[position.name]),
                "consumed": position.name in rule.consuming,
            }
        )
    return shown


def choice(conjunct: Conjunct, writer: Writer) -> str:
    """`LAST 3`, `NOT`, `AVG(Reading.?val) AS ?mean`."""
    match conjunct:
        case Choose(selection, _, _, _, k):
            return f"{selection} {k}" if k != 1 else str(selection)
        case Absent():
            return "NOT"
        case Summarise(function, argument, distinct, variable):
            inner = "*" if argument is None else writer.expression(argument)
            return f"{function}({'DISTINCT ' if distinct else ''}{inner}) AS ?{variable}"
        case _:
            assert_never(conjunct)


def parent(window: Window) -> str:
    """The position that a conjunct hangs from in the tree of windows."""
    return window.reference if isinstance(window, Within) else window.start


def interval(window: Window) -> str:
    """The window with its ends: `[Smoke - 5 min, Smoke]`, `[Smoke - 1 h, Smoke)`, `(A, B)`."""
    match window:
        case Within(duration, reference, before):
            start = f"{reference} - {duration_text(duration)}" if duration else reference
            return f"[{start}, {reference}{')' if before else ']'}"
        case Between(start, end):
            return f"({start}, {end})"
        case _:
            assert_never(window)


def _keys(conjunct: Conjunct, writer: Writer) -> tuple[list[str], str | None]:
    """Equations that index the conjunct's facts, and what else ON says."""
    keys: list[str] = []
    rest: list[Expression] = []
    for part in parts(conjunct.on):
        pair = equality(part, conjunct.position.name)
        if pair is None:
            rest.append(part)
        else:
            keys.append(" = ".join(map(writer.expression, pair)))
    return keys, " && ".join(writer.expression(part, 3) for part in rest) or None


def _kept(step: Step) -> str:
    """What bounds the state of a conjunct."""
    content = step.column.content
    match content:
        case LastValue():
            what = "the last fact"
        case FactLog():
            what = "all facts"
        case RunningTotal(function):
            what = f"a running {function}"
        case MonotonicStack():
            what = "the facts that are last above some threshold"
        case Ranked():
            what = "all facts above some threshold"
        case _:
            assert_never(content)
    each = " of each key" if step.column.keys else ""
    return f"{what}{each}, for {duration_text(step.retention)}"


# -- queries, Datalog, background -------------------------------------------------------------------


def _queries(program: Program, materialiser: Materialiser, writer: Writer, code: bool) -> list[Shown]:
    extractor = Extractor(program.queries, materialiser.store)
    users: dict[str, list[str]] = {}
    for rule in program.rules:
        for position in rule.positions:
            if not position.chained and rule.name not in users.setdefault(position.stream, []):
                users[position.stream].append(rule.name)
    shown = []
    for name, select in program.queries.items():
        explanation = extractor.explain(name, writer.term)
        entry: Shown = {
            "name": name,
            "attributes": list(select.variables),
            "rules": users.get(name, []),
            "engine": explanation.engine,
            "reason": explanation.reason,
            "shared_with": list(explanation.shared),
            "plans": [line for plan in explanation.plans for line in plan.split("\n")],
        }
        if code:
            entry["code"] = list(explanation.sources)
        shown.append(entry)
    return shown


def _datalog(program: Program) -> Shown:
    """Rules that some query reaches, and those that none does."""
    kept = reach(program.datalog, needed(program.queries)).rules
    reachable: list[DatalogRule] = []
    pruned: list[DatalogRule] = []
    following = iter(kept)
    expected = next(following, None)
    for rule in program.datalog:
        # `reach` keeps the order and the place of a rule, and may leave out heads that nobody reads
        if expected is not None and expected.span is rule.span and expected.body == rule.body:
            reachable.append(expected)
            expected = next(following, None)
        else:
            pruned.append(rule)
    return {
        "entailment": str(program.entailment),
        "rules": len(program.datalog),
        "reachable": [datalog_rule_text(rule, program.prefixes) for rule in reachable],
        "pruned": [datalog_rule_text(rule, program.prefixes) for rule in pruned],
    }


def _background(
    background: Collection[Triple], materialiser: Materialiser, shorten: Callable[[Term], str]
) -> Shown:
    """Predicates (classes, for rdf:type) of the background by whether anything reads them."""
    kept: Counter[str] = Counter()
    pruned: Counter[str] = Counter()
    for triple in background:
        _, predicate, object_ = triple
        name = f"a {shorten(object_)}" if predicate == RDF_TYPE else shorten(predicate)
        (kept if materialiser.reach.keeps(triple) else pruned)[name] += 1
    return {
        "triples": len(background),
        "reachable": dict(sorted(kept.items())),
        "pruned": dict(sorted(pruned.items())),
    }
