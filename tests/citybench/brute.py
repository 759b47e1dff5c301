"""Q1 and Q2 of CityBench counted over the CSV values: no graph, no query, no engine.

Place:   what test_citybench.py holds the rules of examples/citybench against. It reads the CSV files by
         itself, so that a mistake of the converter shows.
Method:  every pair of instants is looked at; a window of three seconds is closed at both ends.
"""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from typing import NamedTuple

WINDOW = 3000  # milliseconds


class Reading(NamedTuple):
    """What is known at one instant: road A (182955), road B (158505), temperature, humidity, wind."""

    a: float
    b: float
    temperature: float
    humidity: float
    wind: float


def read_csv(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


def readings(citybench: Path, count: int) -> list[Reading]:
    """The first `count` instants at which both roads report."""
    length = {}
    for row in read_csv(citybench / "dataset" / "MetaData" / "trafficMetaData.csv"):
        length[row["REPORT_ID"]] = float(row["DISTANCE_IN_METERS"])
    roads: list[dict[str, float]] = []
    for road in ("182955", "158505"):
        level: dict[str, float] = {}
        for row in read_csv(citybench / "streams" / f"AarhusTrafficData{road}.stream"):
            level[row["TIMESTAMP"]] = float(row["vehicleCount"]) / length[road]
        roads.append(level)
    reports = []
    for row in read_csv(citybench / "streams" / "AarhusWeatherData0.stream"):
        if row["tempm"] and row["hum"] and row["wspdm"]:
            reports.append((row["TIMESTAMP"], float(row["tempm"]), float(row["hum"]), float(row["wspdm"])))
    found: list[Reading] = []
    for stamp in sorted(set(roads[0]) & set(roads[1])):
        before = [report for report in reports if report[0] <= stamp]
        found.append(Reading(roads[0][stamp], roads[1][stamp], *max(before)[1:]))
        if len(found) == count:
            break
    return found


def q1(values: list[Reading], delta: int) -> Counter[tuple[str, int, float, float]]:
    """(rule, time in ms, road A, road B): each road's reading with each of the other within the window."""
    pairs: Counter[tuple[str, int, float, float]] = Counter()
    for now, current in enumerate(values):
        for then, old in enumerate(values):
            if 0 <= (now - then) * delta <= WINDOW:
                pairs["PairAtA", (now + 1) * delta, current.a, old.b] += 1
                pairs["PairAtB", (now + 1) * delta, old.a, current.b] += 1
    return pairs


def q2(values: list[Reading], delta: int) -> Counter[tuple[str, int, float, float, float, float]]:
    """(rule, time in ms, congestion, temperature, humidity, wind).

    Every instant has all readings, so the last ones are its own; of the two congestion readings of an instant
    the last one in canonical order is that of road 182955, whose sensor's name is the greater.
    """
    states: Counter[tuple[str, int, float, float, float, float]] = Counter()
    for number, now in enumerate(values):
        time = (number + 1) * delta
        rest = (now.temperature, now.humidity, now.wind)
        states[("AtCongestion", time, now.a, *rest)] += 1
        states[("AtCongestion", time, now.b, *rest)] += 1
        states[("AtTemperature", time, now.a, *rest)] += 1
    return states
