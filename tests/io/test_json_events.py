"""Generated functions write the lines that `format_jsonl` writes, whatever a template looks like."""

from __future__ import annotations

import pytest

from dotr.core.deployment import Deployment
from dotr.core.pipeline import Pipeline
from dotr.events import Clock
from dotr.io.events import format_jsonl, formatter
from dotr.lang import parse_program
from dotr.rdf.terms import XSD

DEFINES = {
    "several properties": "{ dotr_id1 a :Fire ; :z ?room ; :b ?v ; :aa 1 ; :a 'q\"\\n' }",
    "a property twice": "{ dotr_id1 :p ?room , ?v }",
    "one value maybe twice": "{ dotr_id1 :p ?v , 1 }",
    "a subject of its own": "{ ?room :was :hot . dotr_id1 a :Fire }",
    "a property of its own": "{ dotr_id1 ?room ?v }",
    "further names": "{ dotr_id1 :part dotr_part . dotr_part :room ?room }",
    "of itself": "{ dotr_id1 :self dotr_id1 ; :part dotr_part }",
}
PROGRAM = """PREFIX : <urn:x:>
RULE Fire DEFINE TEMPLATE
FROM Smoke := { SELECT ?room ?s WHERE { ?room :smoke ?s OPTIONAL { ?room :note ?n } } }
AND EACH Hot := { SELECT ?room ?v ?n WHERE { ?room :hot ?v OPTIONAL { ?room :note ?n } } }
    WITHIN 9 s FROM Smoke ON Hot.?room = Smoke.?room
WITH ?room := Smoke.?room , ?v := Hot.?v
RULE Later DEFINE { dotr_id1 a :Later ; :room ?r }
FROM S := { SELECT ?room WHERE { ?room :smoke ?s } }
AND EACH Fire WITHIN 20 s FROM S
WITH ?r := Fire.?room
"""
VALUES = ['"a\\"b\\\\c\\n"', '"é\u2028"@de', f'"1"^^<{XSD}integer>', "<urn:x:é>", '"\\u0001"']


def _written(define: str, clock: Clock) -> tuple[str, str]:
    """A rule, and one of its composites, over rooms with a value or without: as the
    formatter writes them, and as each is written by itself.
    """
    program = parse_program(PROGRAM.replace("TEMPLATE", define))
    pipeline = Pipeline(Deployment(program))
    pipeline.begin(clock)
    graphs = [
        [("<urn:x:r>", "<urn:x:hot>", value), *([("<urn:x:r>", "<urn:x:note>", value)] if n % 2 else [])]
        for n, value in enumerate(VALUES)
    ]
    smoke = [("<urn:x:r>", "<urn:x:smoke>", '"x"')]
    events = [
        event
        for time, graph in enumerate([*graphs, smoke, smoke])
        for event in pipeline.push(time * 1_000_000, graph)
    ]
    events += pipeline.finish()
    _head, write = formatter("jsonl", {}, program.rules)
    return write(events, clock), "".join(f"{format_jsonl(event, clock)}\n" for event in events)


@pytest.mark.parametrize("clock", [Clock(True), Clock(False)], ids=["integers", "dateTimes"])
@pytest.mark.parametrize("define", DEFINES.values(), ids=DEFINES)
def test_a_generated_function_writes_what_is_written_by_hand(define: str, clock: Clock) -> None:
    written, expected = _written(define, clock)
    assert expected.count("\n") > 15
    assert written == expected
