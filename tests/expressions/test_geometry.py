"""Functions of geometries: the engine against the second implementation, and against what is known."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("shapely")
pytest.importorskip("pyproj")

import pyproj
import shapely

from dotr.expressions import literal_geometry
from dotr.expressions.geometry import GEO, GEOF, GEOMETRY, JSON, TOUCHING, WKT, RTree, geometry
from dotr.program import Const, Var
from dotr.rdf.terms import XSD, Term, integer, literal, literal_parts
from dotr.rdf.values import decode, encode
from tests.expressions.test_evaluate import agree, calls

EPSG = "http://www.opengis.net/def/crs/EPSG/0/"
UOM = "http://www.opengis.net/def/uom/OGC/1.0/"
CRS84 = "http://www.opengis.net/def/crs/OGC/1.3/CRS84"
SYSTEMS = ["", f"<{CRS84}> ", *(f"<{EPSG}{code}> " for code in (4326, 3857, 999999))]
KINDS = ("POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTIPOLYGON", "EMPTY", "BAD")
BAD = ("POINT(1", "POINT(nan 1)", "POLYGON((0 0, 1 1))", "POINT(1 1) x", "1 2")

numbers = st.integers(-8, 8) | st.sampled_from([0.5, 4.35, -7.125])
places = st.tuples(numbers, numbers)


def ring(draw: st.DrawFn) -> str:
    x, y = draw(places)
    width, height = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    corners = [(x, y), (x + width, y), (x + width, y + height), (x, y + height), (x, y)]
    return "(" + ", ".join(f"{a} {b}" for a, b in corners) + ")"


@st.composite
def texts(draw: st.DrawFn) -> str:
    one = draw(places)
    kind = draw(st.sampled_from(KINDS))
    match kind:
        case "POINT":
            return f"POINT ({one[0]} {one[1]})"
        case "LINESTRING" | "MULTIPOINT":
            more = draw(st.lists(places, min_size=2, max_size=4, unique=True))
            return f"{kind}(" + ", ".join(f"{a} {b}" for a, b in more) + ")"
        case "POLYGON":
            return f"POLYGON({ring(draw)})"
        case "MULTIPOLYGON":
            return f"MULTIPOLYGON(({ring(draw)}))"
        case "EMPTY":
            return draw(st.sampled_from(("", "POINT EMPTY", "POLYGON EMPTY")))
        case _:
            return draw(st.sampled_from(BAD))


@st.composite
def literals(draw: st.DrawFn) -> Term:
    text = draw(texts())
    if text not in BAD and text.startswith(("POINT (", "POLYGON((")) and draw(st.booleans()):
        return literal(shapely.to_geojson(shapely.from_wkt(text)), JSON)
    return literal(draw(st.sampled_from(SYSTEMS)) + text, WKT)


UNITS = [f"<{UOM}{name}>" for name in ("metre", "kilometre", "degree", "radian", "furlong")]
others = st.sampled_from([*UNITS, '"metre"', "<urn:x>", "7"])
arguments = st.sampled_from([Var("a"), Var("b"), *(Const(unit) for unit in UNITS)])
pairs = st.fixed_dictionaries({"a": literals(), "b": literals()})
any_pairs = st.fixed_dictionaries({"a": literals() | others, "b": literals() | others})
RELATIONS = sorted(TOUCHING | {f"<{GEOF}sfDisjoint>"})


@given(calls(RELATIONS, st.sampled_from([Var("a"), Var("b")])), pairs)
def test_relations_are_their_patterns(expression: Any, row: dict[str, Term | None]) -> None:
    agree(expression, row)


@given(calls(sorted(GEOMETRY), arguments), any_pairs)
def test_functions_of_any_terms(expression: Any, row: dict[str, Term | None]) -> None:
    agree(expression, row)


@given(st.lists(literals(), max_size=30), literals())
def test_an_r_tree_leaves_out_nothing_that_touches(stored: list[Term], asked: Term) -> None:
    given_place = geometry(decode(asked))
    read = [(term, geometry(decode(term))) for term in dict.fromkeys(stored)]
    known = [(term, one) for term, one in read if one is not None]
    if given_place is None:
        return
    found = [term for term, _ in RTree(known).touching(given_place)]
    assert len(set(found)) == len(found)
    for name in TOUCHING:
        _, test = GEOMETRY[name]
        for term, _ in known:
            if test(decode(asked), decode(term)) is True or test(decode(term), decode(asked)) is True:
                assert term in found


def value(name: str, *terms: Term) -> Any:
    found = GEOMETRY[f"<{GEOF}{name}>"][1](*map(decode, terms))
    return found if found is None or isinstance(found, bool | float) else literal_parts(encode(found))[0]


def wkt(text: str) -> Term:
    return literal(text, WKT)


METRE = f"<{UOM}metre>"


def test_a_distance_is_that_of_the_ellipsoid() -> None:
    """Vincenty's example: Flinders Peak to Buninyong, 54,972.271 m on GRS 80 as on WGS 84."""
    flinders = wkt(f"POINT({144 + 25 / 60 + 29.52440 / 3600} {-(37 + 57 / 60 + 3.72030 / 3600)})")
    buninyong = wkt(f"POINT({143 + 55 / 60 + 35.38390 / 3600} {-(37 + 39 / 60 + 10.15610 / 3600)})")
    assert value("distance", flinders, buninyong, METRE) == pytest.approx(54_972.271, abs=0.001)


def test_a_buffer_is_round_in_metres() -> None:
    centre = wkt("POINT(24 60)")
    written = value("buffer", centre, integer(1000), METRE)
    corners = shapely.get_coordinates(shapely.from_wkt(written)).tolist()
    lengths = [value("metricDistance", centre, wkt(f"POINT({x} {y})")) for x, y in corners]
    assert len(lengths) == 65
    assert all(math.isclose(length, 1000, abs_tol=0.01) for length in lengths)


def test_literals_are_written_as_their_system_orders_them() -> None:
    box = value("envelope", wkt(f"<{EPSG}4326> LINESTRING(50 4, 51 5)"))
    assert box == f"<{EPSG}4326> POLYGON ((50 4, 51 4, 51 5, 50 5, 50 4))"
    point = literal('{"type":"Point","coordinates":[4,50]}', JSON)
    assert json.loads(value("convexHull", point))["coordinates"] == [4, 50]
    assert value("getSRID", wkt("POINT(1 1)")) == CRS84


def test_crossed_polygons_have_no_union_but_end_nothing() -> None:
    bow = wkt("POLYGON((0 0, 2 2, 2 0, 0 2, 0 0))")
    for name in ("union", "intersection", "difference", "symDifference"):
        value(name, bow, wkt("POLYGON((0 0, 1 0, 1 1, 0 1, 0 0))"))


@pytest.mark.parametrize("bracket", ["(", "[", "{"])
def test_deep_brackets_are_no_geometry(bracket: str) -> None:
    closing = {"(": ")", "[": "]", "{": "}"}[bracket]
    text = bracket * 100_000 + closing * 100_000
    assert geometry(decode(wkt(f"GEOMETRYCOLLECTION{text}"))) is None
    assert geometry(decode(literal(text, f"{GEO}geoJSONLiteral"))) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("POINT(1 90)", "POLYGON((-3 -3, 5 -3, 5 5, -3 5, -3 -3))"),
        ("POINT(181 2)", "POLYGON((-3 -3, 5 -3, 5 5, -3 5, -3 -3))"),
        ("POINT(178.971395 50.853534)", "POLYGON((-182 -63, -176 -63, -176 -57, -182 -57, -182 -63))"),
        ("LINESTRING(179.5 16, 179.9 17)", "LINESTRING(-179.2 16.1, -179.8 16.9, -179 18)"),
        ("LINESTRING(3.607787 50.043835, 3.137556 50.405683)", "MULTIPOINT(4.30193 50.801027, 4.3 50.8)"),
        ("GEOMETRYCOLLECTION(POINT(4 50), POLYGON((5 50, 6 50, 6 51, 5 50)))", "POINT(5.2 50.6)"),
    ],
)
def test_distances_do_not_depend_on_the_order_of_shapes(one: str, other: str) -> None:
    a, b = wkt(one), wkt(other)
    literally = literal_geometry.GEOMETRY[f"<{GEOF}distance>"](a, b, METRE)
    assert literally is not None
    wanted = float(literal_parts(literally)[0])
    assert wanted > 0
    assert value("distance", a, b, METRE) == pytest.approx(wanted, abs=0.00015)
    assert value("distance", b, a, METRE) == pytest.approx(wanted, abs=0.00015)


def test_a_buffer_goes_past_the_180th_meridian_and_not_around_the_world() -> None:
    agree_on("buffer", wkt("POINT(179.9999 0)"), integer(10_000), METRE)
    wide = wkt(value("buffer", wkt("POINT(179.9999 0)"), integer(10_000), METRE))
    assert value("sfContains", wide, wkt("POINT(180.05 0)")) is True
    assert value("sfContains", wide, wkt("POINT(0 0)")) is False


def test_a_buffer_over_a_pole_has_no_value() -> None:
    for place in ("POINT(0 89.99)", "POINT(10 -89.99)"):
        agree_on("buffer", wkt(place), integer(10_000), METRE)
        assert value("buffer", wkt(place), integer(10_000), METRE) is None
        assert value("buffer", wkt(place), integer(100), METRE) is not None


@pytest.mark.parametrize("code", [2065, 2176, 2193, 3031, 3035, 3408, 5041, 32661])
def test_axes_are_exchanged_as_proj_exchanges_them(code: int) -> None:
    """Coordinates as PROJ gives them in the order of the system, brought back to where they came from."""
    crs = pyproj.CRS.from_epsg(code)
    area = crs.area_of_use
    x, y = (area.west + area.east) / 2 + 0.3, (area.south + area.north) / 2 + 0.2
    first, second = pyproj.Transformer.from_crs("EPSG:4326", crs).transform(y, x)
    there = wkt(f"<{EPSG}{code}> POINT({first} {second})")
    assert value("metricDistance", wkt(f"POINT({x} {y})"), there) < 1
    agree_on("intersection", there, there)
    agree_on("metricDistance", wkt(f"POINT({x} {y})"), there)


@pytest.mark.parametrize(
    "lexical",
    [
        "<> POINT(1 1)",
        "POINT\u00a0(1 1)",
        "POINT(1\u00a01)",
        f"<{EPSG}4807> POINT(10 1)",  # grads
        "POINT(1e400 1)",
        "LINESTRING(1e400 1, 2 2)",
    ],
)
def test_odd_texts_are_no_geometry(lexical: str) -> None:
    assert value("getSRID", wkt(lexical)) is None
    agree_on("getSRID", wkt(lexical))


@pytest.mark.parametrize("kind", ['["Point"]', "{}", "1", "null", '"point"'])
def test_a_geojson_of_an_odd_type_is_no_geometry(kind: str) -> None:
    odd = literal(f'{{"type":{kind},"coordinates":[1,1]}}', JSON)
    assert value("getSRID", odd) is None
    agree_on("getSRID", odd)


def test_a_line_of_equal_points_crosses_nothing() -> None:
    line = wkt("LINESTRING(1 1, 1 1)")
    for name in RELATIONS:
        agree_on(name[len(GEOF) + 1 : -1], line, line)
        agree_on(name[len(GEOF) + 1 : -1], line, wkt("LINESTRING(0 0, 2 2)"))


def test_relations_of_crossed_polygons_are_their_patterns() -> None:
    crossed = [
        "MULTIPOLYGON(((4 2,0 4,0 3,0 0,4 2)),((3 2,3 3,3 3,2 0,1 3,3 2)))",
        "POLYGON((2 0,0 0,4 2,2 0))",
        "POLYGON((2 0,2 1,2 0,2 0))",
        "POLYGON((3 2,4 1,4 2,3 2,0 2,3 2))",
        "POLYGON((0 2,2 0,0 1,2 0,3 1,0 2))",
    ]
    for one in crossed:
        for other in (*crossed, "POINT(3 2)", "LINESTRING(0 0, 4 2)"):
            for name in RELATIONS:
                agree_on(name[len(GEOF) + 1 : -1], wkt(one), wkt(other))
                agree_on(name[len(GEOF) + 1 : -1], wkt(other), wkt(one))


def test_numbers_near_the_ends_of_doubles_warn_of_nothing() -> None:
    thin = wkt(f"<{EPSG}3413> POLYGON((90 1200000, -180 0, -180 1e-300, 90 1200000))")
    agree_on("distance", thin, wkt(f"<{EPSG}3413> POINT(0 2500000)"), METRE)
    agree_on("metricBuffer", wkt(f"<{EPSG}27700> POINT(180 -88.5)"), literal("1e300", f"{XSD}double"))
    line = wkt(f"<{EPSG}2193> LINESTRING(2958436.63 10000000000, 1e-300 360)")
    agree_on("metricBuffer", line, literal("1e300", f"{XSD}double"))


def test_a_distance_of_long_edges_needs_no_room_for_millions_of_points() -> None:
    zigzag = ", ".join(f"{-170 + 340 * (n % 2)} {n / 100}" for n in range(2000))
    assert value("metricDistance", wkt(f"LINESTRING({zigzag})"), wkt("POINT(0 -1)")) > 100_000


def agree_on(name: str, *terms: Term) -> None:
    """That both implementations give a term, or neither; numbers and coordinates but for the last digit."""
    found = GEOMETRY[f"<{GEOF}{name}>"][1](*map(decode, terms))
    literally = literal_geometry.GEOMETRY[f"<{GEOF}{name}>"](*terms)
    assert (found is None) == (literally is None)
    if found is not None and literally is not None and name not in ("buffer", "metricDistance"):
        assert encode(found) == literally


@st.composite
def boxes_and_places(draw: st.DrawFn) -> tuple[list[tuple[int, int, int, int]], list[tuple[int, int]]]:
    """Boxes, some wide, and points, many on sides and corners."""
    numbers = st.integers(0, 12)
    sides = st.tuples(numbers, numbers, st.integers(1, 3) | st.integers(1, 90), st.integers(1, 3))
    found = [(x, y, x + u, min(90, y + v)) for x, y, u, v in draw(st.lists(sides, min_size=1, max_size=40))]
    return found, draw(st.lists(st.tuples(st.integers(-1, 90), st.integers(-1, 15)), min_size=1))


@given(boxes_and_places())
def test_a_grid_finds_for_a_point_what_a_tree_finds(
    drawn: tuple[list[tuple[int, int, int, int]], list[tuple[int, int]]],
) -> None:
    boxes, places = drawn
    texts = [f"POLYGON(({a} {b}, {c} {b}, {c} {d}, {a} {d}, {a} {b}))" for a, b, c, d in boxes]
    read = [(str(n), geometry(decode(literal(text, WKT)))) for n, text in enumerate(texts)]
    zones = [(name, known) for name, known in read if known is not None]
    tree, within = RTree(zones), GEOMETRY[f"<{GEOF}sfWithin>"][1]
    for x, y in places:
        value = decode(literal(f"POINT({x} {y})", WKT))
        point = geometry(value)
        assert point is not None
        touched = [str(n) for n, (a, b, c, d) in enumerate(boxes) if a <= x <= c and b <= y <= d]
        assert [term for term, _ in tree.touching(point)] == touched
        for name, zone in zones:
            expected = zone.shape.contains(shapely.Point(x, y))
            assert within(value, decode(literal(texts[int(name)], WKT))) == expected
