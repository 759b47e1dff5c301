"""The table of mistakes: what dotr says to rules that are right but for one slip, over a sample of the data.

Each row: what is changed in a right program, and what the messages must say. A mistake that gives no event,
or too many, and no message that names its cause, is the bug that this table is for.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.conftest import Dotr
from tests.survey import factory
from tests.survey.conftest import EXAMPLES, Place


@dataclass(frozen=True)
class Mistake:
    """`old` is replaced by `new` in the rules of `place`; `says` are the codes and words that must come."""

    name: str
    place: Place
    old: str
    new: str
    says: tuple[str, ...]


FACTORY = (
    Mistake(
        "a number in quotation marks in WHERE", Place.FACTORY, "Temp.?c > 80", 'Temp.?c > "80"',
        ("D2511", "`Temp.?c` is xsd:decimal", "write `80`, without quotation marks"),
    ),
    Mistake(
        "a number in quotation marks in FILTER", Place.FACTORY, "?v > 8", '?v > "8"',
        ("D2511", "`?v` is xsd:decimal in 941 of 941 rows", "write `8`, without quotation marks"),
    ),
    Mistake(
        "a time in quotation marks", Place.FACTORY, "Temp.?c > 80", 'Temp.time > "2026-03-02T09:00:00Z"',
        ("D2511", "`Temp.time` is xsd:dateTime", "is a string"),
    ),
    Mistake(
        "a class in small letters", Place.FACTORY, "a :Vibration", "a :vibration",
        ("D1220", "no triple has the class", "did you mean <http://example.org/factory#Vibration>?"),
    ),
    Mistake(
        "a class in small letters, in object position", Place.FACTORY, "a :Vibration", "?is :vibration",
        ("D2501", "nothing is called :vibration", "did you mean :Vibration?"),
    ),
    Mistake(
        "a threshold out of reach", Place.FACTORY, "?v > 8", "?v > 800",
        ("D2512", "`?v > 800` is true in none of 941 rows of query `Spike`", "`?v` lies between 0 and 32.8"),
    ),
    Mistake(
        "an attribute mixed up in ON", Place.FACTORY, "ON Spike.?m = Temp.?m", "ON Spike.?m = Temp.?c",
        ("D2511", "`Spike.?m` is an IRI", "`Temp.?c` is xsd:decimal", "did you mean `Spike.?m = Temp.?m`?"),
    ),
    Mistake(
        "a forgotten ON", Place.FACTORY, " ON Spike.?m = Temp.?m", "",
        ("D1321", "LAST chooses among all `Spike`, whatever its `?m`", "write `ON Spike.?m = Temp.?m`"),
    ),
    Mistake(
        "a variable without its event", Place.FACTORY, "ON Spike.?m = Temp.?m", "ON ?m = Temp.?m",
        ("D1304", "write `Spike.?m`"),
    ),
    Mistake(
        "a misspelt property", Place.FACTORY, "Vibration ; :machine", "Vibration ; :machin",
        ("D1220", "no triple has the predicate", "factory#machine>?"),
    ),
    Mistake(
        "a name in another namespace", Place.FACTORY,
        "?m ; :value ?v", "?m ; <http://example.com/factory#value> ?v",
        ("D1220", "did you mean <http://example.org/factory#value>?"),
    ),
    Mistake(
        "a property of the wrong subject", Place.FACTORY,
        "Vibration ; :machine ?m", "Vibration ; :machine ?m ; :in ?h",
        ("D2517", "nothing matches `:in ?h` together with the patterns before it in query", "941 rows"),
    ),
    Mistake(
        "a unit too small", Place.FACTORY, "WITHIN 5 min", "WITHIN 5 ms",
        ("D2518", "no `Spike` lies in its window in rule `Overheat`", "the nearest one is 3.822 s before"),
    ),
    Mistake(
        "a resource in other letters in a condition", Place.FACTORY, "Temp.?c > 80", "Temp.?m = :M3",
        ("D2501", "nothing is called :M3", "did you mean :m3?"),
    ),
    Mistake(
        "conditions that contradict each other", Place.FACTORY, "Temp.?c > 80", "Temp.?c > 80 && Temp.?c < 8",
        ("D1328", "`Temp.?c > 80` and `Temp.?c < 8` are never both true"),
    ),
    Mistake(
        "an IRI compared with its name", Place.FACTORY, "?v > 8", '?m = "m1"',
        ("D2511", "`?m` is an IRI in 941 of 941 rows", '`"m1"` is a string'),
    ),
    Mistake(
        "a function of texts of a number", Place.FACTORY, "?v > 8", 'CONTAINS(?v, "8")',
        ("D2512", "is an error in all 941 rows", "`?v` is xsd:decimal in 941 of 941 rows", "STR(…)"),
    ),
    Mistake(
        "the wrong namespace for everything", Place.FACTORY, "org/factory#>", "org/factory/>",
        ("D1220", "no triple has the class", "factory#Temperature>?"),
    ),
    Mistake(
        "a filter that contradicts itself", Place.FACTORY, "?v > 8", "?v > 8 && ?v < 3",
        ("D1328", "`Spike` never has a fact", "are never both true"),
    ),
    Mistake(
        "a text of a number compared with a number", Place.FACTORY, "Temp.?c > 80", "STR(Temp.?c) > 80",
        ("D1219", "D2511", "xsd:decimal(STR(Temp.?c)) makes numbers of them"),
    ),
    Mistake(
        "before and after mixed up", Place.FACTORY,
        "ON Spike.?m = Temp.?m", "ON Spike.?m = Temp.?m && Spike.time > Temp.time",
        ("D2512", "`Spike.time > Temp.time` is true in none of"),
    ),
    Mistake(
        "a sum of a number and a resource in WITH", Place.FACTORY, "?c := Temp.?c", "?c := Temp.?c + Temp.?m",
        ("D2511", "`Temp.?c + Temp.?m` never has a value", "`Temp.?m` is an IRI"),
    ),
    Mistake(
        "a value that never is one", Place.FACTORY, "?c := Temp.?c", "?c := ABS(STR(Temp.?m))",
        ("D2519", "`?c` never has a value in rule `Overheat`"),
    ),
    Mistake(
        "a sum of a resource", Place.FACTORY, "Temp.?c > 80", "Temp.?m + 1 > 80",
        ("D2511", "`Temp.?m + 1` never has a value", "`Temp.?m` is an IRI"),
    ),
)  # fmt: skip

BUILDING = (
    Mistake(
        "ppm where degrees are meant", Place.BUILDING, "FILTER(?celsius > 45)", "FILTER(?celsius > 450)",
        ("D2512", "`?celsius > 450` is true in none of", "`?celsius` lies between"),
    ),
    Mistake(
        "a property's name as a text", Place.BUILDING,
        "sosa:observedProperty :CO2", 'sosa:observedProperty "CO2"',
        ("D2517", 'nothing matches `sosa:observedProperty "CO2"`'),
    ),
    Mistake(
        "LAST where EACH is meant", Place.BUILDING,
        "FROM      Beat AFTER 5 min AS Due\nAND NOT   Again := Beat  WITHIN 5 min FROM Due",
        "FROM EVERY 1 min AS Due\nAND LAST  Beat WITHIN 6 min FROM Due\n"
        "AND NOT   Again := Beat  WITHIN 5 min FROM Due",
        ("D1327", "LAST takes one `Beat` of all", "write `AND EACH Beat`"),
    ),
    Mistake(
        "an aggregate that nothing reads", Place.BUILDING, "?n >= 5 && ", "",
        ("D1326", "nothing reads `?n`"),
    ),
    Mistake(
        "a mean compared with a text", Place.BUILDING, "?mean > 1000", '?mean > "1000"',
        ("D2511", "is never true in rule `Stuffy`", "write `1000`, without quotation marks"),
    ),
    Mistake(
        "a rule that waits for itself", Place.BUILDING, "AND NOT   Told := Fire", "AND LAST  Told := Fire",
        ("D1328", "`Fire` can never have an event", "there is no first one"),
    ),
    Mistake(
        "a count out of reach", Place.BUILDING, "?n >= 5", "?n >= 500",
        ("D2512", "`?n >= 500` is true in none of 220 matches of rule `Stuffy`", "`?n` lies between 1 and 6"),
    ),
    Mistake(
        "a value in small letters", Place.BUILDING, ":CO2 ;", ":co2 ;",
        ("D2501", "nothing is called :co2", "did you mean :CO2?"),
    ),
    Mistake(
        "a misspelt property inside a path", Place.BUILDING, ":badge/:of ?person", ":badge/:off ?person",
        ("D1220", "no triple has the predicate <http://example.org/office#off>"),
    ),
    Mistake(
        "a room compared with a floor", Place.BUILDING,
        "ON Hot.?room = Smoke.?room", "ON Hot.?room = Smoke.?floor",
        ("D2512", "`Hot.?room = Smoke.?floor` is true in none of"),
    ),
    Mistake(
        "an aggregate that is not there", Place.BUILDING, "ROUND(?mean)", "ROUND(?men)",
        ("D1304", "no aggregate is called `?men` here"),
    ),
    Mistake(
        "a room compared with a temperature", Place.BUILDING,
        "ON Hot.?room = Smoke.?room", "ON Hot.?celsius = Smoke.?room",
        ("D2511", "`Hot.?celsius` is xsd:decimal", "did you mean"),
    ),
    Mistake(
        "an unknown trigger", Place.BUILDING, "FROM      Smoke", "FROM      Smoak",
        ("D1106", "there is no query, rule or sequence `Smoak`", "did you mean `Smoke`?"),
    ),
    Mistake(
        "the time of an event as an attribute", Place.BUILDING, "?t := Beat.time", "?t := Beat.?time",
        ("D1310", "the time of an event is `Beat.time`"),
    ),
    Mistake(
        "a comparison of a thing with itself", Place.BUILDING,
        "Near.?room = Air.?room", "Near.?room = Near.?room",
        ("D1323", "both sides of `=` are the same"),
    ),
    Mistake(
        "a misspelt background", Place.BUILDING, "<building.ttl>", "<bilding.ttl>",
        ("D2003", "did you mean `building.ttl`?"),
    ),
    Mistake(
        "an event without its choice", Place.BUILDING, "AND LAST  Hot ", "AND Hot ",
        ("D1004", "choose one: `AND EACH Hot`"),
    ),
    Mistake(
        "CONSTRUCT for DEFINE", Place.BUILDING, "DEFINE    { dotr_fire", "CONSTRUCT { dotr_fire",
        ("D1004", "write what a rule emits after DEFINE"),
    ),
    Mistake(
        "a division by a resource", Place.BUILDING, "ROUND(?mean)", "?mean / Air.?room",
        ("D2511", "never has a value", "`Air.?room` is an IRI"),
    ),
)  # fmt: skip
ALL = (*FACTORY, *BUILDING)


@pytest.mark.parametrize("mistake", ALL, ids=lambda mistake: mistake.name)
def test_a_mistake_is_named(mistake: Mistake, dotr: Dotr) -> None:
    right = mistake.place.copy_to(Path())
    assert right.count(mistake.old) >= 1
    Path("rules.dotr").write_text(right.replace(mistake.old, mistake.new, 1), encoding="utf-8")
    said = dotr("check", "rules.dotr", "--sample", mistake.place.stream).out
    for words in mistake.says:
        assert words in said, said


@pytest.mark.parametrize("place", Place, ids=lambda place: place.name.lower())
def test_right_rules_get_no_warning(place: Place, dotr: Dotr) -> None:
    Path("rules.dotr").write_text(place.copy_to(Path()), encoding="utf-8")
    said = dotr("check", "rules.dotr", "--sample", place.stream)
    assert not re.search(r"^(warning|error)", said.out, re.MULTILINE), said.out


def test_the_factory_is_as_large_as_it_says() -> None:
    assert len(factory.graphs()) == factory.GRAPHS == 1_882
    assert EXAMPLES.is_dir()


def test_a_run_says_once_why_a_rule_had_no_fact(dotr: Dotr) -> None:
    Path("rules.dotr").write_text(Place.FACTORY.copy_to(Path()).replace("?v > 8", '?v > "8"'))
    ran = dotr("run", "rules.dotr", "stream.jsonl")
    assert ran.out == ""
    assert ran.err.count("warning[D2511]") == 1
    assert "`?v` is xsd:decimal in 500 of 500 rows" in ran.err
    assert 'query Spike: 0 facts; FILTER ?v > "8" was a type error in 500 of 500 rows' in ran.err
    Path("rules.dotr").write_text(Place.FACTORY.copy_to(Path()))
    assert "D25" not in dotr("run", "rules.dotr", "stream.jsonl").err


def test_feed_and_batch_say_it_too(dotr: Dotr) -> None:
    right = Place.FACTORY.copy_to(Path())
    Path("rules.dotr").write_text(right.replace("?v > 8", '?v > "8"'))
    said = 'query Spike: 0 facts; FILTER ?v > "8" was a type error in 500 of 500 rows'
    batch = ["batch", "rules.dotr", "stream.jsonl", "--engine", "local", "--out"]
    assert said in dotr(*batch, "out").err
    assert dotr("deploy", "rules.dotr").code == 0
    fed = dotr("feed", "stream.jsonl").err
    assert said in fed
    assert fed.count("warning[D2511]") == 1
    Path("more.jsonl").write_text(
        '{"time": "2026-03-02T11:00:00Z", "graph": "<urn:a> <urn:b> <urn:c> ."}\n', encoding="utf-8"
    )
    assert "D2511" not in dotr("feed", "more.jsonl").err  # its first thousand graphs are long past
    Path("rules.dotr").write_text(right)
    assert "D25" not in dotr(*batch, "right").err


MIXED = """PREFIX : <urn:>
QUERY Q := { SELECT ?v WHERE { ?o :value ?v } }
RULE R DEFINE { dotr_x a :R } FROM Q
"""


def stream(*graphs: str, begin: int = 1) -> str:
    Path("mixed.dotr").write_text(MIXED, encoding="utf-8")
    lines = [json.dumps({"time": begin + n, "graph": graph}) for n, graph in enumerate(graphs)]
    Path("mixed.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return "mixed.jsonl"


def test_values_of_several_kinds_are_reported(dotr: Dotr) -> None:
    source = stream('<urn:o> <urn:value> "8" .', "<urn:o> <urn:value> 8 .", "<urn:o> <urn:value> 9 .")
    said = dotr("check", "mixed.dotr", "--sample", source).out
    assert "D2514" in said
    assert "`?v` of query `Q` is of several kinds" in said
    assert "xsd:integer in 2, a string in 1 of 3 rows" in said
    said = dotr("check", "mixed.dotr", "--sample", stream("<urn:o> <urn:value> 8.5 , 9 .")).out
    assert "D2514" not in said  # numbers of two types are numbers


def test_other_times_of_the_data_are_reported(dotr: Dotr) -> None:
    time = '"2026-03-02T08:00:05Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
    said = dotr("check", "mixed.dotr", "--sample", stream(f"<urn:o> <urn:value> 8 ; <urn:sent> {time} .")).out
    assert "D2515" in said
    assert "--time-path urn:sent" in said
    Path("own.nt").write_text(f"<urn:o> <http://www.w3.org/ns/sosa/resultTime> {time} .\n", encoding="utf-8")
    said = dotr("check", "mixed.dotr", "--sample", "own.nt").out
    assert "D1220" in said
    assert "D2515" not in said  # it is the time already
    said = dotr("check", "mixed.dotr", "--sample", stream("<urn:o> <urn:value> 1767225600000 .")).out
    assert "integers of 13 digits (milliseconds?)" in said
    said = dotr("check", "mixed.dotr", "--sample", stream("<urn:o> <urn:value> 8 .")).out
    assert "D2515" not in said


def test_milliseconds_taken_for_seconds_are_reported(dotr: Dotr) -> None:
    source = stream("<urn:o> <urn:value> 8 .", begin=1_767_225_600_000)
    said = dotr("check", "mixed.dotr", "--sample", source).out
    assert "D2516" in said
    assert "--time-unit ms" in said
    said = dotr("check", "mixed.dotr", "--sample", source, "--time-unit", "ms").out
    assert "D2516" not in said


def test_a_run_names_the_condition_of_a_rule_that_never_held(dotr: Dotr) -> None:
    right = Place.BUILDING.copy_to(Path())
    Path("rules.dotr").write_text(right.replace("Hot.?room = Smoke.?room", "Hot.?room = Smoke.?floor"))
    said = dotr("run", "rules.dotr", "morning.ttl", "-o", "out.jsonl").err
    assert "`Hot.?room = Smoke.?floor` is true in none of" in said
    assert re.search(r"^  Fire +0   Smoke 3 → LAST Hot 0   `Hot", said, re.MULTILINE), said
    assert re.search(r"^  Evacuate +0   Fire 0$", said, re.MULTILINE), said
