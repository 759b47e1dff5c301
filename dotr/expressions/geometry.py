"""The functions of GeoSPARQL 1.1 on geo:wktLiteral and geo:geoJSONLiteral; they need the extra `geo`.

Place:   functions.py has them in its table, by the IRIs of the namespace `geof`; joins/nearby.py asks for
         envelopes. The libraries (shapely 2 over GEOS, pyproj over PROJ) are imported at the first geometry.
Method:  a literal is read once, and kept until 32 million characters of them are. Coordinates are kept with
         the easting (longitude) first; literals are read and written in the order of their reference system.
         The second geometry is brought into the reference system of the first (GeoSPARQL 1.1, sec.
         8.7). In systems of longitude and latitude, distances and buffers are geodesic: for two points
         exactly (Karney 2013), else after projecting by the geodesics from one point (azimuthal equidistant);
         a distance by turns, from the point of each shape that is nearest to that of the other.
         Edges are divided before, so that they stay straight in longitude and latitude. Relations are
         those of the plane of the coordinates (simple features); of crossed polygons and the like by the
         intersection matrix, since predicates of GEOS contradict each other there.
         Distances are rounded to tenths of millimetres, written coordinates to 9 digits of degrees and 4 of
         other units, so that no last bit of a library shows.
Why not: a projection of pyproj for each point: making one costs a thousand times a distance.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from struct import Struct
from typing import Any, Final

import msgspec

from dotr.expressions.operators import is_number
from dotr.rdf.terms import XSD, Term, TextMemo, literal, literal_parts
from dotr.rdf.values import Opaque, Resource, Value, decode, to_double
from dotr.regex import regex

GEO: Final = "http://www.opengis.net/ont/geosparql#"
GEOF: Final = "http://www.opengis.net/def/function/geosparql/"
WKT: Final = f"{GEO}wktLiteral"
JSON: Final = f"{GEO}geoJSONLiteral"

_LITERALS: Final = (f'"^^<{WKT}>', f'"^^<{JSON}>')
_UOM: Final = "http://www.opengis.net/def/uom/OGC/1.0/"
_LENGTHS: Final = {"metre": 1.0, "kilometre": 1000.0}
_ANGLES: Final = {"degree": 1.0, "radian": 180 / math.pi}
_CRS84: Final = "http://www.opengis.net/def/crs/OGC/1.3/CRS84"
_NUMBER = r"([-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]{1,3})?)"
_SPACE = r"[ \t\r\n]"  # as GEOS has it
_POINT: Final = regex(
    rf'"(?:<([^<>\s]+)>{_SPACE}*)?(?:POINT|Point|point){_SPACE}*\({_SPACE}*{_NUMBER}{_SPACE}+{_NUMBER}{_SPACE}*\)'
    rf'{_SPACE}*"\^\^<{re.escape(WKT)}>'
)
_POINT_OF: Final = Struct("<BIdd").pack  # well-known binary, which is read faster than a point is made
_EPSG: Final = regex(r"https?://www\.opengis\.net/def/crs/EPSG/[0-9.]{1,9}/([0-9]{1,7})/?")
_WKT: Final = regex(r"\s*(?:<([^<>\s]+)>)?\s*([^<>]*)")
_BRACKET: Final = regex(r"[(\[{)\]}]")
_DEEPEST: Final = 24
_FARTHEST: Final = 1e10
_KINDS: Final = frozenset(
    ("Point", "LineString", "Polygon", "MultiPoint", "MultiLineString", "MultiPolygon", "GeometryCollection")
)
_PIECES: Final = ((0.02, 0.05), (0.001, 0.002), (0.000_02, 0.000_1))
"""Degrees of the pieces of an edge while nearest points are sought; what is so far around them is left."""
_MOST_PIECES: Final = 100_000
_TURNS: Final = 8
_PRECISE: Final = 1e-6  # metres
_MULTIPLE: Final = 4  # the first number of a collection among shapely's types
Place = tuple[float, float]
_STEPS: Final = 16  # edges of a quarter of a buffer's circle


@lru_cache(maxsize=1)
def available() -> bool:
    """Whether the extra `geo` is installed."""
    return find_spec("shapely") is not None and find_spec("pyproj") is not None


@lru_cache(maxsize=1)
def _shapely() -> Any:
    import shapely  # noqa: PLC0415  # an extra

    return shapely


@lru_cache(maxsize=1)
def _contains_xy() -> Any:
    """The function of that name without what it does for arrays, at half the time."""
    return _shapely().lib.contains_xy


@lru_cache(maxsize=1)
def _numpy() -> Any:
    import numpy  # noqa: PLC0415  # comes with shapely

    return numpy


@lru_cache(maxsize=1)
def _pyproj() -> Any:
    import pyproj  # noqa: PLC0415  # an extra
    import pyproj.network  # noqa: PLC0415  # an extra

    pyproj.network.set_network_enabled(active=False)
    return pyproj


def _is_turned(first: Any, second: Any) -> bool:
    """Whether PROJ exchanges these axes to have the easting first. Those to south and west stay."""
    directions = first.direction.lower(), second.direction.lower()
    along_one_meridian = directions[0] == directions[1] and first.name.startswith("Northing")
    return directions == ("north", "east") or along_one_meridian


class System:
    """A coordinate reference system. `swapped`: its literals have the northing first; `unit`: metres of one
    of its units, None for degrees; `limits`: how far coordinates may be from zero; systems of equal `code`
    have equal coordinates.
    """

    def __init__(self, iri: str, crs: Any) -> None:
        self.iri = iri
        self.crs = crs
        self.geographic = crs.is_geographic
        first, second = crs.axis_info
        self.limits = (360.0, 90.0) if self.geographic else (_FARTHEST, _FARTHEST)
        self.swapped = _is_turned(first, second)
        self.unit = None if self.geographic else first.unit_conversion_factor
        self.code = "CRS84" if iri == _CRS84 or crs.to_authority() == ("EPSG", "4326") else iri
        self.geod = crs.get_geod() if self.geographic else None


@lru_cache(maxsize=256)
def system_of(iri: str) -> System | None:
    """The reference system of an IRI of OGC: CRS84, or EPSG's geographic and projected ones of two axes."""
    pyproj = _pyproj()
    if iri == _CRS84:
        return System(iri, pyproj.CRS.from_authority("OGC", "CRS84"))
    found = _EPSG.fullmatch(iri)
    if found is None:
        return None
    try:
        crs = pyproj.CRS.from_epsg(int(found[1]))
    except pyproj.exceptions.ProjError:
        return None
    if len(crs.axis_info) != 2:
        return None
    in_degrees = crs.is_geographic and crs.axis_info[0].unit_name == "degree"
    return System(iri, crs) if in_degrees or crs.is_projected else None


def _quiet() -> Any:
    """Without warnings of numbers beyond the range of a double: they are infinite, and refused later."""
    return _numpy().errstate(all="ignore")


class Geometry(msgspec.Struct, eq=False, gc=False):
    """A geometry with its system, and the datatype of its literal. `shape` has the easting first; `valid`:
    whether no ring crosses itself and no line is a point. `place`: where it is, of a point of a literal: its
    shape is made when somebody needs one.
    """

    _shape: Any
    system: System
    datatype: str
    valid: bool = True
    place: Place | None = None
    _moved: tuple[str, Any] | None = None

    @property
    def shape(self) -> Any:
        if self._shape is None:
            assert self.place is not None
            given = _numpy().empty(1, dtype=object)  # what the library makes of bytes, at half the time
            given[0] = _POINT_OF(1, 1, *self.place)
            self._shape = _shapely().from_wkb(given)[0]
        return self._shape

    def within(self, system: System) -> Any:
        """The shape in another system; None if it cannot be brought there."""
        if system is self.system or system.code == self.system.code:
            return self.shape
        if self._moved is None or self._moved[0] != system.code:
            change = _transformer(self.system.iri, system.iri)
            shape = _shapely().transform(self.shape, change.transform, interleaved=False)
            self._moved = system.code, shape if _finite(shape) else None
        return self._moved[1]


@lru_cache(maxsize=256)
def _transformer(source: str, target: str) -> Any:
    start, end = system_of(source), system_of(target)
    assert start is not None
    assert end is not None
    return _pyproj().Transformer.from_crs(start.crs, end.crs, always_xy=True)


Located = tuple[Term, Geometry]


def geometry(value: object) -> Geometry | None:
    """The geometry of a well-typed literal, None for every other value."""
    if type(value) is not Opaque or value.datatype not in (WKT, JSON):
        return None
    return _known[value.term]


def geometry_of(term: Term) -> Geometry | None:
    """The geometry of a canonical term, None for what is none."""
    return _known[term] if term.endswith(_LITERALS) else None


def _of_term(term: Term) -> Geometry | None:
    point = _POINT.fullmatch(term)
    if point is not None and available():  # most literals of a stream: in a third of the time
        return _of_point(point[2], point[3], system_of(point[1] or _CRS84))
    lexical, datatype, _ = literal_parts(term)
    return read(lexical, datatype)


_known: TextMemo[Geometry | None] = TextMemo(_of_term)


def read(lexical: str, datatype: str) -> Geometry | None:
    """The geometry of a lexical form; None if it is none, or is of a system that is not known."""
    if not available():
        return None
    if _is_deep(lexical):
        return None
    found = _WKT.fullmatch(lexical) if datatype == WKT else None
    system = system_of((found and found[1]) or _CRS84)
    if system is None or (datatype == WKT and found is None):
        return None
    shape = _of_json(lexical) if found is None else _of_text(found[2])
    if shape is not None and system.swapped:
        shape = _turned(shape)
    if shape is None or not _is_possible(shape, system):
        return None
    valid = bool(_shapely().is_valid(shape))
    if valid:
        _shapely().prepare(shape)
    return Geometry(shape, system, datatype, valid)


def _of_point(first: str, second: str, system: System | None) -> Geometry | None:
    if system is None:
        return None
    x, y = float(first), float(second)
    if system.swapped:
        x, y = y, x
    east, north = system.limits
    if not (abs(x) <= east and abs(y) <= north):
        return None
    return Geometry(None, system, WKT, place=(x, y))


def _is_deep(text: str) -> bool:
    """Whether brackets are nested more deeply than geometries are: readers would recur."""
    if sum(map(text.count, "([{")) <= _DEEPEST:
        return False
    depth = 0
    for bracket in _BRACKET.findall(text):
        depth += 1 if bracket in "([{" else -1
        if depth > _DEEPEST:
            return True
    return False


def _of_text(text: str) -> Any:
    shapely = _shapely()
    if not text.strip():
        return shapely.GeometryCollection()
    try:
        with _quiet():
            return shapely.force_2d(shapely.from_wkt(text))
    except (shapely.errors.ShapelyError, ValueError, NotImplementedError):
        return None


def _of_json(text: str) -> Any:
    shapely = _shapely()
    try:
        found = json.loads(text)
        kind = found.get("type") if isinstance(found, dict) else None
        if not isinstance(kind, str) or kind not in _KINDS:
            return None
        with _quiet():
            return shapely.force_2d(shapely.from_geojson(text))
    except (shapely.errors.ShapelyError, ValueError, NotImplementedError):
        return None


def _is_possible(shape: Any, system: System) -> bool:
    """Whether coordinates are within reason, and latitudes within 90°."""
    return bool((abs(_shapely().get_coordinates(shape)) <= system.limits).all())


def _finite(shape: Any) -> bool:
    return all(map(math.isfinite, _shapely().get_coordinates(shape).ravel().tolist()))


def _turned(shape: Any) -> Any:
    """With the two coordinates of each point exchanged."""
    return _shapely().transform(shape, lambda xy: xy[:, ::-1])


# -- relations ---------------------------------------------------------------------------------------


def _relation(name: str, turned: bool = False) -> Callable[[Geometry, Geometry], bool | None]:
    """A relation of simple features; `turned`: as that of the second geometry to the first, which is the one
    that is prepared.
    """
    of_place = turned and name == "contains"

    def apply(first: Geometry, second: Geometry) -> bool | None:
        other = second.within(first.system)
        if other is None:
            return None
        try:
            if of_place and first.place is not None and second.valid:
                return bool(_contains_xy()(other, *first.place))  # no shape is made of the point
            if not (first.valid and second.valid):
                return _by_matrix("within" if turned else name, first.shape, other)
            one, another = (other, first.shape) if turned else (first.shape, other)
            return bool(getattr(one, name)(another))  # a method, at a tenth of the function's time
        except _shapely().errors.ShapelyError:
            return None

    return apply


def _of_values(relation: Callable[[Geometry, Geometry], bool | None]) -> Callable[..., Value | None]:
    def apply(a: Value, b: Value) -> Value | None:
        first, second = geometry(a), geometry(b)
        return None if first is None or second is None else relation(first, second)

    return apply


_MATRICES: Final = {
    "equals": ("T*F**FFF*",),
    "disjoint": ("FF*FF****",),
    "intersects": ("T********", "*T*******", "***T*****", "****T****"),
    "touches": ("FT*******", "F**T*****", "F***T****"),
    "contains": ("T*****FF*",),
    "within": ("T*F**F***",),
    "crosses 1 1": ("0********",),
    "overlaps 0 0": ("T*T***T**",),
    "overlaps 1 1": ("1*T***T**",),
    "overlaps 2 2": ("T*T***T**",),
    **{f"crosses {m} {n}": ("T*T******",) for m, n in ((0, 1), (0, 2), (1, 2))},
    **{f"crosses {m} {n}": ("T*****T**",) for m, n in ((1, 0), (2, 0), (2, 1))},
}
"""Patterns of the intersection matrix, of which one is to hold; for two relations by the dimensions."""


def _by_matrix(name: str, a: Any, b: Any) -> bool:
    """A relation of shapes that are not valid: prepared ones, and shortcuts of GEOS, differ there."""
    shapely = _shapely()
    if name == "equals" and a.is_empty and b.is_empty:
        return True
    if name in ("crosses", "overlaps"):
        m, n = (shapely.get_dimensions(one) if one.length else 0 for one in (a, b))
        name = f"{name} {m} {n}"
    matrix = shapely.relate(shapely.force_2d(a), b)  # of a copy that is not prepared
    return any(
        all(p in ("*", c) or (p == "T" and c != "F") for p, c in zip(pattern, matrix, strict=True))
        for pattern in _MATRICES.get(name, ())
    )


# -- lengths -----------------------------------------------------------------------------------------


def _unit(value: Value) -> tuple[float | None, float | None] | None:
    """Metres or degrees of a unit."""
    name = value.term[1:-1].removeprefix(_UOM) if isinstance(value, Resource) else ""
    if isinstance(value, Resource) and value.term == f"<{_UOM}{name}>":
        if name in _LENGTHS:
            return _LENGTHS[name], None
        if name in _ANGLES:
            return None, _ANGLES[name]
    return None


def _distance(a: Value, b: Value, unit: Value) -> Value | None:
    first, second, known = geometry(a), geometry(b), _unit(unit)
    if first is None or second is None or known is None:
        return None
    metres, degrees = known
    other = second.within(first.system)
    if other is None or first.shape.is_empty or other.is_empty:
        return None
    system = first.system
    shapely = _shapely()
    try:
        if metres is not None:
            if system.geographic:
                found = _geodesic(first.shape, other, system.geod)
            else:
                found = shapely.distance(first.shape, other) * system.unit
            digits = 4 if metres == 1 else 7
            return round(float(found) / metres, digits) if math.isfinite(found) else None
        if not system.geographic or degrees is None:
            return None
        return round(float(shapely.distance(first.shape, other)) / degrees, 12)
    except (shapely.errors.ShapelyError, ValueError):
        return None


def _metric_distance(a: Value, b: Value) -> Value | None:
    return _distance(a, b, Resource(f"<{_UOM}metre>"))


def _geodesic(a: Any, b: Any, geod: Any) -> float:
    """Metres between two shapes of longitude and latitude."""
    if a.geom_type == b.geom_type == "Point":
        return _between(geod, a.x, a.y, b.x, b.y)
    shapely = _shapely()
    if shapely.intersects(a, b):
        return 0.0
    a, b = _lines(a), _lines(b)
    x, y = shapely.shortest_line(a, b).coords[0]
    found = math.inf
    for piece, around in _PIECES:
        near = _Around(geod, x, y)
        shapes = [shapely.segmentize(shape, _piece(shape, piece)) for shape in (a, b)]
        line = shapely.shortest_line(*map(near.project, shapes))
        one, other = (near.place(*point) for point in line.coords)
        found = _between(geod, *one, *other)
        for _ in range(_TURNS):
            other = _nearest(geod, one, shapes[1])
            one = _nearest(geod, other, shapes[0])
            before, found = found, _between(geod, *one, *other)
            if found > before - _PRECISE:
                break
        x, y = one
        a, b = _clipped(a, *one, around), _clipped(b, *other, around)
    return found


def _nearest(geod: Any, place: Place, shape: Any) -> Place:
    """The point of a shape nearest to a place: lengths from the centre of the plane are exact."""
    shapely = _shapely()
    near = _Around(geod, *place)
    return near.place(*shapely.shortest_line(shapely.Point(0, 0), near.project(shape)).coords[1])


def _lines(shape: Any) -> Any:
    """Points and lines of a shape, for polygons their rings: shapes that do not meet are nearest there."""
    shapely = _shapely()
    parts = shapely.get_parts(shape)
    if len(parts) == 1 and parts[0] is not shape and shapely.get_type_id(parts[0]) < _MULTIPLE:
        return shapely.boundary(parts[0]) if shapely.get_dimensions(parts[0]) == 2 else parts[0]
    return shapely.GeometryCollection([_lines(part) for part in parts])


def _piece(shape: Any, length: float) -> float:
    """The length of pieces of edges, longer where there were too many."""
    return max(length, float(_shapely().length(shape)) / _MOST_PIECES)


def _between(geod: Any, x: float, y: float, u: float, v: float) -> float:
    return float(geod.inv(x, y, u, v)[2])


def _clipped(lines: Any, x: float, y: float, around: float) -> Any:
    """The part around a point of the lines; all of them where nothing is left."""
    shapely = _shapely()
    places = [x + turn for turn in (-360, 0, 360)]
    parts = [shapely.clip_by_rect(lines, u - around, y - around, u + around, y + around) for u in places]
    found = [part for part in parts if not part.is_empty]
    return shapely.GeometryCollection(found) if found else lines


class _Around:
    """The plane of geodesics from a point: a place by its direction and distance from there, in metres."""

    def __init__(self, geod: Any, x: float, y: float) -> None:
        self._geod, self._x, self._y = geod, x, y

    def project(self, shape: Any) -> Any:
        return _shapely().transform(shape, self._forth)

    def back(self, shape: Any) -> Any:
        return _shapely().transform(shape, self._back)

    def place(self, east: float, north: float) -> tuple[float, float]:
        """Longitude and latitude of a point of the plane; the longitude within 180° of the first point's."""
        x, y, _ = self._geod.fwd(
            self._x, self._y, math.degrees(math.atan2(east, north)), math.hypot(east, north)
        )
        return self._x + math.remainder(x - self._x, 360), float(y)

    def _forth(self, places: Any) -> Any:
        here = [self._x] * len(places), [self._y] * len(places)
        azimuths, _, lengths = self._geod.inv(*here, *places.T.tolist())
        found = places.copy()
        for row, (azimuth, length) in enumerate(zip(map(math.radians, azimuths), lengths, strict=True)):
            found[row] = length * math.sin(azimuth), length * math.cos(azimuth)
        return found

    def _back(self, places: Any) -> Any:
        found = places.copy()
        for row, point in enumerate(places.tolist()):
            found[row] = self.place(*point)
        return found


# -- geometries of geometries ------------------------------------------------------------------------


def _written(shape: Any, like: Geometry) -> Value | None:
    """The literal of a shape, in the form, the system and the order of axes of another."""
    shapely = _shapely()
    digits = 9 if like.system.geographic else 4
    shape = shapely.normalize(shapely.transform(shape, lambda xy: xy.round(digits) + 0.0))
    if not _finite(shape):
        return None
    if like.datatype == JSON:
        return decode(literal(shapely.to_geojson(shape), JSON))
    text = shapely.to_wkt(_turned(shape) if like.system.swapped else shape, rounding_precision=digits)
    prefix = "" if like.system.iri == _CRS84 else f"<{like.system.iri}> "
    return decode(literal(prefix + text, WKT))


def _one(name: str) -> Callable[..., Value | None]:
    def apply(a: Value) -> Value | None:
        given = geometry(a)
        return None if given is None else _computed(name, given, given.shape)

    return apply


def _two(name: str) -> Callable[..., Value | None]:
    def apply(a: Value, b: Value) -> Value | None:
        first, second = geometry(a), geometry(b)
        if first is None or second is None:
            return None
        other = second.within(first.system)
        return None if other is None else _computed(name, first, first.shape, other)

    return apply


def _computed(name: str, like: Geometry, *shapes: Any) -> Value | None:
    shapely = _shapely()
    try:
        found = getattr(shapely, name)(*shapes)
        return None if found is None else _written(found, like)
    except shapely.errors.ShapelyError:
        return None


def _buffer(a: Value, radius: Any, unit: Value) -> Value | None:
    given, known = geometry(a), _unit(unit)
    if given is None or known is None or not is_number(radius):
        return None
    (metres, degrees), system, shapely = known, given.system, _shapely()
    width = to_double(radius)
    if not math.isfinite(width) or (degrees is not None and not system.geographic):
        return None
    try:
        if degrees is not None or not system.geographic or given.shape.is_empty:
            scale = degrees if metres is None else metres / (system.unit or 1.0)
            assert scale is not None
            return _written(shapely.buffer(given.shape, width * scale, quad_segs=_STEPS), given)
        centre = shapely.centroid(given.shape)
        near = _Around(system.geod, centre.x, centre.y)
        wide = shapely.buffer(near.project(given.shape), width * (metres or 1.0), quad_segs=_STEPS)
        poles = near.project(shapely.MultiPoint([(0, 90), (0, -90)]))
        return None if shapely.intersects(wide, poles) else _written(near.back(wide), given)
    except (shapely.errors.ShapelyError, ValueError):
        return None


def _metric_buffer(a: Value, radius: Value) -> Value | None:
    return _buffer(a, radius, Resource(f"<{_UOM}metre>"))


def _srid(a: Value) -> Value | None:
    given = geometry(a)
    return None if given is None else decode(literal(given.system.iri, f"{XSD}anyURI"))


RELATIONS: Final[Mapping[str, Callable[[Geometry, Geometry], bool | None]]] = {
    f"<{GEOF}sfEquals>": _relation("equals"),
    f"<{GEOF}sfDisjoint>": _relation("disjoint"),
    f"<{GEOF}sfIntersects>": _relation("intersects"),
    f"<{GEOF}sfTouches>": _relation("touches"),
    f"<{GEOF}sfCrosses>": _relation("crosses"),
    f"<{GEOF}sfWithin>": _relation("contains", turned=True),
    f"<{GEOF}sfContains>": _relation("contains"),
    f"<{GEOF}sfOverlaps>": _relation("overlaps"),
}
"""Relations of simple features, by IRI. A second geometry is brought into the system of the first."""


def _calm(function: Callable[..., Value | None]) -> Callable[..., Value | None]:
    """The function without NumPy's warnings, of widths and coordinates near the ends of doubles."""

    def apply(*given: Value) -> Value | None:
        if not available():
            return None
        with _quiet():
            return function(*given)

    return apply


GEOMETRY: Final[Mapping[str, tuple[int, Callable[..., Value | None]]]] = {
    **{name: (2, _of_values(relation)) for name, relation in RELATIONS.items()},
    f"<{GEOF}distance>": (3, _calm(_distance)),
    f"<{GEOF}metricDistance>": (2, _calm(_metric_distance)),
    f"<{GEOF}buffer>": (3, _calm(_buffer)),
    f"<{GEOF}metricBuffer>": (2, _calm(_metric_buffer)),
    f"<{GEOF}envelope>": (1, _calm(_one("envelope"))),
    f"<{GEOF}convexHull>": (1, _calm(_one("convex_hull"))),
    f"<{GEOF}boundary>": (1, _calm(_one("boundary"))),
    f"<{GEOF}union>": (2, _calm(_two("union"))),
    f"<{GEOF}intersection>": (2, _calm(_two("intersection"))),
    f"<{GEOF}difference>": (2, _calm(_two("difference"))),
    f"<{GEOF}symDifference>": (2, _calm(_two("symmetric_difference"))),
    f"<{GEOF}getSRID>": (1, _calm(_srid)),
}
"""By IRI: the number of arguments, and the function of values."""

TOUCHING: Final = RELATIONS.keys() - {f"<{GEOF}sfDisjoint>"}
"""Relations that hold only of geometries whose envelopes have a point in common, unless they are empty."""


class RTree:
    """Terms by the envelopes of their geometries: an R-tree for each system, made once, in their order."""

    def __init__(self, geometries: Sequence[Located]) -> None:
        self._apart: list[Located] = []
        by_code: dict[str, list[Located]] = {}
        for one in geometries:
            shape, code = one[1].shape, one[1].system.code
            (self._apart if shape.is_empty else by_code.setdefault(code, [])).append(one)
        self._asked = _numpy().empty(1, dtype=object)  # at half the time of a shape
        self._trees = {
            code: (located, _shapely().STRtree([one.shape for _, one in located]))
            for code, located in by_code.items()
        }
        self._grids = {
            code: _Grid(_shapely().bounds([one.shape for _, one in located]).tolist())
            for code, located in by_code.items()
        }

    def touching(self, given: Geometry) -> list[Located]:
        """Those whose envelope has a point in common with this geometry's, and those of which that is not
        known. Cost: O(log n) and what is found.
        """
        found = list(self._apart)
        known = None if given.place is None and given.shape.is_empty else given.system.code
        for code, (located, tree) in self._trees.items():
            if code == known and given.place is not None and self._grids[code].fits:
                found += [located[place] for place in self._grids[code].around(*given.place)]
            elif code == known:
                self._asked[0] = given.shape
                found += [located[place] for place in sorted(tree.query(self._asked)[1].tolist())]
            else:
                found += located
        return found


_WIDE: Final = 16
"""Cells of a grid in which an envelope is entered; wider ones are tested for each point."""

_MOST_WIDE: Final = 8
"""With more of them a grid is no help."""


class _Grid:
    """Envelopes by the cells of a grid that they touch: for a point in a third of the time of a tree.
    `fits`: whether it helps. An envelope is left, lower, right, upper; sides belong to it.
    """

    def __init__(self, envelopes: Sequence[Sequence[float]]) -> None:
        left, low, right, high = zip(*envelopes, strict=True)
        self._x, self._y = min(left), min(low)
        side = math.isqrt(len(envelopes)) + 1
        self._wide = max((max(right) - self._x) / side, 1e-300)
        self._high = max((max(high) - self._y) / side, 1e-300)
        self._envelopes = envelopes
        self._cells: dict[tuple[int, int], list[int]] = {}
        self._everywhere: list[int] = []
        self.fits = True
        for place, (x, y, u, v) in enumerate(envelopes):
            (a, b), (c, d) = self._cell(x, y), self._cell(u, v)
            if (c - a + 1) * (d - b + 1) > _WIDE:
                self._everywhere.append(place)
                self.fits = len(self._everywhere) <= _MOST_WIDE
                if not self.fits:
                    self._cells = {}
                    break
                continue
            for column in range(a, c + 1):
                for row in range(b, d + 1):
                    self._cells.setdefault((column, row), []).append(place)

    def _cell(self, x: float, y: float) -> tuple[int, int]:
        return math.floor((x - self._x) / self._wide), math.floor((y - self._y) / self._high)

    def around(self, x: float, y: float) -> list[int]:
        """The places of the envelopes that have a point, in order."""
        near = self._cells.get(self._cell(x, y), ())
        found = []
        for place in sorted((*near, *self._everywhere)) if self._everywhere else near:
            left, low, right, high = self._envelopes[place]
            if left <= x <= right and low <= y <= high:
                found.append(place)
        return found
