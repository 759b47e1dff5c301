"""What holds on Spark: by key where rules let it, said loudly and in one task where they do not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dotr.batch.local import LocalRunner
from dotr.batch.log import open_log
from dotr.batch.runs import Request, warnings
from dotr.batch.spark.cluster import SparkRunner
from dotr.core.deployment import Deployment
from dotr.core.funnel import Funnel
from dotr.detect.partitioning import plan_batch, strategy
from dotr.io.rules_and_background import read_rules_text
from dotr.io.sources import SourceOptions
from dotr.lang import load_program
from tests.batch.test_local import Serial, in_one_process, output, quiet

pytestmark = pytest.mark.spark


HELD = """PREFIX : <urn:x:>
LARS <holds.lars>
QUERY seen := { SELECT ?room ?v { ?o :room ?room ; :value ?v } }
RULE Begun DEFINE { dotr_x a :Begun ; :in ?room } FROM ISTREAM warm WITH ?room := warm.?room
RULE Still DEFINE { dotr_x a :Still ; :in ?room }
FROM calm AND LAST seen WITHIN 1 min FROM calm ON seen.?room = calm.?room WITH ?room := calm.?room
RULE Counted DEFINE { dotr_x :points ?n ; :in ?room }
FROM S := seen AND COUNT(*) AS ?n OVER calm WITHIN 30 d BEFORE S ON calm.?room = S.?room
WITH ?n := ?n, ?room := S.?room
"""
BY_KEY = """STEP 1 s
warm(?room) :- seen(?room, ?v) WITHIN 30 s, FILTER(?v > 25) .
calm(?room) :- seen(?room, ?v) WITHIN 20 d, NOT warm(?room) WITHIN 1 min .
"""
IN_ONE_TASK = BY_KEY + "calm(?room) :- seen(?room, ?v), NOT warm(?other) WITHIN 1 h .\n"


@pytest.mark.parametrize(("lars", "keyed"), [(BY_KEY, True), (IN_ONE_TASK, False)])
def test_what_holds_is_cut_by_key_or_said_not_to_be(
    lars: str, keyed: bool, spark: Any, tmp_path: Path
) -> None:
    """Over days of silence, with rules that read heads themselves."""
    (tmp_path / "rules.dotr").write_text(HELD, encoding="utf-8")
    (tmp_path / "holds.lars").write_text(lars, encoding="utf-8")
    values = [(i * i * 37 % 4_000 + i // 20 * 400_000, i % 5, 20 + i * 7 % 11) for i in range(60)]
    lines = [
        {"time": t, "graph": f"[] <urn:x:room> <urn:x:r{room}> ; <urn:x:value> {v} ."}
        for t, room, v in values
    ]
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    program, options = load_program([str(tmp_path / "rules.dotr")], read_rules_text), SourceOptions()
    funnels: dict[str, Funnel] = {}
    expected = in_one_process(program, [], [str(log)], options, funnels)
    plan = plan_batch(program)
    assert strategy(program, plan.components[0]).startswith("by key" if keyed else "one task")
    assert [found.code for found in warnings(program, plan)] == ([] if keyed else ["D4126"])
    outputs = []
    for runner in (SparkRunner(), LocalRunner(2, Serial)):
        out = tmp_path / type(runner).__name__
        out.mkdir()
        request = Request(Deployment(program), open_log([str(log)], options))
        report = runner.run(request, str(out), quiet)
        assert report.funnel(program) == funnels
        outputs.append(output(out, report))
    assert outputs == [expected, expected]
    assert {json.loads(line)["rule"] for line in expected} == {"Begun", "Still", "Counted"}
