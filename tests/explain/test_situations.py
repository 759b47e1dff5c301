"""Twenty situations and what somebody who asks must learn: the answer a colleague would give.

Each was written before the engine was asked. `reported` must stand in the answer, `not_reported` must not.
Whether the whole answer is one was judged by a second reader: SITUATIONS.md.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.conftest import Dotr
from tests.cli.conftest import dotr as dotr  # a fixture
from tests.cli.conftest import folder as folder  # a fixture

HEAD = "PREFIX : <urn:>\n"
FIRE = """RULES <in.dlog>
RULE Fire DEFINE { dotr_f a :Fire ; :in ?r }
FROM Smoke := { SELECT ?r WHERE { ?o a :Smoke ; :by ?s . ?s :in ?r } }
AND LAST Hot := { SELECT ?r ?c WHERE { ?o :by ?s ; :celsius ?c . ?s :in ?r FILTER(?c > 60) } }
         WITHIN 5 min FROM Smoke ON Hot.?r = Smoke.?r
AND NOT Drill := { SELECT ?r WHERE { ?d a :Drill ; :of ?r } } WITHIN 30 min FROM Smoke ON Drill.?r = Smoke.?r
WITH ?r := Smoke.?r
"""
USED = """RULE Sale DEFINE { dotr_s a :Sale } FROM Pay := { SELECT ?who WHERE { ?who a :Pay } }
AND LAST Offer := { SELECT ?x WHERE { ?x a :Offer } } WITHIN 1 h FROM Pay
WITH ?who := Pay.?who, ?x := Offer.?x
CONSUMING Offer
"""
MEAN = """RULE High DEFINE { dotr_h a :High } FROM R := { SELECT ?v WHERE { ?o :v ?v } }
AND AVG(R2.?v) AS ?mean OVER R2 := R WITHIN 10 s FROM R
WHERE ?mean > 10 WITH ?mean := ?mean
"""
BEAT = """RULE Lost DEFINE { dotr_l a :Lost } FROM EVERY 10 s AS Tick
AND EACH S := { SELECT ?s WHERE { ?s a :Sensor } } WITHIN 0 s FROM Tick
AND NOT B := { SELECT ?s WHERE { ?s :beat true } } WITHIN 20 s FROM Tick ON B.?s = S.?s
WITH ?s := S.?s
"""
HELD = """HOLD :in LATEST
HOLD :loud FOR 10 s
QUERY In := { SELECT ?x ?r WHERE { ?x :in ?r } }
QUERY Quiet := { SELECT ?r WHERE { ?r a :Room FILTER NOT EXISTS { ?r :loud ?n } } }
RULE Moved DEFINE { dotr_m a :Moved } FROM L := DSTREAM In WITH ?x := L.?x, ?r := L.?r
RULE Calm DEFINE { dotr_c a :Calm } FROM Q := ISTREAM Quiet WITH ?r := Q.?r
"""
CHAIN = """RULE A DEFINE { dotr_a a :A } FROM X := { SELECT ?x WHERE { ?x a :X } } WITH ?x := X.?x
RULE B DEFINE { dotr_b a :B } FROM Y := { SELECT ?y WHERE { ?y a :Y } } AND LAST A WITHIN 1 min FROM Y
WITH ?x := A.?x
"""
ALARM = """RULES <in.dlog>
RULE Alarm DEFINE { dotr_a a :Alarm }
FROM Hot := { SELECT ?r ?c WHERE { ?o :by ?s ; :celsius ?c . ?s :in ?r FILTER(?c > 60) } }
WITH ?r := Hot.?r
"""
SMOKE = "<urn:o2> a <urn:Smoke> ; <urn:by> <urn:s1> ."
HOT = "<urn:o1> <urn:by> <urn:s1> ; <urn:celsius> 71 ."


MSG = "<urn:m> <urn:id> 7 ."
AGAIN = """PREFIX : <urn:>
QUERY Msg := { SELECT ?id WHERE { ?m :id ?id } }
RULE Again DEFINE { dotr_e a :Again ; :id ?id } FROM Msg
AND LAST Old := Msg WITHIN 10 min BEFORE Msg ON Old.?id = Msg.?id WITH ?id := Msg.?id
"""
FIRST = """PREFIX : <urn:>
QUERY Msg := { SELECT ?id WHERE { ?m :id ?id } }
RULE Begun DEFINE { dotr_e a :Begun ; :id ?id } FROM Msg
AND EACH One := { SELECT ?id WHERE { ?m :id ?id FILTER(?id > 1) } } WITHIN 0 s FROM Msg ON true
AND NOT Old := Msg WITHIN 1 s FROM One ON Old.?id != Msg.?id WITH ?id := Msg.?id
"""


@dataclass(frozen=True, slots=True)
class Situation:
    """`rules` over `stream`, lines of (time, graph); the question; what the answer must say."""

    name: str
    rules: str
    stream: tuple[tuple[int, str], ...]
    asked: tuple[str, ...]
    reported: tuple[str, ...]
    not_reported: tuple[str, ...] = ()


SITUATIONS = (
    Situation(
        "why is there a fire: smoke and heat of one room, derived through the wall, and no drill",
        FIRE,
        ((10, HOT), (70, SMOKE)),
        (),
        ("Fire", ":o2 a :Smoke   s.jsonl:2", "1 min before Smoke", "in.dlog:2", "map.ttl:2", "no Drill in"),
    ),
    Situation(
        "why no fire: the reading was not hot enough",
        FIRE,
        ((10, HOT.replace("71", "41")), (70, SMOKE)),
        ("--why-not", "Fire", "--at", "70"),
        ("✗ LAST Hot", "there is no Hot in what was kept; nearest @ 10", "FILTER(?c > 60)   ?c 41"),
    ),
    Situation(
        "why no fire: the heat was in another room",
        FIRE,
        ((10, HOT.replace("s1", "s2")), (70, SMOKE)),
        ("--why-not", "Fire", "--at", "70"),
        ("1 fact in the window", "nearest: Hot  @ 10", "not true: Hot.?r = Smoke.?r"),
    ),
    Situation(
        "why no fire: the heat was too long ago",
        FIRE,
        ((10, HOT), (400, SMOKE)),
        ("--why-not", "Fire", "--at", "400"),
        ("no fact in the window", "nearest: Hot  @ 10", "outside of the window: 6 min 30 s before Smoke"),
        ("not true",),
    ),
    Situation(
        "a fact is no neighbour of its own: the only other one lies before the window",
        AGAIN,
        ((5, MSG), (900, MSG)),
        ("--why-not", "Again", "--at", "900"),
        ("no fact in the window", "nearest: Old  @ 5", "outside of the window"),
        ("Old  @ 900",),
    ),
    Situation(
        "a fact is no neighbour of its own: there is no other one",
        AGAIN,
        ((5, MSG),),
        ("--why-not", "Again", "--at", "5"),
        ("there is no Old in what was kept",),
        ("nearest",),
    ),
    Situation(
        "a fact is no neighbour of its own: it lies in the window of a NOT",
        FIRST,
        ((5, MSG), (9, MSG)),
        ("--rule", "Begun"),
        ("1 fact in the window, none passes ON",),
        ("nearest",),
    ),
    Situation(
        "why no fire: a drill was announced",
        FIRE,
        ((5, "<urn:d> a <urn:Drill> ; <urn:of> <urn:r1> ."), (10, HOT), (70, SMOKE)),
        ("--why-not", "Fire", "--at", "70"),
        ("✗ NOT Drill", "blocked by Drill  @ 5", ":d a :Drill   s.jsonl:1"),
    ),
    Situation(
        "why is there a fire though a drill was announced: it was of another room",
        FIRE,
        ((5, "<urn:d> a <urn:Drill> ; <urn:of> <urn:r2> ."), (10, HOT), (70, SMOKE)),
        (),
        ("1 fact in the window, none passes ON", "nearest: Drill  @ 5", "not true: Drill.?r = Smoke.?r"),
    ),
    Situation(
        "why no fire: nobody knows where the smoke detector hangs",
        FIRE,
        ((10, HOT), (70, SMOKE.replace("s1", "s9"))),
        ("--why-not", "Fire", "--at", "70"),
        ("no Smoke then", "?o :by ?s   found", "?s :in ?r   not found   ?s :s9"),
    ),
    Situation(
        "why no fire: nothing came at that time",
        FIRE,
        ((10, HOT), (70, SMOKE)),
        ("--why-not", "Fire", "--at", "60"),
        ("no Smoke then", "no graph came @ 60"),
    ),
    Situation(
        "why no sale: the offer was used up by an earlier one, which is named",
        USED,
        ((1, "<urn:o> a <urn:Offer> ."), (2, "<urn:a> a <urn:Pay> ."), (3, "<urn:b> a <urn:Pay> .")),
        ("--why-not", "Sale", "--at", "3"),
        ("✗ LAST Offer", "consumed by urn:dotr:Sale:wzxc32scxe7lnorj7v5qm657  @ 2"),
    ),
    Situation(
        "which of two offers: the later",
        USED,
        ((1, "<urn:o> a <urn:Offer> ."), (2, "<urn:p> a <urn:Offer> ."), (3, "<urn:b> a <urn:Pay> .")),
        (),
        ("LAST Offer  @ 2   ?x :p", "the latest of 2"),
        ("?x :o",),
    ),
    Situation(
        "why is the mean high: the readings that were counted",
        MEAN,
        ((1, "<urn:o> <urn:v> 4 ."), (3, "<urn:p> <urn:v> 30 .")),
        (),
        ("= 17", "2 of 2 facts", "R2  @ 1   ?v 4", "R2  @ 3   ?v 30", "WHERE ?mean > 10"),
    ),
    Situation(
        "why is the mean not high: what it was, and what it had to be",
        MEAN,
        ((1, "<urn:o> <urn:v> 4 ."), (3, "<urn:p> <urn:v> 6 .")),
        ("--why-not", "High", "--at", "3"),
        ("= 5", "✗ WHERE ?mean > 10"),
    ),
    Situation(
        "why is a sensor lost: it is one by the background, and was not heard of",
        BEAT,
        ((0, ""), (31, "")),
        ("--rule", "Lost", "--at", "30"),
        (":s1 a :Sensor   background  map.ttl", "no B in the window"),
    ),
    Situation(
        "why is a sensor not lost: the heartbeat that came",
        BEAT,
        ((0, ""), (15, "<urn:s1> <urn:beat> true ."), (31, "")),
        ("--why-not", "Lost", "--at", "30"),
        ("✗ NOT B", "blocked by B  @ 15", ":s1 :beat true   s.jsonl:2"),
    ),
    Situation(
        "why has somebody moved: where they were, since when, and until when",
        HELD,
        ((1, "<urn:ann> <urn:in> <urn:r1> ."), (5, "<urn:ann> <urn:in> <urn:r2> .")),
        ("--rule", "Moved"),
        (":ann :in :r1", "held since 1 until 5: replaced", "1 such answer before, 0 from then on"),
    ),
    Situation(
        "why is it calm at a time when nothing came: the noise ended by itself",
        HELD,
        ((1, "<urn:r1> <urn:loud> 1 ."), (30, "")),
        ("--rule", "Calm", "--at", "11"),
        ("no :r1 :loud ?n", "0 such answers before, 1 from then on", "ended then: :r1 :loud 1"),
    ),
    Situation(
        "why B: because of A, which is explained as well",
        CHAIN,
        ((1, "<urn:x> a <urn:X> ."), (3, "<urn:y> a <urn:Y> .")),
        (),
        ("LAST A  @ 1", "A  urn:dotr:A:", ":x a :X   s.jsonl:1"),
    ),
    Situation(
        "why does a triple hold: the rule and the lines of the building",
        FIRE,
        ((10, HOT),),
        ("--triple", ":s1 :in :r1", "--at", "10"),
        ("in.dlog:2", ":s1 :on :w1   background  map.ttl:2", ":w1 :in :r1   background  map.ttl:3"),
    ),
    Situation(
        "why does a triple not hold: the premise that is missing",
        FIRE,
        ((10, HOT),),
        ("--triple", ":s9 :in :r1", "--at", "10"),
        (":s9 :in :r1 does not hold", "lacks :s9 :on ?w"),
    ),
    Situation(
        "why does a reading not count as hot: the filter, and the value that it saw",
        ALARM,
        ((10, HOT.replace("71", "41")),),
        ("--why-not", "Alarm", "--at", "10"),
        ("Alarm did not fire @ 10: no Hot then", "?s :in ?r   found", "✗ FILTER(?c > 60)   ?c 41"),
        ("not found",),
    ),
)


@pytest.mark.parametrize("one", SITUATIONS, ids=lambda one: one.name.replace(" ", "-")[:60])
def test_the_answer_says_what_somebody_who_asks_wants_to_know(
    one: Situation, dotr: Dotr, folder: Path
) -> None:
    (folder / "in.dlog").write_text("PREFIX : <urn:>\n:in(?s, ?r) :- :on(?s, ?w), :in(?w, ?r) .\n")
    (folder / "map.ttl").write_text(
        "<urn:r1> a <urn:Room> .\n"
        if ":in LATEST" in one.rules
        else "@prefix : <urn:> .\n"
        ":s1 :on :w1 .\n:w1 :in :r1 .\n:s2 :on :w2 .\n:w2 :in :r2 .\n:s1 a :Sensor .\n"
    )
    (folder / "a.dotr").write_text(f"{HEAD}BACKGROUND <map.ttl>\n{one.rules}")
    (folder / "s.jsonl").write_text(
        "".join(json.dumps({"time": t, "graph": g}) + "\n" for t, g in one.stream)
    )
    ran = dotr("explain", "a.dotr", "s.jsonl", *one.asked)
    assert ran.code in (0, 1), ran.err
    text = " ".join(ran.out.split())
    for words in one.reported:
        assert " ".join(words.split()) in text, ran.out
    for words in one.not_reported:
        assert " ".join(words.split()) not in text, ran.out


def test_there_are_twenty_three() -> None:
    assert len(SITUATIONS) == 23
