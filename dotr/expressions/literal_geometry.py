"""The functions of geometries a second time, over the text of literals, for literal readings.

Place:   literal_numbers.py gives rules in a literal reading these functions; extract/called_operators.py
         gives them to the full engine.
Method:  every call reads its literals again. A relation is its pattern of the intersection matrix (DE-9IM;
         GeoSPARQL 1.1, sec. 8.6). The distance of a point to an edge is the least of the geodesics to the
         edge's points, found by golden sections; that of two shapes the least from a corner of one to an edge
         of the other. What is computed in metres around a point is computed in PROJ's azimuthal equidistant
         projection. The libraries below are those of geometry.py.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from dotr.expressions.geometry import GEO, GEOF, available
from dotr.rdf.terms import FALSE, TRUE, XSD, Term, double_text, literal, literal_parts
from dotr.rdf.values import number

_CRS84: Final = "http://www.opengis.net/def/crs/OGC/1.3/CRS84"
_UNITS: Final = {
    f"<http://www.opengis.net/def/uom/OGC/1.0/{name}>": one
    for name, one in {
        "metre": (1.0, "length"),
        "kilometre": (1000.0, "length"),
        "degree": (1.0, "angle"),
        "radian": (180 / math.pi, "angle"),
    }.items()
}
_GOLDEN: Final = (math.sqrt(5) - 1) / 2
Place = tuple[float, float]


class _Read:
    """A literal taken apart. `shape` has the easting first."""

    def __init__(self, shape: Any, iri: str, crs: Any, form: str) -> None:
        self.shape, self.iri, self.crs, self.form = shape, iri, crs, form
        self.degrees = crs.is_geographic
        self.northing_first = _northing_first(crs)


def _northing_first(crs: Any) -> bool:
    """As PROJ exchanges axes to have the easting first."""
    match [(axis.direction, axis.name.split()[0]) for axis in crs.axis_info]:
        case [("north", _), ("east", _)] | [("north", "Northing"), ("north", _)]:
            return True
        case [("south", "Northing"), ("south", _)]:
            return True
        case _:
            return False


def _crs(iri: str) -> Any:
    import pyproj  # noqa: PLC0415  # an extra
    import pyproj.network  # noqa: PLC0415  # an extra

    pyproj.network.set_network_enabled(active=False)
    if iri == _CRS84:
        return pyproj.CRS("OGC:CRS84")
    found = re.fullmatch(r"https?://www\.opengis\.net/def/crs/EPSG/[\d.]{1,9}/(\d{1,7})/?", iri, re.ASCII)
    try:
        crs = pyproj.CRS(f"EPSG:{int(found[1])}") if found else None
    except pyproj.exceptions.CRSError:
        return None
    if crs is None or len(crs.axis_info) != 2:
        return None
    units = {axis.unit_name for axis in crs.axis_info}
    return crs if crs.is_projected or (crs.is_geographic and units == {"degree"}) else None


def _read(term: Term) -> _Read | None:
    import shapely  # noqa: PLC0415  # an extra
    import shapely.geometry  # noqa: PLC0415  # an extra

    if term[0] != '"':
        return None
    text, datatype, _ = literal_parts(term)
    form = datatype.removeprefix(GEO)
    if f"{GEO}{form}" != datatype or form not in ("wktLiteral", "geoJSONLiteral"):
        return None
    nesting = 0
    for one in re.findall(r"[(\[{)\]}]", text):
        nesting += 1 if one in "([{" else -1
        if nesting > 24:
            return None
    iri = _CRS84
    try:
        if form == "geoJSONLiteral":
            if json.loads(text)["type"] in ("Feature", "FeatureCollection"):
                return None
            shape = shapely.from_geojson(text)
        else:
            text = text.strip()
            if text.startswith("<"):
                iri, _, text = text[1:].partition(">")
            shape = shapely.from_wkt(text or "GEOMETRYCOLLECTION EMPTY")
    except (shapely.errors.ShapelyError, ValueError, TypeError, LookupError, NotImplementedError):
        return None
    crs = _crs(iri)
    if crs is None or shape is None:
        return None
    places = shapely.get_coordinates(shape).tolist()
    shape = shapely.force_2d(shape)
    if _northing_first(crs):
        shape = shapely.transform(shape, lambda x, y: (y, x), interleaved=False)
        places = [(y, x) for x, y in places]
    if not all(abs(x) <= 1e10 and abs(y) <= 1e10 for x, y in places):
        return None
    if crs.is_geographic and not all(abs(x) <= 360 and abs(y) <= 90 for x, y in places):
        return None
    return _Read(shape, iri, crs, form)


def _both(a: Term, b: Term) -> tuple[_Read, Any] | None:
    """The first, and the second's shape in the first's system."""
    import pyproj  # noqa: PLC0415  # an extra
    import shapely  # noqa: PLC0415  # an extra

    first, second = _read(a), _read(b)
    if first is None or second is None:
        return None
    if first.crs.equals(second.crs, ignore_axis_order=True):
        return first, second.shape
    to = pyproj.Transformer.from_crs(second.crs, first.crs, always_xy=True)
    shape = shapely.transform(second.shape, to.transform, interleaved=False)
    finite = all(map(math.isfinite, shapely.get_coordinates(shape).ravel().tolist()))
    return (first, shape) if finite else None


# -- relations ---------------------------------------------------------------------------------------


def _holds(name: str, a: Any, b: Any) -> bool:
    import shapely  # noqa: PLC0415  # an extra

    matrix = shapely.relate(a, b)
    # a line whose points are equal is a point
    m, n = (min(shapely.get_dimensions(one), 0 if one.length == 0 else 2) for one in (a, b))

    def fits(*patterns: str) -> bool:
        return any(
            all(p in ("*", c) or (p == "T" and c != "F") for p, c in zip(pattern, matrix, strict=True))
            for pattern in patterns
        )

    match name:
        case "sfEquals":
            return fits("T*F**FFF*") or (a.is_empty and b.is_empty)
        case "sfDisjoint":
            return fits("FF*FF****")
        case "sfIntersects":
            return not fits("FF*FF****")
        case "sfTouches":
            return fits("FT*******", "F**T*****", "F***T****")
        case "sfWithin":
            return fits("T*F**F***")
        case "sfContains":
            return fits("T*****FF*")
        case "sfOverlaps":
            return bool(m == n) and fits("1*T***T**" if m == 1 else "T*T***T**")
        case _:
            if m == n:
                return bool(m == 1) and fits("0********")
            return fits("T*T******") if m < n else fits("T*****T**")


def _relation(name: str) -> Callable[..., Term | None]:
    def apply(a: Term, b: Term) -> Term | None:
        import shapely  # noqa: PLC0415  # an extra

        given = _both(a, b)
        try:
            return None if given is None else TRUE if _holds(name, given[0].shape, given[1]) else FALSE
        except shapely.errors.ShapelyError:
            return None

    return apply


# -- lengths -----------------------------------------------------------------------------------------


def _edges(shape: Any) -> Iterator[tuple[Place, Place]]:
    """Edges; a point is an edge of length zero."""
    if hasattr(shape, "geoms"):
        for part in shape.geoms:
            yield from _edges(part)
    elif shape.geom_type == "Polygon":
        for ring in (shape.exterior, *shape.interiors):
            yield from _edges(ring)
    else:
        places = [(float(x), float(y)) for x, y in shape.coords]
        yield from zip(places, places[1:] or places, strict=False)


def _least(geod: Any, place: Place, start: Place, end: Place) -> float:
    """Metres from a place to an edge that is straight in longitude and latitude."""

    def at(t: float) -> float:
        x, y = (a + t * (b - a) for a, b in zip(start, end, strict=True))
        return float(geod.inv(*place, x, y)[2])

    low, high = 0.0, 1.0
    for _ in range(80):
        a, b = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        low, high = (low, b) if at(a) < at(b) else (a, high)
    return min(at(0.0), at(1.0), at((low + high) / 2))


def _metres(a: Any, b: Any, geod: Any) -> float:
    import shapely  # noqa: PLC0415  # an extra

    if shapely.intersects(a, b):
        return 0.0
    ways = [(a, b), (b, a)]
    return min(
        _least(geod, place, *edge)
        for one, other in ways
        for place in {end for edge in _edges(one) for end in edge}
        for edge in _edges(other)
    )


def _distance(a: Term, b: Term, unit: Term) -> Term | None:
    import shapely  # noqa: PLC0415  # an extra

    given = _both(a, b)
    if given is None or unit not in _UNITS or given[0].shape.is_empty or given[1].is_empty:
        return None
    first, other = given
    scale, kind = _UNITS[unit]
    if kind == "angle":
        return (
            _double(round(float(shapely.distance(first.shape, other)) / scale, 12)) if first.degrees else None
        )
    if first.degrees:
        found = _metres(first.shape, other, first.crs.get_geod())
    else:
        found = shapely.distance(first.shape, other) * first.crs.axis_info[0].unit_conversion_factor
    return _double(round(float(found) / scale, 4 if scale == 1 else 7))


def _double(value: float) -> Term:
    return literal(double_text(float(value)), f"{XSD}double")


# -- geometries --------------------------------------------------------------------------------------


def _write(shape: Any, like: _Read) -> Term:
    import shapely  # noqa: PLC0415  # an extra

    digits = 9 if like.degrees else 4
    shape = shapely.normalize(
        shapely.transform(
            shape, lambda x, y: (x.round(digits) + 0.0, y.round(digits) + 0.0), interleaved=False
        )
    )
    if like.form == "geoJSONLiteral":
        return literal(shapely.to_geojson(shape), f"{GEO}{like.form}")
    if like.northing_first:
        shape = shapely.transform(shape, lambda x, y: (y, x), interleaved=False)
    text = shapely.to_wkt(shape, rounding_precision=digits)
    return literal(text if like.iri == _CRS84 else f"<{like.iri}> {text}", f"{GEO}{like.form}")


def _made(make: Callable[..., Any]) -> Callable[..., Term | None]:
    def apply(a: Term, b: Term | None = None) -> Term | None:
        import shapely  # noqa: PLC0415  # an extra

        both = None if b is None else _both(a, b)
        first = _read(a) if b is None else None if both is None else both[0]
        if first is None:
            return None
        try:
            found = make(first.shape, *(() if both is None else both[1:]))
        except shapely.errors.ShapelyError:
            return None
        return None if found is None else _write(found, first)

    return apply


def _buffer(a: Term, radius: Term, unit: Term) -> Term | None:
    import pyproj  # noqa: PLC0415  # an extra
    import shapely  # noqa: PLC0415  # an extra

    read, given = _read(a), number(radius)
    if read is None or given is None or unit not in _UNITS or not math.isfinite(float(given)):
        return None
    scale, kind = _UNITS[unit]
    width = float(given) * scale
    if kind == "angle" and not read.degrees:
        return None
    if kind == "angle" or read.shape.is_empty:
        return _write(shapely.buffer(read.shape, width, quad_segs=16), read)
    if not read.degrees:
        width /= read.crs.axis_info[0].unit_conversion_factor
        return _write(shapely.buffer(read.shape, width, quad_segs=16), read)
    centre = shapely.centroid(read.shape)
    size = read.crs.ellipsoid
    plane = pyproj.Transformer.from_crs(
        read.crs.geodetic_crs,
        pyproj.CRS.from_dict(
            {
                "proj": "aeqd",
                "lat_0": centre.y,
                "lon_0": centre.x,
                "a": size.semi_major_metre,
                "b": size.semi_minor_metre,
            }
        ),
        always_xy=True,
    )
    there = shapely.transform(read.shape, plane.transform, interleaved=False)
    wide = shapely.buffer(there, width, quad_segs=16)
    if any(wide.intersects(shapely.Point(plane.transform(0, pole))) for pole in (-90, 90)):
        return None

    def back(x: Any, y: Any) -> tuple[Any, Any]:
        longitudes, latitudes = plane.transform(x, y, direction="INVERSE")
        return centre.x + (longitudes - centre.x + 180) % 360 - 180, latitudes

    return _write(shapely.transform(wide, back, interleaved=False), read)


def _system(a: Term) -> Term | None:
    read = _read(a)
    return None if read is None else literal(read.iri, f"{XSD}anyURI")


_METRE: Final = "<http://www.opengis.net/def/uom/OGC/1.0/metre>"
_FUNCTIONS: Final[Mapping[str, Callable[..., Term | None]]] = {
    **{
        name: _relation(name)
        for name in (
            *("sfEquals", "sfDisjoint", "sfIntersects", "sfTouches", "sfCrosses", "sfWithin", "sfContains"),
            "sfOverlaps",
        )
    },
    "distance": _distance,
    "metricDistance": lambda a, b: _distance(a, b, _METRE),
    "buffer": _buffer,
    "metricBuffer": lambda a, radius: _buffer(a, radius, _METRE),
    "envelope": _made(lambda shape: shape.envelope),
    "convexHull": _made(lambda shape: shape.convex_hull),
    "boundary": _made(lambda shape: shape.boundary),
    "union": _made(lambda a, b: a.union(b)),
    "intersection": _made(lambda a, b: a.intersection(b)),
    "difference": _made(lambda a, b: a.difference(b)),
    "symDifference": _made(lambda a, b: a.symmetric_difference(b)),
    "getSRID": _system,
}


def _where_installed(function: Callable[..., Term | None]) -> Callable[..., Term | None]:
    def apply(*given: Term) -> Term | None:
        if not available():
            return None
        import numpy as np  # noqa: PLC0415  # shapely needs it
        import shapely  # noqa: PLC0415  # an extra

        with np.errstate(all="ignore"):
            try:
                return function(*given)
            except shapely.errors.ShapelyError:
                return None

    return apply


GEOMETRY: Final[Mapping[str, Callable[..., Term | None]]] = {
    f"<{GEOF}{name}>": _where_installed(function) for name, function in _FUNCTIONS.items()
}
"""By IRI; terms in, None an error."""
