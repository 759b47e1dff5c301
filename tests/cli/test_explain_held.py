"""`explain --why-not` and `--triple`: what HOLD … FROM … UNTIL … holds at other times is named with them."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Dotr

PERMITS = """
PREFIX : <urn:>
HOLD :permits FROM :validFrom UNTIL :validUntil
QUERY Entry := { SELECT ?who ?p WHERE { ?e :enters ?who . ?p :permits ?who } }
RULE Allowed DEFINE { dotr_e a :Allowed ; :who ?who } FROM Entry WITH ?who := Entry.?who
"""
GRAPHS = {
    0: ":p :permits :ann ; :validFrom 10 ; :validUntil 20 . :q :permits :bob ; :validFrom 'soon' .",
    5: ":e :enters :ann .",
    15: ":e :enters :ann .",
    20: ":e :enters :ann .",
    25: ":e :enters :bob .",
    30: ":r :permits :eve ; :validFrom 40 . :e :enters :nobody .",
    35: ":e :enters :nobody .",
}


def test_what_is_held_at_other_times_is_named_with_them(dotr: Dotr, folder: Path) -> None:
    (folder / "permits.dotr").write_text(PERMITS)
    lines = [json.dumps({"time": at, "graph": f"@prefix : <urn:> . {text}"}) for at, text in GRAPHS.items()]
    (folder / "log.jsonl").write_text("\n".join(lines))

    def explained(*wanted: str) -> str:
        return dotr("explain", "permits.dotr", "log.jsonl", *wanted).out

    def why_not(at: int, *more: str) -> str:
        return explained("--why-not", "Allowed", "--at", str(at), *more)

    for at in (5, 20):
        assert ":p :permits :ann is held from 10 until 20   log.jsonl:1" in why_not(at)
    assert "did not fire" not in why_not(15)
    assert ':q :permits :bob is not held: its beginning is not a time ("soon")' in why_not(25)
    assert "is held" not in why_not(30)
    found = json.loads(why_not(5, "--format", "json"))["held_at_other_times"]
    assert [(one["from"], one["until"]) for one in found] == [("10", "20")]
    eve = "--triple", ":r :permits :eve", "--at"
    assert "is held" not in explained(*eve, "25")  # its graph has not come
    assert ":r :permits :eve is held from 40   log.jsonl:6" in explained(*eve, "35")
