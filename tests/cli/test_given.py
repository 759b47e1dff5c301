"""What a command is given: a time and a message, files of a knowledge base, an output that takes no more."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from dotr.cli.explain import refuse_format
from dotr.cli.feed import given_message
from dotr.cli.kb import KnowledgeOptions, is_rules, made_of, prefixes_of
from dotr.cli.options import given_time
from dotr.cli.process import cannot_be_written
from dotr.errors import DataError, UsageError
from dotr.events import Clock, Message
from dotr.io.graphs import SourceOptions

SECOND = 1_000_000
OPTIONS = SourceOptions(base="urn:x/", max_document=10_000)


def test_a_given_time_is_written_as_it_is_given() -> None:
    assert given_time("12", SECOND, None) == (12 * SECOND, Clock(True))
    assert given_time("12", 1_000, None) == (12_000, Clock(True, 1_000))
    when, clock = given_time("1970-01-01T00:00:05Z", SECOND, Clock(True))
    assert (when, clock.integer) == (5 * SECOND, False)
    with pytest.raises(UsageError) as raised:
        given_time("soon", SECOND, None, "--until")
    assert (raised.value.diagnostics[0].code, "--until" in str(raised.value)) == ("D4111", True)


def test_now_is_cut_to_the_unit_of_integer_times() -> None:
    when, clock = given_time("now", SECOND, Clock(True))
    assert clock == Clock(True)
    assert when % SECOND == 0
    assert given_time("now", SECOND, None)[1].integer is False


def test_a_message_is_made_of_one_file_or_two(tmp_path: Path) -> None:
    one, two, log = (str(tmp_path / name) for name in ("a.ttl", "b.nt", "c.jsonl"))
    Path(one).write_text("<urn:a> <urn:p> <b> .", encoding="utf-8")
    Path(two).write_text("<urn:a> <urn:p> <urn:c> .", encoding="utf-8")
    Path(log).write_text("", encoding="utf-8")
    added, gone = [("<urn:a>", "<urn:p>", "<urn:x/b>")], [("<urn:a>", "<urn:p>", "<urn:c>")]
    assert given_message(one, None, OPTIONS) == Message(None, added, None)
    assert given_message(one, two, OPTIONS) == Message(None, added, gone)
    for wrong, code in ((log, "D2010"), (str(tmp_path / "a.xyz"), "D2008")):
        with pytest.raises(DataError) as raised:
            given_message(wrong, None, OPTIONS)
        assert raised.value.diagnostics[0].code == code


def test_files_of_a_knowledge_base_are_rules_or_rdf_and_bring_their_prefixes(tmp_path: Path) -> None:
    data, rules = tmp_path / "a.ttl", tmp_path / "r.dlog"
    schema = "e:C <http://www.w3.org/2000/01/rdf-schema#subClassOf> e:D . e:a a e:C ."
    data.write_text(f"@prefix e: <urn:e#> .\nPREFIX f: <urn:f#>\n{schema}")
    rules.write_text("[?x, <urn:p>, ?x] :- [?x, a, <urn:e#C>] .")
    assert [is_rules(name) for name in ("a.dlog", "a.dotr", "a.ttl", "dlog")] == [True, True, False, False]
    assert prefixes_of(str(data)) == [("e", "urn:e#"), ("f", "urn:f#")]
    assert prefixes_of(str(rules)) == []
    member = ("<urn:e#a>", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", "<urn:e#D>")
    closed = made_of([str(data)], KnowledgeOptions(base="urn:x"))
    assert member in closed
    assert closed.prefixes["e"] == "urn:e#"
    own = made_of([str(data), str(rules)], KnowledgeOptions(base="urn:x"))
    assert member not in own
    assert ("<urn:e#a>", "<urn:p>", "<urn:e#a>") in own
    assert member in made_of([str(data), str(rules)], KnowledgeOptions("rdfs", base="urn:x"))


def test_an_output_that_is_full_and_a_file_that_is_not_there() -> None:
    assert cannot_be_written(OSError(errno.ENOSPC, "full"))
    assert not cannot_be_written(OSError(errno.ENOSPC, "full", "a.txt"))
    assert not cannot_be_written(OSError(errno.ENOENT, "none"))
    assert not cannot_be_written(ValueError())


def test_only_json_lines_have_a_place_for_a_proof() -> None:
    refuse_format("jsonl")
    with pytest.raises(UsageError):
        refuse_format("turtle")
