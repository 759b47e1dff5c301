"""CityBench as workloads: the graphs and the background of examples/citybench, at any rate of arrival."""

from __future__ import annotations

import importlib.util
import os
import sys
from functools import cache
from itertools import islice
from pathlib import Path
from types import ModuleType

from .workloads import Conjunct, Pattern, Query, Workload

EXAMPLE = Path(__file__).parents[2] / "examples" / "citybench"
PREFIXES = """\
PREFIX :    <http://www.insight-centre.org/dataset/SampleEventService#>
PREFIX ssn: <http://purl.oclc.org/NET/ssnx/ssn#>
PREFIX sao: <http://purl.oclc.org/NET/sao/>
PREFIX ct:  <http://www.insight-centre.org/citytraffic#>
"""
OUT = "http://example.org/journey#"


def converter() -> ModuleType:
    """The example's script as a module."""
    specification = importlib.util.spec_from_file_location("citybench_convert", EXAMPLE / "convert.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module
    specification.loader.exec_module(module)
    return module


@cache
def data(graphs: int) -> tuple[tuple[str, ...], str]:
    """(documents in order, background). Raises SystemExit without DOTR_DATA."""
    folder = os.environ.get("DOTR_DATA")
    if not folder:
        raise SystemExit("fig4 needs CityBench: set DOTR_DATA to the folder that holds citybench/")
    convert = converter()
    citybench = Path(folder) / "citybench"
    triples = convert.repository(citybench)
    properties = convert.congestion_properties(triples)
    documents = tuple(
        convert.graph(number, instant, properties)
        for number, instant in enumerate(islice(convert.instants(citybench), graphs))
    )
    return documents, "".join(convert.background(triples, 2))


def reading(name: str, road: str) -> Query:
    where = (
        f"?o ssn:observedBy :AarhusTrafficData{road} ; ssn:observedProperty ?p ; sao:hasValue ?v . "
        "?p a ct:CongestionLevel"
    )
    return Query(name, ("v",), where)


def weather(name: str, predicate: str, kind: str) -> Query:
    where = f"?o ssn:observedBy ?s ; ct:{predicate} ?v . ?s ssn:observes ?p . ?p a ct:{kind}"
    return Query(name, ("v",), where)


def patterns(query: str) -> tuple[Pattern, ...]:
    """The rules of q1.dotr and q2.dotr once more, for the naive loop."""
    if query == "q1":
        a, b = reading("RoadA", "182955"), reading("RoadB", "158505")
        kind = f"{OUT}CongestionPair"
        return (
            Pattern(
                "PairAtA", kind, a, (within(b, "EACH"),), ((f"{OUT}roadA", 0, "v"), (f"{OUT}roadB", 1, "v"))
            ),
            Pattern(
                "PairAtB", kind, b, (within(a, "EACH"),), ((f"{OUT}roadA", 1, "v"), (f"{OUT}roadB", 0, "v"))
            ),
        )
    congestion = Query(
        "Congestion",
        ("s", "v"),
        "?o ssn:observedBy ?s ; ssn:observedProperty ?p ; sao:hasValue ?v . ?p a ct:CongestionLevel",
    )
    temperature = weather("Temperature", "hasTemperature", "Temperature")
    rest = (weather("Humidity", "hasHumidity", "Humidity"), weather("Wind", "hasWindSpeed", "WindSpeed"))
    kind = f"{OUT}Condition"
    return tuple(
        Pattern(
            name,
            kind,
            trigger,
            tuple(within(query, "LAST") for query in (other, *rest)),
            (
                (f"{OUT}road", c, "s"),
                (f"{OUT}congestion", c, "v"),
                (f"{OUT}temperature", t, "v"),
                (f"{OUT}humidity", 2, "v"),
                (f"{OUT}wind", 3, "v"),
            ),
        )
        for name, trigger, other, c, t in (
            ("AtCongestion", congestion, temperature, 0, 1),
            ("AtTemperature", temperature, congestion, 1, 0),
        )
    )


def within(query: Query, selection: str) -> Conjunct:
    return Conjunct(selection, query, 3, key=None)


def citybench(query: str, graphs: int, rate: int) -> Workload:
    """`rate` graphs a second, by re-stamping."""
    documents, background = data(graphs)
    step = 1000 // rate
    return Workload(
        query,
        (EXAMPLE / f"{query}.dotr").read_text(encoding="utf-8"),
        "",
        background,
        [((number + 1) * step, text) for number, text in enumerate(documents)],
        patterns(query),
        unit="ms",
    )
