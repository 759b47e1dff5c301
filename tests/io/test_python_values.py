"""What a Python program holds: events, frames, plans, answers, and pairs read together."""

from __future__ import annotations

import pandas as pd
import pytest
import rdflib

import dotr
from dotr.core.deployment import Deployment
from dotr.core.pipeline import Counters
from dotr.errors import UsageError
from dotr.events import Clock
from dotr.io.decode.messages import times_in
from dotr.io.event_frames import frame_of
from dotr.io.python_events import NO_EVENTS, SHOWN, Event, Events, Plan, engine_picture, keeps
from dotr.io.python_values import PairReader, asked
from dotr.io.time import TimestampExtractor
from dotr.lang import parse_program

RULES = """PREFIX : <urn:ex:>
QUERY Temp := { SELECT ?m ?c WHERE { ?o :celsius ?c ; :of ?m } }
QUERY Door := { SELECT ?m WHERE { ?o :door ?m } }
QUERY Past := { SELECT ?m ?c WHERE { ?o :celsius ?c ; :of ?m } }
RULE Hot DEFINE { dotr_x a :Hot } FROM Temp
AND LAST Door WITHIN 5 s FROM Temp ON Door.?m = Temp.?m
AND AVG(Past.?c) AS ?a OVER Past WITHIN 1 min FROM Temp
WITH ?m := Temp.?m, ?c := Temp.?c
RULE Tick DEFINE { dotr_x a :Tick } FROM EVERY 2 s AS T
"""
TEMP = "<urn:ex:o{n}> <urn:ex:celsius> {n} ; <urn:ex:of> <urn:ex:m> ."
SIMPLE = """PREFIX : <urn:ex:>
RULE Hot DEFINE { dotr_x a :Hot } FROM T := { SELECT ?c WHERE { ?o :celsius ?c } } WITH ?c := T.?c
RULE Any DEFINE { dotr_x a :Any } FROM T := { SELECT ?c WHERE { ?o :celsius ?c } }
"""
STATE = [("<urn:s>", "<urn:p>", '"1"')]


def events(count: int) -> Events:
    engine = dotr.Engine.from_text(SIMPLE)
    for n in range(count):
        engine.push(TEMP.format(n=n), at=n // 20)
    return engine.finish()


def test_events_are_a_sequence_that_shows_twenty() -> None:
    found = events(11)
    assert len(found) == 22
    assert isinstance(found[0], Event)
    assert found[0] is found[0]
    assert (found == list(found), found == [], NO_EVENTS == []) == (True, False, True)
    assert len(found + found[:1]) == len(found[:1] + found) == 23
    assert repr(found).endswith("… 2 more]")
    assert found._repr_html_().count("<tr>") == 21
    assert "and 2 more" in found._repr_html_()
    assert "more" not in events(2)._repr_html_()
    assert bool(found)
    assert not NO_EVENTS


def test_an_event_has_its_values_by_name() -> None:
    one = events(1)[0] if events(1)[0].rule == "Hot" else events(1)[1]
    assert one["c"] == rdflib.Literal(0)
    with pytest.raises(KeyError, match="d"):
        one["d"]
    assert repr(one) == "<Hot @ 0 c=0>"
    with pytest.raises(UsageError) as raised:
        one.explain()
    assert raised.value.diagnostics[0].code == "D4176"
    with pytest.raises(UsageError):
        keeps(None)


def test_a_frame_has_every_variable_of_any_rule() -> None:
    frame = frame_of(events(2))
    assert isinstance(frame, pd.DataFrame)
    assert list(frame.columns) == ["time", "rule", "id", "c"]
    assert list(frame_of(list(events(2))[::-1]).columns) == list(frame.columns)
    hot = frame[frame["rule"] == "Hot"]
    assert hot["c"].tolist() == [0, 1]
    assert frame[frame["rule"] == "Any"]["c"].isna().all()


def test_a_plan_says_what_is_kept_of_every_position() -> None:
    plan = Plan(Deployment(parse_program(RULES), []))
    text = repr(plan)
    assert text.splitlines()[0] == "<dotr plan: 2 rules>"
    assert "LAST Door  of Door  the last fact of each key, for 5 s" in text
    assert "AVG OVER Past  of Past  a running AVG, for 1 min" in text
    assert "T  every 2 s" in text
    assert plan._repr_html_().count("<td>Hot</td>") == 1


def test_a_plan_of_many_rules_is_cut() -> None:
    rules = "PREFIX : <urn:ex:>\n" + "".join(
        f"RULE R{n} DEFINE {{ dotr_x a :R }} FROM EVERY {n} s AS T\n" for n in range(1, SHOWN + 3)
    )
    plan = Plan(Deployment(parse_program(rules), []))
    assert repr(plan).endswith("… 2 more")
    assert f"R{SHOWN + 1}" not in repr(plan)


def test_an_engine_shows_counts_also_of_rules_without_events() -> None:
    counters = Counters(events={"Hot": 1234}, funnel={"Hot": [("Temp", 1234)]})
    table = engine_picture("<title>", parse_program(RULES), counters)
    assert '<td>Hot</td><td class="n">1,234</td><td>Temp 1,234</td>' in table
    assert '<td>Tick</td><td class="n">0</td><td></td>' in table
    assert "&lt;title&gt;" in table


ASKED = """PREFIX : <urn:>
QUERY Q := { SELECT ?o ?x WHERE { ?s :p ?o OPTIONAL { ?s :q ?x } } }
RULE R DEFINE { dotr_x a :R } FROM Q
"""


def test_answers_are_rows_bools_or_graphs() -> None:
    program = parse_program(ASKED)
    assert asked("Q", program, STATE, None, Clock()) == [{"o": rdflib.Literal("1")}]
    assert asked("ASK { ?s :q ?o }", program, STATE, None, Clock()) is False
    graph = asked("CONSTRUCT { ?s :r ?o } WHERE { ?s :p ?o }", program, STATE, None, Clock())
    assert isinstance(graph, rdflib.Graph)
    assert list(graph) == [(rdflib.URIRef("urn:s"), rdflib.URIRef("urn:r"), rdflib.Literal("1"))]
    now = "SELECT ?n WHERE { BIND(NOW() AS ?n) }"
    with pytest.raises(UsageError) as raised:
        asked(now, program, STATE, None, Clock())
    assert raised.value.diagnostics[0].code == "D4112"
    assert asked(now, program, STATE, 3_000_000, Clock()) == [{"n": rdflib.Literal(3)}]


def test_pairs_are_read_together_where_all_are_alike() -> None:
    reader = PairReader(1_000, None)
    text = "<urn:s> <urn:p> {} ."
    found = reader.read([(n, text.format(n)) for n in range(3)])
    assert found is not None
    assert found[0] == [0, 1_000, 2_000]
    assert [len(graph) for graph in found[1]] == [1, 1, 1]
    first = (1, text.format(1))
    good = text.format(2)
    for other in ((2.0, good), (True, good), (2, good.encode()), (2, good, 3), [2, good], (2**80, good)):
        assert reader.read([first, other]) is None, other
    assert reader.read([first]) is None


RESULT = "<http://www.w3.org/ns/sosa/resultTime>"
OTHER = "<http://www.w3.org/ns/sosa/phenomenonTime>"
DAY = '"2026-01-01T08:00:0{}Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'


def test_times_are_found_together_where_all_say_one_by_one_property() -> None:
    a, b = ("<urn:s>", RESULT, DAY.format(1)), ("<urn:s>", RESULT, DAY.format(2))
    beside = ("<urn:s>", "<urn:p>", "<urn:o>")

    def extractor() -> TimestampExtractor:
        made = TimestampExtractor()
        made.time([a], "", "f")  # the form of the graphs before
        return made

    alone = extractor()
    expected = [alone.time([a], "", "f"), alone.time([b], "", "f")]
    assert times_in([[a, beside], [b]], extractor()) == expected
    assert times_in([[a, b], [beside]], extractor()) is None, "two and none"
    assert times_in([[a], [beside]], extractor()) is None
    assert times_in([[a], [("<urn:s>", OTHER, DAY.format(2))]], extractor()) is None
