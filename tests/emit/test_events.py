"""Events are written without being made, in the order and the words of those that are made."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from dotr.emit.events import Emitter, InstantEvents, together
from dotr.events import Clock, Fact, RawMatch
from dotr.io.events import format_jsonl, formatter
from dotr.lang import parse_program
from dotr.rdf.terms import PROV_GENERATED_AT_TIME, integer

RULES = 36
TEMPLATES = ("a :Odd@ ; :v ?v", "a :Even", ":seen ?v , @", "a :Many ; :v ?v")
RULE = """PRIVATE RULE R@ DEFINE { dotr_id TEMPLATE }
FROM A := { SELECT ?v WHERE { ?a :a ?v } }
AND EACH B := { SELECT ?w WHERE { ?b :b ?w } } WITHIN 9 s FROM A
WITH ?v := A.?v
"""


def _rule(n: int) -> str:
    text = RULE if n == 3 else RULE.removeprefix("PRIVATE ")
    return text.replace("TEMPLATE", TEMPLATES[n % len(TEMPLATES)]).replace("@", str(n))


TEXT = "PREFIX : <urn:x:>\n" + "".join(_rule(n) for n in range(RULES))
EMITTER = Emitter(parse_program(TEXT))

number = st.integers(0, 2)


def fact(value: int) -> Fact:
    return 7, (integer(value),), 0, ""


matches = st.lists(
    st.builds(
        lambda rules, a, b: (tuple(rules), 7, (fact(a), fact(b)), (integer(a),)),
        st.lists(st.integers(0, RULES - 1), min_size=1, max_size=4, unique=True),
        number,
        number,
    ),
    min_size=1,
    max_size=20,
)


@given(matches)
def test_what_is_written_is_what_the_events_would_write(found: list[RawMatch]) -> None:
    clock = Clock()
    events = InstantEvents(EMITTER, found)
    stamp = clock.term(7)
    made = [event.template.quads(event.id, event.bound, stamp) for event in events]
    assert InstantEvents(EMITTER, found).nquads(clock) == made
    for event, text in zip(events, made, strict=True):
        node = f"<{event.id}>"
        graph = [f"{s} {p} {o} {node} .\n" for s, p, o in event.template.graph(event.id, event.bound)]
        assert text == f"{node} {PROV_GENERATED_AT_TIME} {stamp} .\n{''.join(graph)}"


@given(st.permutations(range(RULES)), st.lists(number, min_size=RULES, max_size=RULES))
def test_rules_that_match_once_each_are_written_in_their_order(order: list[int], values: list[int]) -> None:
    found: list[RawMatch] = [
        ((n,), 7, (fact(v), fact(v)), (integer(v),)) for n, v in zip(order, values, strict=True)
    ]
    written = InstantEvents(EMITTER, found).nquads(Clock())
    assert [text.split(":")[2] for text in written] == [f"R{n}" for n in range(RULES)]


@given(st.lists(matches, min_size=1, max_size=5))
def test_events_of_several_instants_are_those_of_each(found: list[list[RawMatch]]) -> None:
    clock = Clock()
    each = [[(rules, 7 + n, *more) for rules, _, *more in one] for n, one in enumerate(found)]
    alone = [InstantEvents(EMITTER, one) for one in each]  # type: ignore[arg-type]  # matches at other times
    (run,) = together(alone)
    assert list(run) == [event for events in alone for event in events]
    assert run.nquads(clock) == [text for events in alone for text in events.nquads(clock)]
    assert formatter("jsonl", {})[1](run, clock) == "".join(
        f"{format_jsonl(event, clock)}\n" for events in alone for event in events
    )


def test_a_line_has_the_event_that_its_own_rule_chose() -> None:
    """Facts that differ only in which events they are have one hash, and rules of one form one function."""
    events = [(*fact(1)[:3], id_) for id_ in ("", "urn:dotr:R1:a", "urn:dotr:R2:b")]
    found: list[RawMatch] = [((n * 4,), 7, (fact(1), one), (integer(1),)) for n, one in enumerate(events)]
    lines = formatter("jsonl", {})[1](InstantEvents(EMITTER, found), Clock())
    assert [json.loads(line)["match"]["B"].get("id", "") for line in lines.splitlines()] == [
        id_ for *_, id_ in events
    ]
