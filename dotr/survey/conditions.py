"""Conditions that a sample decides: never true, always true, and never of the right kind.

Place:   report.py passes the filters of queries, ON and WHERE of rules, each with a table of rows: answers of
         a query without its filters, or pairs of facts before ON. Messages name kinds of terms (`an IRI`,
         `xsd:decimal`).
Method:  a condition is taken apart at `&&`; in a part that is true in no row the comparisons and sums are
         checked first: one whose sides are never of kinds that go together is the reason.
         Pairs: rules are tested conjunct by conjunct, with a probe for each prefix of a rule, without WHERE,
         with the values of its aggregates: how many matches each leaves. The ON of a conjunct is tested on
         the matches of the prefix before it, paired with the facts that its window holds.
Limits:  CONSUMING is left out, so that a probe may have more matches than its rule.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Final, TypeAlias

from msgspec import Struct

from dotr import program
from dotr.errors import Diagnostics
from dotr.events import NEVER, Clock, Fact, Time
from dotr.expressions.evaluate import compile_expression
from dotr.expressions.operators import truth_of
from dotr.lang.checks.comparisons import NoValueError, comparable, result, term_sort
from dotr.program import Aggregate, Attribute, Call, Const, Exists, Expression, TimeOf, Var
from dotr.program.sequences import RowPattern
from dotr.rdf.terms import RDF, XSD, XSD_DATETIME, XSD_STRING, Term, is_iri, is_literal, literal_parts
from dotr.rdf.values import number, values_key
from dotr.reference.tesla import opening, window
from dotr.survey.queries import Observed, Probes

Row: TypeAlias = tuple[Time, tuple[Term | None, ...]]
"""(what NOW() is, values by column)."""

Column: TypeAlias = Var | Attribute | TimeOf


class SolutionTable(Struct, frozen=True):
    """Rows under column names. `total`: how many were seen, of which these are the first. `partial`: there
    are others that were not seen. `rule`: what is asked of them is ON, WHERE or WITH of a rule.
    """

    clock: Clock
    columns: Mapping[str, int]
    rows: Sequence[Row]
    total: int
    what: str = "rows"
    partial: bool = False
    rule: bool = False

    def counted(self, everything: str = "") -> str:
        """How many rows a claim is about, after `everything` where these are all: "all 941 rows", "the first
        5,000 of 2,160,000 rows".
        """
        if len(self.rows) < self.total:
            return f"the first {len(self.rows):,} of {self.total:,} {self.what}"
        if self.partial:
            return f"the first {self.total:,} {self.what}"
        return f"{everything}{self.total:,} {self.what}"

    def values(self, expression: Expression) -> list[Term | None]:
        """The value of an expression in each row; None where it is an error or unbound."""
        compute = compile_expression(
            expression, self._leaf, clock=self.clock, now=self._now, seconds=self.rule
        )
        return [compute(row) for row in self.rows]

    def knows(self, expression: Expression) -> bool:
        """Whether everything that an expression reads has a column."""
        return all(column_of(leaf) in self.columns for leaf in leaves(expression))

    def _leaf(self, leaf: Column) -> Callable[[Row], Term | None]:
        place = self.columns[column_of(leaf)]
        return lambda row: row[1][place]

    def _now(self, row: Row) -> Term:
        return self.clock.term(row[0])


class Truth(Struct, frozen=True):
    """How often a condition was true, false, and an error."""

    true: int
    false: int
    error: int

    @property
    def total(self) -> int:
        return self.true + self.false + self.error


def truth(table: SolutionTable, condition: Expression) -> Truth:
    """How a condition came out, row by row."""
    found = [truth_of(term) for term in table.values(condition)]
    true, false = sum(t is True for t in found), sum(t is False for t in found)
    return Truth(true, false, len(found) - true - false)


def column_of(leaf: Column) -> str:
    """The name of the column that a leaf reads: `?v`, `Event.?v`, `Event.time`."""
    match leaf:
        case Var(name):
            return f"?{name}"
        case Attribute(position, variable):
            return f"{position}.?{variable}"
        case TimeOf(position):
            return f"{position}.time"


def leaves(expression: Expression) -> Iterator[Column]:
    """What an expression reads, left to right. (Of EXISTS nothing: it has its own pattern.)"""
    match expression:
        case Var() | Attribute() | TimeOf():
            yield expression
        case Call(arguments=arguments):
            for argument in arguments:
                yield from leaves(argument)
        case Aggregate(argument=argument) if argument is not None:
            yield from leaves(argument)
        case _:
            return


def asks_a_graph(expression: Expression) -> bool:
    """Whether there is an EXISTS in it, or an aggregate: no row has its value."""
    if isinstance(expression, Call):
        return any(map(asks_a_graph, expression.arguments))
    return isinstance(expression, Exists | Aggregate)


def text_of(expression: Expression) -> str:
    """An expression as it was written, in one line."""
    span = expression.span
    return "a condition" if span is None else " ".join(span.source.text[span.start : span.end].split())


UNBOUND: Final = "without a value"
TEXT: Final = "a string"
_SHORT: Final[Mapping[str, str]] = {XSD_STRING: TEXT, RDF + "langString": "a string with a language"}

Kinds = Counter[str]


def kind_of(term: Term | None) -> str:
    """The kind of a term."""
    if term is None:
        return UNBOUND
    if not is_literal(term):
        return "an IRI" if is_iri(term) else "a blank node"
    datatype = literal_parts(term)[1]
    return _SHORT.get(datatype) or (
        f"xsd:{datatype[len(XSD) :]}" if datatype.startswith(XSD) else f"<{datatype}>"
    )


def kinds_of(terms: Iterable[Term | None]) -> Kinds:
    return Counter(map(kind_of, terms))


def is_number(term: Term | None) -> bool:
    return term is not None and number(term) is not None


def family(term: Term | None) -> str:
    """What may be compared with each other: numbers of any type are one family."""
    return "a number" if is_number(term) else kind_of(term)


def is_time(term: Term | None) -> bool:
    return term is not None and is_literal(term) and literal_parts(term)[1] == XSD_DATETIME


def listed(kinds: Kinds, of: str) -> str:
    """`xsd:decimal in 940 of 940 rows`, the commonest first, at most three."""
    total = sum(kinds.values())
    shown = [f"{kind} in {count:,}" for kind, count in sorted(kinds.items(), key=lambda k: (-k[1], k[0]))[:3]]
    more = f" and {len(kinds) - 3} other kinds" if len(kinds) > 3 else ""
    return f"{', '.join(shown)}{more} of {total:,} {of}"


ENOUGH: Final = 100
"""Rows from which on "true for all" is significant."""

TYPE_ERROR: Final = "a type error"
_COMPARISONS: Final = frozenset(("=", "!=", "<", ">", "<=", ">="))
_SUMS: Final = frozenset(("+", "-", "*", "/"))


def judge(
    table: SolutionTable,
    conditions: Iterable[Expression],
    where: str,
    found: Diagnostics,
    *,
    chosen: bool = True,
) -> None:
    """Report what a sample decides of conditions that all have to hold; `where`: what they belong to. Not
    `chosen`: they are those of a NOT or an aggregate, where nothing is as good as something.
    """
    if not table.rows:
        return
    for condition in conditions:
        if not table.knows(condition) or not _varies(condition):
            continue
        outcome = truth(table, condition)
        if not outcome.true:
            if not report_kinds(table, condition, where, found) and (chosen or not outcome.false):
                _never(table, condition, outcome, where, found)
        elif chosen and outcome.true == outcome.total >= ENOUGH:
            _always(table, condition, where, found)


def report_kinds(table: SolutionTable, expression: Expression, where: str, found: Diagnostics) -> bool:
    """Whether a comparison or sum inside is of kinds that never go together; then it is reported."""
    return any(_report_kinds(table, call, where, found) for call in _calls(expression))


def _varies(condition: Expression) -> bool:
    """Whether it looks at anything: what is constant is reported without data."""
    return any(True for _ in operands(condition))


def operands(expression: Expression) -> Iterator[Var | Attribute | TimeOf]:
    """The variables of an expression."""
    if isinstance(expression, Call):
        for argument in expression.arguments:
            yield from operands(argument)
    elif isinstance(expression, Var | Attribute | TimeOf):
        yield expression


def _without_rows(table: SolutionTable, condition: Expression, where: str) -> str | None:
    """Another element of a sequence than that of a condition which never has a row there."""
    for leaf in operands(condition):
        if not isinstance(leaf, Attribute | TimeOf) or not leaf.position.isidentifier():
            continue  # of PREV, say
        if not where.startswith(f"element `{leaf.position}`") and not any(table.values(leaf)):
            return leaf.position
    return None


def _never(
    table: SolutionTable, condition: Expression, outcome: Truth, where: str, found: Diagnostics
) -> None:
    error = outcome.error == outcome.total
    said = f"is an error in {table.counted('all ')}" if error else f"is true in none of {table.counted()}"
    report = found.warning if error or table.total >= ENOUGH else found.info
    notes, hint = tuple(_ranges(table, condition)), "compare with a value that the data have"
    if error:
        notes = tuple(
            f"`{text_of(leaf)}` is {listed(kinds_of(table.values(leaf)), table.what)}"
            for leaf in dict.fromkeys(operands(condition))
        )
        hint = "an error is not true: a function of strings takes strings, and STR(…) makes one"
        if where.startswith("element ") and (later := _without_rows(table, condition, where)) is not None:
            hint = f"`{later}` has no row yet: write this in the ON of the element that comes later"
    report(
        "D2512",
        f"`{text_of(condition)}` {said} of {where}",
        condition.span,
        notes=notes,
        hint=hint,
    )


def _always(table: SolutionTable, condition: Expression, where: str, found: Diagnostics) -> None:
    found.info(
        "D2513",
        f"`{text_of(condition)}` is true in {table.counted('all ')} of {where}",
        condition.span,
        notes=tuple(_ranges(table, condition)),
    )


def _calls(expression: Expression) -> Iterator[Call]:
    """Comparisons and sums, the innermost first."""
    if isinstance(expression, Call):
        for argument in expression.arguments:
            yield from _calls(argument)
        if expression.function in _COMPARISONS | _SUMS and len(expression.arguments) == 2:
            yield expression


def _report_kinds(table: SolutionTable, call: Call, where: str, found: Diagnostics) -> bool:
    """Whether the sides of a call are never of kinds that go together; then it is reported."""
    left, right = (table.values(argument) for argument in call.arguments)
    both = [(a, b) for a, b in zip(left, right, strict=True) if a is not None and b is not None]
    if not both or any(_agree(call.function, a, b, table.rule) for a, b in both):
        return False
    sides = zip(call.arguments, (left, right), strict=True)
    errors = truth(table, call).error
    notes = [f"it was {TYPE_ERROR} in {errors:,} of {table.counted()}"] if errors else []
    notes += [
        f"`{text_of(side)}` is {listed(kinds_of(values), table.what)}"
        for side, values in sides
        if not isinstance(side, Const)
    ]
    notes += [
        f"`{text_of(side)}` is {kind_of(side.term)}" for side in call.arguments if isinstance(side, Const)
    ]
    never = "is never true" if call.function in _COMPARISONS else "never has a value"
    found.warning(
        "D2511",
        f"`{text_of(call)}` {never} in {where}: its sides are of kinds that cannot be combined",
        call.span,
        notes=notes,
        hint=_mend(table, call, both),
    )
    return True


def _agree(function: str, a: Term, b: Term, rule: bool) -> bool:
    """Whether two terms can be compared, or added."""
    left, right = term_sort(a), term_sort(b)
    if function in _SUMS:
        try:
            return result(function, (left, right), rule=rule) is not None
        except NoValueError:
            return False
    if function == "!=":
        return True
    same = family(a) == family(b) or (
        left is not None and right is not None and comparable(left, right, rule=rule)
    )
    return same and (function == "=" or is_literal(a))


def _mend(table: SolutionTable, call: Call, both: list[tuple[Term, Term]]) -> str:
    """What would have been right, where the data say."""
    for side, other, place in (
        (call.arguments[0], call.arguments[1], 0),
        (call.arguments[1], call.arguments[0], 1),
    ):
        values = [pair[place] for pair in both]
        if isinstance(other, Const) and kind_of(other.term) == TEXT and all(map(is_number, values)):
            lexical = literal_parts(other.term)[0]
            if number(f'"{lexical}"^^<http://www.w3.org/2001/XMLSchema#decimal>') is not None:
                return f"write `{lexical}`, without quotation marks"
        if isinstance(other, Const) and is_number(other.term) and all(kind_of(v) == TEXT for v in values):
            return f"the data have strings: xsd:decimal({text_of(side)}) makes numbers of them"
    return _likely_partner(table, call)


def _likely_partner(table: SolutionTable, call: Call) -> str:
    """Another column that has the values of one side."""
    left, right = call.arguments
    if call.function != "=" or not (isinstance(left, Attribute) and isinstance(right, Attribute)):
        return ""
    for kept, wrong in ((left, right), (right, left)):
        values = set(table.values(kept)) - {None}
        for name, place in table.columns.items():
            other = name.startswith(f"{wrong.position}.?") and name != column_of(wrong)
            if other and values & {row[1][place] for row in table.rows}:
                return f"did you mean `{text_of(kept)} = {name}`? They have values in common"
    return ""


def _ranges(table: SolutionTable, condition: Expression) -> Iterator[str]:
    """Between which values the variables of a condition lie."""
    for leaf in dict.fromkeys(operands(condition)):
        values = [value for value in table.values(leaf) if value is not None]
        numbers = sorted((value for value in values if is_number(value)), key=lambda v: values_key((v,)))
        name = text_of(leaf)
        if not values:
            yield f"`{name}` never has a value"
        elif numbers and len(numbers) == len(values):
            low, high = (literal_parts(value)[0] for value in (numbers[0], numbers[-1]))
            yield f"`{name}` lies between {low} and {high}" if low != high else f"`{name}` is always {low}"
        else:
            distinct = sorted(set(values))
            shown = ", ".join(distinct[:3]) + (", …" if len(distinct) > 3 else "")
            yield (
                f"`{name}` is one of {len(distinct):,}: {shown}"
                if len(distinct) > 1
                else f"`{name}` is {shown}"
            )


def mixed(kinds: Kinds) -> bool:
    """Whether a column mixes what never compares: texts and numbers, IRIs and literals."""
    families = {_family(kind) for kind in kinds if kind != UNBOUND}
    return len(families) > 1


def _family(kind: str) -> str:
    numeric = ("integer", "decimal", "double", "float")
    return "a number" if kind.startswith("xsd:") and kind[4:] in numeric else kind


_NOTHING: Term = "<urn:dotr:nothing>"
"""Stands for an aggregate without a value: an unbound value would drop the match."""

_CANDIDATES = 40
"""Facts of a window that are paired with one match: the latest."""

_PAIRS = 20_000


class RuleProbe(Struct, frozen=True):
    """What was seen of a rule: matches up to each conjunct (the trigger's first), of a sequence none, and
    facts by stream.
    """

    rule: program.Rule
    prefixes: Sequence[Observed]
    facts: Mapping[str, Observed]

    def before_where(self, clock: Clock) -> SolutionTable:
        """The matches for which WHERE and WITH are evaluated."""
        return _table(self, len(self.rule.conjuncts), clock)

    def pairs(self, number: int, clock: Clock) -> SolutionTable:
        """The pairs for which the ON of a conjunct is evaluated."""
        conjunct = self.rule.conjuncts[number]
        before = _table(self, number, clock)
        own = conjunct.position
        columns = dict(before.columns)
        for name in (*(f"{own.name}.?{v}" for v in own.variables), f"{own.name}.time"):
            columns[name] = len(columns)
        rows = []
        for row, fact in _paired(self, number, before):
            rows.append((row[0], (*row[1], *fact[1], clock.term(fact[0]))))
            if len(rows) == _PAIRS:
                break
        return SolutionTable(clock, columns, rows, len(rows), "pairs", before.partial, rule=True)

    def nearest(self, number: int) -> Time | None:
        """How far the next fact of a conjunct is before its window's reference; None if there is none."""
        conjunct = self.rule.conjuncts[number]
        if not isinstance(conjunct.window, program.Within):
            return None
        reference = conjunct.window.reference
        later = self.rule.delay if reference == self.rule.trigger.name else 0
        place = _places(self.rule, number).get(reference, 0)  # the tick of an AFTER is there by its event
        stream = conjunct.position.stream
        candidates = sorted((facts[0] for facts, _ in self.facts[stream].matches), key=itemgetter(0))
        times = [fact[0] for fact in candidates]
        same = [n for name, n in _places(self.rule, number).items() if self._stream(name) == stream]
        gaps = []
        for facts, _ in self.prefixes[number].matches:
            own = [facts[n] for n in same]  # a fact is no neighbour of its own
            until = facts[place][0] + later
            index = bisect_right(times, until) - 1
            while index >= 0 and candidates[index] in own:
                index -= 1
            if index >= 0:
                gaps.append(until - times[index])
        return min(gaps, default=None)

    def _stream(self, name: str) -> str | None:
        """The stream of a position; None of a tick."""
        return next((p.stream for p in self.rule.positions if p.name == name), None)


def probe_rule(probes: Probes, rule: program.Rule, facts: dict[str, Observed]) -> RuleProbe:
    """Evaluate a rule up to each of its conjuncts; `facts`: streams that are examined already."""
    for position in rule.positions:
        if position.stream not in facts:
            facts[position.stream] = probes.rule(
                program.Position("_f", position.stream, position.variables, position.chained)
            )
    if isinstance(rule.trigger, RowPattern):
        return RuleProbe(rule, (), facts)
    seen = [
        probes.rule(rule.trigger, rule.conjuncts[:number], _values(rule.conjuncts[:number]))
        for number in range(len(rule.conjuncts) + 1)
    ]
    return RuleProbe(rule, seen, facts)


def _values(conjuncts: Sequence[program.Conjunct]) -> list[program.Binding]:
    """The values of aggregates, as bindings."""
    return [
        program.Binding(name, program.Call("COALESCE", (program.Var(name), program.Const(_NOTHING))))
        for name in (c.variable for c in conjuncts if isinstance(c, program.Summarise))
    ]


def _places(rule: program.Rule, number: int) -> dict[str, int]:
    """Position → its place among the facts of a match of the first conjuncts."""
    chosen = [c.position.name for c in rule.conjuncts[:number] if isinstance(c, program.Choose)]
    return {name: place for place, name in enumerate((rule.triggering.name, *chosen))}


def _table(probe: RuleProbe, number: int, clock: Clock) -> SolutionTable:
    """Matches of the first conjuncts as rows: attributes and times of positions, values of aggregates."""
    rule, seen = probe.rule, probe.prefixes[number]
    positions = [c.position for c in rule.conjuncts[:number] if isinstance(c, program.Choose)]
    first = rule.triggering
    trigger = first.variables if isinstance(first, program.Position) else ()
    late = [(rule.trigger.name, ())] if rule.delay else []  # the tick of an AFTER, behind the other facts
    columns: dict[str, int] = {}
    for name, variables in ((first.name, trigger), *((p.name, p.variables) for p in positions), *late):
        for column in (*(f"{name}.?{v}" for v in variables), f"{name}.time"):
            columns[column] = len(columns)
    for conjunct in rule.conjuncts[:number]:
        if isinstance(conjunct, program.Summarise):
            columns[f"?{conjunct.variable}"] = len(columns)
    rows: list[Row] = []
    for facts, values in seen.matches:
        row: list[Term | None] = []
        for time, attributes, *_ in facts:
            row += (*attributes, None if time == NEVER else clock.term(time))
        due = facts[0][0] + rule.delay
        row += (clock.term(due) for _ in late)
        rows.append((due, (*row, *(None if v == _NOTHING else v for v in values))))
    return SolutionTable(clock, columns, rows, seen.count, "matches", seen.partial, rule=True)


def _paired(probe: RuleProbe, number: int, before: SolutionTable) -> Iterator[tuple[Row, Fact]]:
    """Rows of the matches before a conjunct with the facts that its window holds, the latest of them."""
    conjunct = probe.rule.conjuncts[number]
    places = _places(probe.rule, number)
    facts = [match[0][0] for match in probe.facts[conjunct.position.stream].matches]
    times = [fact[0] for fact in facts]
    for row, (match, _) in zip(before.rows, probe.prefixes[number].matches, strict=True):
        found = {name: match[place] for name, place in places.items()}
        inside, _ = window(probe.rule, conjunct, {**found, **opening(probe.rule, match[0])})
        first, last = bisect_left(times, inside.start), bisect_left(times, inside.stop)
        for fact in facts[max(first, last - _CANDIDATES) : last]:
            if isinstance(conjunct, program.Summarise) or fact not in match:
                yield row, fact
