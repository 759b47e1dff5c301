"""What ENTAILMENT does to a whole run: rule sets come from the package, clashes with their time."""

from pathlib import Path

import pytest

import dotr

PROGRAM = """
PREFIX : <ex:>
BACKGROUND <{folder}/background.ttl>
ENTAILMENT {entailment}
RULE Seen
DEFINE {{ dotr_x a :Seen ; :of ?s }}
FROM Hot := {{ SELECT ?s WHERE {{ ?s a :Hot }} }}
WITH ?s := Hot.?s
"""
BACKGROUND = """
@prefix : <ex:> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:VeryHot rdfs:subClassOf :Hot . :Cold owl:disjointWith :Hot .
"""


def engine(folder: Path, entailment: str, more: str = "") -> dotr.Engine:
    (folder / "background.ttl").write_text(BACKGROUND + more, encoding="utf-8")
    return dotr.Engine.from_text(PROGRAM.format(folder=folder, entailment=entailment), verify=True)


@pytest.mark.parametrize(("entailment", "found"), [("none", 0), ("rdfs", 1), ("owl2rl", 1)])
def test_rule_sets_of_the_package_are_at_work(tmp_path: Path, entailment: str, found: int) -> None:
    run = engine(tmp_path, entailment)
    run.push("@prefix : <ex:> . :oven a :VeryHot .", at=1)
    assert len(run.finish()) == found


def test_a_clash_in_the_stream_names_rule_and_time_and_leaves_what_was_emitted(tmp_path: Path) -> None:
    run = engine(tmp_path, "owl2rl")
    run.push("@prefix : <ex:> . :oven a :Hot .", at=1)
    assert len(run.push("@prefix : <ex:> . :oven a :VeryHot, :Cold .", at=2)) == 1
    with pytest.raises(dotr.DataError, match=r"D3101(?s:.*)cax-dw(?s:.*)@ 2"):
        run.finish()


def test_a_clash_in_the_background_is_reported_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(dotr.DataError, match="cax-dw"):
        engine(tmp_path, "owl2rl", ":fridge a :Cold, :Hot .")


def test_a_schema_triple_in_the_stream_is_a_data_error(tmp_path: Path) -> None:
    run = engine(tmp_path, "rdfs")
    run.push("@prefix : <ex:> . :Cold <http://www.w3.org/2000/01/rdf-schema#subClassOf> :Hot .", at=1)
    with pytest.raises(dotr.DataError, match=r"D2601(.|\n)*--> @ \d"):
        run.finish()
