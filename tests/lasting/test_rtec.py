"""Fluents that events initiate and terminate: voting and NetBill, as the event calculus has them.

The rules are after the two protocols of RTEC's examples; the events are random. The maximal intervals of each
fluent, as `dotr watch --periods` prints them, are those of its definition in a few lines of Python: what is
initiated at T holds from T + 1 on, and what a beginning initiates a moment after that.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import TypeAlias

import pytest

from tests.cli.conftest import Dotr
from tests.cli.conftest import dotr as dotr  # a fixture
from tests.cli.conftest import folder as folder  # a fixture

END = 60
Pair: TypeAlias = tuple[str, str]
"""What has a fluent, and the value."""
Intervals: TypeAlias = dict[Pair, list[tuple[int, int | None]]]
Events: TypeAlias = dict[int, list[tuple[str, ...]]]


class Fluent:
    """The intervals of one fluent. `deadline`: it holds so long; `exclusive`: another value ends it."""

    def __init__(self, deadline: int | None = None, *, exclusive: bool = False) -> None:
        self.found: Intervals = {}
        self._deadline, self._exclusive = deadline, exclusive

    def holds(self, pair: Pair, time: int) -> bool:
        return any(a <= time and (b is None or time < b) for a, b in self.found.get(pair, ()))

    def starts(self, pair: Pair, time: int) -> bool:
        return any(a == time for a, _ in self.found.get(pair, ()))

    def ends(self, pair: Pair, time: int) -> bool:
        return any(b == time for _, b in self.found.get(pair, ()))

    def happen(self, time: int, initiated: Iterable[Pair], terminated: Iterable[Pair] = ()) -> None:
        """What events of a time do, from the next moment on."""
        begun, ended, now = set(initiated), set(terminated), time + 1
        for pair, periods in self.found.items():
            replaced = self._exclusive and any(one[0] == pair[0] for one in begun)
            if self.holds(pair, time) and (pair in ended or replaced):
                periods[-1] = periods[-1][0], now
        for pair in begun:
            periods, until = (
                self.found.setdefault(pair, []),
                None if self._deadline is None else now + self._deadline,
            )
            if periods and (periods[-1][1] is None or periods[-1][1] >= now):
                periods[-1] = periods[-1][0], until
            else:
                periods.append((now, until))

    def intervals(self) -> Intervals:
        return {pair: [one for one in periods if one[0] != one[1]] for pair, periods in self.found.items()}


VOTING = """PREFIX : <urn:>
HOLD :status LATEST
HOLD :vote LATEST
HOLD :outcome LATEST
HOLD :sanctioned FOR 4 s
QUERY Status := { SELECT ?m ?s WHERE { ?m :status ?s } }
QUERY Proposal := { SELECT ?e ?m WHERE { ?e a :propose ; :motion ?m } }
QUERY Seconding := { SELECT ?e ?m WHERE { ?e a :second ; :motion ?m } }
QUERY Vote := { SELECT ?e ?m ?b ?v WHERE { ?e a :vote ; :motion ?m ; :ballot ?b ; :value ?v } }
QUERY Close := { SELECT ?e ?m ?c WHERE { ?e a :close ; :motion ?m ; :by ?c } }
QUERY Declaration := { SELECT ?e ?m ?v WHERE { ?e a :declare ; :motion ?m ; :value ?v } }
QUERY Ballot := { SELECT ?b ?m WHERE { ?b :of ?m } }

RULE Proposed DEFINE { dotr_e a :Proposed } FROM E := Proposal
AND EACH S := Status WITHIN 0 s FROM E ON S.?m = E.?m && S.?s = :null
WITH ?m := E.?m INSERT { ?m :status :proposed }
RULE Seconded DEFINE { dotr_e a :Seconded } FROM E := Seconding
AND EACH S := Status WITHIN 0 s FROM E ON S.?m = E.?m && S.?s = :proposed
WITH ?m := E.?m INSERT { ?m :status :voting }
RULE Closed DEFINE { dotr_e a :Closed } FROM E := Close
AND EACH S := Status WITHIN 0 s FROM E ON S.?m = E.?m && S.?s = :voting
WITH ?m := E.?m INSERT { ?m :status :voted }
RULE Sanctioned DEFINE { dotr_e a :Sanctioned } FROM E := Close
AND NOT S := Status WITHIN 0 s FROM E ON S.?m = E.?m && S.?s = :voting
WITH ?c := E.?c INSERT { ?c :sanctioned true }
RULE Declared DEFINE { dotr_e a :Declared } FROM E := Declaration
AND EACH S := Status WITHIN 0 s FROM E ON S.?m = E.?m && S.?s = :voted
WITH ?m := E.?m, ?v := E.?v INSERT { ?m :status :null ; :outcome ?v }
RULE Voted DEFINE { dotr_e a :Voted } FROM E := Vote
AND EACH S := Status WITHIN 0 s FROM E ON S.?m = E.?m && S.?s = :voting
WITH ?m := E.?m, ?b := E.?b, ?v := E.?v INSERT { ?b :vote ?v ; :of ?m }
RULE Cleared DEFINE { dotr_e a :Cleared }
FROM B := ISTREAM { SELECT ?m WHERE { ?m :status :null } }
AND EACH Ballot WITHIN 0 s FROM B ON Ballot.?m = B.?m
WITH ?b := Ballot.?b DELETE { ?b :vote ?v }
RULE Again DEFINE { dotr_e a :Again } FROM B := ISTREAM { SELECT ?m WHERE { ?m :status :proposed } }
WITH ?m := B.?m DELETE { ?m :outcome ?v }
"""
MOTIONS, BALLOTS = ("m1", "m2"), ("b1", "b2", "b3")


def voting_events(r: Random) -> Events:
    found: Events = {}
    for time in range(1, END):
        for _ in range(r.choice((0, 1, 2, 3))):
            kind, motion = (
                r.choice(("propose", "second", "vote", "vote", "close", "declare")),
                r.choice(MOTIONS),
            )
            ballot, value = f"{motion}{r.choice(BALLOTS)}", r.choice(("aye", "nay"))
            by = r.choice(("c1", "c2"))
            found.setdefault(time, []).append((kind, motion, ballot, value, by))
    return found


def voting_by_hand(events: Events) -> dict[str, Intervals]:
    status, vote, outcome = (Fluent(exclusive=True) for _ in range(3))
    sanctioned = Fluent(4)
    status.found = {(motion, "null"): [(0, None)] for motion in MOTIONS}
    after = {"propose": ("null", "proposed"), "second": ("proposed", "voting"), "close": ("voting", "voted")}
    after["declare"] = "voted", "null"
    for t in range(END):
        now = events.get(t, [])
        able = [e for e in now if e[0] in after and status.holds((e[1], after[e[0]][0]), t)]
        votes = {(b, v) for kind, m, b, v, _ in now if kind == "vote" and status.holds((m, "voting"), t)}
        cleared = [m for m in MOTIONS if t and status.starts((m, "null"), t)]
        again = [m for m in MOTIONS if status.starts((m, "proposed"), t)]
        late = {
            (c, "true") for kind, m, _, _, c in now if kind == "close" and not status.holds((m, "voting"), t)
        }
        vote.happen(t, votes, [one for one in vote.found if one[0][:2] in cleared])
        declared = [(m, v) for kind, m, _, v, _ in able if kind == "declare"]
        outcome.happen(t, declared, [one for one in outcome.found if one[0] in again])
        sanctioned.happen(t, late)
        status.happen(t, [(m, after[kind][1]) for kind, m, *_ in able])
    fluents = {"status": status, "vote": vote, "outcome": outcome, "sanctioned": sanctioned}
    return {name: fluent.intervals() for name, fluent in fluents.items()}


NETBILL = """PREFIX : <urn:>
HOLD :contract FOR 5 s
HOLD :suspended FOR 3 s
QUERY Offer := { SELECT ?e ?d ?m WHERE { ?e a :present ; :deal ?d ; :by ?m } }
QUERY Accept := { SELECT ?e ?d ?m WHERE { ?e a :accept ; :deal ?d ; :by ?m } }
QUERY Request := { SELECT ?e ?d WHERE { ?e a :request ; :deal ?d } }
QUERY Quote := { SELECT ?d WHERE { ?d :quote true } }
QUERY Permit := { SELECT ?d WHERE { ?d :permitted true } }
QUERY Suspended := { SELECT ?m WHERE { ?m :suspended true } }
QUERY Contract := { SELECT ?d WHERE { ?d :contract true } }

RULE Quoted DEFINE { dotr_e a :Quoted } FROM E := Offer
AND NOT S := Suspended WITHIN 0 s FROM E ON S.?m = E.?m
WITH ?d := E.?d INSERT { ?d :quote true }
RULE Contracted DEFINE { dotr_e a :Contracted } FROM E := Accept
AND EACH Q := Quote WITHIN 0 s FROM E ON Q.?d = E.?d
AND NOT S := Suspended WITHIN 0 s FROM E ON S.?m = E.?m
WITH ?d := E.?d INSERT { ?d :contract true }
RULE Taken DEFINE { dotr_e a :Taken } FROM E := Accept WITH ?d := E.?d DELETE { ?d :quote true }
RULE Asked DEFINE { dotr_e a :Asked } FROM E := Request WITH ?d := E.?d INSERT { ?d :permitted true }
RULE Used DEFINE { dotr_e a :Used } FROM E := Offer WITH ?d := E.?d DELETE { ?d :permitted true }
RULE Fined DEFINE { dotr_e a :Fined } FROM E := Offer
AND NOT P := Permit WITHIN 0 s FROM E ON P.?d = E.?d
WITH ?m := E.?m INSERT { ?m :suspended true }
RULE Owes DEFINE { dotr_e a :Owes } FROM B := ISTREAM Contract WITH ?d := B.?d INSERT { ?d :owed true }
RULE Settled DEFINE { dotr_e a :Settled } FROM B := DSTREAM Contract WITH ?d := B.?d DELETE { ?d :owed true }
"""
DEALS = {"d1": "x", "d2": "x", "d3": "y"}


def netbill_events(r: Random) -> Events:
    found: Events = {}
    for time in range(1, END):
        for _ in range(r.choice((0, 1, 1, 2, 3))):
            deal = r.choice(list(DEALS))
            kind = r.choice(("request", "request", "present", "accept"))
            found.setdefault(time, []).append((kind, deal, DEALS[deal]))
    return found


def netbill_by_hand(events: Events) -> dict[str, Intervals]:
    quote, permitted, owed, contract, suspended = Fluent(), Fluent(), Fluent(), Fluent(5), Fluent(3)
    for t in range(END):
        of = {
            kind: {(d, "true"): (m, "true") for one, d, m in events.get(t, ()) if one == kind}
            for kind in ("request", "present", "accept")
        }
        free = {d for some in of.values() for d, m in some.items() if not suspended.holds(m, t)}
        begun = [(d, "true") for d in DEALS if contract.starts((d, "true"), t)]
        ended = [(d, "true") for d in DEALS if contract.ends((d, "true"), t)]
        owed.happen(t, begun, ended)
        contract.happen(t, [d for d in of["accept"] if d in free and quote.holds(d, t)])
        suspended.happen(t, [m for d, m in of["present"].items() if not permitted.holds(d, t)])
        quote.happen(t, [d for d in of["present"] if d in free], of["accept"])
        permitted.happen(t, of["request"], of["present"])
    fluents = {
        "quote": quote,
        "permitted": permitted,
        "owed": owed,
        "contract": contract,
        "suspended": suspended,
    }
    return {name: fluent.intervals() for name, fluent in fluents.items()}


def stream(events: Events, names: Sequence[str], first: str) -> str:
    """The events as messages, one for an instant."""
    lines = [{"time": 0, "graph": first}]
    for time, some in events.items():
        graph = ""
        for number, (kind, *values) in enumerate(some):
            pairs = " ; ".join(f"<urn:{n}> <urn:{v}>" for n, v in zip(names, values, strict=True) if n)
            graph += f"<urn:e{time}-{number}> a <urn:{kind}> ; {pairs} .\n"
        lines.append({"time": time, "graph": graph})
    lines.append({"time": END, "graph": ""})
    return "".join(f"{json.dumps(line)}\n" for line in lines)


def watched(dotr: Dotr, fluent: str, *options: str) -> Intervals:
    """The periods that are printed, up to the end of the input."""
    Path("q.rq").write_text(f"SELECT ?x ?v WHERE {{ ?x <urn:{fluent}> ?v }}")
    ran = dotr(
        "watch", "q.rq", "s.jsonl", "--rules", "r.dotr", "--periods", "--format", "jsonl", "-q", *options
    )
    assert ran.code == 0, ran.err
    found: Intervals = {}
    for line in map(json.loads, ran.out.splitlines()):
        x, v = (line["bindings"][name]["value"].removeprefix("urn:") for name in ("x", "v"))
        found.setdefault((x, v), []).append((line["from"], line["until"]))
    return {pair: sorted(periods) for pair, periods in found.items()}


def closed(intervals: Intervals) -> Intervals:
    """As they are known at the end: what ends later has no end yet, what begins later is not there."""
    found = {}
    for pair, periods in intervals.items():
        known = [(a, None if b is None or b > END else b) for a, b in periods if a <= END]
        if known:
            found[pair] = known
    return found


@pytest.mark.parametrize("seed", range(4))
def test_voting(dotr: Dotr, folder: Path, seed: int) -> None:
    events = voting_events(Random(seed))
    first = " ".join(f"<urn:{motion}> <urn:status> <urn:null> ." for motion in MOTIONS)
    (folder / "r.dotr").write_text(VOTING)
    (folder / "s.jsonl").write_text(stream(events, ("motion", "ballot", "value", "by"), first))
    expected = voting_by_hand(events)
    assert sum(len(periods) for periods in expected["status"].values()) > 6
    for fluent, intervals in expected.items():
        assert watched(dotr, fluent, *(["--verify"] if seed == 0 else [])) == closed(intervals), fluent


@pytest.mark.parametrize("seed", range(4))
def test_netbill(dotr: Dotr, folder: Path, seed: int) -> None:
    events = netbill_events(Random(seed))
    (folder / "r.dotr").write_text(NETBILL)
    (folder / "s.jsonl").write_text(stream(events, ("deal", "by"), ""))
    expected = netbill_by_hand(events)
    assert sum(len(periods) for periods in expected["owed"].values()) > 2
    for fluent, intervals in expected.items():
        assert watched(dotr, fluent, *(["--verify"] if seed == 0 else [])) == closed(intervals), fluent
