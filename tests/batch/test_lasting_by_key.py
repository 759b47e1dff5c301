"""What lasts, by key: random programs with HOLD, changes and effects in the parts of a stream, wherever
batches are cut and whichever part is restored, beside one run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from dotr.batch.facts import APART
from dotr.batch.stream import (
    DISTRIBUTED,
    ORDERED,
    LiveSlots,
    StreamOptions,
    choose,
    compare,
    marks_of,
    meta_of,
    obstacles,
    places,
    stream_layout,
)
from dotr.batch.work import Treatment, extract, make_job, ship
from dotr.core.deployment import Deployment
from dotr.core.pipeline import Pipeline
from dotr.detect.partitioning import RuleComponentGroup
from dotr.errors import RefusedError, UsageError
from dotr.events import Clock, Composite, Time
from dotr.io.decode.documents import Format
from dotr.io.decode.rdf import parse_triples
from dotr.io.events import format_jsonl
from dotr.io.rules_and_background import read_rules_text
from dotr.lang import parse_datalog, parse_program
from dotr.program import Program
from dotr.rdf.terms import Triple

FEWER = settings(max_examples=max(50, settings().max_examples // 2), deadline=None)
SECOND = 1_000_000
CORES = 1
PREFIXES = {"": "ex:"}

Log = list[tuple[Time, list[Triple]]]

HOLDS = [
    *("HOLD :p", "HOLD :p LATEST", "HOLD :p FOR 3 s", "HOLD :p LATEST FOR 4 s"),
    *("HOLD :p FROM :from UNTIL :until", "HOLD * FOR 2 s"),
]
MORE_HOLDS = [
    "",
    "HOLD :q FOR 2 s",
    "HOLD :q LATEST",
    "HOLD a :C FOR 3 s",
    "HOLD :n FOR 5 s",
    "HOLD :r FOR 4 s",
]
DATALOG = [
    ":d(?x, ?y) :- :p(?x, ?y) .",
    ":d(?x, ?y) :- :q(?x, ?y), NOT :p(?x, ?y) .",
    ":D(?x) :- :p(?x, ?y), :n(?y, ?z) .",
    ":d(?y, ?x) :- :r(?x, ?y) .",
    ":from(?x, ?y) :- :e(?x, ?y) .",
    ":m(?x, ?z) :- :n(?x, ?y), :n(?y, ?z) .",
    ":d(?x, ?k) :- AGGREGATE(:p(?x, ?y) ON ?x BIND COUNT(?y) AS ?k) .",
]
LASTING = [
    "?x :p ?y",
    "?x :d ?y",
    "?x :p ?y . ?x :q ?z",
    "?x :p ?y OPTIONAL { ?x :q ?z }",
    "?x :p ?y MINUS { ?x :q ?z }",
    "?x a :C . ?x :p ?y FILTER NOT EXISTS { ?x :q ?y }",
    "?x :p ?z . ?z :n ?y",
    "?x :p ?z . ?z :m ?y",
    "{ ?x :p ?y } UNION { ?x :d ?y }",
    "?y :r ?x",
    "?x a :D . OPTIONAL { ?y :r ?x }",
    "?x :p/:n ?y",
    "?x :p ?z . ?x :from ?y",
    "?x a ?y",
    "OPTIONAL { ?x :q ?z } ?x :p ?y",
    "?y :n ?z OPTIONAL { ?v :q ?y } ?x :p ?y",
    "?x :p ?y FILTER EXISTS { ?y :n ?z MINUS { ?x :q ?z } }",
    "?x :p ?y . { SELECT DISTINCT ?y WHERE { ?z :q ?y } }",
    "{ SELECT ?x (COUNT(?z) AS ?y) WHERE { ?x :p ?z } GROUP BY ?x }",
]
MOMENTARY = ["?x :e ?y", "?x :e ?z . ?x :p ?y", "?o :of ?x . OPTIONAL { ?x :p ?y }", "_:o :of ?x ; :n ?y"]
RULES = [
    "RULE {name} DEFINE {{ dotr_x a :{name} ; :of ?x ; :and ?y }} FROM {one} WITH ?x := T.?x, ?y := T.?y",
    """RULE {name} DEFINE {{ dotr_x a :{name} ; :of ?x }} FROM {one}
AND {choice} {two} WITHIN {w} s FROM T ON O.?x = T.?x WITH ?x := T.?x{consuming}""",
    """RULE {name} DEFINE {{ dotr_x a :{name} ; :n ?n }} FROM {one}
AND COUNT(*) AS ?n OVER {two} WITHIN {w} s FROM T ON O.?x = T.?x WITH ?x := T.?x, ?n := ?n""",
    """RULE {name} DEFINE {{ dotr_x a :{name} ; :of ?x }} FROM {one}
AND NOT {two} WITHIN {w} s FROM T ON O.?x = T.?x WITH ?x := T.?x""",
    """RULE {name} DEFINE {{ dotr_x a :{name} ; :of ?x }} FROM {one} AFTER 2 s AS Due
AND NOT {two} WITHIN 2 s FROM Due ON O.?x = T.?x WITH ?x := T.?x""",
    """RULE {name} DEFINE {{ dotr_x a :{name} ; :of ?x }} FROM {one} WITH ?x := T.?x, ?y := T.?y
INSERT {{ ?x :q ?y }}""",
    """RULE {name} DEFINE {{ dotr_x a :{name} ; :of ?x }} FROM {one} WITH ?x := T.?x
INSERT {{ ?x :p :made . ?x a :C }} DELETE {{ ?x :q ?any }}""",
    """RULE {name} DEFINE {{ dotr_x a :{name} ; :of ?x }} FROM {one}
AND EACH O := {last} WITHIN {w} s BEFORE T ON O.?x = T.?x WITH ?x := T.?x""",
]


@st.composite
def programs(draw: st.DrawFn) -> Program:
    holds = [draw(st.sampled_from(HOLDS)), draw(st.sampled_from(MORE_HOLDS))]
    queries: list[str] = []
    changes = draw(st.booleans())

    def stream(position: str) -> str:
        name = f"Q{len(queries)}"
        pool = MOMENTARY if changes else [*LASTING, *MOMENTARY]
        lasting = changes and draw(st.integers(0, 2)) > 0
        where = draw(st.sampled_from(LASTING if lasting else pool))
        queries.append(f"QUERY {name} := {{ SELECT ?x ?y WHERE {{ {where} }} }}")
        operator = draw(st.sampled_from(["ISTREAM ", "DSTREAM "])) if lasting else ""
        return f"{position} := {operator}{name}"

    rules: list[str] = []
    for number in range(draw(st.integers(1, 3))):
        known = [f"O := R{before}" for before in range(number)]
        chained = draw(st.sampled_from(known)) if known and draw(st.booleans()) else stream("O")
        rules.append(
            draw(st.sampled_from(RULES)).format(
                name=f"R{number}",
                one=stream("T"),
                two=chained,
                last=chained.removeprefix("O := "),
                consuming=draw(st.sampled_from(["", " CONSUMING O"])),
                choice=draw(st.sampled_from(["EACH", "LAST", "FIRST"])),
                w=draw(st.integers(0, 4)),
            )
        )
    text = "\n".join(["PREFIX : <ex:>", *holds, *queries, *rules])
    datalog = "\n".join(draw(st.lists(st.sampled_from(DATALOG), max_size=3, unique=True)))
    return replace(parse_program(text, "r.dotr"), datalog=parse_datalog(datalog, prefixes=PREFIXES))


_NODES = st.sampled_from([":a", ":b", ":c", ":d", ":e", "5", "5.0", "_:o", "_:u"])
_SUBJECTS = st.sampled_from([":a", ":b", ":c", ":d", ":e", "_:o"])
_TRIPLES = st.one_of(
    st.tuples(_SUBJECTS, st.sampled_from([":p", ":p", ":q", ":r", ":n", ":e", ":of"]), _NODES),
    st.tuples(_SUBJECTS, st.just("a"), st.sampled_from([":C", ":D"])),
    st.tuples(_SUBJECTS, st.sampled_from([":from", ":until"]), st.integers(0, 14).map(str)),
)
TEXTS = st.lists(_TRIPLES, max_size=6).map(lambda found: " ".join(f"{s} {p} {o} ." for s, p, o in found))
LOGS = st.lists(st.tuples(st.integers(0, 3), TEXTS), min_size=4, max_size=16)
BACKGROUNDS = st.lists(_TRIPLES, max_size=3).map(
    lambda found: [f"{s} {p} {o} ." for s, p, o in found if "_:" not in s + o]
)


def parsed(text: str) -> list[Triple]:
    return parse_triples(f"PREFIX : <ex:> {text}", Format.TURTLE, "x")


def log_of(drawn: Sequence[tuple[int, str]]) -> Log:
    time, found = 0, []
    for gap, text in drawn:
        time += gap
        found.append((time * SECOND, parsed(text)))
    return found


def in_one_run(program: Program, background: list[Triple], log: Log) -> list[str]:
    pipeline = Pipeline(Deployment(program, background))
    pipeline.begin(Clock())
    events = [event for time, graph in log for event in pipeline.push(time, graph)]
    events += pipeline.finish()
    return sorted(format_jsonl(event, Clock()) for event in events)


def in_parts(program: Program, background: list[Triple], log: Log, random: Random) -> list[str]:
    """Batches of a few instants; now and then a part is restored, or time goes on without a graph."""
    deployment = Deployment(program, background)
    layout = stream_layout(deployment, CORES)
    job = ship(make_job(deployment, Clock(), layout, Treatment(shared=False)))
    worker, live, states = job.worker(), LiveSlots(job, CORES), dict[int, bytes]()
    slots = {place: parts for place, parts in places(layout, CORES).items() if parts}
    assert len(slots) > 1
    instants: dict[Time, list[list[Triple]]] = defaultdict(list)
    for time, graph in log:
        instants[time].append(graph)
    times, found = sorted(instants), list[Composite]()
    waiting: list[Time] = []
    while times or waiting:
        batch, rows = list[Time](), defaultdict[int, list[tuple[Time, str]]](list)
        if times and random.random() < 0.8:
            count = random.randint(1, 3)
            batch, times = times[:count], times[count:]
            for part, at, text in extract(worker, [(at, instants[at]) for at in batch]):
                assert part > APART
                rows[part].append((at, text))
            for part, at, text in marks_of(
                [p for parts in slots.values() for p in parts], batch[0], batch[-1]
            ):
                rows[part].append((at, text))
        last = batch[-1] if batch else waiting.pop() if waiting else None
        if last is None:
            continue
        bound = random.randint(last, times[0] - 1) if times else None
        waiting = [bound] if bound is not None and random.random() < 0.5 else []
        for place, parts in slots.items():
            token = 1 if place in states else None
            alive = live.taken(place, token)
            if alive is None or (place in states and random.random() < 0.3):
                alive = live.fresh(place)
                alive.restore(states[place])
            due = alive.due()
            if not batch and (due is None or bound is None or due > bound):
                live.give_back(place, 1, alive)
                continue  # no row, and no timer
            found += alive.take({part: random.sample(rows[part], len(rows[part])) for part in parts}, bound)
            states[place] = alive.snapshot()
            live.give_back(place, 1, alive)
    return sorted(format_jsonl(event, Clock()) for event in found)


@FEWER
@given(programs(), BACKGROUNDS, LOGS, st.randoms(use_true_random=False))
def test_parts_find_what_one_run_finds(
    program: Program, background: list[str], drawn: list[tuple[int, str]], random: Random
) -> None:
    known, log = parsed(" ".join(background)), log_of(drawn)
    assume(not isinstance(Deployment(program, known).divided, str))
    assert in_parts(program, known, log, random) == in_one_run(program, known, log)


def program_of(*lines: str, datalog: str = "") -> Program:
    text = "\n".join(["PREFIX : <ex:>", *lines])
    program = parse_program(text, "r.dotr", read_rules_text)
    rules = parse_datalog(datalog, prefixes=PREFIXES)
    return replace(program, datalog=(*program.datalog, *rules))


def divided(holds: str, where: str, more: str = "", datalog: str = "") -> str:
    """Where relations have their key, or why there is none."""
    where, _, end = where.partition("##")
    query = "QUERY Q := { SELECT ?x ?y WHERE { " + where + " }" + end + " }"
    rule = "RULE R DEFINE { dotr_x a :R } FROM T := ISTREAM Q AND NOT A := ISTREAM Q WITHIN 1 s BEFORE T"
    values = f"ON A.?x = T.?x WITH ?x := T.?x, ?y := T.?y {more}"
    found = Deployment(program_of(holds, query, rule, values, datalog=datalog)).divided
    if isinstance(found, str):
        return found
    assert found.relations is not None
    return ", ".join(f"{name} {place}" for name, place in found.relations.items())


@pytest.mark.parametrize(
    ("holds", "where", "datalog", "relations"),
    [
        ("HOLD :p", "?x :p ?y", "", "<ex:p> 0"),
        ("HOLD :p", "?y :p ?x", "", "<ex:p> 1"),
        ("HOLD :p", "?x :p ?y . ?y :p ?z . ?x :q ?z", "", "<ex:p> None, <ex:q> 0"),
        ("HOLD :p LATEST", "?y :p ?x . ?x :q ?z", "", "<ex:p> None, <ex:q> 0"),
        ("HOLD :p UNTIL :u", "?x :p ?y", "", "<ex:p> 0, <ex:u> None"),
        ("HOLD :p", "?x :p/:n ?y", "", "<ex:n> None, <ex:p> 0"),
        ("HOLD :p", "?x :p ?y . ?x a :C . ?x a ?z", "", "<ex:p> 0, <rdf:type> 0, a <ex:C> 0"),
        ("HOLD :p", "?x :p ?y . ?z a :C . ?x a ?z", "", "<ex:p> 0, <rdf:type> 0, a <ex:C> None"),
        ("HOLD :p", "?x :p ?y . ?x a :C . ?z a ?y", "", "<ex:p> 0, <rdf:type> None, a <ex:C> None"),
        ("HOLD :p", "?x :p ?y OPTIONAL { ?x :q ?z }", "", "<ex:p> 0, <ex:q> 0"),
        ("HOLD :p", "OPTIONAL { ?x :q ?z } ?x :p ?y", "", "<ex:p> 0, <ex:q> None"),
        ("HOLD :p", "?x :p ?y MINUS { ?y :q ?x }", "", "<ex:p> 0, <ex:q> 1"),
        ("HOLD :p", "?x :p ?y FILTER NOT EXISTS { ?x :q ?z }", "", "<ex:p> 0, <ex:q> 0"),
        ("HOLD :p", "?x :d ?y", ":d(?x, ?y) :- :p(?y, ?x), NOT :n(?x, ?y) .", "<ex:d> 0, <ex:n> 0, <ex:p> 1"),
        ("HOLD :p", "?x :d ?y", ":d(?x, :a) :- :p(?x, ?y), :n(?y, ?z) .", "<ex:d> 0, <ex:n> None, <ex:p> 0"),
        (
            "HOLD :p FROM :d",
            "?x :p ?z . ?x :d ?y",
            ":d(?x, ?y) :- :q(?x, ?y) .",
            "<ex:d> None, <ex:p> 0, <ex:q> None",
        ),
        (
            "HOLD :p",
            "?x :p ?z . ?z :d ?y",
            ":d(?x, ?y) :- :q(?x, ?y) .",
            "<ex:d> None, <ex:p> 0, <ex:q> None",
        ),
        (
            "HOLD :p",
            "?x :d ?y",
            ":d(?x, ?k) :- AGGREGATE(:p(?x, ?y) ON ?x BIND COUNT(?y) AS ?k) .",
            "<ex:d> 0, <ex:p> 0",
        ),
    ],
)
def test_relations_have_their_key_where_all_patterns_have_it(
    holds: str, where: str, datalog: str, relations: str
) -> None:
    found = divided(holds, where, "", datalog)
    assert found.replace("http://www.w3.org/1999/02/22-rdf-syntax-ns#", "rdf:") == relations


@pytest.mark.parametrize(
    ("where", "more", "datalog", "reason"),
    [
        ("?x ?p ?y", "", "", "`ISTREAM Q` has a variable for a predicate"),
        ("?z :p ?y OPTIONAL { ?x :q ?z }", "", "", "`ISTREAM Q` may leave ?x unbound"),
        ("?z :p ?y BIND(?z AS ?x)", "", "", "`ISTREAM Q` computes ?x"),
        ("?x :p* ?y", "", "", "`ISTREAM Q` has a path that all triples may belong to"),
        ("?x :p ?y . ?z :p ?w", "", "", "every part needs all triples that `ISTREAM Q` reads"),
        ("?x :p ?y ## ORDER BY ?x ?y LIMIT 1", "", "", "LIMIT over all keys together"),
        ("{ SELECT (MAX(?z) AS ?x) (MIN(?z) AS ?y) { ?z :p ?w } }", "", "", "an aggregate over all ?x"),
        ("?x :p ?y", "INSERT { :a :p ?y }", "", "`R` states or ends `<ex:p>` of other keys than its own"),
        (
            "?x :p ?y",
            "DELETE { ?any :p ?x }",
            "",
            "events state or end `<ex:p>`, of which each part",
        ),
        ("?x :p ?y", "INSERT { ?y :p ?x }", "", "events state or end `<ex:p>`, of which each part"),
        ("?x :p ?y", "DELETE { ?x ?any ?y }", "", "`R` states or ends triples of any predicate or class"),
        ("?x :p ?y", "", "[?x, ?p, ?y] :- :p(?x, ?p), :q(?x, ?y) .", "a variable for a predicate"),
    ],
)
def test_what_lasts_stays_together_for_a_reason(where: str, more: str, datalog: str, reason: str) -> None:
    assert reason in divided("HOLD :p", where, more, datalog)
    assert divided("HOLD :p", "?x :p ?y") == "<ex:p> 0"


PLAIN = """PREFIX : <ex:>
HOLD :p FOR 5 s
RULE Both DEFINE {{ dotr_x a :Both }} FROM A := {{ SELECT ?x {{ {one} }} }}
AND LAST B := {change} {{ SELECT ?x {{ ?x :p ?y }} }} WITHIN 2 s FROM A ON B.?x = A.?x
"""


def test_changes_of_a_key_must_not_make_instants_of_others() -> None:
    """A query that what lasts alone answers has facts at every instant, also of changes of other keys."""

    def found(one: str, change: str, background: str = "") -> object:
        program = parse_program(PLAIN.format(one=one, change=change), "r.dotr")
        return Deployment(program, parsed(background)).divided

    reason = found("?x :p ?z", "ISTREAM")
    assert isinstance(reason, str)
    assert "answers `Both.A`" in reason
    assert "makes instants of its own for each key" in reason
    assert not isinstance(found("?x :p ?z . ?o :now ?x", "ISTREAM"), str)
    assert isinstance(found("?x :p ?z . ?o :now ?x", "ISTREAM", ":o :now :a ."), str)
    assert not isinstance(found("?x :p ?z", ""), str)
    none = "?x :p ?z . { SELECT (1 AS ?one) { ?o :now ?n } HAVING (COUNT(*) = 0) }"
    assert isinstance(found(none, "ISTREAM"), str)  # no graph is an answer, too
    assert isinstance(
        found("?x :p ?z . { SELECT ?n { ?o :now ?n } GROUP BY ?n }", "ISTREAM"), RuleComponentGroup
    )


TURNS = """HOLD :on
RULE Off DEFINE { dotr_x a :Off } FROM T := ISTREAM { SELECT ?x { ?x :on ?y } } WITH ?x := T.?x
DELETE { ?x :on ?any } INSERT { ?x :off :a }
RULE Again DEFINE { dotr_x a :Again } FROM T := ISTREAM { SELECT ?x { ?x :off ?y } } WITH ?x := T.?x"""
BACK = "DELETE { ?x :off ?any } INSERT { ?x :on :a }"


def test_effects_in_circles_are_counted_from_graph_to_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs of other keys come at each instant: no effect follows an effect without one."""
    monkeypatch.setattr("dotr.lasting.instants.DEEPEST", 5)
    log = [(t * SECOND, parsed(f":n{t} :r :c ." if t > 1 else ":a :on :b .")) for t in range(1, 20)]
    program = program_of(TURNS, BACK)
    events = in_one_run(program, [], log)
    assert len(events) == 19
    assert in_parts(program, [], log, Random(1)) == events
    for text, circles in ((TURNS, False), (f"{TURNS} {BACK}", True)):
        group = Deployment(program_of(text)).divided
        assert isinstance(group, RuleComponentGroup)
        assert group.sees_all == circles


EVERY = "RULE E DEFINE { dotr_x a :E } FROM EVERY 2 s AS T AND EACH O := ISTREAM Q WITHIN 1 s FROM T"
LOOSE = "RULE E DEFINE { dotr_x a :E } FROM Q AND EACH O := Q WITHIN 1 s FROM Q"


@pytest.mark.parametrize(
    ("first", "last", "reason"),
    [("ENTAILMENT RDFS", "", "an ontology"), ("", EVERY, "is EVERY"), ("", LOOSE, "no equation in ON")],
)
def test_a_rule_without_a_key_keeps_what_lasts_together(first: str, last: str, reason: str) -> None:
    query = "QUERY Q := { SELECT ?x WHERE { ?x :p ?y } }"
    rule = "RULE R DEFINE { dotr_x a :R } FROM T := ISTREAM Q"
    deployment = Deployment(program_of(first, "HOLD :p", query, rule, last))
    assert reason in str(deployment.divided)
    [found] = obstacles(deployment, StreamOptions())
    assert reason in found
    with pytest.raises(UsageError, match="D4311"):
        choose("distributed", None, deployment, StreamOptions(), 16)


def test_what_lasts_is_divided_on_request() -> None:
    """Since each part has all of the background, cores alone are no reason to."""
    text = PLAIN.format(one="?x :p ?z", change="")
    deployment = Deployment(parse_program(text, "r.dotr"))
    assert choose("auto", None, deployment, StreamOptions(), 16).mode == ORDERED
    assert choose("auto", DISTRIBUTED, deployment, StreamOptions(), 16).mode == DISTRIBUTED
    assert choose("distributed", None, deployment, StreamOptions(), 2).mode == DISTRIBUTED


ENDS = """PREFIX : <ex:>
HOLD :p FOR 5 s
RULE Gone DEFINE { dotr_x a :Gone } FROM G := DSTREAM { SELECT ?x { ?x :p ?y } } WITH ?x := G.?x
INSERT { ?x :q :gone }
RULE Told DEFINE { dotr_x a :Told } FROM Q := ISTREAM { SELECT ?x { ?x :q ?y } }
"""


def test_a_part_waits_for_the_end_of_what_lasts() -> None:
    """Without a graph: the part of the key is called at the end, and for effects of its event; others not."""
    deployment = Deployment(parse_program(ENDS, "r.dotr"))
    layout = stream_layout(deployment, CORES)
    job = ship(make_job(deployment, Clock(), layout, Treatment(shared=False)))
    ((part, time, text),) = extract(job.worker(), [(4 * SECOND, [parsed(":a :p :b . :a :r :c .")])])
    live = LiveSlots(job, CORES)
    due: list[Time | None] = []
    for number in (number for parts in places(layout, CORES).values() for number in parts):
        marks = [(at, mark) for _, at, mark in marks_of([number], time, time)]
        found = live.part(number)
        assert found.take([*marks, (time, text)] if number == part else marks, 6 * SECOND) == []
        due.append(found.due())
        if number == part:
            again = live.part(number)
            again.restore([found.snapshot()], 6 * SECOND)
            assert [event.rule for event in again.take([], 9 * SECOND)] == ["Gone"]
            assert again.due() == 10 * SECOND
            assert [event.rule for event in again.take([], 10 * SECOND)] == ["Told"]
            assert again.due() is None
    assert sorted(due, key=str) == [9 * SECOND, *[None] * (len(due) - 1)]


PLAINLY = "RULE R DEFINE { dotr_x a :R } FROM T := { SELECT ?x { ?x :p ?y } }"
CHANGES = "RULE S DEFINE { dotr_x a :S } FROM T := ISTREAM { SELECT ?x { ?x :n ?y } }"
ENDING = """HOLD :p
RULE R DEFINE { dotr_x a :R } FROM T := ISTREAM { SELECT ?x { ?x :p ?y } } WITH ?x := T.?x"""
READING = "RULE S DEFINE { dotr_x a :S } FROM T := DSTREAM { SELECT ?x { ?y :n ?x . ?x :m ?z } }"


@pytest.mark.parametrize(
    ("before", "after", "note"),
    [
        ([PLAINLY], [PLAINLY, CHANGES], "something lasts under the new rules"),
        ([PLAINLY, CHANGES], [PLAINLY], "nothing lasts under the new rules"),
        (
            [f"{ENDING} DELETE {{ ?x :n ?any }}"],
            [ENDING, READING],
            "what lasts is divided by other keys beside the new rules",
        ),
    ],
)
def test_parts_of_another_kind_are_refused(before: list[str], after: list[str], note: str) -> None:
    """The first ones hold nothing; in the last, each part knows what its events ended of the background."""
    options = StreamOptions(change_rules=True)
    known, new = (
        meta_of(Deployment(program_of(*lines), parsed(":a :n :b .")), options, DISTRIBUTED)
        for lines in (before, after)
    )
    assert not compare(known, known, "x", changing=True)
    with pytest.raises(RefusedError) as raised:
        compare(known, new, "x", changing=True)
    assert note in raised.value.diagnostics[0].notes
