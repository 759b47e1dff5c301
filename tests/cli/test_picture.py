"""`dotr show`, `dotr run --show` and `dotr plan --format html`: pages that stand alone."""

from __future__ import annotations

import gzip
import html
import json
import re
from pathlib import Path

from tests.cli.conftest import Dotr

BUILDING = Path(__file__).parents[2] / "examples" / "building"
RUN = (str(BUILDING / "building.dotr"), str(BUILDING / "morning.ttl"))


def test_a_page_has_every_event_with_its_proof_down_to_lines(dotr: Dotr) -> None:
    ran = dotr("show", *RUN, "-o", "page.html", "-q")
    assert ran.code == 0, ran.err
    page = Path("page.html").read_text(encoding="utf-8")
    assert len(re.findall(r'<div id="e\d+">', page)) == 7
    assert len(re.findall(r'<a href="#e\d+"><circle', page)) == 7
    assert "morning.ttl:864" in page
    assert "places.dlog:5" in page
    assert "NOT Drill within 30 min from Smoke" in page
    assert "<script" not in page
    assert not re.search(r'(?:src|href)="(?!#)', page)
    for heading in ("Events along time", "How far each rule came", "What runs", "Rules"):
        assert f"<h2>{heading}" in page
    assert "RULE Fire" in page


def test_a_run_writes_its_page_beside_its_events(dotr: Dotr) -> None:
    plain = dotr("run", *RUN, "-q")
    dotr("show", *RUN, "-o", "page.html", "-q")
    ran = dotr("run", *RUN, "--show", "beside.html", "-q")
    assert (ran.code, ran.out) == (0, plain.out)
    assert Path("beside.html").read_bytes() == Path("page.html").read_bytes()


def test_a_page_that_is_there_is_not_replaced_unless_asked(dotr: Dotr) -> None:
    Path("page.html").write_text("mine")
    for command in (("show", *RUN, "-o", "page.html"), ("run", *RUN, "--show", "page.html")):
        ran = dotr(*command)
        assert ran.code == 5
        assert Path("page.html").read_text() == "mine"
    assert dotr("show", *RUN, "-o", "page.html", "--overwrite", "-q").code == 0
    assert "Events along time" in Path("page.html").read_text()


def test_a_run_that_fails_leaves_no_page(dotr: Dotr) -> None:
    Path("bad.ttl").write_text("<urn:a> <urn:b> .")
    ran = dotr("show", RUN[0], "bad.ttl", "-o", "page.html")
    assert ran.code == 3
    assert not Path("page.html").exists()


def test_a_page_is_not_written_over_what_is_read(dotr: Dotr) -> None:
    Path("rules.dotr").write_text(
        (BUILDING / "building.dotr").read_text().replace('"places', f'"{BUILDING}/places')
    )
    ran = dotr("run", "rules.dotr", RUN[1], "--show", "rules.dotr", "--overwrite")
    assert ran.code in (2, 3, 5)
    assert "RULE Fire" in Path("rules.dotr").read_text()


def test_a_plan_is_drawn(dotr: Dotr) -> None:
    ran = dotr("plan", RUN[0], "--format", "html")
    assert ran.code == 0
    assert ran.out.startswith("<!DOCTYPE html>")
    assert ">SensorLost</text>" in ran.out
    assert 'class="arrow dashed"' in ran.out


RULES = """PREFIX : <urn:rules:>
PREFIX own: <urn:both:>
BACKGROUND <places.ttl>
BACKGROUND <more.ttl.gz>
RULE Hot DEFINE { dotr_f a :Hot ; :at ?place }
FROM Q := { SELECT ?place ?kind { ?o :celsius ?c ; :in ?place . ?place a ?kind FILTER(?c > 60) } }
WITH ?place := Q.?place, ?kind := Q.?kind
"""
PLACES = """@prefix house: <urn:house:> .
@prefix own: <urn:other:> .
@prefix both: <urn:both:> .
house:kitchen a <urn:both:Room> .
@prefix late: <urn:late:> .
house:hall a <urn:other:Hall> .
house:cellar a late:Cellar .
"""
MORE = """PREFIX house: <urn:elsewhere:> PREFIX more: <urn:more:> more:attic a <urn:elsewhere:Attic> ."""
PLACED = ("house:kitchen", "own:Room", "house:hall", "urn:other:Hall", "urn:late:Cellar", "more:attic")


def with_prefixes() -> None:
    Path("hot.dotr").write_text(RULES)
    Path("places.ttl").write_text(PLACES)
    Path("more.ttl.gz").write_bytes(gzip.compress(MORE.encode()))
    rooms = ("urn:house:kitchen", "urn:house:hall", "urn:house:cellar", "urn:more:attic")
    lines = [
        {"time": n, "graph": f"<urn:o{n}> <urn:rules:celsius> 70 ; <urn:rules:in> <{room}> ."}
        for n, room in enumerate(rooms)
    ]
    Path("log.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def test_the_prefixes_of_the_background_shorten_iris_on_a_page_after_the_programs(dotr: Dotr) -> None:
    with_prefixes()
    assert dotr("show", "hot.dotr", "log.jsonl", "-o", "page.html", "-q").code == 0
    page = html.unescape(Path("page.html").read_text(encoding="utf-8"))
    for name in PLACED:
        assert name in page, name
    assert "both:Room" not in page  # the program's name of the namespace
    assert "own:Hall" not in page  # the program's own `own`
    assert " late:Cellar" not in page  # declared behind the first triple
    assert "house:Attic" not in page  # the first file's `house`
    assert "<urn:house:" not in page


def test_the_prefixes_of_the_background_shorten_iris_in_explanations_as_html(dotr: Dotr) -> None:
    with_prefixes()
    ran = dotr("explain", "hot.dotr", "log.jsonl", "--rule", "Hot", "--at", "0", "--format", "html")
    assert "house:kitchen" in html.unescape(ran.out)
    assert "own:Room" in html.unescape(ran.out)
    assert "<urn:house:" not in html.unescape(ran.out)
    assert dotr("deploy", "hot.dotr", "--keep", "7d").code == 0
    assert dotr("feed", "log.jsonl", "-o", "out.jsonl").code == 0
    kept = dotr("explain", "--rule", "Hot", "--at", "0", "--format", "html")
    assert "house:kitchen" in html.unescape(kept.out), kept.err
    Path("places.ttl").unlink()  # places and prefixes are gone with it, and the proof is not
    gone = dotr("explain", "--rule", "Hot", "--at", "0", "--format", "html")
    assert "<urn:house:kitchen>" in html.unescape(gone.out), gone.err


def test_the_prefixes_of_the_background_shorten_iris_of_a_comparison(dotr: Dotr) -> None:
    with_prefixes()
    Path("new.dotr").write_text(RULES.replace("?c > 60", "?c > 90"))
    ran = dotr("compare", "hot.dotr", "new.dotr", "log.jsonl", "--format", "html", "-o", "c.html")
    assert ran.code == 1
    page = html.unescape(Path("c.html").read_text(encoding="utf-8"))
    assert "house:kitchen" in page
    assert "<urn:house:kitchen>" not in page
