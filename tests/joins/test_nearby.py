"""Filters over geometries with an R-tree: answers are those of testing every pair, and the plan shows it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("shapely")
pytest.importorskip("pyproj")

import dotr
from dotr.cli.main import main
from dotr.extract import leaves
from dotr.joins.nearby import NearbyRelation

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
