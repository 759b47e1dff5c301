"""Random programs and streams, small and rich in ties, for engine against oracle.

Every operator can stand beside every other: EVERY and AFTER triggers, chaining with strict cycles,
consumption, BETWEEN, NOT, OPTIONAL, aggregates, k, several keys, residual conditions. Streams have few keys,
values and times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from hypothesis import strategies as st
from msgspec import Struct, field
from msgspec.structs import replace

from dotr.detect.analysis import NOW, evaluation_order, names, references
from dotr.detect.columns import own_condition
from dotr.detect.thresholds import Filtered, is_threshold, sizes
from dotr.events import Fact, Values
from dotr.extract.sharing import attributes, facts_of
from dotr.program import (
    Absent,
    After,
    Attribute,
    Between,
    Call,
    Choose,
    Conjunct,
    Const,
    Every,
    Expression,
    Fresh,
    Position,
    Program,
    Rule,
    Selection,
    Summarise,
    TemplateNode,
    TemplateVar,
    TimeOf,
    Trigger,
    Var,
    Window,
    Within,
)
from dotr.rdf.terms import RDF_TYPE, XSD, Term, integer
from dotr.rdf.values import values_key
from tests.detect.building import CLOCK, A, B, attribute, call, facts, program, rule

QUERIES = ("P", "Q", "R")
VARIABLES = ("k", "v")

KEYS: tuple[Term | None, ...] = (A, A, B, integer(1), integer(1), None)
ODD_KEYS: tuple[Term | None, ...] = (
    A,
    '"x"',
    integer(1),
    f'"1.0"^^<{XSD}decimal>',
    f'"1"^^<{XSD}double>',
    f'"NaN"^^<{XSD}double>',
    integer(2**53),
    integer(2**53 + 1),
    f'"9007199254740992"^^<{XSD}double>',
    integer(2**63),
    integer(2**63 + 1),
    f'"9223372036854775808"^^<{XSD}double>',
    f'"9223372036854775808"^^<{XSD}decimal>',
    integer(10**400),
    integer(10**400 + 1),
    f'"2020-01-01T12:00:00Z"^^<{XSD}dateTime>',
    f'"2020-01-01T14:00:00+02:00"^^<{XSD}dateTime>',
    f'"true"^^<{XSD}boolean>',
    None,
)
VALUES: tuple[Term | None, ...] = (
    *(integer(i) for i in (0, 1, 1, 2, 3)),
    f'"0.5"^^<{XSD}decimal>',
    f'"1.5"^^<{XSD}double>',
    f'"0.1"^^<{XSD}double>',
)
ODD_VALUES: tuple[Term | None, ...] = (
    *VALUES,
    '"x"',
    A,
    None,
    f'"NaN"^^<{XSD}double>',
    f'"INF"^^<{XSD}double>',
    f'"-INF"^^<{XSD}double>',
    integer(2**63 - 1),
    integer(2**63),
    integer(2**63 + 1),
    integer(-(10**30)),
    integer(10**400),
    f'"9223372036854775808"^^<{XSD}double>',
    f'"340282366920938463463374607431768211456.5"^^<{XSD}decimal>',
)

AGGREGATES = (
    *("COUNT", "SUM", "AVG", "MIN", "MAX", "STDDEV", "VARIANCE", "STDDEV_POP", "VAR_POP"),
    *("MEDIAN", "PERCENTILE 0.3", "FIRST", "LAST"),
)


FLOATS: tuple[Term | None, ...] = (
    f'"1"^^<{XSD}float>',
    f'"0.1"^^<{XSD}float>',
    f'"0.10000000149011612"^^<{XSD}double>',  # that float as a double
    f'"16777216"^^<{XSD}float>',  # passes >= 16777217, which rounds to it
    f'"16777216"^^<{XSD}double>',
)


class Instant(Struct, frozen=True):
    time: int
    facts: dict[str, list[Fact]]
    cut: bool
    """Whether to snapshot, and go on with a detector restored from it, before this instant."""


class World(Struct, frozen=True):
    """`compared`, `same`: streams that the engine is given as another, the oracle as they are. Facts of
    instants have values as queries see them, floats among them.
    """

    program: Program
    instants: Sequence[Instant]
    compared: Mapping[str, Compared] = field(default_factory=dict)
    same: Mapping[str, str] = field(default_factory=dict)

    @property
    def filtered(self) -> dict[str, Filtered]:
        """What the engine knows of the streams that are compared."""
        return {name: Filtered(by.base, by.operator, by.constant) for name, by in self.compared.items()}

    def shared(self, facts: Mapping[str, Sequence[Fact]]) -> dict[str, list[Fact]]:
        """What the engine is given: bases with what their facts measure."""
        found = {name: facts_of([attributes(f[1]) for f in rows], rows[0][0]) for name, rows in facts.items()}
        for base in {by.base: by for by in self.compared.values()}.values():
            of_base = [by.constant for by in self.compared.values() if by.base == base.base]
            size_of = sizes(base.operator, of_base)
            assert size_of is not None
            rows = [(f[0], f[1], size_of(f[1][base.place])) for f in facts.get(base.stream, ())]
            sized = [(time, attributes(row), size) for time, row, size in rows if size is not None]
            sized.sort(key=lambda one: (values_key(one[1]), -one[2]))
            numbers: dict[Values, int] = {}
            for time, row, size in sized:
                numbers[row] = ordinal = numbers.get(row, -1) + 1
                found.setdefault(base.base, []).append((time, row, ordinal, "", size))  # type: ignore[arg-type]
        return found

    def literal(self, facts: Mapping[str, Sequence[Fact]]) -> dict[str, list[Fact]]:
        """What the oracle is given: every stream by itself."""
        found = {name: facts_of([attributes(f[1]) for f in rows], rows[0][0]) for name, rows in facts.items()}
        for name, by in self.compared.items():
            condition = Call(by.operator, (Attribute("", str(by.place)), Const(by.constant)))
            rows = list(filter(own_condition(condition, CLOCK), facts.get(by.stream, ())))
            found[name] = facts_of([attributes(fact[1]) for fact in rows], rows[0][0]) if rows else []
        for name, base in self.same.items():
            found[name] = list(found.get(base, ()))
        return found


class Compared(Struct, frozen=True):
    """A stream that has the facts of another whose attribute number `place` passes a comparison."""

    stream: str
    place: int
    operator: str
    constant: Term

    @property
    def base(self) -> str:
        return f"{self.stream}|any"


@st.composite
def worlds(draw: st.DrawFn, odd: bool | None = None) -> World:
    strange = draw(st.booleans()) if odd is None else odd
    count = draw(st.integers(1, 4))
    rules: list[Rule] = []
    for i in range(count):
        rules.append(draw(_rule(f"T{i}", i, count)))
    return World(program(*_without_vicious_cycles(rules)), draw(instants(strange)))


@st.composite
def instants(draw: st.DrawFn, strange: bool, floats: bool = False) -> list[Instant]:
    keys, values = (ODD_KEYS, ODD_VALUES) if strange else (KEYS, VALUES)
    values += FLOATS if floats else ()
    row = st.tuples(st.sampled_from(keys), st.sampled_from(values))
    rows = st.sampled_from((0, 1, 1, 1, 2, 3)).flatmap(lambda n: st.lists(row, min_size=n, max_size=n))
    time = draw(st.sampled_from((-3, 0, 1)))
    found = []
    for _ in range(draw(st.sampled_from((1, 4, 6, 8, 10, 12)))):
        content = {name: draw(rows) for name in QUERIES}
        streams = {name: facts(time, *found) for name, found in content.items() if found}
        found.append(Instant(time, streams, draw(st.integers(0, 4)) == 0))
        time += draw(st.sampled_from((1, 1, 1, 2, 3, 7)))
    return found


@st.composite
def families(draw: st.DrawFn) -> World:
    """Rules that differ in constants only, over streams that are filters of others, or the same."""
    strange = draw(st.booleans())
    patterns = [draw(_rule(f"F{i}", 0, 0, holes=True)) for i in range(draw(st.sampled_from((1, 1, 1, 2))))]
    rules: list[Rule] = []
    compared: dict[str, Compared] = {}
    same: dict[str, str] = {}
    kinds = st.tuples(st.booleans(), st.sampled_from((1, 1, 1, 0)), st.sampled_from(OPERATORS))
    shapes = {name: draw(kinds) for name in QUERIES}
    for number in range(draw(st.sampled_from((3, 5, 7, 1)))):
        one = draw(st.sampled_from(patterns))
        limits = [draw(st.sampled_from(LIMITS)) for _ in range(2)]
        streams: dict[str, str] = {}
        for name, (shared, place, operator) in shapes.items():
            constant = draw(st.sampled_from(LIMITS))
            if shared and is_threshold(operator, constant):
                streams[name] = f"{name}{number}"
                compared[streams[name]] = Compared(name, place, operator, constant)
            elif draw(st.booleans()):
                streams[name] = f"{name}{number}"
                same[streams[name]] = name
        rules.append(filled(one, f"T{number}", limits, streams))
    return World(program(*rules), draw(instants(strange, floats=True)), compared, same)


@st.composite
def kin(draw: st.DrawFn) -> World:
    """Rules that begin alike, part somewhere, and differ in constants besides."""
    base = draw(_rule("K", 0, 0, holes=draw(st.booleans())))
    first = base.triggering
    rules: list[Rule] = []
    for number in range(draw(st.sampled_from((2, 4, 6, 9)))):
        conjuncts = list(base.conjuncts[: draw(st.sampled_from((1, 2, 3, 4)))])
        known = [c.position for c in conjuncts if isinstance(c, Choose)]
        known += [] if isinstance(first, Every) else [first]
        references_ = [
            base.trigger.name,
            first.name,
            *(c.position.name for c in conjuncts if isinstance(c, Choose)),
        ]
        variables = [c.variable for c in conjuncts if isinstance(c, Summarise)]
        if draw(st.booleans()):
            window = draw(_window(references_))
            position = draw(_position("Y", 0, 0, window))
            on = draw(st.none() | _condition(position, known, variables, references_))
            if draw(st.booleans()):
                conjuncts.append(Absent(position, window, on))
            else:
                conjuncts.append(Summarise("COUNT", None, False, "y", position, window, on))
        sight = {*references_, *(f"?{name}" for name in variables), NOW}

        def seen(expression: Expression | None, sight: Set[str] = frozenset(sight)) -> bool:
            return expression is not None and names(expression) <= sight

        where = base.where if seen(base.where) and draw(st.booleans()) else None
        other = Const(A) if isinstance(first, Every) else Attribute(first.name, "k")
        bindings = tuple(
            b if seen(b.expression) and draw(st.integers(0, 2)) else replace(b, expression=other)
            for b in base.bindings
        )
        if draw(st.booleans()):  # what others of the same facts do not bind, under a condition of its own
            given = [Attribute(p.name, name) for p in known for name in VARIABLES]
            own = st.sampled_from([*given, *map(TimeOf, references_)])
            bindings = tuple(replace(b, expression=draw(own)) for b in bindings)
            least = Const(integer(draw(st.integers(-1, 4))))
            where = Call(">", (TimeOf(draw(st.sampled_from(references_))), least))
        mine = replace(base, conjuncts=tuple(conjuncts), where=where, bindings=bindings, consuming=())
        rules.append(filled(mine, f"T{number}", [draw(st.sampled_from(LIMITS)) for _ in range(2)], {}))
    return World(program(*rules), draw(instants(draw(st.booleans()))))


OPERATORS = (">", ">=", "<", "<=")
HOLES = (Const("<urn:hole:0>"), Const("<urn:hole:1>"))
LIMITS: tuple[Term, ...] = (
    integer(16777217),
    integer(2**63),
    integer(2**63 + 1),
    integer(10**400),
    *(integer(i) for i in (0, 1, 1, 1, 2, 2, -1)),
    *(f'"{text}"^^<{XSD}decimal>' for text in ("0.5", "0.5", "1.25", "-0.5")),
    f'"0.1"^^<{XSD}decimal>',
    f'"0.1234567890123456"^^<{XSD}decimal>',
    f'"1.5"^^<{XSD}double>',
    A,
)


def filled(one: Rule, name: str, limits: Sequence[Term], streams: Mapping[str, str]) -> Rule:
    """The rule with constants for its holes and other streams."""
    holes = dict(zip(HOLES, map(Const, limits), strict=True))

    def fill(value: Any) -> Any:
        if isinstance(value, Const):
            return holes.get(value, value)
        if isinstance(value, Position):
            return replace(value, stream=streams.get(value.stream, value.stream))
        if isinstance(value, tuple):
            return tuple(map(fill, value))
        if isinstance(value, Struct):
            return replace(value, **{name: fill(getattr(value, name)) for name in value.__struct_fields__})
        return value

    filled: Rule = fill(one)
    return replace(filled, name=name)


def _without_vicious_cycles(rules: list[Rule]) -> list[Rule]:
    """As many of the rules, from the first on, as have an order of evaluation together."""
    kept = list(rules)
    while kept and not _ordered(kept):
        kept.pop()
        names = {one.name for one in kept}
        while any(name not in names for one in kept for name, _ in references(one)):
            kept = [one for one in kept if all(name in names for name, _ in references(one))]
            names = {one.name for one in kept}
    return kept or [rule("Alone", Position("P", "P", VARIABLES))]


def _ordered(rules: list[Rule]) -> bool:
    try:
        evaluation_order(Program(rules=tuple(rules)))
    except StopIteration:
        return False
    return True


@st.composite
def _rule(draw: st.DrawFn, name: str, index: int, count: int, holes: bool = False) -> Rule:
    """`holes`: no chaining, and comparisons with HOLES among the conditions."""
    trigger = draw(_trigger(index))
    first = trigger.position if isinstance(trigger, After) else trigger
    known: list[Position] = [] if isinstance(first, Every) else [first]
    references_ = [trigger.name, *([first.name] if first != trigger else [])]
    variables: list[str] = []
    conjuncts: list[Conjunct] = []
    for i in range(draw(st.integers(0, 4) if not holes else st.sampled_from((1, 1, 2, 3)))):
        window = draw(_window(references_))
        position = draw(_position(f"X{i}", index, count, window))
        free = not holes or draw(st.integers(0, 3)) == 3
        key = call("=", f"{position.name}.k", f"{draw(st.sampled_from(known)).name}.k") if known else None
        on = draw(st.none() | _condition(position, known, variables, references_) if free else st.just(key))
        if holes and draw(st.booleans()):
            test = draw(_hole(position))
            on = test if on is None else call("&&", on, test)
        kinds = ("choose", "choose", "choose", "choose", "total", "total", "not")
        match draw(st.sampled_from(kinds if not holes else ("choose", "choose", "total", "total", "not"))):
            case "choose" if isinstance(window, Within):
                selection = draw(st.sampled_from(Selection if free else [Selection.LAST, Selection.EACH]))
                k = (
                    1
                    if selection is Selection.EACH or not free
                    else draw(st.sampled_from((1, 1, 1, 1, 2, 3)))
                )
                may_lack = selection is not Selection.EACH and k == 1 and draw(st.integers(0, 2)) == 0
                conjuncts.append(Choose(selection, position, window, on, k, optional=may_lack))
                known.append(position)
                if selection is Selection.EACH and draw(st.integers(0, 2)) == 0:
                    per = draw(st.lists(st.sampled_from(VARIABLES), min_size=1, unique=True))
                    conjuncts[-1] = replace(conjuncts[-1], per=tuple(per))
                else:
                    references_.append(position.name)
            case "total":
                function = draw(st.sampled_from(AGGREGATES))
                star = function == "COUNT" and draw(st.booleans())
                argument = None if star else draw(_argument(position, known))
                distinct = not star and draw(st.booleans())
                few = draw(st.sampled_from((None, None, Selection.LAST, Selection.FIRST)))
                k = 0 if few is None else draw(st.sampled_from((1, 2, 2, 3)))
                total = Summarise(function, argument, distinct, f"a{i}", position, window, on)
                conjuncts.append(replace(total, selection=few, k=k))
                variables.append(f"a{i}")
            case _:
                conjuncts.append(Absent(position, window, on))
    where = draw(st.none() | st.none() | _guard(known, variables, references_))
    chosen = [c.position.name for c in conjuncts if isinstance(c, Choose) and not c.per]
    consumes = chosen and not (holes and draw(st.integers(0, 3)))
    consuming = draw(st.lists(st.sampled_from(chosen), unique=True, max_size=2)) if consumes else []
    give = {
        "k": draw(_value(known, variables, references_)),
        "v": HOLES[1] if holes and draw(st.booleans()) else draw(_value(known, variables, references_)),
    }
    node: TemplateNode = draw(st.sampled_from((*[Fresh("dotr_id")] * 9, TemplateVar("k"))))
    predicate: TemplateNode = draw(st.sampled_from((*[RDF_TYPE] * 9, TemplateVar("v"))))
    return rule(
        name,
        trigger,
        *conjuncts,
        where=where,
        give=give,
        consuming=consuming,
        template=[(node, predicate, TemplateVar("v"))],
    )


@st.composite
def _trigger(draw: st.DrawFn, index: int) -> Trigger:
    kind = draw(st.integers(0, 5))
    if kind == 5:
        return Every(draw(st.integers(1, 5)), "Start")
    event = Position("Start", draw(st.sampled_from(QUERIES)), VARIABLES)
    if kind >= 3 and index:
        event = Position("Start", f"T{draw(st.integers(0, index - 1))}", VARIABLES, chained=True)
    return After(event, draw(st.integers(1, 5)), "Due") if draw(st.integers(0, 3)) == 0 else event


@st.composite
def _window(draw: st.DrawFn, names: Sequence[str]) -> Window:
    reference = draw(st.sampled_from(names))
    if draw(st.integers(0, 4)) == 0 and len(names) > 1:
        return Between(names[-1], draw(st.sampled_from(names[:-1])))
    return Within(draw(st.sampled_from((8, 5, 5, 3, 3, 2, 1, 0))), reference, draw(st.booleans()))


@st.composite
def _position(draw: st.DrawFn, name: str, index: int, count: int, window: Window) -> Position:
    if count and draw(st.integers(0, 3)) == 0:
        return Position(name, f"T{draw(st.integers(0, count - 1))}", VARIABLES, chained=True)
    return Position(name, draw(st.sampled_from(QUERIES)), VARIABLES)


def _attribute(positions: Sequence[Position]) -> st.SearchStrategy[Expression]:
    return st.sampled_from([attribute(f"{p.name}.{v}") for p in positions for v in VARIABLES])


@st.composite
def _condition(
    draw: st.DrawFn,
    own: Position,
    known: Sequence[Position],
    variables: Sequence[str],
    names: Sequence[str],
) -> Expression:
    parts = [
        draw(_part(own, known, variables, names)) for _ in range(draw(st.sampled_from((1, 1, 1, 1, 2, 3))))
    ]
    whole = parts[0]
    for part in parts[1:]:
        whole = call("&&", whole, part)
    return whole


@st.composite
def _part(
    draw: st.DrawFn,
    own: Position,
    known: Sequence[Position],
    variables: Sequence[str],
    names: Sequence[str],
) -> Expression:
    mine = attribute(f"{own.name}.{draw(st.sampled_from(VARIABLES))}")
    kind = draw(st.integers(0, 8))
    if kind <= 3 and known:
        other = attribute(f"{draw(st.sampled_from(known)).name}.k")
        pair = (attribute(f"{own.name}.k"), other)
        return call("=", *(pair if draw(st.booleans()) else pair[::-1]))
    if kind == 4:
        return call(draw(st.sampled_from((">", "<=", "!="))), mine, draw(st.integers(0, 2)))
    if kind == 5 and known:
        return call(draw(st.sampled_from(("<", "!=", ">="))), mine, draw(_attribute(known)))
    if kind == 6 and variables:
        return call(draw(st.sampled_from(("=", "<"))), mine, Var(draw(st.sampled_from(variables))))
    if kind == 7:
        return call("<", TimeOf(own.name), TimeOf(draw(st.sampled_from(names))))
    if kind == 8:
        return call("=", call("+", mine, 1), draw(_attribute(known)) if known else call("NOW"))
    return call("BOUND", mine)


@st.composite
def _hole(draw: st.DrawFn, own: Position) -> Expression:
    mine = attribute(f"{own.name}.{draw(st.sampled_from(('v', 'v', 'v', 'k')))}")
    pair = (mine, HOLES[draw(st.sampled_from((0, 0, 0, 1)))])
    return call(draw(st.sampled_from(OPERATORS)), *(pair if draw(st.integers(0, 3)) else pair[::-1]))


@st.composite
def _argument(draw: st.DrawFn, own: Position, known: Sequence[Position]) -> Expression:
    mine = attribute(f"{own.name}.v")
    kind = draw(st.integers(0, 5))
    if kind == 0:
        return call("+", mine, 1)
    if kind == 1 and known:
        return call("+", mine, draw(_attribute(known)))
    return mine


@st.composite
def _guard(
    draw: st.DrawFn, known: Sequence[Position], variables: Sequence[str], names: Sequence[str]
) -> Expression:
    value = draw(_value(known, variables, names))
    return draw(
        st.sampled_from(
            (
                call("BOUND", value) if isinstance(value, Var) else call(">=", value, value),
                call("!", call("=", value, 1)),
                call("||", call(">", value, 0), call("!=", value, A)),
            )
        )
    )


@st.composite
def _value(
    draw: st.DrawFn, known: Sequence[Position], variables: Sequence[str], names: Sequence[str]
) -> Expression:
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return Const(A)
    if kind == 9:
        return call("COALESCE", draw(_attribute(known)) if known else Const(B), integer(7))
    if kind == 1:
        return TimeOf(draw(st.sampled_from(names)))
    if kind in (2, 3) and variables:
        return call("COALESCE", Var(draw(st.sampled_from(variables))), 0)
    if kind == 4 and variables:
        return Var(draw(st.sampled_from(variables)))
    if kind == 5:
        return call("-", TimeOf(names[0]), TimeOf(draw(st.sampled_from(names))))
    return draw(_attribute(known)) if known else Const(B)
