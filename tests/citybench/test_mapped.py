"""The sensors of CityBench as they are, read through mappings, against the example's converter."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

import dotr
from dotr.io.decode.rdf import parse_triples
from dotr.io.graphs import SourceOptions
from dotr.io.sources import Sources
from dotr.io.tables.mapping import read_mapping
from tests.citybench.test_citybench import EXAMPLE, citybench, convert, key

__all__ = ["citybench", "convert"]

GRAPHS = 200
PREFIXES = """PREFIX : <http://www.insight-centre.org/dataset/SampleEventService#>
PREFIX ssn: <http://purl.oclc.org/NET/ssnx/ssn#>
PREFIX sao: <http://purl.oclc.org/NET/sao/>
PREFIX ct: <http://www.insight-centre.org/citytraffic#>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
"""


def reading(road: str, number: str, property_: str, value: str, stamp: str) -> str:
    return (
        f":Reading-{road}-{number} a ssn:Observation ; ssn:observedBy :AarhusTrafficData{road} ;\n"
        f"  ssn:observedProperty <{property_}> ; sao:hasValue {value}^^xsd:double ;\n"
        f"  ssn:observationResultTime {stamp}^^xsd:dateTime .\n"
    )


def test_a_joined_table_is_the_converters_graphs_and_events(
    convert: ModuleType, citybench: Path, tmp_path: Path
) -> None:
    convert.main([str(citybench), str(tmp_path), "--graphs", str(GRAPHS), "--copies", "0"])
    properties = convert.congestion_properties(convert.repository(citybench))
    lengths = convert.distances(citybench)
    counts = [convert.traffic(citybench, road) for road in convert.ROADS]
    with (tmp_path / "joined.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["ms", "n", "stamp", *convert.ROADS, "tempm", "hum", "wspdm"])
        for n, one in zip(range(GRAPHS), convert.instants(citybench), strict=False):
            report = one.weather
            weather = (f"{value:g}" for value in (report.temperature, report.humidity, report.wind))
            rows.writerow([(n + 1) * 100, n, one.stamp, *(count[one.stamp] for count in counts), *weather])
    template = "".join(
        reading(road, "{n}", properties[road], f"{{{road}|divide({lengths[road]})}}", "{stamp}")
        for road in convert.ROADS
    )
    (tmp_path / "joined.map").write_text(
        f"# time: ms\n{PREFIXES}{template}:Report-{{n}} a ssn:Observation ;\n"
        "  ssn:observedBy :AarhusWeatherData0 ; ct:hasTemperature {tempm|plus(0)} ;\n"
        "  ct:hasHumidity {hum|plus(0)} ; ct:hasWindSpeed {wspdm|plus(0)} .\n"
    )
    options = SourceOptions(unit=1000, mappings=(read_mapping(str(tmp_path / "joined.map")),))
    mapped = [(g.time, sorted(g.triples)) for g in Sources([str(tmp_path / "joined.csv")], options)]
    lines = (tmp_path / "graphs.jsonl").read_text().splitlines()
    converted = [(row["time"] * 1000, sorted(parse_triples(row["graph"]))) for row in map(json.loads, lines)]
    for one, other in zip(mapped, converted, strict=True):
        assert one == other
    assert len(mapped) == GRAPHS
    for query in ("q1", "q2"):
        rules, background = str(EXAMPLE / f"{query}.dotr"), [str(tmp_path / "background.nt")]
        table = dotr.Engine(rules, background=background, time_unit="ms").feed(
            tmp_path / "joined.csv", mapping=tmp_path / "joined.map"
        )
        graphs = dotr.Engine(rules, background=background, time_unit="ms").feed(tmp_path / "graphs.jsonl")
        expected = [event.to_json() for event in graphs]
        assert [event.to_json() for event in table] == expected
        assert len(expected) > GRAPHS


def heads(citybench: Path, folder: Path, roads: Sequence[str], rows: int) -> list[Counter[str]]:
    """The first rows of the roads' files as they are; of each the stamps in it."""
    stamps = []
    for road in roads:
        name = f"AarhusTrafficData{road}.stream"
        lines = (citybench / "streams" / name).read_text(encoding="utf-8-sig").splitlines(keepends=True)
        (folder / name).write_text("".join(lines[: rows + 1]))
        stamps.append(Counter(line.split(",")[5] for line in lines[1 : rows + 1]))
    return stamps


def test_the_files_of_the_roads_as_they_are_give_the_events_of_the_converter(
    convert: ModuleType, citybench: Path, tmp_path: Path
) -> None:
    """At five minutes a step the pairs of Q1 are those of one instant, however the instants are written.
    Instants of which a file has several rows are left out: the converter takes the last, a stream has all.
    """
    convert.main(
        [str(citybench), str(tmp_path), "--graphs", str(GRAPHS), "--delta", "300000", "--copies", "0"]
    )
    instants = [one.stamp for _, one in zip(range(GRAPHS), convert.instants(citybench), strict=False)]
    properties = convert.congestion_properties(convert.repository(citybench))
    lengths = convert.distances(citybench)
    (tmp_path / "streams").mkdir()
    stamps = heads(citybench, tmp_path / "streams", convert.ROADS, 260)
    mappings = []
    for road in convert.ROADS:
        file = tmp_path / f"{road}.map"
        value = f"{{vehicleCount|divide({lengths[road]})}}"
        text = reading(road, "{_id}", properties[road], value, "{TIMESTAMP}")
        settings = f'# files: *{road}.stream\n# time: TIMESTAMP|datetime("iso", "UTC")\n'
        file.write_text(f"{settings}{PREFIXES}{text}")
        mappings += ["--map", str(file)]
    command = [
        sys.executable,
        "-m",
        "dotr",
        "run",
        str(EXAMPLE / "q1.dotr"),
        str(tmp_path / "streams"),
        *mappings,
    ]
    background = ["--background", str(tmp_path / "background.nt"), "-o", str(tmp_path / "events.jsonl")]
    ran = subprocess.run([*command, *background], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    single = {stamp for stamp in instants if all(counts[stamp] == 1 for counts in stamps)}
    got: Counter[tuple[object, ...]] = Counter()
    for line in (tmp_path / "events.jsonl").read_text().splitlines():
        rule, time, *values = key(json.loads(line), "a", "b")
        if time.removesuffix("Z") in single:
            got[rule, time.removesuffix("Z"), *values] += 1
    expected: Counter[tuple[object, ...]] = Counter()
    engine = dotr.Engine(
        str(EXAMPLE / "q1.dotr"), background=[str(tmp_path / "background.nt")], time_unit="ms"
    )
    for event in engine.feed(tmp_path / "graphs.jsonl"):
        rule, time, *values = key(json.loads(event.to_json()), "a", "b")
        stamp = instants[time // 300_000 - 1]
        if stamp in single:
            expected[rule, stamp, *values] += 1
    assert got == expected
    assert len(single) > GRAPHS * 3 // 4
    assert got.total() == 2 * len(single)


NAMES = ("AarhusTrafficData182955", "AarhusWeatherData0", "AarhusParkingDataKALKVAERKSVEJ")


@pytest.mark.parametrize("name", NAMES)
def test_a_proposed_mapping_reads_a_real_file(citybench: Path, tmp_path: Path, name: str) -> None:
    file = citybench / "streams" / f"{name}.stream"
    dotr_ = [sys.executable, "-m", "dotr", "map"]
    new = [*dotr_, "new", str(file), "--time-zone", "Europe/Copenhagen"]
    proposed = subprocess.run(new, capture_output=True, text=True, check=True).stdout
    (tmp_path / "n.map").write_text(f"# files: *.stream\n{proposed}")
    check = [*dotr_, "check", str(tmp_path / "n.map"), str(file), "--rows", "1", "--of", "1000"]
    ran = subprocess.run(check, capture_output=True, text=True, check=False)
    assert "1,000 rows as graphs" in ran.stderr, ran.stderr
    assert ran.returncode == 0, ran.stderr
