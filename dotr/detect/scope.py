"""The scope of a function under construction, and what its code reads, charges, drops and counts.

Place:   code.py and operators.py share one scope per rule.
Method:  Scope knows where each position's fact is, and how to read expressions: an attribute, an aggregate's
         value or a constant is read in place; any other expression is compiled by expressions/ over a small
         tuple of the facts it reads, and called. Two cases need no call: an expression that reads one
         attribute is a function of one term, and its results are kept in a table; a comparison of sums is
         computed in place if all its numbers are small: as integers in units of 10⁻⁶, for which sums and
         order are exact; no sum that fits into a rule exceeds the limits of its type.
         RuleWork: what the function charges while it searches the matches of one trigger fact (budget.py has
         the units). A loop charges its length on entry, together with the expressions evaluated inside it;
         facts that are listed or scanned are charged with their tests. A rule that shares thresholds with
         others charges no less than alone: if sharing turns a single choice into a loop, the expressions
         inside are also charged for the loop around it.
         Faults: the parts of a template that can fail at run time are a literal as subject, and anything but
         an IRI as predicate. Such matches are dropped and counted; emit/events.py never sees them.
         StageCounts: how far the trigger facts of a rule got (core/funnel.py). After each step of detection
         one addition of the number of partial matches: candidates of an EACH that is not looped over yet
         count each. Steps are in the engine's own order. A group sleeps while a stream that it must choose
         from has nothing within reach, and then sees no trigger fact; so steps before the last such choice
         are not counted, but named together with it. Members of a group that differ in thresholds are counted
         by the start and end of their range.
Why not: tables of pairs of terms: readings of two sensors rarely come together twice. A count per trigger
         fact in every step, asleep or not: waking rules that cannot match costs more than all counting.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import accumulate
from typing import Any, Final, NamedTuple, assert_never

from msgspec import Struct, field

from dotr.budget import KEPT, Factor, Meter
from dotr.codegen import CodeSource, Reserved
from dotr.detect.analysis import NOW, names
from dotr.events import NEVER, Clock
from dotr.expressions.evaluate import compile_condition, compile_expression, units
from dotr.expressions.functions import makes_text
from dotr.program.names import TRIGGER, Passed
from dotr.program.queries import Attribute, Call, Const, Expression, TimeOf, Var
from dotr.program.rules import Fresh, Rule, TemplateNode, TemplateVar
from dotr.rdf.terms import Memo, Term, is_iri, is_literal, members
from dotr.rdf.values import EXACT, decode


class _SpentUnits:
    """Generated code calls it when no units are left: (the length of each loop it is in)."""

    __slots__ = ("_meter", "_whats")

    def __init__(self, meter: Meter, whats: Sequence[str]) -> None:
        self._meter, self._whats = meter, tuple(whats)

    def __call__(self, *sizes: int) -> None:
        self._meter.stop([Factor(what, size) for what, size in zip(self._whats, sizes, strict=True)])


class _Loop(Struct):
    """A loop under construction. `choice`: for a rule alone it would be a single choice."""

    what: str
    length: str
    choice: bool
    line: Reserved
    spent: str
    units: int = 1


class RuleWork:
    """Owns the charges of one function under construction, and the meter they go to. `spent`: if passed, its
    only item adds up the units of all trigger facts.
    """

    def __init__(self, source: CodeSource, budget: int, spent: list[int] | None = None) -> None:
        self._source = source
        self._spent_by_all = "" if spent is None else f"{source.name('by_all', spent)}[0]"
        self._meter = Meter(budget)
        self._loops: list[_Loop] = []
        self._left = f"{source.name('left', self._meter.left)}[0]"
        self.matches = budget // KEPT
        """How many matches of one trigger fact may be kept."""
        self.start = "start"
        """The local with the number of matches before those of the current rule."""
        self._written: list[_Loop] = []

    def begin(self) -> None:
        """A trigger fact's work begins, or that of the last one has ended."""
        limit = self._source.name("budget", self._meter.limit)
        self._add_up(limit)
        self._source.line(f"{self._left} = {limit}")

    def _add_up(self, before: str) -> None:
        """Add to the units of all trigger facts what was charged since `before` were left."""
        if self._spent_by_all:
            self._source.line(f"{self._spent_by_all} += {before} - {self._left}")

    def loop(self, what: str, length: str, *, choice: bool = False) -> None:
        """The next line is a loop."""
        line = self._source.reserve()
        self._loops.append(_Loop(what, length, choice, line, self._spent(what, f"len({length})")))

    def expression(self, evaluated: Expression) -> None:
        """An expression is evaluated in the innermost loop."""
        for loop in reversed(self._loops):
            loop.units += units(evaluated)
            if not loop.choice:
                break

    def listed(self, what: str, length: str, evaluated: Expression | None = None) -> None:
        """Charge candidates that are listed; an expression may be evaluated for each."""
        self._charge(f"({length}) * {1 + units(evaluated)}", self._spent(what, length))

    def count_matches(self) -> None:
        """There are `len(out) - start` matches of the trigger fact now."""
        many = self._source.name("many", _SpentUnits(self._meter, ["matches"]))
        most = self._source.name("most", self.matches)
        self._source.line(f"if len(out) - {self.start} > {most}: {many}(len(out) - {self.start})")

    def save(self, local: str) -> None:
        """The code before is shared with others; the code after is charged separately: see `restore`."""
        self._source.line(f"{local} = {self._left}")

    def restore(self, local: str) -> None:
        self._add_up(local)
        self._source.line(f"{self._left} = {local}")

    def leave(self, outside: int = 0) -> None:
        """The next lines are outside of all loops but the `outside` outermost ones."""
        self._written += self._loops[outside:]
        del self._loops[outside:]

    def settle(self) -> None:
        """The function is written: fill the reserved lines."""
        if self._spent_by_all:
            self.begin()
        self.leave()
        for loop in self._written:
            charge = f"{self._left} -= len({loop.length}) * {loop.units}"
            loop.line.text = f"{charge}\n{loop.line.indent}if {self._left} < 0: {loop.spent}"

    def _charge(self, units: str, spent: str) -> None:
        self._source.line(f"{self._left} -= {units}")
        self._source.line(f"if {self._left} < 0: {spent}")

    def _spent(self, what: str, length: str) -> str:
        """A call that reports the loops it was in."""
        whats = [*(loop.what for loop in self._loops), what]
        sizes = [*(f"len({loop.length})" for loop in self._loops), length]
        return f"{self._source.name('spent', _SpentUnits(self._meter, whats))}({', '.join(sizes)})"


def computed(expression: Expression) -> bool:
    """Whether it takes more than reading a value."""
    return not isinstance(expression, Attribute | Const | Var)


_MANY: Final = 1 << 10
"""Results that are kept of one expression."""
_SMALL: Final = 10**12
_PLACES: Final = 6
COMPARISONS: Final = {"=": "==", "!=": "!=", "<": "<", ">": ">", "<=": "<=", ">=": ">="}


def only_attribute(expression: Expression) -> Attribute | None:
    """The attribute that is all an expression reads, if a table is worth it: not for an attribute itself, nor
    for a comparison as it stands.
    """
    if not isinstance(expression, Call) or makes_text(expression):
        return None
    if expression.function in COMPARISONS and not any(isinstance(a, Call) for a in expression.arguments):
        return None
    found = set(_leaves(expression))
    one = found.pop() if len(found) == 1 else None
    return one if isinstance(one, Attribute) else None


def term_table(expression: Expression) -> Memo[Any, Term | None]:
    """Term of the only attribute → the expression's."""
    return Memo(compile_expression(expression, _itself, clock=Clock(), seconds=True), _MANY)


def truth_table(condition: Expression) -> Memo[Any, bool]:
    """Term of the only attribute → whether the condition holds."""
    return Memo(compile_condition(condition, _itself, clock=Clock(), seconds=True), _MANY)


def _itself(_: Expression) -> Callable[[Any], Term | None]:
    return lambda term: term


def _leaves(expression: Expression) -> Iterator[Expression]:
    match expression:
        case Const():
            pass
        case Call(function=function, arguments=arguments) if function != "NOW":
            for argument in arguments:
                yield from _leaves(argument)
        case _:
            yield expression


def _small(term: Term | None) -> int | None:
    value = None if term is None else decode(term)
    if type(value) is int:
        return value * 10**_PLACES if -_SMALL < value < _SMALL else None
    if type(value) is not Decimal or not -_SMALL < value < _SMALL:
        return None
    scaled = EXACT.scaleb(value, _PLACES)
    whole = int(scaled)
    return whole if whole == scaled else None


small: Final[Memo[Any, int | None]] = Memo(_small)
"""An integer or decimal in units of 10⁻⁶; None for a large one, a finer one, and all other terms."""


NO_NUMBERS: Final[Mapping[str, str]] = {}


class SumComparison:
    """Owns the source of one comparison of sums under construction. `read` gives the source of the term of an
    attribute or variable, and of the time of a position in µs; positions in `optional` may have none.
    `numbers`: the source of a term → a local that already is `small` of it.
    """

    def __init__(
        self,
        source: CodeSource,
        read: Callable[[Attribute | Var | TimeOf], str],
        optional: Collection[str] = (),
        numbers: Mapping[str, str] = NO_NUMBERS,
    ) -> None:
        self._source = source
        self._read = read
        self._optional = optional
        self._numbers = numbers
        self._terms: list[str] = []

    def test(self, condition: Expression, general: str) -> str | None:
        """Source of whether the condition holds; `general` decides where a number is not small. None for any
        other condition.
        """
        if not (isinstance(condition, Call) and condition.function in COMPARISONS):
            return None
        left, right = map(self._sum, condition.arguments)
        if left is None or right is None or not self._terms:
            return None
        table = self._source.name("small", small)
        known = [
            f"{self._numbers[term]} is not None"
            if term in self._numbers
            else f"(u{place} := {table}[{term}]) is not None"
            for place, term in enumerate(self._terms)
        ]
        test = f"{left} {COMPARISONS[condition.function]} {right}"
        return f"({test} if {' and '.join(known)} else {general})"

    def _sum(self, expression: Expression) -> str | None:
        match expression:
            case Attribute() | Var():
                text = self._read(expression)
                if text not in self._terms:
                    self._terms.append(text)
                return self._numbers.get(text) or f"u{self._terms.index(text)}"
            case Const(term):
                number = small[term]
                return None if number is None else self._source.name("number", number)
            case Call("-", (TimeOf() as later, TimeOf() as earlier)):
                if not {later.position, earlier.position}.isdisjoint(self._optional):
                    return None
                return f"({self._read(later)} - {self._read(earlier)})"
            case Call("+" | "-" as sign, (a, b)):
                left, right = self._sum(a), self._sum(b)
                return None if left is None or right is None else f"({left} {sign} {right})"
            case _:
                return None


class Scope(Struct):
    """Owns the scope of the function under construction: the source, and the local of each position."""

    source: CodeSource
    clock: Clock
    trigger: str
    variables: dict[str, tuple[str, ...]]
    optional: frozenset[str] = frozenset()
    """Positions that may have no fact: `no_fact`."""
    work: RuleWork | None = None
    """The charges; None if nothing is searched for."""
    locals: dict[str, str] = field(default_factory=dict)
    range: tuple[str, str] = ("", "")
    """Locals that delimit the members of the group to which a partial match belongs; empty for one rule."""

    def value(self, expression: Expression) -> str:
        """Source of an expression's value; None at run time if it is an error or unbound."""
        match expression:
            case Attribute(position=position, variable=variable):
                return f"{self.locals[position]}[1][{self.variables[position].index(variable)}]"
            case Var(name=name):
                return self.locals["?" + name]
            case Const(term=term):
                return self.source.name("constant", term)
            case _:
                attribute = only_attribute(expression)
                if attribute is not None:
                    return f"{self.source.name('value', term_table(expression))}[{self.value(attribute)}]"
                row, leaf, now = self._row(expression)
                getter = compile_expression(expression, leaf, clock=self.clock, now=now, seconds=True)
                return f"{self.source.name('value', getter)}({row})"

    def test(self, condition: Expression) -> str:
        """Source of whether a condition holds."""
        if isinstance(condition, Call) and condition.function == "&&":
            return f"({' and '.join(map(self.test, condition.arguments))})"
        attribute = only_attribute(condition)
        if attribute is not None:
            general = f"{self.source.name('test', truth_table(condition))}[{self.value(attribute)}]"
        else:
            row, leaf, now = self._row(condition)
            holds = compile_condition(condition, leaf, clock=self.clock, now=now, seconds=True)
            general = f"{self.source.name('test', holds)}({row})"
        return SumComparison(self.source, self._read, self.optional).test(condition, general) or general

    def _read(self, leaf: Attribute | Var | TimeOf) -> str:
        return f"{self.locals[leaf.position]}[0]" if isinstance(leaf, TimeOf) else self.value(leaf)

    def _row(self, expression: Expression) -> tuple[str, Any, Any]:
        """(source of a tuple of the expression's inputs, its leaves, its NOW) over that tuple."""
        needed = sorted(self.trigger if name == NOW else name for name in names(expression))
        place = {name: i for i, name in enumerate(dict.fromkeys(needed))}
        variables, clock = self.variables, self.clock

        def leaf(node: Var | Attribute | TimeOf) -> Callable[[Any], Term | None]:
            match node:
                case Var(name=name):
                    where = place["?" + name]
                    return lambda row: row[where]
                case Attribute(position=position, variable=variable):
                    where, column = place[position], variables[position].index(variable)
                    return lambda row: row[where][1][column]
                case TimeOf(position=position):
                    where = place[position]
                    if position in self.optional:
                        return lambda row: None if row[where][0] == NEVER else clock.term(row[where][0])
                    return lambda row: clock.term(row[where][0])
                case _:
                    assert_never(node)

        def now(row: Any) -> Term:
            return clock.term(row[place[self.trigger]][0])

        row = "".join(f"{self.locals[name]}, " for name in place)
        return f"({row})", leaf, now


class Faults(NamedTuple):
    """What makes a match have no graph. `subjects`: numbers of bindings that must not be literals;
    `predicates`: that must be IRIs; `never`: there is never one. `spread`: triples with a list, of numbers of
    bindings and constants; see `breaks`.
    """

    subjects: frozenset[int]
    predicates: frozenset[int]
    never: bool
    spread: tuple[tuple[int | Term, int | Term, int | Term], ...] = ()

    def named(self) -> set[int]:
        """The bindings that it depends on."""
        spread = {node for triple in self.spread for node in triple if isinstance(node, int)}
        return {*self.subjects, *self.predicates, *spread}


def faults(rule: Rule) -> Faults:
    """What makes a rule's match have no graph."""
    numbers = {variable: i for i, variable in enumerate(rule.variables)}
    lists = {numbers[variable] for variable in rule.lists}
    subjects: set[int] = set()
    predicates: set[int] = set()
    spread: list[tuple[int | Term, int | Term, int | Term]] = []
    never = False

    def slot(node: TemplateNode) -> int | Term:
        if isinstance(node, TemplateVar):
            return numbers[node.name]
        return _FRESH if isinstance(node, Fresh) else node

    for triple in rule.template:
        slots = slot(triple.subject), slot(triple.predicate), slot(triple.object)
        subject, predicate, _ = slots
        if not lists.isdisjoint(slots):
            if isinstance(subject, int) or isinstance(predicate, int) or breaks(subject, predicate, _FRESH):
                spread.append(slots)
            continue
        if isinstance(subject, int):
            subjects.add(subject)
        else:
            never = never or is_literal(subject)
        if isinstance(predicate, int):
            predicates.add(predicate)
        else:
            never = never or not is_iri(predicate)
    return Faults(frozenset(subjects), frozenset(predicates), never, tuple(spread))


_FRESH: Final = "<urn:dotr:fresh>"


def breaks(subject: Term, predicate: Term, object_: Term) -> bool:
    """Whether one of the triples that a triple of values with a list stands for is none of a graph."""
    return any(
        is_literal(one) or not is_iri(other)
        for one in members(subject)
        for other in members(predicate)
        for _ in members(object_)[:1]
    )


class StageCounts(Struct, eq=False):
    """Owns what the function of a group counts. `members`: the number of rules; `ranged`: counts are kept by
    start and end of ranges of members. `steps`: (name, place of its count, or -1: as many as triggers).
    `triggers`: if facts must pass a threshold, or are not counted elsewhere: number of first members → how
    many facts triggered them.
    """

    members: int
    ranged: bool
    steps: list[tuple[str, int]] = field(default_factory=list)
    counts: list[list[int]] = field(default_factory=list)
    triggers: list[int] | None = None

    def new(self) -> int:
        """Add a count; returns its place."""
        self.counts.append([0] * (self.members + 1 if self.ranged else 1))
        return len(self.counts) - 1

    def of(self, member: int) -> Passed:
        """The counts of a member."""
        sums = [list(accumulate(count))[member if self.ranged else 0] for count in self.counts]
        steps: Passed = [(name, None if place < 0 else sums[place]) for name, place in self.steps]
        return steps if self.triggers is None else [(TRIGGER, sum(self.triggers[member + 1 :])), *steps]

    def forget(self) -> None:
        """Reset the counts to 0."""
        for count in self.counts if self.triggers is None else [*self.counts, self.triggers]:
            count[:] = [0] * len(count)


class StageWriter:
    """Owns the counting of one function under construction.

    `needed`: names of steps before the last of which nothing can be counted.
    """

    def __init__(self, source: CodeSource, counts: StageCounts, needed: Sequence[str]) -> None:
        self._source = source
        self._counts = counts
        self._needed = set(needed)
        self._names: list[str] = []  # steps that are not counted yet
        self._lines: list[tuple[str, Reserved, str]] = []

    def passed(
        self,
        name: str,
        loops: Sequence[str],
        range_: tuple[str, str] | None,
        line: Reserved,
        *,
        may_fail: bool = True,
        many: str = "",
    ) -> None:
        """A step has passed at `line`. `loops`: lists of candidates that are not looped over yet; `range_`:
        the members it passed for, None if not known yet; `many`: a local with the number of matches, if they
        are not listed.
        """
        self._needed.discard(name)
        if not may_fail and not self._names and not self._needed:
            self._lines.append((name, line, ""))
            return
        self._names.append(name)
        self.opened(loops, range_, line, many)

    def bound(self) -> None:
        """A computed binding passed: steps not yet counted are counted after it, and named with it."""
        if self._names:
            self._names.append("WITH")

    def opened(
        self, loops: Sequence[str], range_: tuple[str, str] | None, line: Reserved, many: str = ""
    ) -> None:
        """From `line` on, earlier steps may be counted, too."""
        counts = self._counts
        if not self._names or self._needed or (counts.ranged and range_ is None):
            return
        name = ", ".join(dict.fromkeys(self._names))
        self._names = []
        many = many or "*".join(f"len({several})" for several in loops) or "1"
        if counts.ranged and range_ is not None:
            low, high = range_
            text = f"COUNT[{low}] += {many}; COUNT[{high}] -= {many}"
        else:
            text = f"COUNT[0] += {many}"
        self._lines.append((name, line, text))

    def settle(self, known: dict[int, list[int]]) -> None:
        """The function is written: fill the reserved lines. Of consecutive equal steps the last one counts.

        `known`: counts of lines that several groups share, by id.
        """
        counts, before = self._counts, -1
        for number, (name, line, text) in enumerate(self._lines):
            if number + 1 < len(self._lines) and self._lines[number + 1][0] == name:
                continue
            if text and id(line) in known:
                counts.counts.append(known[id(line)])
                before = len(counts.counts) - 1
            elif text:
                before = counts.new()
                known[id(line)] = counts.counts[before]
                line.text = text.replace("COUNT", self._source.name("passed", counts.counts[before]))
            counts.steps.append((name, before))
        self._names = []
