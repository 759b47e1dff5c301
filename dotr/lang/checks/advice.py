"""Valid but surely unintended: empty windows, false comparisons, twin queries, unrelated events.

Place:   called by `check_program` with the program that names.py built; warnings and infos only, no data.
Method:  windows by reachability over "not later than"; comparisons by the sorts of terms that a query's shape
         allows; twins by comparing query trees after renaming variables in order of appearance.
         Unrelated events: a conjunct is related if a part of its ON reads both its own event and something
         known before it. Without one, and with a variable of the same name on both sides, every pair matches,
         which is rarely meant. `ON true` states that it is.
         Absent in WITH: an OPTIONAL that finds nothing leaves its attributes unbound; a WITH without a value
         then drops the match, D1332. Not where WHERE reads the event, too: who does that has thought of its
         absence. The same for an attribute that only an OPTIONAL of its query binds.
         Polls: a clock with EACH over a window, and a NOT about what EACH chose, asks again and again what
         AFTER asks once and on time. A NOT about the events that AFTER waits after, in a window that
         reaches back to them, always finds the one that triggered, D1336.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from dotr import program
from dotr.detect.analysis import equality, names, parts
from dotr.errors import Diagnostics
from dotr.extract.printing import query_text
from dotr.extract.rewriting import names_of_group
from dotr.lang.checks.comparisons import (
    Leaves,
    Sort,
    attribute_sorts,
    check_sorts,
    expressions_of,
    rule_expressions,
    sort,
)
from dotr.lang.grammar.cursor import tokenize
from dotr.lang.operators import WRITTEN, check_every
from dotr.program import (
    Absent,
    After,
    Attribute,
    BindAtom,
    Choose,
    Every,
    FilterAtom,
    GroupPattern,
    Minus,
    OptionalGroup,
    Position,
    Selection,
    Summarise,
    Tick,
    TimeOf,
    Within,
)
from dotr.program.sequences import RowPattern
from dotr.rdf.terms import TRUE
from dotr.source import Source, Span

DAY: Final = 86_400_000_000
LONG: Final = 366 * DAY


def advise(program: program.Program, found: Diagnostics, infos: bool = True) -> None:
    """Record warnings, and infos if wanted, about a program that is otherwise right."""
    read = {position.stream for rule in program.rules for position in rule.positions if position.chained}
    for rule in program.rules:
        _windows(rule, found)
        _absent_in_with(rule, found)
        _unbound_in_with(rule, program, found)
        of_rows = isinstance(rule.trigger, RowPattern)
        if not (rule.template or of_rows or rule.name in read or rule.has_effects):
            found.warning(
                "D1311",
                f"every event of `{rule.name}` is an empty graph, and no rule reads them",
                _head(rule.span),
                hint="write what the event is about: `DEFINE { dotr_x a :Fire }`",
            )
    _comparisons(program, found)
    if infos:
        _twins(program, found)
        _polls(program, found)
        _silences(program, found)
        _groups(program, found)


def _head(span: Span | None) -> Span | None:
    """The first word of a query or rule: its whole span may be many lines."""
    if span is None:
        return None
    end = span.start
    while end < span.end and span.source.text[end].isalpha():
        end += 1
    return Span(span.source, span.start, end)


# -- windows ---------------------------------------------------------------------------------------


def _windows(rule: program.Rule, found: Diagnostics) -> None:
    check_every(rule, found)
    later = _not_later(rule)
    for conjunct in rule.conjuncts:
        window = conjunct.window
        if isinstance(window, program.Within):
            if window.before and window.duration == 0:
                found.warning(
                    "D1404",
                    f"no event is before `{window.reference}` and within 0 s of it",
                    window.span,
                    hint="write a longer window, or `WITHIN 0 s FROM` for the same instant",
                )
            elif window.duration > LONG:
                found.warning(
                    "D1405",
                    f"a window of {window.duration // DAY} days",
                    window.span,
                    hint="this rule remembers every event for that long: is the unit right?",
                )
        elif _reaches(window.end, window.start, later):
            found.warning(
                "D1407",
                f"no event is between `{window.start}` and `{window.end}`",
                window.span,
                hint=f"write `BETWEEN {window.end} AND {window.start}`" if window.start != window.end else "",
                notes=(f"the windows imply that `{window.end}` is never later than `{window.start}`",),
            )


def _not_later(rule: program.Rule) -> dict[str, set[str]]:
    """Position → those it is never later than, by one window each."""
    edges: dict[str, set[str]] = {rule.trigger.name: set()}
    if rule.delay:
        edges[rule.triggering.name] = {rule.trigger.name}
    for conjunct in rule.conjuncts:
        window = conjunct.window
        if isinstance(conjunct, program.Choose) and isinstance(window, program.Within):
            edges.setdefault(conjunct.position.name, set()).add(window.reference)
            if window.duration == 0 and not window.before:
                edges.setdefault(window.reference, set()).add(conjunct.position.name)
    return edges


def _reaches(start: str, goal: str, edges: Mapping[str, set[str]]) -> bool:
    seen, queue = {start}, [start]
    while queue:
        at = queue.pop()
        if at == goal:
            return True
        for following in edges.get(at, ()):
            if following not in seen:
                seen.add(following)
                queue.append(following)
    return False


# -- comparisons -----------------------------------------------------------------------------------


def _comparisons(program: program.Program, found: Diagnostics) -> None:
    """Every comparison or difference of a resource and a number, and its like."""
    streams: dict[str, dict[str, Sort]] = {}
    for name, select in program.selects.items():
        streams[name] = attribute_sorts(select)
    for select in program.written.values():
        for expression, sorts in expressions_of(select):
            check_sorts(expression, sorts.get, found)
    for rule in program.rules:
        sort_of = _sorts_in(rule, streams)
        for expression in rule_expressions(rule):
            check_sorts(expression, sort_of, found, rule=True)
        bound = {b.variable: sort(b.expression, sort_of, rule=True) for b in rule.bindings}
        streams[rule.name] = {name: known for name, known in bound.items() if known is not None}
    bodies = [*(rule.body for rule in program.datalog), *(rule.body for rule in program.lars.rules)]
    for atom in (atom for body in bodies for atom in body):
        if isinstance(atom, FilterAtom):
            check_sorts(atom.condition, _unknown, found)
        elif isinstance(atom, BindAtom):
            check_sorts(atom.expression, _unknown, found)


def _sorts_in(rule: program.Rule, streams: Mapping[str, Mapping[str, Sort]]) -> Leaves:
    """What sorts the attributes and aggregates of a rule have."""
    positions: dict[str, program.Position] = {position.name: position for position in rule.positions}
    totals = {c.variable: c for c in rule.conjuncts if isinstance(c, program.Summarise)}

    def sort_of(leaf: str) -> Sort | None:
        position, _, variable = leaf.partition(".?")
        place, total = positions.get(position), totals.get(leaf)
        if isinstance(rule.trigger, RowPattern):
            place = rule.trigger.only_source(position)
        if variable and place is not None:
            return streams.get(place.stream, {}).get(variable)
        if total is None or total.argument is None or total.function not in ("MIN", "MAX", "FIRST", "LAST"):
            return None if total is None else sort(program.Aggregate(total.function, None), _unknown)
        return sort(total.argument, sort_of, rule=True)

    return sort_of


def _unknown(_: str) -> Sort | None:
    return None


# -- absent in WITH --------------------------------------------------------------------------------


def _absent_in_with(rule: program.Rule, found: Diagnostics) -> None:
    """Warn about WITH that drops a match because an OPTIONAL found nothing, D1332."""
    for conjunct in rule.conjuncts:
        if not (isinstance(conjunct, Choose) and conjunct.optional):
            continue
        name = conjunct.position.name
        if rule.where is not None and name in names(rule.where):
            continue
        for binding in rule.bindings:
            if not _needs(binding.expression, name):
                continue
            leaf = next(leaf for leaf in _leaves(binding.expression) if leaf.position == name)
            read = f"{name}.?{leaf.variable}" if isinstance(leaf, Attribute) else f"{name}.time"
            found.warning(
                "D1332",
                f"without `{name}` there is no `?{binding.variable}`, and no event, although it is OPTIONAL",
                leaf.span or binding.span,
                hint=f"write `COALESCE({read}, …)` with a value for that case, or leave OPTIONAL out",
            )
            break


def _unbound_in_with(rule: program.Rule, whole: program.Program, found: Diagnostics) -> None:
    """Warn about WITH that drops a match because an OPTIONAL of a query found nothing, D1332."""
    conditions = [c.on for c in rule.conjuncts if not isinstance(c, Absent)] + [rule.where]
    thought_of = {leaf for condition in conditions if condition is not None for leaf in _read(condition)}
    for position in rule.positions:
        select = _select(position, whole)
        lacking = frozenset() if select is None else optional_names(select)
        for variable in position.variables:
            attribute = position.name, variable
            if variable not in lacking or attribute in thought_of:
                continue
            binding = next((b for b in rule.bindings if _needs(b.expression, *attribute)), None)
            if binding is None:
                continue
            read = f"{position.name}.?{variable}"
            leaf = next(leaf for leaf in _leaves(binding.expression) if _key(leaf) == attribute)
            found.warning(
                "D1332",
                f"where `{read}` is unbound there is no `?{binding.variable}`, and no event, "
                "although the query has it in OPTIONAL",
                leaf.span or binding.span,
                hint=f"write `COALESCE({read}, …)` with a value for that case, or leave OPTIONAL out",
            )


def _select(position: Position, whole: program.Program) -> program.Select | None:
    """The query of a position; None for events of rules and for heads."""
    standing = whole.standing.get(position.stream)
    return whole.queries.get(position.stream) if standing is None else standing.select


def _read(expression: program.Expression) -> Iterator[tuple[str, str]]:
    """The attributes that an expression reads."""
    return (key for leaf in _leaves(expression) if (key := _key(leaf)) is not None)


def _key(leaf: Attribute | TimeOf) -> tuple[str, str] | None:
    return (leaf.position, leaf.variable) if isinstance(leaf, Attribute) else None


def optional_names(select: program.Select) -> frozenset[str]:
    """The variables of a query that nothing but an OPTIONAL of its pattern binds."""
    plain = {p.variable.name for p in select.projection if p.expression is None}
    inside: set[str] = set()
    outside: set[str] = set()
    for element in select.where.elements:
        if isinstance(element, OptionalGroup):
            inside |= names_of_group(element.group)
        elif not isinstance(element, Minus):  # a filter that reads a variable has thought of it
            outside |= names_of_group(GroupPattern((element,)))
    values = () if select.values is None else select.values.variables
    return frozenset((inside & plain) - outside - {variable.name for variable in values})


def _needs(expression: program.Expression, name: str, variable: str = "") -> bool:
    """Whether an expression has surely no value where nothing of a position is bound, or one variable."""
    match expression:
        case Attribute() | TimeOf() if variable:
            return _key(expression) == (name, variable)
        case Attribute(position=position) | TimeOf(position=position):
            return position == name
        case program.Call("BOUND", _):
            return False
        case program.Call("COALESCE" | "||" | "&&", arguments):
            return bool(arguments) and all(_needs(one, name, variable) for one in arguments)
        case program.Call("IF", (condition, then, otherwise)):
            return _needs(condition, name, variable) or (
                _needs(then, name, variable) and _needs(otherwise, name, variable)
            )
        case program.Call("IN" | "NOT-IN", (tested, *_)):
            return _needs(tested, name, variable)
        case program.Call(_, arguments):
            return any(_needs(one, name, variable) for one in arguments)
        case _:
            return False


# -- polls -----------------------------------------------------------------------------------------


def _polls(program: program.Program, found: Diagnostics) -> None:
    """Suggest AFTER where a clock looks for each event whether something came behind it, D1331."""
    for rule in program.rules:
        if not isinstance(rule.trigger, Every):
            continue
        for conjunct in rule.conjuncts:
            absent = _polled(rule, conjunct)
            if absent is None:
                continue
            name, other, tick = conjunct.position.name, absent.position.name, rule.trigger.name
            again = absent.position.stream == conjunct.position.stream
            window = f"BETWEEN {name} AND Due" if again else "WITHIN … FROM Due"
            found.info(
                "D1331",
                f"at every `{tick}` each `{name}` is examined, and whether `{other}` is missing",
                conjunct.position.span,
                hint=f"`FROM {name} AFTER … AS Due AND NOT {other} {window}` does that once for each "
                f"`{name}`, at the very time",
            )
            break


def _polled(rule: program.Rule, conjunct: program.Conjunct) -> Absent | None:
    """The NOT about a fact that EACH takes from a window of the clock; None where there is none."""
    if not (isinstance(conjunct, Choose) and conjunct.selection is Selection.EACH) or conjunct.per:
        return None
    window, name = conjunct.window, conjunct.position.name
    if window.reference != rule.trigger.name or window.duration == 0 or conjunct.position.of_head:
        return None
    absences = [o for o in rule.conjuncts if isinstance(o, Absent) and o.position.stream != rule.name]
    return next((o for o in absences if o.on is not None and name in names(o.on)), None)


def _silences(program: program.Program, found: Diagnostics) -> None:
    """Warn of a NOT after AFTER that is stopped by the very fact that the rule waits after, D1336."""
    for rule in program.rules:
        if not isinstance(rule.trigger, After):
            continue
        name, due = rule.trigger.position.name, rule.trigger.name
        for conjunct in rule.conjuncts:
            if isinstance(conjunct, Absent) and _has_own_trigger(rule.trigger, conjunct):
                found.warning(
                    "D1336",
                    f"`{conjunct.position.name}` is never absent: `{name}` itself is in its window",
                    conjunct.position.span,
                    hint=f"what came after `{name}` is in the window `BETWEEN {name} AND {due}`",
                )


def _has_own_trigger(trigger: After, absent: Absent) -> bool:
    """Whether the fact that a rule waits after is in the window of a NOT, and its ON is true of it."""
    window, own, other = absent.window, absent.position, trigger.position
    if not isinstance(window, Within) or window.reference != trigger.name or own.stream != other.stream:
        return False
    return window.duration >= trigger.duration and all(
        isinstance(part, program.Call)
        and part.function in ("=", "<=", ">=")
        and all(isinstance(side, Attribute | TimeOf) for side in part.arguments)
        and names(part) == {own.name, other.name}
        and len({replace(side, position=own.name) for side in part.arguments}) == 1
        for part in parts(absent.on)
    )


# -- groups ----------------------------------------------------------------------------------------


def _groups(program: program.Program, found: Diagnostics) -> None:
    """Suggest PER where at a tick every event counts the events of its own key, D1335: it makes as many equal
    events as it counts.
    """
    for rule in program.rules:
        if not isinstance(rule.trigger, Tick):
            continue
        for conjunct in rule.conjuncts:
            if isinstance(conjunct, Choose) and (keys := _repeated(program, rule, conjunct)):
                name = conjunct.position.name
                per = ", ".join(f"?{key}" for key in keys)
                found.info(
                    "D1335",
                    f"each `{name}` makes an event, and all with the same {per} make equal ones",
                    conjunct.position.span,
                    hint=f"`AND EACH {name} := … PER ({per})` makes one for each {per}",
                )


def _repeated(whole: program.Program, rule: program.Rule, choice: Choose) -> list[str]:
    """The attributes by which an aggregate over the same facts depends on what EACH takes at a tick, if
    nothing else of it is read; empty where that is not so.
    """
    own = choice.position.name
    if choice.selection is not Selection.EACH or choice.per or choice.window.reference != rule.trigger.name:
        return []
    if choice.position.of_head or own in rule.consuming or choice.window.duration == 0:
        return []
    if any(own in _references(other.window) for other in rule.conjuncts):
        return []
    read = {leaf for one in rule_expressions(rule) for leaf in _leaves(one) if leaf.position == own}
    keys = {leaf.variable for leaf in read if isinstance(leaf, Attribute)}
    if not keys or len(keys) < len(read):
        return []
    for total in rule.conjuncts:
        if isinstance(total, Summarise) and _same_facts(whole, choice, total):
            equated = set(_equated(total, own))
            if keys <= equated:
                return sorted(keys, key=choice.position.variables.index)
    return []


def _equated(total: Summarise, chosen: str) -> Iterator[str]:
    """The attributes of `chosen` by which an aggregate finds its candidates."""
    for part in parts(total.on):
        sides = equality(part, total.position.name)
        if sides is not None and isinstance(sides[1], Attribute) and sides[1].position == chosen:
            yield sides[1].variable


def _leaves(expression: program.Expression) -> Iterator[Attribute | TimeOf]:
    if isinstance(expression, Attribute | TimeOf):
        yield expression
    elif isinstance(expression, program.Call):
        for argument in expression.arguments:
            yield from _leaves(argument)


def _same_facts(whole: program.Program, one: program.Conjunct, other: program.Conjunct) -> bool:
    """Whether both are over one stream, or over queries with equal patterns."""
    a, b = one.position.stream, other.position.stream
    if a == b:
        return True
    selects = whole.queries.get(a), whole.queries.get(b)
    if selects[0] is None or selects[1] is None:
        return False
    first, second = (replace(select, projection=(), distinct=False) for select in selects if select)
    return _shape(first) == _shape(second)


# -- twins -----------------------------------------------------------------------------------------


def _twins(program: program.Program, found: Diagnostics) -> None:
    """Queries that are equal, and queries that differ in constants of filters only; once a group."""
    equal: dict[str, list[str]] = {}
    alike: dict[str, list[str]] = {}
    for name, select in program.queries.items():
        text = _shape(select)
        if text not in equal:
            alike.setdefault(_shape(_masked(select)), []).append(name)
        equal.setdefault(text, []).append(name)
    for same in equal.values():
        if len(same) > 1:
            found.info(
                "D1221",
                f"the queries {_listed(same)} are the same",
                _head(program.queries[same[1]].span),
                hint="write it once: `QUERY Name := …`, and use Name in all places",
                notes=("they are evaluated once; as one QUERY all places would range over the same facts",),
            )
    for like in alike.values():
        if len(like) > 1:
            found.info(
                "D1222",
                f"the queries {_listed(like)} differ in the constants of their filters only",
                _head(program.queries[like[1]].span),
                notes=("they can share one evaluation and an index over the constants",),
            )


def _listed(names: list[str]) -> str:
    shown = [f"`{name}`" for name in names[:3]]
    more = len(names) - len(shown)
    return f"{', '.join(shown)} and {more} more" if more else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _shape(select: program.Select) -> str:
    """The text of a query with its variables numbered as they appear."""
    names: dict[str, str] = {}
    parts: list[str] = []
    for token in tokenize(Source("", query_text(select)), Diagnostics()):
        if token.kind == "var":
            parts.append(names.setdefault(token.text, f"?{len(names)}"))
        else:
            parts.append(token.text)
    return " ".join(parts)


def _masked(select: program.Select) -> program.Select:
    """The query with every comparison of its outermost filters set against one constant."""
    elements = tuple(
        program.Filter(_mask(element.condition)) if isinstance(element, program.Filter) else element
        for element in select.where.elements
    )
    return replace(select, where=program.GroupPattern(elements))


def _mask(expression: program.Expression) -> program.Expression:
    if isinstance(expression, program.Const):
        return program.Const('""')
    if isinstance(expression, program.Call):
        return replace(expression, arguments=tuple(map(_mask, expression.arguments)))
    return expression


def check_relations(program: program.Program, found: Diagnostics) -> None:
    """Warn about conjuncts that any event satisfies, D1321, and conditions without their event, D1322."""
    for rule in program.rules:
        known = {rule.trigger.name: frozenset[str]()}
        if isinstance(rule.triggering, Position):
            known[rule.triggering.name] = frozenset(rule.triggering.variables)
        for conjunct in rule.conjuncts:
            _check_unrelated(conjunct, known, found)
            if isinstance(conjunct, Choose):
                known[conjunct.position.name] = frozenset(_attributes(conjunct))


def _check_unrelated(
    conjunct: program.Conjunct, known: dict[str, frozenset[str]], found: Diagnostics
) -> None:
    own, condition = conjunct.position.name, conjunct.on
    looked_at = [names(part) for part in parts(condition)]
    if condition == program.Const(TRUE) or any(own in part and len(part) > 1 for part in looked_at):
        return
    if condition is not None and looked_at and not any(own in part for part in looked_at):
        if any(looked_at):
            _report_foreign(condition, own, found)
        return
    near = (*_references(conjunct.window), *known)
    for other in near:
        shared = [name for name in _attributes(conjunct) if name in known[other]]
        if shared:
            _report_unrelated(conjunct, other, shared[0], found)
            return


def _attributes(conjunct: program.Conjunct) -> tuple[str, ...]:
    """The attributes that can be read of it: of a group those of PER."""
    return (conjunct.per if isinstance(conjunct, Choose) else ()) or conjunct.position.variables


def _references(window: program.Window) -> tuple[str, ...]:
    return (window.reference,) if isinstance(window, program.Within) else (window.start, window.end)


def _report_foreign(condition: program.Expression, own: str, found: Diagnostics) -> None:
    found.warning(
        "D1322",
        f"this condition does not use `{own}`",
        condition.span,
        hint=f"use an attribute of `{own}`; a condition on other events belongs in WHERE",
        notes=("it is the same for every candidate",),
    )


def _report_unrelated(conjunct: program.Conjunct, other: str, shared: str, found: Diagnostics) -> None:
    own, condition = conjunct.position.name, conjunct.on
    equation = f"{own}.?{shared} = {other}.?{shared}"
    written = f"ON {equation}" if condition is None else f"&& {equation}"
    found.warning(
        "D1321",
        f"{WRITTEN[conjunct.operator].effect(conjunct)}, whatever its `?{shared}`",
        conjunct.position.span,
        hint=f"write `{written}`" + (", or `ON true` if that is meant" if condition is None else ""),
        notes=(f"`{own}` and `{other}` both have a `?{shared}`, and ON does not compare them",),
    )
