"""The floor of CityBench Q1 and Q2: what they take by hand.

Knows beforehand how a graph is built: two congestion readings and one weather report, and that the latter is
complete, so that the last of everything is of this instant. Reads Turtle with pyoxigraph, asks the background
which properties are congestion levels, writes N-Quads, names events as dotr does.
"""

from __future__ import annotations

from base64 import b32encode
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import TypeAlias

from pyoxigraph import RdfFormat, parse

SERVICES = "http://www.insight-centre.org/dataset/SampleEventService#"
ROADS = (f"{SERVICES}AarhusTrafficData182955", f"{SERVICES}AarhusTrafficData158505")
SSN, SAO = "http://purl.oclc.org/NET/ssnx/ssn#", "http://purl.oclc.org/NET/sao/"
CITY = "http://www.insight-centre.org/citytraffic#"
OUT = "http://example.org/journey#"
XSD = "http://www.w3.org/2001/XMLSchema#"
STAMP = "<http://www.w3.org/ns/prov#generatedAtTime>"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
WINDOW = 3000


def levels(background: str) -> set[str]:
    """The properties that are congestion levels."""
    return {
        quad.subject.value
        for quad in parse(background, format=RdfFormat.N_TRIPLES)
        if getattr(quad.object, "value", "") == f"{CITY}CongestionLevel"
    }


def double(text: str) -> str:
    return f'"{repr(float(text)).removesuffix(".0")}"^^<{XSD}double>'


def named(key: str) -> str:
    return b32encode(blake2b(key.encode(), digest_size=15).digest()).decode().lower()


def readings(text: str, congestion: set[str]) -> tuple[dict[str, str], dict[str, str]]:
    """(sensor → congestion, predicate → value of the weather report) of one graph."""
    sensors: dict[str, str] = {}
    values: dict[str, str] = {}
    measured: list[str] = []
    report: dict[str, str] = {}
    for quad in parse(text, format=RdfFormat.TURTLE):
        predicate = quad.predicate.value
        if predicate == f"{SSN}observedBy":
            sensors[quad.subject.value] = quad.object.value
        elif predicate == f"{SAO}hasValue":
            values[quad.subject.value] = double(quad.object.value)
        elif predicate == f"{SSN}observedProperty":
            if quad.object.value in congestion:
                measured.append(quad.subject.value)
        elif predicate.startswith(f"{CITY}has"):
            report[predicate] = double(quad.object.value)
    return {sensors[node]: values[node] for node in measured}, report


Triples: TypeAlias = list[tuple[str, str]]
History: TypeAlias = tuple[deque[tuple[int, str, str]], ...]


def events(rule: str, kind: str, time: int, keyed: Iterable[tuple[str, Triples]]) -> Iterator[str]:
    stamp = f'{STAMP} "{time}"^^<{XSD}integer> .\n'
    for key, triples in keyed:
        event = f"<urn:dotr:{rule}:{named(key)}>"
        body = "".join([f"{event} <{OUT}{p}> {o} {event} .\n" for p, o in triples])
        yield f"{event} {stamp}{event} {TYPE} <{OUT}{kind}> {event} .\n{body}"


def q1(documents: Sequence[tuple[int, str]], congestion: set[str], history: History) -> list[str]:
    out: list[str] = []
    for time, text in documents:
        found, _ = readings(text, congestion)
        now = [found[road] for road in ROADS]
        for column, value in zip(history, now, strict=True):
            column.append((time, value, f"\n{time}000 0\n{value}"))
            while column[0][0] < time - WINDOW:
                column.popleft()
        for place, rule in enumerate(("PairAtA", "PairAtB")):
            own, key = now[place], f"{time}000\n{time}000 0\n{now[place]}"
            pairs: list[tuple[str, Triples]] = []
            for _, value, part in history[1 - place]:
                a, b = (own, value) if place == 0 else (value, own)
                pairs.append((key + part, [("roadA", a), ("roadB", b)]))
            out.extend(events(rule, "CongestionPair", time, pairs))
    return out


def q2(documents: Sequence[tuple[int, str]], congestion: set[str], _: History) -> list[str]:
    out: list[str] = []
    for time, text in documents:
        found, report = readings(text, congestion)
        at = f"\n{time}000 0\n"
        roads = sorted(found)
        t, h, w = (report[f"{CITY}has{name}"] for name in ("Temperature", "Humidity", "WindSpeed"))
        triples = {
            road: [
                ("road", f"<{road}>"),
                ("congestion", found[road]),
                ("temperature", t),
                ("humidity", h),
                ("wind", w),
            ]
            for road in roads
        }
        part = {road: f"{at}<{road}>\n{found[road]}" for road in roads}
        rest = f"{at}{h}{at}{w}"
        keyed = [(f"{time}000{part[road]}{at}{t}{rest}", triples[road]) for road in roads]
        out.extend(events("AtCongestion", "Condition", time, keyed))
        keyed = [(f"{time}000{at}{t}{part[roads[-1]]}{rest}", triples[roads[-1]])]
        out.extend(events("AtTemperature", "Condition", time, keyed))
    return out
