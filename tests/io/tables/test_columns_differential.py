"""Rows taken as columns give what rows taken as graphs give: events, dead letters, counts."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dotr.cli.main
from dotr.cli import run as run_verb
from dotr.core.pipeline import Pipeline
from dotr.extract.forms import FormRun
from dotr.io.tables import rows as table_rows

HEAD = "# time: t\nPREFIX : <urn:x:>\nPREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
MAPPINGS = {
    "one": "<urn:x:room/{room}> <urn:x:{kind}> {value}^^xsd:double .",
    "named": "<urn:x:o/{id}> a :Reading ; :kind {kind} ; :room <urn:x:room/{room}> ;"
    " :value {value}^^xsd:double .",
    "blank": "[] :kind {kind} ; :room <urn:x:room/{room}> ; :value {value}^^xsd:double ;"
    " :other {other}^^xsd:integer .",
    "constant": ":s :kind {kind} ; :room <urn:x:room/{room}> ; :value {value}^^xsd:double .",
    "twice": "<urn:x:o/{id}> :kind {kind} ; :value {value}^^xsd:double , {other}^^xsd:integer .",
    "joined": '<urn:x:o/{room}/{kind}> :room <urn:x:room/{room}> ; :value {value|default("7")}^^xsd:double .',
    "sure": "<urn:x:o/{id}> :kind {kind} ; :room <urn:x:room/{room}> ; :other {other}^^xsd:integer .",
    "class": "<urn:x:room/{room}> a :Room ; :value {value}^^xsd:double .",
}
QUERIES = (
    "SELECT ?r ?v WHERE { ?r :heat ?v }",
    "SELECT ?r WHERE { ?r :smoke ?v FILTER(?v < 3) }",
    "SELECT ?r ?v WHERE { ?r :heat ?v . ?r :in ?b FILTER(?v > 2) }",
    "SELECT ?b ?v WHERE { ?r :heat ?v . ?r :in ?b . ?b :limit ?l FILTER(?v > ?l) }",
    "SELECT ?o ?v WHERE { ?o :value ?v }",
    "SELECT ?v WHERE { ?o :value ?v FILTER(?v >= 4) }",
    "SELECT DISTINCT ?v WHERE { ?o :value ?v }",
    'SELECT ?r WHERE { ?o :kind "smoke" ; :room ?r }',
    'SELECT ?r ?v WHERE { ?o :kind "heat" ; :room ?r ; :value ?v FILTER(?v > 3) }',
    "SELECT ?r ?b WHERE { ?o :room ?r . ?r :in ?b }",
    "SELECT ?b ?v WHERE { ?o :room ?r ; :value ?v . ?r :in ?b . ?b :limit ?l FILTER(?v > ?l && ?v != 5) }",
    "SELECT ?v ?w WHERE { ?o :value ?v ; :other ?w FILTER(?v > ?w) }",
    "SELECT ?x WHERE { { ?o :kind ?x } UNION { ?o :room ?x } }",
    "SELECT ?r WHERE { ?r a :Room }",
    "SELECT ?v WHERE { ?r a :Room ; :value ?v }",
    "SELECT ?r ?v WHERE { ?o :room ?r OPTIONAL { ?o :value ?v } }",
    "SELECT ?r ?n WHERE { ?o :room ?r BIND(NOW() AS ?n) }",
    "SELECT ?o WHERE { ?o :kind ?k FILTER(isBlank(?o)) }",
    "SELECT ?p ?x WHERE { ?s ?p ?x }",
    "SELECT ?r WHERE { ?o :room ?r FILTER NOT EXISTS { ?r :in ?b } }",
    "SELECT ?s WHERE { ?s :in ?b }",
)
FIT = 15
"""Those before that are conjunctions of patterns and filters."""

BACKGROUND = "".join(
    f"<urn:x:room/r{n}> <urn:x:in> <urn:x:b{n % 2}> .\n<urn:x:b{n % 2}> <urn:x:limit> {2 + n % 2} .\n"
    for n in range(3)
)


def rules(draw: random.Random) -> str:
    first, second, third = draw.sample(range(FIT if draw.random() < 0.7 else len(QUERIES)), 3)
    names = {n: f"Q{n}" for n in (first, second, third)}
    text = "PREFIX : <urn:x:>\nBACKGROUND <b.ttl>\n"
    text += "".join(f"QUERY {name} := {{ {QUERIES[n]} }}\n" for n, name in names.items())
    for number, (a, b) in enumerate(((first, second), (second, third))):
        given = QUERIES[a].split("WHERE")[0].split("?")[1].split()[0]
        chosen = draw.choice(("LAST", "EACH", "FIRST"))
        text += (
            f"RULE R{number} DEFINE {{ dotr_e a :R{number} ; :is ?x }} FROM A{number} := {names[a]}\n"
            f"AND {chosen} B{number} := {names[b]}\n"
            f"WITHIN {draw.choice(('0 s', '4 s', '60 s'))} FROM A{number}\n"
            f"WITH ?x := A{number}.?{given}\n"
        )
    return text + f"RULE R9 DEFINE {{ dotr_e a :R9 }} FROM C := {names[third]}\n"


def table(draw: random.Random, rows: int) -> pa.Table:
    steps = draw.choice(((1,), (0, 1), (0, 0, 3), (1, 1, 1, -1)))
    time, times = 1_700_000_000, []
    for _ in range(rows):
        time += draw.choice(steps)
        times.append(time)
    holes = draw.choice((0.0, 0.0, 0.1))

    def cell(value: Any) -> Any:
        return None if draw.random() < holes else value

    wrong = draw.choice((0.0, 0.0, 0.02))
    many = draw.random() < 0.3
    values = [cell(draw.random() * 6 if many else float(draw.randrange(6))) for _ in times]
    bad = "nan" if wrong else ""
    values = [float(bad) if bad and draw.random() < wrong else value for value in values]
    columns = {
        "id": [str(cell(n if draw.random() < 0.9 else 1)) for n in range(rows)],
        "kind": [cell(draw.choice(("heat", "smoke", "x y"))) for _ in times],
        "room": [cell(f"r{draw.randrange(4)}") for _ in times],
        "value": values,
        "other": [cell(draw.randrange(5)) for _ in times],
    }
    stamps = draw.choice((pa.timestamp("us", tz="UTC"), pa.timestamp("s", tz="UTC"), None))
    if stamps is None:
        made = pa.array(times, pa.int64())
    else:
        made = pa.array([time * (1_000_000 if stamps.unit == "us" else 1) for time in times], stamps)
    found = {"t": made, **{name: pa.array(cells) for name, cells in columns.items()}}
    if draw.random() < 0.3:
        found["room"] = found["room"].dictionary_encode()
    return pa.table(found)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of rows that were taken as columns; everything is small."""
    found: list[int] = []
    accept = Pipeline.accept_columns

    def counted(self: Pipeline, run: FormRun) -> bool:
        done = accept(self, run)
        found.append(len(run.times) if done else 0)
        return done

    monkeypatch.setattr(Pipeline, "accept_columns", counted)
    monkeypatch.setattr(run_verb, "FIRST_GRAPHS", 2)
    monkeypatch.setattr(run_verb, "AHEAD", 1)
    monkeypatch.setattr(table_rows, "BATCH", 16)
    monkeypatch.setattr(table_rows, "_FEW_ROWS", 2)
    return found


def output(
    folder: Path, mapping: str, more: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> dict[str, Any]:
    """What a run leaves behind."""
    out, letters = folder / "o.jsonl", folder / "letters.jsonl"
    for file in (out, letters, folder / "o.jsonl.part"):
        file.unlink(missing_ok=True)
    arguments = ["run", folder / "r.dotr", folder / "t.parquet", "--map", folder / mapping, "-o", out]
    arguments += ["--on-error", f"file={letters}", "--summary", "json", *more]
    code = dotr.cli.main.run(list(map(str, arguments)))
    said = capsys.readouterr().err.splitlines()
    report = [line for line in said if line.startswith("{")]
    summary = json.loads(report[-1]) if report else {}
    summary.pop("seconds", None)
    texts = [file.read_text() if file.exists() else "" for file in (out, letters)]
    errors = [line for line in said if not line.startswith("{")]
    return {"code": code, "out": texts[0], "letters": texts[1], "summary": summary, "errors": errors}


@pytest.mark.parametrize("seed", range(150))
def test_columns_are_graphs(
    seed: int,
    tmp_path: Path,
    taken: list[int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    draw = random.Random(seed)
    (tmp_path / "b.ttl").write_text(BACKGROUND)
    (tmp_path / "r.dotr").write_text(rules(draw))
    name = draw.choice(list(MAPPINGS))
    (tmp_path / "m.map").write_text(HEAD + MAPPINGS[name] + "\n")
    pq.write_table(table(draw, 120), tmp_path / "t.parquet", row_group_size=50)
    more = ("--late", "drop")
    columns = output(tmp_path, "m.map", more, capsys)
    monkeypatch.setattr(run_verb.Replay, "wants", lambda _self, _form: False)
    graphs = output(tmp_path, "m.map", more, capsys)
    assert columns == graphs, (name, taken)
    assert columns["code"] in (0, 1), columns["errors"]


def test_all_is_taken_as_columns(
    tmp_path: Path, taken: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    """The usual case is not left to the usual way unnoticed."""
    (tmp_path / "r.dotr").write_text(
        f"PREFIX : <urn:x:>\nQUERY A := {{ {QUERIES[7]} }}\nQUERY B := {{ {QUERIES[8]} }}\n"
        "RULE R DEFINE { dotr_e a :R ; :v ?v } FROM A AND LAST B WITHIN 9 s FROM A ON B.?r = A.?r\n"
        "WITH ?v := B.?v\n"
    )
    (tmp_path / "m.map").write_text(HEAD + MAPPINGS["named"] + "\n")
    draw = random.Random(1)
    rows = 400
    cells = {
        "t": pa.array(range(rows), pa.int64()),
        "id": pa.array(range(rows)),
        "kind": pa.array([draw.choice(("heat", "smoke")) for _ in range(rows)]),
        "room": pa.array([f"r{draw.randrange(3)}" for _ in range(rows)]),
        "value": pa.array([float(draw.randrange(6)) for _ in range(rows)]),
    }
    pq.write_table(pa.table(cells), tmp_path / "t.parquet")
    assert output(tmp_path, "m.map", (), capsys)["out"].count("\n") > 20
    assert sum(taken) > 300
