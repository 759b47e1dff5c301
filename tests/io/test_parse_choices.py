"""What documents may say beyond RDF 1.1 (`--rdf12 plain`) and beyond themselves (`--context IRI=FILE`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dotr
from dotr.cli.main import run
from dotr.errors import DataError, UsageError
from dotr.io.decode import rdf as json_contexts
from dotr.io.decode.documents import Format
from dotr.io.decode.rdf import ParseChoices, parse_runs, parse_triples
from dotr.io.errors import ErrorPolicy
from dotr.io.graphs import SourceOptions
from dotr.io.sources import Sources
from dotr.io.time import UNITS

PLAIN = ParseChoices("plain")
GENERATED = "http://www.w3.org/ns/prov#generatedAtTime"
CONFIDENT = ("<urn:confidence>", '"0.5"^^<http://www.w3.org/2001/XMLSchema#decimal>')
TEMP = ("<urn:a>", "<urn:temp>", '"22"^^<http://www.w3.org/2001/XMLSchema#integer>')
BODY = ":a :temp 22 {| :confidence 0.5 |} . :a :says <<( :s :p :o )>> . << :a :temp 9 >> :by :b ."
QUADS = """<urn:a> <urn:temp> "22"^^<http://www.w3.org/2001/XMLSchema#integer>{0} .
<urn:r> <http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies> <<( <urn:a> <urn:temp> "2 2 .\\n" )>>{0} .
<urn:r> <urn:confidence> "0.5"^^<http://www.w3.org/2001/XMLSchema#decimal>{0} .
"""


def read(path: Path, **options: Any) -> Sources:
    return Sources([str(path)], SourceOptions(choices=ParseChoices("plain"), **options))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("12.ttl", f"PREFIX : <urn:> {BODY}"),
        ("12.nt", QUADS.format("")),
        ("a.trig", f"PREFIX : <urn:> <urn:g> <{GENERATED}> 12 . <urn:g> {{ {BODY} }}"),
        (
            "a.nq",
            QUADS.format(" <urn:g>")
            + f'<urn:g> <{GENERATED}> "12"^^<http://www.w3.org/2001/XMLSchema#integer> .\n',
        ),
        ("a.jsonl", json.dumps({"time": 12, "graph": f"PREFIX : <urn:> {BODY}"})),
        (
            "a.jsonl",
            "".join(json.dumps({"time": 12, "insert": f"PREFIX : <urn:> {BODY}"}) + "\n" for _ in "ab"),
        ),
        (
            "log.ttl",
            f'VERSION "1.2-messages"\nPREFIX : <urn:>\nMESSAGE\n<> <{GENERATED}> 12 . {BODY}\n',
        ),
    ],
)
@pytest.mark.parametrize("whole", [1 << 22, 1])
def test_every_format_is_read_for_its_plain_triples(tmp_path: Path, name: str, text: str, whole: int) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(DataError, match="--rdf12 plain"):
        list(Sources([str(file)], SourceOptions(whole=whole)))
    sources = read(file, whole=whole)
    for graph in sources:
        part: Any = graph.triples
        triples = part if isinstance(part, list) else part.insert
        assert TEMP in triples
        assert CONFIDENT in [(p, o) for _s, p, o in triples]
        assert not any("<<" in o or "reifies" in p or "9" in o for _s, p, o in triples)
    assert sources.extractor.beside["triple terms"] >= 1
    assert sources.extractor.first["triple terms"] == str(file)


def test_a_dump_is_split_after_triple_terms_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "d.ttl").write_text(f"PREFIX : <urn:> :a a :O ; :at 12 . {BODY}")
    (graph,) = read(tmp_path / "d.ttl", split="<urn:O>", time_path="<urn:at>")
    assert TEMP in graph.triples


def test_a_base_direction_is_left_out_and_its_language_stays() -> None:
    choices = ParseChoices("plain")
    text = '<urn:a> <urn:b> "x --ltr \\" y"@en-GB--ltr , "z"@he--rtl , "--ltr" , "q"@en .'
    found = [o for _s, _p, o in parse_triples(text, choices=choices)]
    assert found == ['"x --ltr \\" y"@en-gb', '"z"@he', '"--ltr"', '"q"@en']
    assert choices.taken() == {"directions": 2}
    assert choices.taken() == {}


def test_plain_triples_are_those_of_rdf_xml_and_json_ld_too() -> None:
    rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    xml = (
        f'<rdf:RDF xmlns:rdf="{rdf}" xmlns="urn:" rdf:version="1.2"><rdf:Description rdf:about="urn:a">'
        '<p rdf:annotation="urn:r">1</p></rdf:Description></rdf:RDF>'
    )
    assert parse_triples(xml, Format.RDFXML, choices=PLAIN) == [("<urn:a>", "<urn:p>", '"1"')]
    value = {"@value": "x", "@language": "en", "@direction": "ltr"}
    text = json.dumps({"@id": "urn:a", "urn:p": value})
    assert parse_triples(text, Format.JSONLD, choices=PLAIN) == [("<urn:a>", "<urn:p>", '"x"@en')]


names = st.sampled_from([f"<urn:{c}>" for c in "abc"])
texts = st.text(st.sampled_from('x "\\\n.<>()-@é'), max_size=6)
terms = st.recursive(
    st.one_of(
        names, texts.map(lambda t: str(ox.Literal(t))), texts.map(lambda t: f"{ox.Literal(t)}@en--rtl")
    ),
    lambda inner: st.tuples(names, names, inner).map(lambda t: f"<<( {' '.join(t)} )>>"),
    max_leaves=4,
)


@given(st.lists(st.tuples(names, names, terms), max_size=8))
def test_what_stays_is_what_has_no_term_of_rdf_12(triples: list[tuple[str, str, str]]) -> None:
    text = "".join(f"{s} {p} {o} .\n" for s, p, o in triples)
    kept = [(s, p, o.removesuffix("--rtl")) for s, p, o in triples if not o.startswith("<<")]
    expected = parse_triples("".join(f"{s} {p} {o} .\n" for s, p, o in kept))
    for form in (Format.TURTLE, Format.NTRIPLES):
        assert parse_triples(text, form, choices=PLAIN) == expected
    runs = parse_runs(text, Format.NQUADS, "x", choices=PLAIN)
    assert list(dict.fromkeys(t for _g, rows in runs for t in rows)) == expected


# ---------------------------------------------- contexts of JSON-LD

NGSI = "https://uri.etsi.org/ngsi-ld/"
ACTIVITY = "https://www.w3.org/ns/activitystreams#"
SOSA = "http://www.w3.org/ns/sosa/"
SAREF = "https://saref.etsi.org/core/"
CORE = "https://uri.etsi.org/ngsi-ld/v1/ngsi-ld-core-context-v1.6.jsonld"
ROOM = {
    "id": "urn:ngsi-ld:Room:1",
    "type": "Room",
    "temperature": {"type": "Property", "value": 21.5, "observedAt": "2026-01-01T10:00:00Z"},
    "humidity": {"type": "Property", "value": 40, "observedAt": "2026-01-01T10:00:05Z"},
}
RULES = """PREFIX : <urn:>
PREFIX n: <https://uri.etsi.org/ngsi-ld/>
PREFIX d: <https://uri.etsi.org/ngsi-ld/default-context/>
RULE S DEFINE { dotr_e a :S ; :x ?x ; :v ?v }
FROM Q := { SELECT ?x ?v WHERE { ?x d:temperature/n:hasValue ?v } } WITH ?x := Q.?x, ?v := Q.?v
"""
SPLIT = ("--split", "ngsi-ld:Property", "--time-path", "https://uri.etsi.org/ngsi-ld/observedAt")


MINE = "https://example.org/mine.jsonld"


@pytest.mark.parametrize("core", [CORE, [CORE], [MINE, CORE], [MINE, "https://example.org/core"]])
def test_what_a_broker_sends_is_an_event_with_its_room(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, core: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("r.dotr").write_text(RULES)
    mine = {"Room": "urn:Room", "more": {"@id": "urn:more"}}
    Path("mine.jsonld").write_text(json.dumps({"@context": mine}))
    Path("core.jsonld").write_text(json.dumps({"@context": [CORE]}))
    Path("room.jsonld").write_text(json.dumps({**ROOM, "@context": core}))
    given_ = ["--context", f"{MINE}=mine.jsonld", "--context", "https://example.org/core=core.jsonld"]
    assert run(["run", "r.dotr", "room.jsonld", *SPLIT, *given_, "--format", "text"]) == 0
    found = capsys.readouterr().out
    assert ":x <urn:ngsi-ld:Room:1> ; :v 21.5e0 } @ 2026-01-01T10:00:00Z" in found
    assert found.count("\n") == 1


@pytest.mark.parametrize(
    ("iri", "text", "predicate", "term"),
    [
        (CORE, {"observedAt": "x"}, f"{NGSI}observedAt", f'"x"^^<{NGSI}DateTime>'),
        (f"{NGSI}v1/ngsi-ld-core-context.jsonld", {"object": "urn:b"}, f"{NGSI}hasObject", "<urn:b>"),
        ("https://www.w3.org/ns/activitystreams", {"actor": "urn:b"}, f"{ACTIVITY}actor", "<urn:b>"),
        (SOSA, {"madeBySensor": "urn:b"}, f"{SOSA}madeBySensor", "<urn:b>"),
        (SAREF, {"isMeasuredIn": "urn:b"}, f"{SAREF}isMeasuredIn", "<urn:b>"),
        ("https://schema.org", {"name": "x"}, "http://schema.org/name", '"x"'),
        ("http://schema.org/", {"url": "urn:b"}, "http://schema.org/url", "<urn:b>"),
    ],
)
def test_contexts_that_come_with_dotr(iri: str, text: dict[str, str], predicate: str, term: str) -> None:
    document = json.dumps({"@context": iri, "id": "urn:a", **text})
    assert parse_triples(document, Format.JSONLD) == [("<urn:a>", f"<{predicate}>", term)]


@pytest.mark.parametrize("file", sorted(json_contexts._FOLDER.glob("*.jsonld")), ids=lambda file: file.stem)
def test_every_term_of_a_shipped_context_is_an_absolute_iri(file: Path) -> None:
    context = json.loads(file.read_text())["@context"]
    terms_ = [key for key in context if not key.startswith("@")]
    assert len(terms_) > 10
    for term in terms_:
        if context[term] in ("@id", "@type") or str(context[term]).endswith(("/", "#")):
            continue
        document = json.dumps({"@context": context, "@id": "urn:a", "@type": term})
        ((_s, _p, kind),) = parse_triples(document, Format.JSONLD)
        assert kind.startswith(("<http://", "<https://")), term


def test_scoped_and_imported_contexts_are_put_in(tmp_path: Path) -> None:
    contexts = {
        "urn:c": json.dumps({"@context": {"p": {"@id": "urn:p", "@context": "urn:d"}}}),
        "urn:d": json.dumps({"@context": {"q": "urn:q"}}),
        "urn:e": json.dumps({"@context": {"@version": 1.1, "@import": "urn:d", "r": "urn:r"}}),
    }
    choices = ParseChoices(contexts=contexts)
    nested = {"@context": "urn:c", "@id": "urn:a", "p": {"@id": "urn:b", "q": 1.0, "x": "@context"}}
    found = parse_triples(json.dumps(nested), Format.JSONLD, choices=choices)
    assert [(s, p) for s, p, _o in found] == [("<urn:a>", "<urn:p>"), ("<urn:b>", "<urn:q>")]
    inner = {"@id": "urn:a", "urn:p": {"\u0040context": ["urn:e"], "@id": "urn:b", "q": 1, "r": 2}}
    text = json.dumps(inner).replace('"@context"', '"\\u0040context"')
    found = parse_triples(text, Format.JSONLD, choices=choices)
    assert {p for _s, p, _o in found} == {"<urn:p>", "<urn:q>", "<urn:r>"}


def test_a_context_that_nobody_names_is_named_in_the_error() -> None:
    text = json.dumps({"@context": "https://example.org/c", "@id": "urn:a"})
    with pytest.raises(DataError, match="D2005") as error:
        parse_triples(text, Format.JSONLD)
    first = error.value.diagnostics[0]
    assert first.label == "https://example.org/c"
    assert first.hint.endswith("--context https://example.org/c=FILE")


def test_contexts_in_a_circle_and_files_that_are_none_are_refused() -> None:
    circle = {"urn:c": json.dumps({"@context": ["urn:d"]}), "urn:d": json.dumps({"@context": "urn:c"})}
    for contexts, code in ((circle, "D2005"), ({"urn:c": "[]"}, "D2001"), ({"urn:c": "{"}, "D2001")):
        with pytest.raises(DataError, match=code):
            parse_triples('{"@context": "urn:c"}', Format.JSONLD, choices=ParseChoices(contexts=contexts))


def test_small_documents_do_not_become_large_ones_by_their_contexts() -> None:
    large = json.dumps({"@context": {f"t{n}": f"urn:t{n}" for n in range(20_000)}})
    text = json.dumps([{"@context": "urn:c", "t1": 1}] * 2_000)
    with pytest.raises(DataError, match="D2007"):
        parse_triples(text, Format.JSONLD, choices=ParseChoices(contexts={"urn:c": large}))


def test_errors_keep_their_lines() -> None:
    text = '{"@context":\n  "https://schema.org",\n "name": "x",\n "name" "y"}'
    with pytest.raises(DataError, match="D2001") as error:
        parse_triples(text, Format.JSONLD, "x.jsonld")
    assert error.value.diagnostics[0].place.startswith("x.jsonld:4:")


def test_python_has_both(tmp_path: Path) -> None:
    (tmp_path / "c.jsonld").write_text(json.dumps({"@context": {"v": "urn:v", "t": GENERATED}}))
    said = {"@context": "https://example.org/c", "@id": "urn:a", "v": 1}
    (tmp_path / "12.jsonld").write_text(json.dumps(said))
    rules = "PREFIX : <urn:> RULE S DEFINE { dotr_e a :S } FROM Q := { SELECT ?x WHERE { ?x :v ?v } }"
    engine = dotr.Engine.from_text(rules, contexts={"https://example.org/c": tmp_path / "c.jsonld"})
    assert [event.time for event in engine.feed(tmp_path / "12.jsonld")] == [12]
    plain = dotr.Engine.from_text(rules, rdf12="plain")
    pairs = [(n, f"PREFIX : <urn:> :a{n} :v {n} {{| :c 1 |}} .") for n in range(3)]
    assert sum(len(events) for events in plain.push_all(pairs)) + len(plain.finish()) == 3
    with pytest.raises(DataError, match="D2004"):
        dotr.Engine.from_text(rules).push(pairs[0][1], at=1)
    with pytest.raises(UsageError, match="D4187"):
        dotr.Engine.from_text(rules, rdf12="star")


EACH = """PREFIX : <urn:>
RULE S DEFINE { dotr_e a :S ; :x ?x } FROM Q := { SELECT ?x WHERE { ?x :v ?v } } WITH ?x := Q.?x
"""


@pytest.mark.parametrize(
    ("name", "text", "choice", "refused"),
    [
        ("b.ttl", "<urn:o> <urn:v> 7 {| <urn:by> <urn:s> |} .", ["--rdf12", "plain"], "D2004"),
        (
            "b.jsonld",
            '{"@context": "https://example.org/c", "@id": "urn:o", "v": 7}',
            ["--context", "https://example.org/c=c.json"],
            "D2005",
        ),
    ],
)
def test_a_background_and_what_is_inserted_are_read_by_the_same_choices(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    text: str,
    choice: list[str],
    refused: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(text)
    Path("c.json").write_text('{"@context": {"v": "urn:v"}}')
    Path("r.dotr").write_text(EACH)
    Path("s.jsonl").write_text('{"time": 1, "graph": "<urn:p> <urn:v> 1 ."}\n')
    with_background = ["run", "r.dotr", "s.jsonl", "--background", name]
    assert run([*with_background, *choice]) == 0
    assert '"value":"urn:o"' in capsys.readouterr().out
    assert run(with_background) == 3
    assert f"error[{refused}]" in capsys.readouterr().err
    Path("r.dotr").write_text(EACH.replace("PREFIX : <urn:>\n", "PREFIX : <urn:>\nHOLD :v\n", 1))
    assert run(["deploy", "r.dotr"]) == 0
    assert run(["feed", "--insert", name, "--at", "5", *choice]) == 0
    Path("t.jsonl").write_text('{"time": 6, "graph": ""}\n')
    assert run(["feed", "t.jsonl"]) == 0
    assert '"value":"urn:o"' in capsys.readouterr().out
    assert run(["close", name]) == 3
    shown = capsys.readouterr().err
    assert f"error[{refused}]" in shown
    assert "--" not in shown.partition("hint:")[2]


def test_the_same_by_many_processes_and_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graphs = [f"<urn:a{n}> <urn:v> {n} {{| <urn:c> 1 |}} ." for n in range(300)]
    lines = [json.dumps({"time": n, "graph": graph}) for n, graph in enumerate(graphs)]
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    (tmp_path / "r.dotr").write_text(EACH)
    outputs = []
    for jobs in ("1", "2"):
        given_ = [str(tmp_path / "r.dotr"), str(tmp_path / "in.jsonl"), "--rdf12", "plain", "--jobs", jobs]
        assert run(["run", *given_, "--format", "text"]) == 0
        said = capsys.readouterr()
        outputs.append(said.out)
        assert "300 triples with triple terms of RDF 1.2 left out" in said.err
    assert outputs[0] == outputs[1]
    assert outputs[0].count("\n") == 300


def test_dead_letters_are_unchanged(tmp_path: Path) -> None:
    line = {"time": 1, "graph": "<urn:a> <urn:b> <<( <urn:a> <urn:b> 1 )>> ."}
    (tmp_path / "a.jsonl").write_text(json.dumps(line))
    policy = ErrorPolicy(fail=False)
    assert list(Sources([str(tmp_path / "a.jsonl")], SourceOptions(unit=UNITS["s"]), policy)) == []
    assert policy.count == 1
