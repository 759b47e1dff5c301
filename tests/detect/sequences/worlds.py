"""Random programs in which rules and sequences read each other."""

from __future__ import annotations

from random import Random

from msgspec.structs import replace

from dotr.events import Fact
from dotr.program.positions import Position
from dotr.program.program import Program
from dotr.program.queries import Attribute, GroupPattern, Projection, Select, TimeOf, Var
from dotr.program.rules import Absent, After, Binding, Choose, Every, Rule, Selection, Summarise, Within
from dotr.program.sequences import RowPattern
from tests.detect.sequences.patterns import VARIABLES, S, random_instants, random_sequence


def _query(variables: tuple[str, ...]) -> Select:
    return Select(tuple(Projection(name) for name in variables), GroupPattern(()))


def _named(rule: Rule, name: str, sources: dict[str, Position]) -> Rule:
    trigger = rule.trigger
    assert isinstance(trigger, RowPattern), "a sequence"
    positions = tuple(sources.get(p.name, p) for p in trigger.sources)
    return replace(rule, name=name, trigger=replace(trigger, sources=positions, name=name))


def random_program(random: Random) -> Program:
    """Sequences over queries, rules and each other, and rules that read them."""
    first = random_sequence(random)
    rules = [_named(first, "Seq", {})]
    seq = Position("Seq", "Seq", rules[0].variables, chained=True)
    beat = Every(random.choice([2, 3, 5]) * S, "Tick")
    recent = Choose(Selection.LAST, Position("S0", "S0", VARIABLES[0]), Within(4 * S, "Tick"))
    given = tuple(Binding(name, Attribute("S0", name)) for name in VARIABLES[0])
    rules.append(Rule("Beat", (), beat, (recent,), None, given, (), private=True))
    readers: list[Rule] = [
        Rule("Plain", (), seq, (), None, (Binding("t", TimeOf("Seq")),), ()),
        Rule(
            "Not",
            (),
            Position("S0", "S0", VARIABLES[0]),
            (Absent(seq, Within(random.choice([3, 8]) * S, "S0", before=random.random() < 0.5)),),
            None,
            (Binding("t", TimeOf("S0")),),
            (),
        ),
        Rule(
            "Count",
            (),
            Every(4 * S, "Now"),
            (Summarise("COUNT", None, False, "n", seq, Within(9 * S, "Now")),),
            None,
            (Binding("n", Var("n")),),
            (),
        ),
        Rule(
            "Late",
            (),
            After(seq, 2 * S, "Due"),
            (Choose(Selection.EACH, Position("S0", "S0", VARIABLES[0]), Within(5 * S, "Due")),),
            None,
            (Binding("v", Attribute("S0", "k")),),
            (),
        ),
    ]
    rules += random.sample(readers, random.randint(1, len(readers)))
    if random.random() < 0.5:
        second = random_sequence(random)
        name = "Beat" if random.random() < 0.5 else "Seq2"
        source = Position("S0", "Beat", VARIABLES[0], chained=True)
        if name == "Seq2" and set(VARIABLES[0]) <= set(rules[0].variables):
            source = Position("S0", "Seq", rules[0].variables, chained=True)
        rules.append(_named(second, "Other", {"S0": source}))
        other = Position("Other", "Other", rules[-1].variables, chained=True)
        rules.append(Rule("Reader", (), other, (), None, (Binding("t", TimeOf("Other")),), ()))
    if random.random() < 0.3:  # none has a clock
        rules = [rule for rule in rules if rule.name in ("Seq", "Plain", "Not")]
    random.shuffle(rules)
    return Program({f"S{n}": _query(VARIABLES[n]) for n in range(2)}, tuple(rules))


def random_history(random: Random, program: Program, length: int) -> list[tuple[int, dict[str, list[Fact]]]]:
    """(time, facts by stream)."""
    pattern = random_sequence(Random(0))
    assert isinstance(pattern.trigger, RowPattern), "a sequence"
    both = tuple(Position(f"S{n}", f"S{n}", VARIABLES[n]) for n in range(2))
    rows = random_instants(random, replace(pattern, trigger=replace(pattern.trigger, sources=both)), length)
    return [(time, {f"S{n}": facts for n, facts in found}) for time, found in rows]
