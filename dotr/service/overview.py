"""What a compiled deployment says of itself, as plain values: what `dotr plan` writes and a server shows.

Place:   puts together what the parts of one deployment say; cli/plan.py writes it as text, Graphviz or
         Mermaid.
Method:  LARS heads look back by the sum of windows and offsets along a path of heads
         (dotr/windows/building.py); without bound where a head reads itself through a window, or facts are
         counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from itertools import islice
from typing import Any, assert_never

from dotr import program
from dotr.core.deployment import Deployment
from dotr.detect.analysis import equality, evaluation_order, parts
from dotr.detect.partitioning import describe
from dotr.detect.plan import RulePlan
from dotr.detect.plan_step import ColumnSpec
from dotr.expressions.aggregates import written
from dotr.extract.algebra import relations_of
from dotr.extract.printing import Writer
from dotr.io.python_events import kept
from dotr.joins.plan import ALL, BodyPattern, Relation, class_relation, is_class, node_text
from dotr.lang.printer import datalog_rule_text, lars_rule_text
from dotr.program import DatalogRule, LarsProgram, Position, Program
from dotr.program.names import duration_text, rhythm_text
from dotr.program.program import FactWindow, Modality, TimeWindow, WindowAggregate, WindowAtom
from dotr.program.sequences import RowPattern, pattern_text
from dotr.rdf.terms import RDF_TYPE, Term
from dotr.windows.building import depths, horizon
from dotr.windows.windows import WINDOWS, kind_of

EVERY_GRAPH = "over held triples it has all its answers at every graph: ISTREAM has each once"


def lasting(deployment: Deployment, writer: Writer) -> list[dict[str, Any]]:
    """One entry for each HOLD line and each stream of changes."""
    program = deployment.program
    held = [{"what": hold_text(hold, writer), "bound": bound(hold)} for hold in program.holds]
    changes = [
        {"what": name, "bound": "its answers are maintained by signed changes, never evaluated again"}
        for name in program.standing
    ]
    for what in _unheld(program, writer):
        held.append({"what": f"what events state of {what}", "bound": "grows until deleted"})
    if held or changes:
        held.append({"what": "what messages insert", "bound": "grows until deleted"})
    return held + changes


def _unheld(program: Program, writer: Writer) -> list[str]:
    """What an INSERT states and no HOLD covers."""
    lines = {(hold.predicate, hold.class_) for hold in program.holds}
    if (None, None) in lines:
        return []
    found: dict[str, None] = {}
    for triple in (triple for rule in program.rules for triple in rule.inserts):
        predicate, class_ = triple.predicate, triple.object if triple.predicate == RDF_TYPE else None
        if isinstance(class_, str):
            if (RDF_TYPE, class_) not in lines:
                found[f"a {writer.term(class_)}"] = None
        elif (predicate, None) not in lines:
            found["a" if predicate == RDF_TYPE else _node(predicate, writer)] = None
    return list(found)


def _node(node: program.PatternNode, writer: Writer) -> str:
    """A node of INSERT or DELETE as it is written."""
    match node:
        case program.TemplateVar(name) | program.AnyTerm(name):
            return f"?{name}"
        case program.Fresh(name):
            return name
        case _:
            return writer.term(node)


def _triples(
    triples: Collection[program.TemplateTriple | program.PatternTriple], writer: Writer
) -> list[str]:
    return [
        " ".join(
            "a" if node == RDF_TYPE and place == 1 else _node(node, writer)
            for place, node in enumerate((triple.subject, triple.predicate, triple.object))
        )
        for triple in triples
    ]


def hold_text(hold: program.Hold, writer: Writer) -> str:
    """`HOLD :in LATEST FROM :begin UNTIL :end FOR 1 h`."""
    if hold.class_ is not None:
        what = f"a {writer.term(hold.class_)}"
    else:
        what = "*" if hold.predicate is None else writer.term(hold.predicate)
    parts = [f"HOLD {what}", "LATEST"] if hold.latest else [f"HOLD {what}"]
    named = (("FROM", hold.start), ("UNTIL", hold.until))
    parts += [f"{word} {writer.term(predicate)}" for word, predicate in named if predicate is not None]
    return " ".join(parts if hold.duration is None else [*parts, f"FOR {duration_text(hold.duration)}"])


def bound(hold: program.Hold) -> str:
    """What bounds the statements that a line makes."""
    if hold.duration == 0:
        return "nothing is held"
    bounds = []
    if hold.latest:
        bounds.append("by the subjects: of each the values stated last")
    if hold.duration is not None and hold.start is None:
        bounds.append(f"by what comes in {duration_text(hold.duration)}")
    elif hold.duration is not None:
        bounds.append(f"by what begins later, or began in the last {duration_text(hold.duration)}")
    if hold.until is not None:
        bounds.append("by the ends that graphs have")
    if hold.start is not None and hold.duration is None:
        bounds.append("by what graphs announce")
    if not hold.latest and hold.duration is None and bounds:
        bounds[-1] += ": what has no end stays until deleted"
    return " and ".join(bounds) or "grows until deleted"


def reads_what_lasts(select: program.Select, relations: Collection[Relation]) -> bool:
    """Whether a query reads one of the relations that last."""
    read = relations_of(select)
    if ALL in read or ALL in relations:
        return bool(relations)
    return any(relation in read or (RDF_TYPE in read and is_class(relation)) for relation in relations)


def lasting_relations(deployment: Deployment) -> frozenset[Relation]:
    """The relations of HOLD lines and of INSERT, and what follows from them."""
    found: set[Relation] = set()
    for hold in deployment.program.holds:
        if hold.duration == 0:
            continue
        if hold.predicate is None:
            return frozenset({ALL})
        found.add(str(hold.predicate) if hold.class_ is None else class_relation(hold.class_))
    for triple in (triple for rule in deployment.program.rules for triple in rule.inserts):
        if isinstance(triple.predicate, str) and triple.predicate != RDF_TYPE:
            found.add(triple.predicate)
        elif triple.predicate == RDF_TYPE and isinstance(triple.object, str):
            found.add(class_relation(triple.object))
    clauses = deployment.enrich.closed.clauses.all
    grown = True
    while grown:
        grown = False
        for clause in clauses:
            body = {item.relation for item in clause.items if isinstance(item, BodyPattern)}
            heads = {head.pattern.relation for head in clause.heads} - found
            if heads and not body.isdisjoint(found | ({ALL} if found else set())):
                found |= heads
                grown = True
    return frozenset(found)


Shown = dict[str, Any]


SHARERS = 12
"""Names of those that share something which are listed one by one."""


def overview(deployment: Deployment, *, code: bool = False) -> Shown:
    """Everything about a deployment that `dotr plan` shows, JSON-able."""
    program = deployment.program
    writer = Writer(program.prefixes)
    return {
        "rules": _rules(deployment, writer),
        "queries": _queries(deployment, writer, code),
        "lasting": lasting(deployment, writer),
        "holding": holding(deployment),
        "functions": [
            {"name": writer.term(one.term), "version": one.version, "from": one.origin}
            for one in program.functions
        ],
        "datalog": _datalog(deployment),
        "background": _background(deployment, writer.term),
        "spark": describe(program, deployment.partitioning()),
    }


# -- rules ------------------------------------------------------------------------------------------


def _rules(deployment: Deployment, writer: Writer) -> list[Shown]:
    program, plans = deployment.program, deployment.rule_plans()
    users: dict[ColumnSpec, dict[str, None]] = {}
    for plan in plans:
        for step in plan.steps:
            users.setdefault(step.column, {})[plan.rule.name] = None
    sequences = {rule.name for rule in program.rules if rule.kind == "sequence"}
    order = {index: place for place, index in enumerate(evaluation_order(program))}
    return [
        {
            "name": rule.name,
            "private": rule.private,
            "kind": rule.kind,
            "trigger": _trigger(rule, sequences),
            "conjuncts": _conjuncts(rule, plan, writer, users, sequences),
            "where": None if rule.where is None else writer.expression(rule.where),
            "consuming": list(rule.consuming),
            "search": plan.ways(),
            "states": _triples(rule.inserts, writer),
            "deletes": _triples(rule.deletes, writer),
            "horizon": duration_text(reach.kept),
            "influence": None if reach.influence is None else duration_text(reach.influence),
            "influence_reason": reach.why,
            "reads_rules": sorted({p.stream for p in rule.positions if p.chained}),
            "order": order[number],
        }
        for number, (rule, plan, reach) in enumerate(
            zip(program.rules, plans, deployment.reaches, strict=True)
        )
    ]


def _trigger(rule: program.Rule, sequences: Container[str]) -> Shown:
    if isinstance(rule.trigger, program.Tick):
        return {"name": rule.trigger.name, "every": rhythm_text(rule.trigger.rhythm)}
    if isinstance(rule.trigger, RowPattern):
        return _sequence(rule, rule.trigger, sequences)
    event = rule.triggering
    assert isinstance(event, program.Position), "it is no tick"
    late: Shown = {}
    if isinstance(rule.trigger, program.After):
        late = {"after": duration_text(rule.trigger.duration), "due": rule.trigger.name}
    return {
        "name": event.name,
        **_source(event, sequences),
        "attributes": list(event.variables),
        **late,
    }


def _sequence(rule: program.Rule, pattern: RowPattern, sequences: Container[str]) -> Shown:
    """A sequence: its rows, its limits, its automaton, what it keeps."""
    from dotr.detect.sequences.automaton import END, automaton  # noqa: PLC0415  # start-up: few have one
    from dotr.detect.sequences.code import PatternShape  # noqa: PLC0415

    shape = PatternShape(pattern, rule.bindings)
    states = automaton(pattern.pattern, shape.names, skipping=pattern.skipping)

    def numbers(found: Sequence[int]) -> list[int | str]:
        return ["end" if state == END else state + 1 for state in found]

    return {
        "name": rule.name,
        "pattern": pattern_text(pattern.pattern),
        "sources": [_source(source, sequences) for source in pattern.sources],
        "per": list(pattern.per),
        "within": duration_text(pattern.within),
        "gap": None if pattern.gap is None else duration_text(pattern.gap),
        "begins": numbers(states.start),
        "automaton": [
            {"element": shape.names[element], "then": numbers(then)}
            for element, then in zip(states.elements, states.follow, strict=True)
        ],
        "keeps": shape.keeps(),
    }


def _source(position: program.Position, sequences: Container[str]) -> Shown:
    """The stream of a position, and what gives its facts."""
    return {
        "stream": position.stream,
        "chained": position.chained,
        "sequence": position.stream in sequences,
        "held": position.held,
    }


def _conjuncts(
    rule: program.Rule,
    plan: RulePlan,
    writer: Writer,
    users: Mapping[ColumnSpec, Collection[str]],
    sequences: Container[str],
) -> list[Shown]:
    steps = {step.conjunct.position.name: step for step in plan.steps}
    shown = []
    for conjunct in rule.conjuncts:
        position = conjunct.position
        keys, rest = _keys(conjunct, writer)
        step = steps[position.name]
        shown.append(
            {
                "name": position.name,
                "choice": choice(conjunct, writer),
                **_source(position, sequences),
                "parent": parent(conjunct.window),
                "interval": interval(conjunct.window),
                "keys": keys,
                "condition": rest,
                "keeps": kept(step),
                **_shared(rule.name, users[step.column]),
                "consumed": position.name in rule.consuming,
            }
        )
    return shown


def _shared(name: str, users: Collection[str]) -> Shown:
    """The other users of something, the first few by name, and how many there are."""
    others = [user for user in islice(users, SHARERS + 1) if user != name]
    return {"shared_with": others[:SHARERS], "sharers": len(users) - 1}


def choice(conjunct: program.Conjunct, writer: Writer) -> str:
    """`LAST 3`, `NOT`, `AVG(Reading.?val) AS ?mean`, `AVG(Reading.?val) AS ?mean OVER LAST 3`."""
    if isinstance(conjunct, program.Choose):
        return f"{conjunct.word}{conjunct.suffix}"
    if not isinstance(conjunct, program.Summarise):
        return conjunct.word
    inner = "*" if conjunct.argument is None else writer.expression(conjunct.argument)
    inner = f"DISTINCT {inner}" if conjunct.distinct else inner
    over = "" if conjunct.selection is None else f" {conjunct.over}"
    return f"{written(conjunct.function, inner)} AS ?{conjunct.variable}{over}"


def parent(window: program.Window) -> str:
    """The position that a conjunct hangs from in the tree of windows."""
    return window.reference if isinstance(window, program.Within) else window.start


def interval(window: program.Window) -> str:
    """The window with its ends: `[Smoke - 5 min, Smoke]`, `[Smoke - 1 h, Smoke)`, `(A, B)`."""
    match window:
        case program.Within(duration, reference, before):
            start = f"{reference} - {duration_text(duration)}" if duration else reference
            return f"[{start}, {reference}{')' if before else ']'}"
        case program.Between(start, end):
            return f"({start}, {end})"
        case _:
            assert_never(window)


def _keys(conjunct: program.Conjunct, writer: Writer) -> tuple[list[str], str | None]:
    """Equations that index the conjunct's facts, and what else ON says."""
    keys: list[str] = []
    rest: list[program.Expression] = []
    for part in parts(conjunct.on):
        pair = equality(part, conjunct.position.name)
        if pair is None:
            rest.append(part)
        else:
            keys.append(" = ".join(map(writer.expression, pair)))
    return keys, " && ".join(writer.expression(part, 3) for part in rest) or None


# -- queries, Datalog, background -------------------------------------------------------------------


def _queries(deployment: Deployment, writer: Writer, code: bool) -> list[Shown]:
    program = deployment.program
    users: dict[str, dict[str, None]] = {}
    for rule in program.rules:
        for position in rule.positions:
            standing = program.standing.get(position.stream)
            if standing is not None:
                users.setdefault(standing.query, {})[f"{rule.name} ({standing.operator})"] = None
            elif not position.within_instant:
                users.setdefault(position.stream, {})[rule.name] = None
    for stream in program.lars.reads:
        standing = program.standing.get(stream)
        users.setdefault(stream if standing is None else standing.query, {})["LARS"] = None
    lasts = lasting_relations(deployment)
    plain = {p.stream for rule in program.rules for p in rule.positions}
    explanations = deployment.instants.extract.explain(writer.term, code)
    shown = []
    for name, select in program.queries.items():
        explanation = explanations[name]
        entry: Shown = {
            "name": name,
            "attributes": list(select.variables),
            "rules": list(users.get(name, ())),
            "engine": explanation.engine,
            "reason": explanation.reason,
            **_shared(name, explanation.streams),
            "plans": [line for plan in explanation.plans for line in plan.split("\n")],
        }
        if name in plain and reads_what_lasts(select, lasts):
            entry["lasting"] = EVERY_GRAPH
        if code:
            entry["code"] = list(explanation.sources)
        shown.append(entry)
    return shown


def _datalog(deployment: Deployment) -> Shown:
    """Rules as they run, written out over the schema, and those of the program that do not."""
    program, closed = deployment.program, deployment.enrich.closed
    running = {id(rule.span) if rule.span is not None else rule for rule in closed.reach.rules}
    waiting = {id(rule.span) if rule.span is not None else rule for rule in closed.instantiated.dormant}
    dormant: list[DatalogRule] = []
    pruned: list[DatalogRule] = []
    for rule in program.datalog:
        known = id(rule.span) if rule.span is not None else rule
        if known not in running:
            (dormant if known in waiting else pruned).append(rule)
    return {
        "entailment": str(program.entailment),
        "rules": len(program.datalog),
        "reachable": [datalog_rule_text(rule, program.prefixes) for rule in closed.reach.rules],
        "dormant": [datalog_rule_text(rule, program.prefixes) for rule in dormant],
        "pruned": [datalog_rule_text(rule, program.prefixes) for rule in pruned],
    }


def _background(deployment: Deployment, shorten: Callable[[Term], str]) -> Shown:
    """Predicates (classes, for rdf:type) of the background by whether anything reads them."""
    kept: Counter[str] = Counter()
    pruned: Counter[str] = Counter()
    keeps = deployment.enrich.closed.reach.keeps
    for triple in deployment.background:
        _, predicate, object_ = triple
        name = f"a {shorten(object_)}" if predicate == RDF_TYPE else shorten(predicate)
        (kept if keeps(triple) else pruned)[name] += 1
    return {
        "triples": len(deployment.background),
        "reachable": dict(sorted(kept.items())),
        "pruned": dict(sorted(pruned.items())),
    }


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
            kind, count = kind_of(literal), literal.count
        elif isinstance(literal, WindowAggregate):
            kind, count = WINDOWS[Modality.AT], 0
        else:
            continue
        name, window = literal.atom.name, literal.window
        shown = kind.text(None, count)
        if isinstance(window, FactWindow):
            counted = ", ".join(window.streams)
            text = f"{name}{shown} WITHIN {window.count} FACTS OF ({counted})"
            kept = f"the last {window.count} atoms of {counted}"
            if window.per:
                key = ", ".join(node_text(literal.atom.arguments[n]) for n in window.per)
                text = f"{name}{shown} WITHIN {window.count} FACTS PER ({key})"
                kept += f", of each {key}"
            found[text] = kept if name in window.streams else f"{kept}, and of {name} what came since"
        else:
            length = window.duration if isinstance(window, TimeWindow) else 0
            text = f"{name}{shown} WITHIN {duration_text(length)}" if length else name
            kept = kind.keeps(duration_text(length), name in scattered)
            found[text] = kept if length else "each atom while it holds"
        if isinstance(literal, WindowAggregate):
            found[f"{literal.function} OVER {text}"] = "a total for each group that has an atom there"
    return [{"window": window, "keeps": keeps} for window, keeps in found.items()]


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
        if isinstance(rule.trigger, Position) and rule.trigger.held and rule.trigger.stream == name
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
