"""Sequences resolved: syntax → the private rule whose trigger is a row pattern.

Place:   called by checks/names.py, whose RuleResolver looks up the sources.
Method:  language.md, "Sequences". A row of ON and WITH becomes an attribute of its canonical name ("X",
         "LAST(X,1)", "FIRST(*)", "PREV"), which `RowPattern.rows` explains, an aggregate a variable ".0",
         which `RowPattern.totals` explains. All errors are reported; what could not be read is not reported
         again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, assert_never

from dotr.errors import Diagnostics
from dotr.lang.grammar.cursor import nearest
from dotr.lang.grammar.sequences import without_nothing_or_hint
from dotr.lang.grammar.syntax import ElementSyntax, RuleSyntax, SequenceSyntax
from dotr.program.names import duration_text
from dotr.program.positions import Position
from dotr.program.program import Program
from dotr.program.queries import Aggregate, Attribute, Call, Expression, TimeOf, Var
from dotr.program.rules import COLLECT, Binding, Rule
from dotr.program.sequences import (
    Either,
    Element,
    InOrder,
    Pattern,
    Place,
    Repeated,
    RowElement,
    RowName,
    RowPattern,
    RowTotal,
    elements_of,
    pattern_text,
    satisfied_by_nothing,
)
from dotr.source import Span

if TYPE_CHECKING:
    from dotr.lang.checks.names import RuleResolver

LARGEST: Final = 10_000
"""Elements of a pattern, those of `A{5}` counted five times."""


def as_rule(written: SequenceSyntax) -> RuleSyntax:
    """What a sequence has in common with a rule, for the names of its sources."""
    return RuleSyntax(
        written.name, (), None, (), None, (), (), (), written.unresolved, written.whole, written.span, ()
    )  # fmt: skip


class SequenceResolver:
    """Owns the names of one sequence while it is built. `events`: looks up its sources."""

    def __init__(self, events: RuleResolver, written: SequenceSyntax, name: str, found: Diagnostics) -> None:
        self._events = events
        self._written = written
        self._name = name
        self._found = found
        self._broken = not written.whole
        self._sources: list[Position | None] = []
        self._elements: dict[str, tuple[int, ...]] = {}
        self._rows: dict[str, RowName] = {}
        self._totals: dict[RowTotal, str] = {}

    def rule(self) -> Rule | None:
        """The private rule, or None when it cannot be built; either way everything wrong is recorded."""
        written = self._written
        self._sources = [self._events.source(event) for event in written.sources]
        self._broken = self._broken or None in self._sources
        if written.pattern is not None:
            self._check_pattern(written.pattern)
        elements = self._element_clauses()
        per = self._per()
        bindings = self._bindings(per)
        if written.skip_to is not None:
            self._known(written.skip_to.text, written.skip_to.span)
        if (
            written.gap is not None
            and written.within is not None
            and written.gap.micros >= written.within.micros
        ):
            self._found.warning(
                "D1662",
                f"GAP {duration_text(written.gap.micros)} is not shorter than WITHIN, so it ends nothing",
                written.gap.span,
                hint="write a shorter one, or leave it out",
            )
        if self._broken or written.pattern is None or written.within is None:
            return None
        trigger = RowPattern(
            tuple(source for source in self._sources if source is not None),
            written.pattern,
            elements,
            written.within.micros,
            per,
            None if written.gap is None else written.gap.micros,
            written.overlapping,
            None if written.skip_to is None else written.skip_to.text,
            written.skipping is not None,
            tuple(sorted(self._rows.items())),
            tuple((name, total) for total, name in self._totals.items()),
            self._name,
            written.span,
        )
        return Rule(self._name, (), trigger, (), None, bindings, (), written.span, private=True)

    # -- the pattern ---------------------------------------------------------------------------------------

    def _check_pattern(self, pattern: Pattern) -> None:
        for name in elements_of(pattern):
            own = tuple(n for n, s in enumerate(self._written.sources) if s.name.text == name)
            self._elements[name] = own or tuple(range(len(self._written.sources)))
        span = self._written.clauses[0] if self._written.clauses else self._written.span
        if satisfied_by_nothing(pattern):
            self._error(
                "D1654",
                "no row at all satisfies this pattern: an empty match is none",
                span,
                hint=without_nothing_or_hint(pattern, lambda rest: rest)[1],
            )
        if _size(pattern) > LARGEST:
            self._error(
                "D1653",
                f"this pattern has more than {LARGEST:,} elements, with their repetitions",
                span,
                hint="count in a condition: `AND X ON COUNT(X) <= 5000`",
            )

    def _element_clauses(self) -> tuple[RowElement, ...]:
        """The elements in order of first use, with what AND says of them."""
        given: dict[str, ElementSyntax] = {}
        for clause in self._written.elements:
            name = clause.name
            if not self._known(name.text, name.span):
                pass
            elif name.text in given:
                self._error(
                    "D1657",
                    f"two conditions for the element `{name.text}`",
                    name.span,
                    hint="join them with &&",
                    notes=(f"the first is at {given[name.text].span}",),
                )
            elif not clause.sources and clause.on is None:
                self._error(
                    "D1656",
                    f"`AND {name.text}` says nothing of it",
                    clause.span,
                    hint=f"write `AND {name.text} ON condition`, or leave it out",
                )
            given.setdefault(name.text, clause)
        for clause in given.values():  # what conditions of others read of it
            self._of(clause)
        self._any_source(given)
        found = []
        for element, sources in self._elements.items():
            own = given.get(element)
            written = None if own is None else own.on
            on = None if written is None else self._checked(written, element)
            found.append(RowElement(element, sources, on, None if own is None else own.span))
        return tuple(found)

    def _of(self, clause: ElementSyntax) -> None:
        """The sources that an element takes."""
        element = clause.name.text
        names = [source.name.text for source in self._written.sources]
        if element in names and clause.sources:
            self._error(
                "D1658",
                f"`{element}` is a source, and takes the rows of that one",
                clause.sources[0].span,
                hint="leave OF out, or give the element another name",
            )
            return
        taken: list[int] = []
        for source in clause.sources:
            places = [n for n, name in enumerate(names) if name == source.text]
            if not places:
                self._error(
                    "D1658",
                    f"no source of this sequence is called `{source.text}`",
                    source.span,
                    hint=nearest(source.text, names) or f"the sources are {' '.join(names)}",
                )
            taken += places
        if taken and element in self._elements:
            self._elements[element] = tuple(sorted(set(taken)))

    def _any_source(self, given: Mapping[str, ElementSyntax]) -> None:
        """Warn about elements that take the rows of every source where some source has no element, D1663.

        Not where OF or an attribute in ON says which rows are meant, nor in a pattern of one element, unless
        the name looks like that of just one source without an element.
        """
        names = list(dict.fromkeys(source.name.text for source in self._written.sources))
        taken = set(self._elements)
        for clause in given.values():
            of = {source.text for source in clause.sources}
            taken |= set() if of.issuperset(names) else of
        left = [name for name in names if name not in taken]
        if not left or len(names) < 2 or not self._written.whole:
            return
        for element in self._elements:
            own = given.get(element)
            if element in names or (own is not None and own.sources):
                continue
            on = None if own is None else own.on
            meant = len(self._elements) == 1 or (on is not None and _reads_attribute(on))
            if meant and sum(bool(nearest(element, (name,))) for name in left) != 1:
                continue
            also = "" if on is None else " ON …"
            one = next((name for name in left if not nearest(name, self._elements)), left[0])
            self._found.warning(
                "D1663",
                f"`{element}` is no source, so it takes the rows of every one: {', '.join(names)}",
                next(name.span for name in self._written.elements_named if name.text == element),
                hint=nearest(element, left)
                or f"if it is for `{one}` alone, write `AND {element} OF {one}{also}`; "
                f"if for all, `AND {element} OF {', '.join(names)}{also}`",
            )

    def _per(self) -> tuple[str, ...]:
        """The attributes of PER, of which every source has each."""
        for name in self._written.per:
            for source in self._sources:
                if source is not None and not self._events.selects(source, name):
                    self._broken = True
                elif source is not None and name.text in self._events.lists_of(source):
                    self._error(
                        "D1341",
                        f"`{source.name}.?{name.text}` is a list, which is no value to divide by",
                        name.span,
                        hint="divide by another attribute",
                    )
        return tuple(dict.fromkeys(name.text for name in self._written.per))

    def _bindings(self, per: Iterable[str]) -> tuple[Binding, ...]:
        if not self._written.bindings:
            rows = [Attribute(self._row_name("LAST", "*", 0), name) for name in per]
            return tuple(Binding(row.variable, row) for row in rows)
        found: dict[str, Binding] = {}
        for written in self._written.bindings:
            name, expression = written.variable, written.expression
            if name.text in found:
                self._error(
                    "D1108", f"WITH binds `?{name.text}` twice", name.span, hint="choose another name"
                )
                continue
            collects = isinstance(expression, Aggregate) and expression.function == COLLECT
            checked = self._checked(expression, None, collects=collects)
            found[name.text] = Binding(name.text, checked, name.span)
        return tuple(found.values())

    # -- expressions ---------------------------------------------------------------------------------------

    def _checked(self, expression: Expression, own: str | None, *, collects: bool = False) -> Expression:
        """The expression with canonical rows. `own`: the element whose ON it is, None: of WITH."""
        match expression:
            case Attribute(position, variable, span):
                name = self._row(position, own, span)
                if name is not None:
                    self._selects(name, position, variable, span)
                return Attribute(self._canonical(name, position), variable, span)
            case TimeOf(position, span):
                return TimeOf(self._canonical(self._row(position, own, span), position), span)
            case Aggregate():
                return self._total(expression, own, collects)
            case Call(_, arguments):
                checked = tuple(self._checked(argument, own) for argument in arguments)
                return Call(expression.function, checked, expression.span, expression.version)
            case Var(name, span):
                carriers = [
                    e for e in self._elements if any(name in s.variables for s in self._of_element(e))
                ]
                self._error(
                    "D1304",
                    f"`?{name}` is no value here",
                    span,
                    hint=f"write `{carriers[0] if carriers else 'Element'}.?{name}`",
                )
            case _:
                pass
        return expression

    def _row(self, position: str, own: str | None, span: Span | None) -> RowName | None:
        """What a row is; None where that is not known, which is reported."""
        word, _, rest = position.partition("(")
        inner = rest.removesuffix(")").split(",")
        if word == "PREV":
            if own is None:
                self._error(
                    "D1659",
                    "WITH is about the whole match, which has no row before it",
                    span,
                    hint="write `LAST(X, 1)` for the one before the last of an element",
                )
                return None
            return RowName(Place.PREV, "", int(inner[0] or 1))
        element = inner[0] if rest else word
        if element != "*" and not self._known(element, span):
            return None
        number = int(inner[1]) if len(inner) > 1 else 0
        return RowName(Place(word) if rest else Place.LAST, element, number)

    def _canonical(self, name: RowName | None, written: str) -> str:
        if name is None:
            return written
        return self._row_name(name.place.value, name.element, name.n)

    def _row_name(self, place: str, element: str, n: int) -> str:
        """The canonical text of a row, which is known from now on."""
        name = RowName(Place(place), element, n)
        if name.place is Place.PREV:
            text = "PREV" if n == 1 else f"PREV({n})"
        elif name.place is Place.LAST and n == 0 and element != "*":
            text = element
        else:
            text = f"{place}({element},{n})" if n else f"{place}({element})"
        self._rows[text] = name
        return text

    def _selects(self, row: RowName, position: str, variable: str, span: Span | None) -> None:
        """Whether a source of a row has an attribute."""
        if None in self._sources:
            return
        sources = list(self._of_element(row.element))
        if not any(variable in source.variables for source in sources):
            known = dict.fromkeys(v for source in sources for v in source.variables)
            self._error(
                "D1310",
                f"`{position}` has no `?{variable}`",
                _variable_span(span, variable),
                f"its sources select {' '.join('?' + v for v in known)}"
                if known
                else "its sources select nothing",
                hint=nearest(variable, known, "?")
                or (f"the time of a row is `{position}.time`" if variable.lower() == "time" else ""),
            )
        elif any(variable in self._events.lists_of(source) for source in sources):
            self._error(
                "D1341",
                f"`{position}.?{variable}` is a list, which is no value of an expression",
                span,
                hint="bind its COUNT in the rule that makes it, and read that",
            )

    def _total(self, total: Aggregate, own: str | None, collects: bool) -> Expression:
        """An aggregate as the variable that stands for it."""
        if total.function == COLLECT and not collects:
            self._error(
                "D1341",
                "a list is no value of an expression",
                total.span,
                hint="give it to a variable of WITH alone: `WITH ?list := COLLECT(X.?v)`",
            )
            return total
        argument = total.argument
        if argument is None:
            return self._totalled(RowTotal("COUNT", "*", None, total.distinct, total.span), total.span)
        if isinstance(argument, Attribute) and not argument.variable:
            if not self._known(argument.position, argument.span):
                return total
            return self._totalled(
                RowTotal("COUNT", argument.position, None, total.distinct, total.span), total.span
            )
        rows = list(dict.fromkeys(_rows_of(argument)))
        if len(rows) != 1 or rows[0] == "PREV" or "(" in rows[0]:
            hint = f"write an expression over one element: `{total.function.split()[0]}(X.?v)`"
            if rows and all("(" in row or row == "PREV" for row in rows):
                hint = "an aggregate is over all rows of an element so far: write `X.?v` in it"
            self._error(
                "D1660",
                f"{total.function.split()[0]} is over the rows of one element",
                total.span,
                f"it reads {', '.join(rows)}" if rows else "it reads none",
                hint=hint,
            )
            return total
        before = dict(self._rows)
        checked = self._checked(argument, own or rows[0])
        self._rows = {**before, rows[0]: RowName(Place.LAST, rows[0], 0)}
        return self._totalled(
            RowTotal(total.function, rows[0], checked, total.distinct, total.span), total.span
        )

    def _totalled(self, total: RowTotal, span: Span | None) -> Var:
        return Var(self._totals.setdefault(total, f".{len(self._totals)}"), span)

    # -- names ---------------------------------------------------------------------------------------------

    def _of_element(self, element: str) -> Iterator[Position]:
        """The known sources of an element; of PREV and `*` all."""
        places = self._elements.get(element, range(len(self._sources)))
        return (source for n in places if (source := self._sources[n]) is not None)

    def _known(self, element: str, span: Span | None) -> bool:
        """Whether the pattern has an element; it is reported where it has not."""
        if element in self._elements:
            return True
        self._broken = True
        if self._written.pattern is None or nearest(element, self._written.unresolved):
            return False
        sources = [source.name.text for source in self._written.sources]
        hint = nearest(element, self._elements) or f"its elements are {' '.join(self._elements)}"
        if element in sources:
            hint = f"it is a source: name the element that takes its rows, one of {' '.join(self._elements)}"
        self._error("D1655", f"the pattern has no element `{element}`", _name_span(span, element), hint=hint)
        return False

    def _error(
        self,
        code: str,
        message: str,
        span: Span | None,
        label: str = "",
        hint: str = "",
        notes: Iterable[str] = (),
    ) -> None:
        self._broken = True
        self._found.error(code, message, span, label, hint, notes)


def _name_span(span: Span | None, name: str) -> Span | None:
    """The place of a name in `Name.?v` or `LAST(Name, 1).?v`."""
    if span is None:
        return None
    at = span.source.text.find(name, span.start, span.end)
    return span if at < 0 else Span(span.source, at, at + len(name))


def _variable_span(span: Span | None, variable: str) -> Span | None:
    return (
        None if span is None else Span(span.source, max(span.start, span.end - len(variable) - 1), span.end)
    )


def _rows_of(expression: Expression) -> Iterator[str]:
    """The rows that an expression reads, as written."""
    match expression:
        case Attribute(position) | TimeOf(position):
            yield position
        case Call(_, arguments):
            for argument in arguments:
                yield from _rows_of(argument)
        case Aggregate(_, argument) if argument is not None:
            yield "LAST(an aggregate)"
        case _:
            return


def _reads_attribute(expression: Expression) -> bool:
    """Whether an expression depends on what is in a row, and not on its time or number alone."""
    match expression:
        case Attribute(_, variable):
            return bool(variable)
        case Call(_, arguments):
            return any(map(_reads_attribute, arguments))
        case Aggregate(_, argument):
            return argument is not None and _reads_attribute(argument)
        case _:
            return False


def _size(pattern: Pattern) -> int:
    """The elements of a pattern, repeated ones as often as they are counted."""
    match pattern:
        case Element():
            return 1
        case InOrder(parts) | Either(parts):
            return sum(map(_size, parts))
        case Repeated(part, minimum, maximum):
            return _size(part) * max(1, minimum, maximum or 0)
        case _:
            assert_never(pattern)


def check_sequences(program: Program, found: Diagnostics) -> None:
    """Warn about a greedy quantifier before what SKIPPING lets pass, D1661: it waits for the deadline."""
    for rule in program.rules:
        if isinstance(rule.trigger, RowPattern) and rule.trigger.skipping:
            greedy = next(_greedy(rule.trigger.pattern), None)
            if greedy is not None:
                text = pattern_text(greedy)
                found.warning(
                    "D1661",
                    f"`{text}` takes as many rows as it can, and SKIPPING looks for more until the deadline",
                    rule.trigger.span,
                    hint=f"write `{text}?` for the fewest",
                )


def _greedy(pattern: Pattern) -> Iterator[Repeated]:
    """Greedy quantifiers, whose number of times is open."""
    match pattern:
        case InOrder(parts) | Either(parts):
            for part in parts:
                yield from _greedy(part)
        case Repeated(part, minimum, maximum, reluctant):
            if not reluctant and minimum != maximum:
                yield pattern
            yield from _greedy(part)
        case Element():
            return
        case _:
            assert_never(pattern)
