"""Filters over geometries with an R-tree: answers are those of testing every pair, and the plan shows it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("shapely")
pytest.importorskip("pyproj")

import dotr
from dotr.cli.main import main
from dotr.expressions.geometry import TOUCHING
from dotr.extract import leaves
from dotr.joins.nearby import NearbyRelation
from tests.expressions.test_geometry import literals

GEO = "http://www.opengis.net/ont/geosparql#"
RULES = """PREFIX : <urn:x:>
PREFIX geo: <http://www.opengis.net/ont/geosparql#>
PREFIX geof: <http://www.opengis.net/def/function/geosparql/>
BACKGROUND <zones.ttl>
RULE In
DEFINE { dotr_e :of ?v ; :in ?z }
FROM Q := { SELECT ?v ?z { ?v :at ?p . ?z geo:asWKT ?g FILTER(geof:RELATION(ONE, OTHER)) } }
WITH ?v := Q.?v, ?z := Q.?z
"""
SYSTEMS = (
    "",
    "<http://www.opengis.net/def/crs/EPSG/0/4326> ",
    "<http://www.opengis.net/def/crs/EPSG/0/4258> ",
)


def box(draw: random.Random) -> str:
    x, y = draw.randrange(20), draw.randrange(20)
    width, height = draw.randrange(1, 6), draw.randrange(1, 6)
    corners = [(x, y), (x + width, y), (x + width, y + height), (x, y + height), (x, y)]
    system = draw.choice(SYSTEMS)
    written = [(b, a) if system else (a, b) for a, b in corners]
    return f'"{system}POLYGON(({", ".join(f"{a} {b}" for a, b in written)}))"^^<{GEO}wktLiteral>'


def graphs(draw: random.Random) -> Iterator[str]:
    for n in range(30):
        triples = [
            f"<urn:x:v{k}> <urn:x:at> {draw.choice((place(draw), box(draw)))} ."
            for k in range(draw.randrange(3))
        ]
        if draw.random() < 0.3:
            triples.append(f"<urn:x:new{n}> <{GEO}asWKT> {box(draw)} .")
        yield "\n".join(triples)


def place(draw: random.Random) -> str:
    return f'"POINT({draw.randrange(24)} {draw.randrange(24)})"^^<{GEO}wktLiteral>'


def events(folder: Path, rules: str, seed: int) -> list[Any]:
    (folder / "in.dotr").write_text(rules)
    engine = dotr.Engine(folder / "in.dotr")
    found = [
        event for n, graph in enumerate(graphs(random.Random(seed))) for event in engine.push(graph, at=n)
    ]
    return [(one.time, one.id) for one in [*found, *engine.finish()]]


@pytest.mark.parametrize(
    "relation", ["sfWithin", "sfContains", "sfIntersects", "sfTouches", "sfOverlaps", "sfEquals"]
)
def test_answers_are_those_of_every_pair(
    relation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    look = NearbyRelation.near
    monkeypatch.setattr(NearbyRelation, "near", lambda *given: asked.append(1) or look(*given))
    for seed in range(4):
        draw = random.Random(100 + seed)
        zones = "\n".join(f"<urn:x:z{n}> <{GEO}asWKT> {box(draw)} ." for n in range(40))
        (tmp_path / "zones.ttl").write_text(
            f'{zones}\n<urn:x:empty> <{GEO}asWKT> "POLYGON EMPTY"^^<{GEO}wktLiteral> .\n'
        )
        for one, other in (("?p", "?g"), ("?g", "?p")):
            rules = RULES.replace("RELATION", relation).replace("ONE", one).replace("OTHER", other)
            found = events(tmp_path, rules, seed)
            with monkeypatch.context() as every:
                every.setattr(leaves, "_nearby", lambda *given: ())
                assert events(tmp_path, rules, seed) == found
    assert asked


@st.composite
def geometries(draw: st.DrawFn) -> str:
    """Those of one reference system or another, empty, invalid ones, and what is none."""
    crossed = f'"POLYGON((0 0, 6 6, 6 0, 0 6, 0 0))"^^<{GEO}wktLiteral>'
    return draw(literals() | st.just(crossed))


streams = st.lists(
    st.tuples(
        st.lists(geometries(), max_size=3),
        st.lists(geometries(), max_size=1),  # zones of one instant alone
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(sorted(TOUCHING)),
    st.booleans(),
    st.lists(geometries(), min_size=1, max_size=12, unique=True),
    streams,
    st.sampled_from(("", "EXISTS", "NOT EXISTS")),
    st.booleans(),
)
def test_any_geometries_one_by_one_and_together(
    tmp_path: Path, function: str, turned: bool, zones: list[str], stream: Any, exists: str, whole: bool
) -> None:
    (tmp_path / "zones.ttl").write_text(
        "".join(f"<urn:x:z{n}> <{GEO}asWKT> {zone} .\n" for n, zone in enumerate(zones))
    )
    pair = ("?g", "?p") if turned else ("?p", "?g")
    name = function.rpartition("/")[2].rstrip(">")
    rules = RULES.replace("RELATION", name).replace("ONE", pair[0]).replace("OTHER", pair[1])
    if exists:
        rules = rules.replace("?v :at ?p . ", f"?v :at ?p FILTER {exists} {{ ").replace(")) }", ")) } }")
        rules = rules.replace(" ; :in ?z", "").replace(", ?z := Q.?z", "")
        rules = rules.replace("SELECT ?v ?z", "SELECT ?v")
    (tmp_path / "in.dotr").write_text(rules)
    graphs = [
        (
            time,
            "\n".join(
                [f"<urn:x:v{k}> <urn:x:at> {one} ." for k, one in enumerate(at)]
                + [f"<urn:x:new{k}> <{GEO}asWKT> {one} ." for k, one in enumerate(new)]
            ),
        )
        for time, (at, new) in enumerate(stream)
    ]

    def found() -> list[Any]:
        engine = dotr.Engine(tmp_path / "in.dotr")
        if whole:
            events = [*engine.push_all(graphs)]
        else:
            events = [engine.push(graph, at=time) for time, graph in graphs]
        return [(one.time, one.id) for part in [*events, engine.finish()] for one in part]

    with pytest.MonkeyPatch.context() as every:
        every.setattr(leaves, "_nearby", lambda *given: ())
        expected = found()
    assert found() == expected


def test_conditions_that_use_the_tree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "zones.ttl").write_text(f"<urn:x:z> <{GEO}asWKT> {box(random.Random(1))} .\n")
    within = "geof:sfWithin(?p, ?g)"
    for condition, uses in (
        (f"FILTER({within} && ?z != :none)", True),
        (f"FILTER({within} || ?z = :none)", False),
        (f"FILTER(!{within})", False),
        ("FILTER(geof:sfDisjoint(?p, ?g))", False),
        ("FILTER(geof:sfIntersects(geof:metricBuffer(?p, 5), ?g))", False),
        ("FILTER(geof:metricDistance(?p, ?g) < 5)", False),
    ):
        (tmp_path / "in.dotr").write_text(RULES.replace("FILTER(geof:RELATION(ONE, OTHER))", condition))
        with pytest.raises(SystemExit, match="0"):
            main(["plan", str(tmp_path / "in.dotr")])
        assert ("near an object of" in capsys.readouterr().out) is uses, condition


def test_the_plan_shows_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "zones.ttl").write_text(f"<urn:x:z> <{GEO}asWKT> {box(random.Random(1))} .\n")
    (tmp_path / "in.dotr").write_text(
        RULES.replace("RELATION", "sfWithin").replace("ONE", "?p").replace("OTHER", "?g")
    )
    with pytest.raises(SystemExit, match="0"):
        main(["plan", str(tmp_path / "in.dotr")])
    plan = capsys.readouterr().out
    assert "find ?p near an object of" in plan
    assert "filter geof:sfWithin(?p, ?g)" in plan


def test_without_the_extra_a_program_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dotr.lang.grammar.expressions.available", lambda: False)
    (tmp_path / "zones.ttl").write_text("")
    (tmp_path / "in.dotr").write_text(
        RULES.replace("RELATION", "sfWithin").replace("ONE", "?p").replace("OTHER", "?g")
    )
    with pytest.raises(dotr.ProgramError, match=r"(?s)D1230.*pip install 'dotr\[geo\]'") as refused:
        dotr.Engine(tmp_path / "in.dotr")
    assert "geof:sfWithin needs shapely and pyproj" in str(refused.value)
