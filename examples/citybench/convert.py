"""CityBench's CSV streams as time-annotated graphs, and its sensor repository as background.

    python convert.py CITYBENCH OUT [--graphs 2000] [--delta 100] [--copies 2]

CITYBENCH is a copy of the benchmark (its folders `streams` and `dataset`). Writes OUT/graphs.jsonl and
OUT/background.nt; README.md says how to run the rules over them.

One graph for every instant at which both roads report, in the order of time, graph i stamped (i + 1) · delta
milliseconds: the paper's way of setting the rate of arrival (Margara et al. 2018, section 5). A graph has two
congestion readings of five triples and one weather report of five, the last complete one at or before the
instant. Congestion is vehicleCount / DISTANCE_IN_METERS. Of rows with one timestamp the last one counts.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyoxigraph as ox

ROADS = ("182955", "158505")
SERVICES = "http://www.insight-centre.org/dataset/SampleEventService#"
PREFIXES = (
    f"@prefix : <{SERVICES}> . @prefix ssn: <http://purl.oclc.org/NET/ssnx/ssn#> . "
    "@prefix sao: <http://purl.oclc.org/NET/sao/> . "
    "@prefix ct: <http://www.insight-centre.org/citytraffic#> . "
    "@prefix xsd: <http://www.w3.org/2001/XMLSchema#> . "
)
CONGESTION = "http://www.insight-centre.org/citytraffic#CongestionLevel"


@dataclass(frozen=True)
class Weather:
    temperature: float
    humidity: float
    wind: float


@dataclass(frozen=True)
class Instant:
    """What is known at one instant; `congestion` is in vehicles per metre, in the order of ROADS."""

    stamp: str
    congestion: tuple[float, ...]
    weather: Weather


def rows(file: Path) -> list[dict[str, str]]:
    try:
        with file.open(encoding="utf-8-sig", newline="") as text:
            return list(csv.DictReader(text))
    except OSError as error:
        raise SystemExit(f"{file}: {error.strerror}; is this a copy of CityBench?") from None


def traffic(citybench: Path, road: str) -> dict[str, int]:
    """Timestamp → vehicle count; of rows with one timestamp the last one counts."""
    return {
        row["TIMESTAMP"]: int(row["vehicleCount"])
        for row in rows(citybench / "streams" / f"AarhusTrafficData{road}.stream")
    }


def distances(citybench: Path) -> dict[str, int]:
    """Road → its length in metres."""
    meta = rows(citybench / "dataset" / "MetaData" / "trafficMetaData.csv")
    return {row["REPORT_ID"]: int(row["DISTANCE_IN_METERS"]) for row in meta}


def weather(citybench: Path) -> tuple[list[str], list[Weather]]:
    """Timestamps in order, and the complete reports at them."""
    reports: dict[str, Weather] = {}
    for row in rows(citybench / "streams" / "AarhusWeatherData0.stream"):
        cells = (row["tempm"], row["hum"], row["wspdm"])
        if all(cells):
            reports[row["TIMESTAMP"]] = Weather(*map(float, cells))
    stamps = sorted(reports)
    return stamps, [reports[stamp] for stamp in stamps]


def instants(citybench: Path) -> Iterator[Instant]:
    """The instants at which both roads report and a weather report is known, in the order of time."""
    counts = [traffic(citybench, road) for road in ROADS]
    lengths = distances(citybench)
    stamps, reports = weather(citybench)
    for stamp in sorted(set(counts[0]).intersection(*counts[1:])):
        known = bisect_right(stamps, stamp)
        if known:
            congestion = tuple(
                count[stamp] / lengths[road] for road, count in zip(ROADS, counts, strict=True)
            )
            yield Instant(stamp, congestion, reports[known - 1])


def graph(number: int, instant: Instant, properties: Mapping[str, str]) -> str:
    """The 15 triples of one instant as Turtle. `properties`: road → its congestion property."""
    parts = [PREFIXES]
    for road, value in zip(ROADS, instant.congestion, strict=True):
        parts.append(
            f":Reading-{road}-{number} a ssn:Observation ; ssn:observedBy :AarhusTrafficData{road} ; "
            f"ssn:observedProperty <{properties[road]}> ; sao:hasValue {double(value)} ; "
            f'ssn:observationResultTime "{instant.stamp}"^^xsd:dateTime . '
        )
    report = instant.weather
    parts.append(
        f":Report-{number} a ssn:Observation ; ssn:observedBy :AarhusWeatherData0 ; "
        f"ct:hasTemperature {double(report.temperature)} ; ct:hasHumidity {double(report.humidity)} ; "
        f"ct:hasWindSpeed {double(report.wind)} ."
    )
    return "".join(parts)


def double(value: float) -> str:
    return f'"{value!r}"^^xsd:double'


def repository(citybench: Path) -> list[ox.Triple]:
    file = citybench / "dataset" / "SensorRepository.n3"
    try:
        quads = ox.parse(path=file, format=ox.RdfFormat.TURTLE)
        return [quad.triple for quad in quads]
    except OSError as error:
        raise SystemExit(f"{file}: {error}; is this a copy of CityBench?") from None


def congestion_properties(triples: Sequence[ox.Triple]) -> dict[str, str]:
    """Road → the property of its sensor that is a congestion level."""
    levels = {t.subject.value for t in triples if getattr(t.object, "value", "") == CONGESTION}
    sensors = {f"{SERVICES}AarhusTrafficData{road}": road for road in ROADS}
    return {
        sensors[t.subject.value]: t.object.value
        for t in triples
        if t.subject.value in sensors and t.object.value in levels
    }


def background(triples: Sequence[ox.Triple], copies: int) -> Iterator[str]:
    """The repository and its renamed copies as N-Triples lines: other sensors of the same kinds."""
    for copy in range(copies + 1):
        suffix = f"-copy{copy}" if copy else ""

        def renamed(node: object, suffix: str = suffix) -> str:
            if isinstance(node, ox.BlankNode):
                return f"{node}{suffix.replace('-', '')}"
            if isinstance(node, ox.NamedNode) and node.value.startswith(SERVICES):
                return f"<{node.value}{suffix}>"
            return str(node)

        for triple in triples:
            yield f"{renamed(triple.subject)} {triple.predicate} {renamed(triple.object)} .\n"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="CityBench CSV streams to time-annotated graphs.")
    parser.add_argument("citybench", type=Path, help="a copy of the benchmark")
    parser.add_argument("out", type=Path, help="folder to write to")
    parser.add_argument("--graphs", type=int, default=2000, help="how many graphs (default 2000)")
    parser.add_argument("--delta", type=int, default=100, help="milliseconds between graphs (default 100)")
    parser.add_argument("--copies", type=int, default=2, help="renamed copies of the repository (default 2)")
    options = parser.parse_args(arguments)
    if options.graphs < 1 or options.delta < 1 or options.copies < 0:
        parser.error("--graphs and --delta are at least 1, --copies at least 0")
    options.out.mkdir(parents=True, exist_ok=True)

    triples = repository(options.citybench)
    properties = congestion_properties(triples)
    written = 0
    with (options.out / "graphs.jsonl").open("w", encoding="utf-8") as lines:
        for written, instant in enumerate(instants(options.citybench), start=1):
            line = {"time": written * options.delta, "graph": graph(written - 1, instant, properties)}
            lines.write(json.dumps(line) + "\n")
            if written == options.graphs:
                break
    with (options.out / "background.nt").open("w", encoding="utf-8") as lines:
        lines.writelines(background(triples, options.copies))
    print(
        f"{written} graphs, {len(triples) * (options.copies + 1)} background triples in {options.out}",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
