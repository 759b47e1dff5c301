"""The console's list of events, run by node: it stays bounded however long a page is open."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import dotr

STORE = Path(dotr.__file__).parent / "serve" / "console" / "event_store.js"

STORY = """
const { EventStore } = await import(process.argv[1]);
const store = new EventStore(() => undefined);
Object.assign(store, { loaded: true, filter: { rules: ['R'] } });
let number = 0;
for (let batch = 0; batch < 41; batch += 1) {
  const found = [];
  for (let n = 0; n < 5000; n += 1) {
    number += 1;
    const line = JSON.stringify({ rule: 'R', time: number, bindings: {}, graph: 'g' });
    found.push({ number, rule: 'R', line });
  }
  store.take(found);
}
const [first, last] = [store.rows[0], store.rows.at(-1)];
console.log(JSON.stringify({ count: store.rows.length, first, last, next: store.next }));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
def test_the_oldest_events_leave_the_list_and_are_asked_for_again() -> None:
    command = ["node", "--input-type=module", "-e", STORY, STORE.as_uri()]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["count"] == 200_000
    assert found["first"] == {"number": 205_000, "rule": "R", "time": 205_000, "bindings": {}}
    assert found["last"]["number"] == 5_001
    assert found["next"] == "/v1/events?before=5001&order=newest&limit=500&rule=R"
