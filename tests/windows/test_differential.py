"""The engine is the literal reading: random programs and streams, points left out, cut anywhere."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from dotr.events import Time, Values
from dotr.program.program import FactWindow, Modality
from dotr.rdf.values import values_key
from dotr.reference.lars import LiteralLars
from dotr.windows.engine import LarsEngine
from dotr.windows.rules import reads, strata
from tests.windows.building import CLOCK, Lars, atom, last, now, program, row, rule, window
from tests.windows.parting import partition_keys
from tests.windows.worlds import TERMS, Piece, World, worlds

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"

Seen = dict[str, tuple[list[Values], list[Values], list[Values]]]
"""Head → what began, what ended, what holds."""


def first_readers(world: World) -> dict[str, int]:
    """The first stratum that reads a stream: until then its facts may come."""
    found: dict[str, int] = {}
    for stratum, numbers in enumerate(world.strata):
        for number in numbers:
            for name, _ in reads(world.program.rules[number]):
                found.setdefault(name, stratum)
    return found


def visit(lars: Lars, world: World, point: Time, late: bool) -> Seen:
    """One point; what is given to a stratum comes at once, or as late as it may."""
    lars.begin(point)
    waiting: list[tuple[int, Piece]] = []
    readers = first_readers(world)
    for piece in world.pieces.get(point, ()):
        waiting.append((readers.get(piece.name, 0) if late else 0, piece))
    seen: Seen = {}
    for stratum in range(len(world.strata)):
        for when, piece in waiting:
            if when == stratum:
                lars.facts(piece.name, piece.facts)
        for name, (began, ended) in lars.evaluate(stratum).items():
            seen[name] = (began, ended, [])
    for name in {known.head.atom.name: None for known in world.program.rules}:
        began, ended, _ = seen.get(name, ([], [], []))
        seen[name] = (began, ended, lars.holding(name))
    lars.end()
    return seen


def opened(kind: type[LiteralLars] | type[LarsEngine], world: World) -> Lars:
    return kind(world.program, world.strata, world.beginning, world.step, world.clock, world.watched)


def literal(world: World) -> dict[Time, Seen]:
    lars = opened(LiteralLars, world)
    return {
        point: visit(lars, world, point, False)
        for point in range(world.beginning, world.until + 1, world.step)
    }


def compare(world: World) -> None:
    expected = literal(world)
    for skip, cuts in ((False, False), (True, False), (True, True)):
        engine = opened(LarsEngine, world)
        for point, seen in expected.items():
            due = engine.due()
            assert due is None or due >= point, f"{due} was left out at {point}"
            if skip and point != due and point not in world.pieces and point != world.beginning:
                quiet = {n: s for n, s in seen.items() if s[0] or s[1]}
                assert not quiet, f"at {point} without being due: {quiet}\n{world.program.rules}"
                continue
            actual = visit(engine, world, point, skip)
            if actual != seen:
                rules = "\n".join(map(str, world.program.rules))
                pytest.fail(f"skip={skip} cuts={cuts} at {point}\n{actual}\nexpected {seen}\n{rules}")
            if cuts and point in world.cuts:
                state = json.loads(json.dumps(engine.snapshot()))
                engine = opened(LarsEngine, world)
                engine.restore(state)
                assert json.loads(json.dumps(engine.snapshot())) == state


@given(worlds())
@settings(max_examples=5_000 if DEEP else 300)
def test_the_engine_is_the_literal_reading(world: World) -> None:
    compare(world)


@given(worlds())
@settings(max_examples=1_000 if DEEP else 50)
def test_the_literal_reading_goes_on_from_a_snapshot(world: World) -> None:
    expected = literal(world)
    lars = opened(LiteralLars, world)
    for point, seen in expected.items():
        assert visit(lars, world, point, True) == seen
        if point in world.cuts:
            state = json.loads(json.dumps(lars.snapshot()))
            lars = opened(LiteralLars, world)
            lars.restore(state)


@given(worlds(keyed=True))
@settings(max_examples=2_000 if DEEP else 100)
def test_parts_by_key_hold_what_the_whole_holds(world: World) -> None:
    keys = partition_keys(world.program)
    assert keys is not None
    found: dict[Time, dict[str, list[Values]]] = {}
    for term in TERMS:
        pieces = {
            point: tuple(
                Piece(name, tuple(f for f in facts if name not in keys or f[1][keys[name]] == term))
                for name, facts in given
            )
            for point, given in ((p, [(x.name, x.facts) for x in given]) for p, given in world.pieces.items())
        }
        for point, seen in literal(replace(world, pieces=pieces)).items():
            for name, (_, _, holding) in seen.items():
                found.setdefault(point, {}).setdefault(name, []).extend(holding)
    for point, seen in literal(world).items():
        for name, (_, _, holding) in seen.items():
            assert sorted(found[point][name], key=values_key) == holding, (point, name)


def test_what_stands_on_an_atom_of_one_point_does_not_hold_itself_up() -> None:
    rules = program(
        rule(atom("h"), now("h"), replace(last(1, ("P",), "P", "a"), negated=True)),
        rule(atom("h"), window(Modality.AT, FactWindow(1, ("P",)), "P", "?x", at="t"), at="t"),
    )
    layers = strata(rules)
    seen = []
    for lars in (LiteralLars(rules, layers, 0, 1, CLOCK), LarsEngine(rules, layers, 0, 1, CLOCK)):
        held = []
        for point in range(4):
            lars.begin(point)
            lars.facts("P", [(point, row("b"))] if point == 1 else [])
            lars.evaluate(0)
            held.append(lars.holding("h"))
            lars.end()
        seen.append(held)
    assert seen == [[[], [()], [], []]] * 2
