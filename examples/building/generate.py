"""Writes morning.ttl: one made-up hour in the building, the same on every machine.

    python generate.py > morning.ttl

A message log of time-annotated graphs (RDF Message Log of the W3C RDF Stream Processing group). Every
observation says its own time, so no graph needs a stamp. The story is told in README.md.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

SEED = 2026
ROOMS = (11, 12, 13, 14, 21, 22, 23, 24)
MEETING_ROOM = 14
SERVER_ROOM = 23
FOGGED_ROOM = 12
START, END = 8 * 3600, 9 * 3600
HEADER = """\
VERSION "1.2-messages"
PREFIX :     <http://example.org/office#>
PREFIX sosa: <http://www.w3.org/ns/sosa/>
PREFIX xsd:  <http://www.w3.org/2001/XMLSchema#>
"""


def clock(second: int) -> str:
    """Seconds of the day as a dateTime of that Monday."""
    return f'"2026-03-02T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"^^xsd:dateTime'


def observation(sensor: str, observed: str, result: float | int, second: int) -> str:
    return (
        f"[] sosa:madeBySensor :{sensor} ; sosa:observedProperty :{observed} ; "
        f"sosa:hasSimpleResult {result} ; sosa:resultTime {clock(second)} ."
    )


def happening(kind: str, second: int, *facts: str) -> str:
    return " ; ".join([f"[] a :{kind}", *facts, f"sosa:resultTime {clock(second)} ."])


def climate(noise: random.Random) -> Iterator[tuple[int, str]]:
    """Every two minutes every room's temperature and CO2, each sensor at its own second."""
    for place, room in enumerate(ROOMS):
        for second in range(START + 15 * place, END, 120):
            minute = (second - START) / 60
            if room == 22 and minute > 21:
                continue  # the battery of climate22 is empty
            celsius = 20.5 + 1.5 * noise.random()
            if room == SERVER_ROOM and minute > 25:
                celsius += (minute - 25) * 1.9  # it smoulders
            if room == FOGGED_ROOM and 29 < minute < 33:
                celsius += 31  # the fog machine of the drill is warm
            people = 6 if room == MEETING_ROOM and 10 < minute < 45 else 1
            ppm = 430 + 90 * people * min(1.0, max(0.2, (minute - 5) / 12)) + 60 * noise.random()
            if room == MEETING_ROOM and 10 < minute < 45:
                ppm += 250
            yield (
                second,
                "\n".join(
                    (
                        observation(f"climate{room}", "Temperature", round(celsius, 1), second),
                        observation(f"climate{room}", "CO2", round(ppm), second),
                    )
                ),
            )


def robot(noise: random.Random) -> Iterator[tuple[int, str]]:
    """The robot's thermometer, which is wherever the robot is at that instant."""
    for step, room in enumerate((11, 12, 13, 14, 21, 22, 23, 24)):
        second = START + 240 + step * 360 + int(40 * noise.random())
        celsius = 61.5 if room == SERVER_ROOM else round(21 + noise.random(), 1)
        where = f":robot :in :room{room} ."
        yield second, f"{where}\n{observation('thermometer', 'Temperature', celsius, second)}"


def people() -> Iterator[tuple[int, str]]:
    """Badges at doors: (minute, second, badge, door, kind)."""
    for minute, late, badge, door, kind in (
        (1, 12, 1, 1, "Entry"),
        (2, 3, 1, 2, "Entry"),
        (4, 40, 2, 2, "Entry"),
        (7, 55, 3, 1, "Entry"),
        (9, 30, 4, 2, "Entry"),
        (12, 5, 5, 1, "Entry"),
        (12, 50, 5, 2, "Entry"),
        (26, 20, 4, 2, "Exit"),
        (31, 45, 5, 2, "Exit"),
        (36, 10, 5, 2, "Entry"),
        (47, 2, 1, 2, "Exit"),
        (47, 9, 2, 2, "Exit"),
        (47, 31, 5, 2, "Exit"),
    ):
        second = START + minute * 60 + late
        yield second, happening(kind, second, f":badge :badge{badge}", f":door :door{door}")


def alarms() -> Iterator[tuple[int, str]]:
    """A drill on the first floor and its fog; then smoke where nobody announced any."""
    drill, fog, smoke, more = (START + 60 * minute + 7 for minute in (28, 31, 41, 43))
    yield drill, happening("FireDrill", drill, ":on :floor1")
    yield fog, happening("SmokeAlarm", fog, "sosa:madeBySensor :smoke12")
    yield smoke, happening("SmokeAlarm", smoke, "sosa:madeBySensor :smoke23")
    yield more, happening("SmokeAlarm", more, "sosa:madeBySensor :smoke23")


def morning() -> list[tuple[int, str]]:
    """All graphs in time order."""
    noise = random.Random(SEED)  # noqa: S311  # made-up weather is not a secret
    return sorted([*climate(noise), *robot(noise), *people(), *alarms()], key=lambda graph: graph[0])


def log() -> str:
    """The hour as one message log."""
    return HEADER + "\nMESSAGE\n".join(f"\n{graph}\n" for _, graph in morning())


if __name__ == "__main__":
    print(log(), end="")
