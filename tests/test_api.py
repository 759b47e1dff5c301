"""Engine, as a Python user may misuse it: every mistake is reported, none is taken silently."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest
import rdflib

import dotr
from dotr.core.pipeline import Pipeline
from dotr.events import Clock
from dotr.io.decode.plain import PlainTokens

RULES = """
PREFIX : <ex:>
RULE Hit DEFINE { dotr_x :v ?v } FROM Seen := { SELECT ?v WHERE { ?s :p ?v } } WITH ?v := Seen.?v
"""
GRAPH = "<ex:a> <ex:p> 1 ."


def engine(**options: Any) -> dotr.Engine:
    return dotr.Engine.from_text(RULES, **options)


def test_errors_of_rules_given_as_a_string_have_their_parts_as_attributes() -> None:
    rules = """PREFIX : <ex:>
RULE Hit DEFINE { dotr_x :v ?v }
FROM Seen := { SELECT ?value WHERE { ?s :p ?value } }
WITH ?v := Seen.?valu
RULE Hit DEFINE { dotr_x :v 1 } FROM Seen
"""
    with pytest.raises(dotr.ProgramError) as raised:
        dotr.Engine.from_text(rules, name="hit.dotr")
    found = raised.value.diagnostics
    assert [(one.code, one.file, one.line, one.column) for one in found] == [
        ("D1310", "hit.dotr", 4, 17),
        ("D1104", "hit.dotr", 5, 6),
        ("D1106", "hit.dotr", 5, 38),
    ]
    assert found[0].message == "`Seen` does not select `?valu`"
    assert found[0].hint == "did you mean `?value`?"
    assert found[0].severity == "error"


def test_errors_of_data_name_their_file() -> None:
    with pytest.raises(dotr.DataError) as raised:
        engine().push("<ex:a> <ex:p>", at=1)
    (found,) = raised.value.diagnostics
    assert (found.code, found.line, found.column) == ("D2001", None, None)
    assert found.file.startswith("<text>:1")


@pytest.mark.parametrize(
    ("at", "code"),
    [
        (1.5, "D4104"),
        (True, "D4104"),
        (None, "D4104"),
        (date(2026, 1, 1), "D4104"),
        (datetime(2026, 1, 1), "D2103"),
        ("2026-01-01T00:00:00", "D2103"),
        ("noon", "D2105"),
        (10**30, "D2105"),
        (-(10**30), "D2105"),
    ],
)
def test_what_is_no_time_is_refused(at: Any, code: str) -> None:
    with pytest.raises(dotr.DotrError, match=code):
        engine().push(GRAPH, at=at)
    with pytest.raises(dotr.DotrError, match=code):
        engine().advance(at)


@pytest.mark.parametrize(
    ("at", "hint", "options", "right"),
    [
        (
            "2026-01-01T00:00:00",
            "write Z after it if it is UTC, or give an aware datetime",
            {},
            "2026-01-01T00:00:00Z",
        ),
        (
            "2026-01-01T00:00:00Z/2026-01-01T00:05:00Z",
            'choose the end that is the time: interval="begin", or interval="end"',
            {"interval": "begin"},
            "2026-01-01T00:00:00Z/2026-01-01T00:05:00Z",
        ),
    ],
)
def test_hints_about_times_are_for_python(at: str, hint: str, options: Any, right: str) -> None:
    with pytest.raises(dotr.DataError) as raised:
        engine().push(GRAPH, at=at)
    assert raised.value.diagnostics[0].hint == hint
    engine(**options).push(GRAPH, at=right)


@pytest.mark.parametrize(
    ("graph", "code"),
    [
        (None, "D2201"),
        (5, "D4105"),
        (["<ex:a>"], "D4105"),
        ([("<ex:a", "<ex:p>", '"1"')], "D4105"),
        ([('"literal"', "<ex:p>", '"1"')], "D4105"),
        ([("<ex:a>", "_:p", '"1"')], "D4105"),
        ([("<ex:a>", "<ex:p>", '"1')], "D4105"),
        ([("<ex:a>", "<ex:p>", '"1" . <ex:b> <ex:p> "2"')], "D4105"),
        (b"\xff", "D2002"),
        ("<ex:a> <ex:p>", "D2001"),
    ],
)
def test_what_is_no_graph_is_refused(graph: Any, code: str) -> None:
    running = engine()
    with pytest.raises(dotr.DotrError, match=code):
        running.push(graph, at=1)
    running.push(GRAPH, at=1)
    assert [event.rule for event in running.finish()] == ["Hit"]


def test_terms_that_only_rdflib_takes_are_refused() -> None:
    graph = rdflib.Graph()
    graph.add((rdflib.URIRef("ex:a b"), rdflib.URIRef("ex:p"), rdflib.Literal(1)))
    with pytest.raises(dotr.DataError, match="D2001"):
        engine().push(graph, at=1)


@pytest.mark.parametrize(
    "options",
    [
        {"lateness": 5},
        {"lateness": "5"},
        {"lateness": "-1 s"},
        {"late": "ignore"},
        {"time_unit": "m"},
        {"materialize": "some"},
        {"base": "building"},
    ],
)
def test_options_with_values_they_cannot_have_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(dotr.UsageError):
        engine(**options)


def test_late_graphs_that_fail_name_their_time_as_the_run_writes_it() -> None:
    running = engine(late="fail")
    running.push(GRAPH, at=datetime(2026, 1, 2, tzinfo=UTC))
    with pytest.raises(dotr.DataError, match="this graph is for 2026-01-01T00:00:00Z"):
        running.push(GRAPH, at="2026-01-01T00:00:00Z")


def test_a_snapshot_of_another_unit_is_refused() -> None:
    running = engine()
    running.push(GRAPH, at=1)
    with pytest.raises(dotr.DataError, match="D2102"):
        engine(time_unit="ms").restore(running.snapshot())


@pytest.mark.parametrize("blob", [b"", b"x", b"{}", b"[]", b"5", b'{"version":1}'])
def test_a_damaged_snapshot_is_reported(blob: bytes) -> None:
    with pytest.raises(dotr.EngineError, match="D510"):
        engine().restore(blob)


ALONE = """PREFIX : <urn:x:>
RULE Pair
DEFINE { dotr_x a :Pair ; :room ?r ; :value ?v }
FROM A := { SELECT ?r ?v WHERE { ?s :a ?v . ?s :in ?r FILTER(?v > 3) } }
AND LAST B := { SELECT ?r ?v WHERE { ?s :b ?v . ?s :in ?r } } WITHIN 1 min FROM A ON B.?r = A.?r
WITH ?r := A.?r, ?v := B.?v
"""


@pytest.mark.parametrize(
    ("datalog", "background", "alone"),
    [
        (":in(?s, ?r) :- :on(?s, ?o), :of(?o, ?r) .", ":s :on :o . :o :of :r .", True),
        (":in(?s, ?r) :- :a(?s, ?v), :of(?s, ?r) .", ":s :of :r ; :in :q .", False),  # a rule reads it
        ("", ":s :in :r ; :a 9 .", False),  # the background answers the query
        ("", ":s :in :r , :q .", True),  # two rooms: two facts of one triple
    ],
)
def test_a_triple_alone_needs_no_overlay_unless_a_rule_or_the_background_has_a_say(
    datalog: str, background: str, alone: bool
) -> None:
    prefix = "@prefix : <urn:x:> . "
    stream = [(time, f"<urn:x:s> <urn:x:{'bab'[time % 3]}> {time} .") for time in range(1, 20)]
    found = []
    for verify in (False, True):
        engine = dotr.Engine.from_text(
            ALONE,
            datalog=f"PREFIX : <urn:x:>\n{datalog}\n" if datalog else "",
            background=prefix + background,
            verify=verify,
        )
        events = [event.to_json() for events in engine.push_all(stream) for event in events]
        found.append(events + [event.to_json() for event in engine.finish()])
        assert (engine.pipeline.instants._entries["<urn:x:a>"] is not None) is alone
    assert found[0] == found[1]
    assert found[0]


def test_push_all_hands_out_what_was_closed_before_a_graph_that_cannot_be_read() -> None:
    engine = dotr.Engine.from_text(ALONE, background="@prefix : <urn:x:> . :s :in :r .")
    stream = [(1, "<urn:x:s> <urn:x:b> 1 ."), (2, "<urn:x:s> <urn:x:a> 9 ."), (3, ""), (3, "<urn:x:s> 4 .")]
    handed = engine.push_all(stream)
    assert [event.time for event in next(handed)] == [2]
    with pytest.raises(dotr.DataError):
        next(handed)


def test_a_float_between_a_decimal_and_its_rounding_passes_as_a_float_whoever_shares_its_facts() -> None:
    """As xsd:float 0.1 is not above the decimal 0.1, as the xsd:double it becomes in a fact it would be."""
    rule = """
RULE Above{n}
DEFINE {{ dotr_x a :Above ; :value ?v }}
FROM A{n} := {{ SELECT ?k ?v WHERE {{ ?k :a ?v FILTER(?v > {limit}) }} }}
AND {which} B{n} := {{ SELECT ?k ?v WHERE {{ ?k :b ?v FILTER(?v > {limit}) }} }}
    WITHIN 1 h FROM A{n} ON B{n}.?k = A{n}.?k
WITH ?v := B{n}.?v
"""
    limits = ("0.09", "0.1", "0.11", "0.3", "1")
    rules = "PREFIX : <urn:x:>\n" + "".join(
        rule.format(n=f"{which}{i}", limit=limit, which=which)
        for which in ("LAST", "EACH")
        for i, limit in enumerate(limits)
    )
    kind = "<http://www.w3.org/2001/XMLSchema#float>"
    values = ["0.3", "5", f'"0.5"^^{kind}', "0.2", f'"0.1"^^{kind}', "0.1", f'"0.3"^^{kind}', "7"]
    values += ["0.1e0", "0.100000001e0", "2"]
    stream = [
        (time, f"<urn:x:k> <urn:x:{predicate}> {value} .")
        for time, (value, predicate) in enumerate(((v, p) for v in values for p in "ba"), start=1)
    ]
    ran = []
    for verify in (False, True):
        engine = dotr.Engine.from_text(rules, verify=verify)
        assert len(engine.pipeline.instants.extract.filtered) == 20
        ran.append([event.to_json() for events in engine.push_all(stream) for event in events])
    assert ran[0] == ran[1]
    assert ran[0]


EVERY_PAIR = """PREFIX : <urn:x:>
ENTAILMENT rdfs
RULE Pair DEFINE { dotr_x a :Pair ; :v ?v ; :w ?w }
FROM A := { SELECT ?v WHERE { ?s :a ?v } }
AND EACH B := { SELECT ?v WHERE { ?s :b ?v } } WITHIN 1 h FROM A
WITH ?v := A.?v, ?w := B.?v
"""
PAIRS = [(time, f"<urn:x:s> <urn:x:{'ab'[time % 2]}> {time} .") for time in range(1, 20)]
TICKED = EVERY_PAIR.replace("FROM A :=", "FROM EVERY 3 s AS T AND EACH A :=").replace(
    "?v } }\nAND EACH B", "?v } } WITHIN 2 s FROM T\nAND EACH B"
)
IN_ERROR = "<urn:x:s> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <urn:x:t> ."


def one_by_one(rules: str, stream: list[tuple[int, str]]) -> list[str]:
    running = dotr.Engine.from_text(rules)
    events = [event for time, graph in stream for event in running.push(graph, at=time)]
    return [event.to_json() for event in events + running.finish()]


@pytest.mark.parametrize("rules", [EVERY_PAIR, TICKED])
def test_who_leaves_push_all_early_loses_nothing(rules: str) -> None:
    running = dotr.Engine.from_text(rules)
    found: list[dotr.Event] = []
    for events in running.push_all(PAIRS):
        found += events
        break
    found += running.finish()
    assert [event.to_json() for event in found] == one_by_one(rules, PAIRS)


@pytest.mark.parametrize("end", ["finish", "advance", "neither", "restored"])
@pytest.mark.parametrize("rules", [EVERY_PAIR, TICKED])
def test_parts_of_a_stream_that_ends_and_goes_on_are_taken_together(
    rules: str, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some graphs of each part behind the first are late, where time was advanced to them."""
    alone: list[int] = []
    accept = Pipeline.accept
    monkeypatch.setattr(Pipeline, "accept", lambda *given: alone.append(given[1]) or accept(*given))
    found: list[list[str]] = []
    for together in (True, False):
        running = dotr.Engine.from_text(rules)
        events: list[dotr.Event] = []
        for start in range(0, 18, 6):
            part = PAIRS[start : start + 6]
            alone.clear()
            if together:
                events += [event for some in running.push_all(part) for event in some]
                assert bool(alone) is (start == 0 or end == "advance")
            else:
                events += [event for time, graph in part for event in running.push(graph, at=time)]
            if end == "finish":
                events += running.finish()
            elif end == "advance":
                events += running.advance(part[-1][0] + 2)
            elif end == "restored":
                events += running.finish()
                state, running = running.snapshot(), dotr.Engine.from_text(rules)
                running.restore(state)
        found.append([event.to_json() for event in [*events, *running.finish()]])
        assert running.counters.late == (4 if end == "advance" else 0)
    assert found[0] == found[1]
    assert found[0]


@pytest.mark.parametrize("rules", [EVERY_PAIR, TICKED])
def test_a_snapshot_between_two_instants_of_push_all_holds_those_that_have_not_run(rules: str) -> None:
    running = dotr.Engine.from_text(rules)
    expected = one_by_one(rules, PAIRS)
    found: list[str] = []
    for events in running.push_all(PAIRS):
        found += [event.to_json() for event in events]
        other = dotr.Engine.from_text(rules)
        other.restore(running.snapshot())
        rest = other.finish()
        assert found + [event.to_json() for event in rest] == expected
        assert other.counters.facts == len(PAIRS)


def test_what_push_all_has_read_is_known_in_its_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    running = dotr.Engine.from_text(EVERY_PAIR)
    list(running.push_all(PAIRS[:1]))  # fixes the kind of time
    stream = [(time, f"<urn:x:s> <urn:x:a> {time % 3} .") for time in range(20, 400)]
    list(running.push_all(stream[:40]))
    learned: list[str] = []
    monkeypatch.setattr(PlainTokens, "_learn", lambda _, tokens, *_rest: learned.extend(tokens) or True)
    list(running.push_all(stream[40:]))
    assert running.counters.graphs == 1 + len(stream)
    assert not learned


def test_instants_closed_by_silence_and_by_later_graphs_run_in_order() -> None:
    pipeline = dotr.Engine.from_text(EVERY_PAIR).pipeline
    pipeline.begin(Clock())
    triples = [[("<urn:x:s>", f"<urn:x:{name}>", f'"{name}"')] for name in "bab"]
    pipeline.accept(5, triples[0])
    pipeline.accept(10, triples[1])
    pipeline.close_up_to(11)
    pipeline.accept(13, triples[2])
    assert [event.time for events in pipeline.drain() for event in events] == [10]


@pytest.mark.parametrize("rules", [EVERY_PAIR, TICKED])
def test_an_instant_in_error_ends_push_all_before_later_ones_and_loses_none(rules: str) -> None:
    stream = [*PAIRS[:9], (10, IN_ERROR), *PAIRS[10:]]
    running = dotr.Engine.from_text(rules)
    found: list[dotr.Event] = []
    many = [*stream, *((time, "<urn:x:s> <urn:x:c> 1 .") for time in range(20, 600))]
    handed = running.push_all(many)
    with pytest.raises(dotr.DataError, match="D2601"):
        found.extend(event for events in handed for event in events)
    assert max(event.time for event in found if isinstance(event.time, int)) < 10
    found += running.finish()
    without = [pair for pair in many if pair[0] != 10]
    latest = running.pipeline.latest
    assert latest is not None
    expected = one_by_one(rules, [pair for pair in without if pair[0] * 10**6 <= latest])
    assert [event.to_json() for event in found] == expected


def test_events_before_an_instant_in_error_come_with_the_next_push() -> None:
    stream = [*PAIRS[:9], (10, IN_ERROR), *PAIRS[10:]]
    running = dotr.Engine.from_text(EVERY_PAIR, lateness="1 h")
    for time, graph in stream:
        running.push(graph, at=time)
    with pytest.raises(dotr.DataError, match="D2601"):
        running.finish()
    handed = running.push_all([(21, "<urn:x:s> <urn:x:a> 21 .")])
    events = [event.to_json() for events in handed for event in events]
    events += [event.to_json() for event in running.finish()]
    without = [pair for pair in stream if pair[0] != 10]
    assert events == one_by_one(EVERY_PAIR, [*without, (21, "<urn:x:s> <urn:x:a> 21 .")])


@pytest.mark.parametrize("which", ["LAST", "EACH", "NOT", "LAST 2"])
def test_a_float_that_passed_as_a_float_is_remembered_where_its_rule_comes_to_share_facts(which: str) -> None:
    """As xsd:float 0.7 is not below the decimal 0.7, as the xsd:double of its value it is."""
    rule = """
RULE R{n} DEFINE {{ dotr_x :value ?v }}
FROM A := {{ SELECT ?k ?v WHERE {{ ?k :a ?v }} }}
AND {which} B{n} := {{ SELECT ?k ?v WHERE {{ ?k :b ?v FILTER(?v >= {limit}) }} }} WITHIN 1 h FROM A
WITH ?v := A.?v
"""
    kind = "<http://www.w3.org/2001/XMLSchema#float>"
    stream = [
        (1, f'<urn:x:k> <urn:x:b> "0.7"^^{kind} .'),
        (2, "<urn:x:k> <urn:x:a> 1 ."),
        (3, "<urn:x:k> <urn:x:b> 0.65 ."),
        (4, "<urn:x:k> <urn:x:a> 2 ."),
        (5, ""),
    ]
    texts = [
        "PREFIX : <urn:x:>\n" + "".join(rule.format(n=n, which=which, limit=limit) for n, limit in family)
        for family in ([(0, "0.7")], [(0, "0.7"), (1, "0.1")], [(1, "0.1"), (0, "0.7"), (2, "0.6")])
    ]
    expected = [event for event in one_by_one(texts[0], stream) if '"R0"' in event]
    for cut in range(1, len(stream)):
        running = dotr.Engine.from_text(texts[0])
        found: list[dotr.Event] = []
        for place, (time, graph) in enumerate(stream):
            if place >= cut:
                state = running.snapshot()
                running = dotr.Engine.from_text(texts[1 + place % 2])
                assert "R0" in running.restore(state).kept
            found += running.push(graph, at=time)
        found += running.finish()
        assert [event.to_json() for event in found if event.rule == "R0"] == expected


@pytest.mark.parametrize("which", ["LAST", "EACH", "FIRST", "NOT"])
def test_a_float_that_another_rule_remembers_is_no_double_after_a_restart(which: str) -> None:
    """The rule below 0.7 never had the xsd:float 0.7, the one below 1 had it: their memories stay apart."""
    rule = """
RULE R{n} DEFINE {{ dotr_x :value ?v }}
FROM A := {{ SELECT ?k ?v WHERE {{ ?k :a ?v }} }}
AND {which} B{n} := {{ SELECT ?k ?v WHERE {{ ?k :b ?v FILTER(?v < {limit}) }} }} WITHIN 1 h FROM A
WITH ?v := A.?v
"""
    limits = ("0.7", "1", "0.1")
    rules = "PREFIX : <urn:x:>\n" + "".join(
        rule.format(n=n, which=which, limit=limit) for n, limit in enumerate(limits)
    )
    stream = [
        (1, '<urn:x:k> <urn:x:b> "0.7"^^<http://www.w3.org/2001/XMLSchema#float> .'),
        (2, "<urn:x:k> <urn:x:a> 1 ."),
        (3, "<urn:x:k> <urn:x:a> 2 ."),
    ]
    running = dotr.Engine.from_text(rules)
    found: list[dotr.Event] = []
    for time, graph in stream:
        if time > 1:
            state = running.snapshot()
            running = dotr.Engine.from_text(rules)
            running.restore(state)
        found += running.push(graph, at=time)
    found += running.finish()
    assert [event.to_json() for event in found] == one_by_one(rules, stream)


@pytest.mark.parametrize("pair", ["<urn:s> <urn:p> <urn:o> .", 7, (1,), (1, "", "")])
def test_what_is_no_pair_is_reported_and_what_came_before_is_handed_out(pair: object) -> None:
    engine = dotr.Engine.from_text(ALONE, background="@prefix : <urn:x:> . :s :in :r .")
    stream = [(1, "<urn:x:s> <urn:x:b> 1 ."), (2, "<urn:x:s> <urn:x:a> 9 ."), (3, ""), pair]
    handed = engine.push_all(stream)  # type: ignore[arg-type]  # that is the point
    assert len(next(handed)) == 1
    with pytest.raises(dotr.UsageError, match="D4105"):
        next(handed)


@pytest.mark.parametrize("text", ["0.5 us", "1e3 s", f"{10**23} d", "PT", "-1 s", "5 parsecs"])
def test_a_duration_is_a_whole_number_of_microseconds_in_a_known_unit(text: str) -> None:
    with pytest.raises(dotr.UsageError) as caught:
        dotr.Engine.from_text(ALONE, lateness=text)
    assert caught.value.diagnostics[0].code == "D4101"


def test_units_of_durations_may_be_written_in_any_case() -> None:
    assert dotr.Engine.from_text(ALONE, lateness="5 MIN").pipeline._open.lateness == 300_000_000


@pytest.mark.parametrize("texts", ["plain", "parsed", "mixed"])
def test_a_list_of_pairs_gives_what_the_same_pairs_give_one_by_one(texts: str) -> None:
    """Many are read at once; with late ones, several at an instant, blank nodes and wrong ones among them."""
    rules = (
        "RULE R DEFINE { dotr_x a <urn:x:R> ; <urn:x:v> ?v }\n"
        "FROM A := { SELECT ?v WHERE { ?s <urn:x:a> ?v } } WITH ?v := A.?v"
    )
    forms = {
        "plain": ["<urn:x:s> <urn:x:a> {n} ."],
        "parsed": ["[] <urn:x:a> {n}, 'é{n}' .", "<urn:x:s> <urn:x:a> {n} ; <urn:x:b> 1 ."],
        "mixed": ["<urn:x:s> <urn:x:a> {n} .", "", "_:b <urn:x:a> 1 .", "PREFIX x: <urn:x:> x:s x:a {n} ."],
    }[texts]
    pairs = [(n if n % 97 else n // 2, forms[n % len(forms)].format(n=n)) for n in range(1, 300)]
    pairs += [
        (300, forms[0].format(n=7)),
        (300, forms[0].format(n=8)),
        (2**70, "") if texts == "mixed" else (301, ""),
    ]
    found = []
    for given in (pairs, iter(pairs)):
        late: list[object] = []
        engine = dotr.Engine.from_text(rules, late=lambda at, graph, late=late: late.append((at, len(graph))))
        ran = []
        try:
            for events in engine.push_all(given):
                ran += [event.to_json() for event in events]
        except dotr.DotrError as error:
            ran.append(str(error))
        ran += [event.to_json() for event in engine.finish()]
        found.append((ran, late, engine.counters))
    assert found[0] == found[1]
    assert len(found[0][0]) > 100
    assert found[0][1]
