"""From paths to syntax: where a path leads, what is read once, which parameter has which value."""

from __future__ import annotations

import pytest

from dotr.errors import Diagnostics
from dotr.lang.loading import Loader, join
from dotr.program import Entailment

QUERY = "QUERY {} := {{ SELECT ?x WHERE {{ ?x a <urn:C> }} }}\n"
LIBRARY = "PARAMETER QUERY Beat(?x)\nPARAMETER ?patience := 5 min\nPARAMETER ?room\n" + QUERY.format("Own")


def load(files: dict[str, str], *paths: str, **given: str) -> tuple[Loader, list[str]]:
    """What a loader has read of texts, and the codes of what it found."""
    found = Diagnostics()

    def read(path: str) -> str:
        if path not in files:
            raise FileNotFoundError(2, "no such file")
        return files[path]

    loader = Loader(read, found, parameters=given)
    loader.paths(paths or ["a.dotr"])
    loader.check_parameters()
    return loader, [one.code for one in found.found]


@pytest.mark.parametrize(
    ("file", "path", "joined"),
    [
        ("rules/a.dotr", "b.ttl", "rules/b.ttl"),
        ("rules/a.dotr", "../b.ttl", "b.ttl"),
        ("rules\\a.dotr", "b.ttl", "rules/b.ttl"),
        ("a.dotr", "/b.ttl", "/b.ttl"),
        ("rules/a.dotr", "C:/b.ttl", "C:/b.ttl"),
        ("rules/a.dotr", "dotr:patterns/lost.dotr", "dotr:patterns/lost.dotr"),
        ("dotr:patterns/lost.dotr", "../rules/rdfs.dlog", "dotr:rules/rdfs.dlog"),
    ],
)
def test_a_path_is_relative_to_the_file_that_names_it(file: str, path: str, joined: str) -> None:
    assert join(file, path) == joined


def test_a_file_that_is_named_twice_is_read_once() -> None:
    files = {
        "a.dotr": "RULES <r.dlog>, <r.dlog>\nBACKGROUND <b.ttl>, <./b.ttl>\n",
        "r.dlog": "[?x, a, <urn:C>] :- [?x, a, <urn:D>] .",
    }
    loader, codes = load(files, "a.dotr", "r.dlog", "a.dotr")
    assert codes == []
    assert len(loader.loaded.datalog) == 1
    assert list(loader.loaded.background) == ["b.ttl"]


def test_a_library_is_read_for_every_import_with_the_values_of_that_import() -> None:
    files = {
        "a.dotr": QUERY.format("Tick")
        + "IMPORT <l.dotr> AS One WITH Beat := Tick, ?room := 1\n"
        + "IMPORT <l.dotr> AS Two WITH Beat := Tick, ?room := 2\n",
        "l.dotr": LIBRARY,
    }
    loader, codes = load(files)
    assert codes == []
    names = [unit.prefix + one.name.text for unit, one in loader.loaded.definitions]
    assert names == ["Tick", "One_Own", "Two_Own"]
    assert loader.loaded.open_parameters == []


@pytest.mark.parametrize(
    ("behind", "code"),
    [
        ("Beat := Tick", "D1111"),
        ("?room := 1", "D1111"),
        ("Beat := Tick, ?room := 1, ?rooms := 2", "D1112"),
        ("Beat := Tick, ?room := 1, ?room := 2", "D1116"),
    ],
)
def test_an_import_gives_every_parameter_once_and_no_other(behind: str, code: str) -> None:
    files = {"a.dotr": QUERY.format("Tick") + f"IMPORT <l.dotr> AS L WITH {behind}\n", "l.dotr": LIBRARY}
    loader, codes = load(files)
    assert codes == [code]
    assert loader.loaded.imports == []


def test_a_library_that_is_looked_at_alone_has_open_parameters() -> None:
    loader, codes = load({"a.dotr": LIBRARY})
    assert codes == []
    assert [one.name.text for one in loader.loaded.open_parameters] == ["Beat", "room"]
    loader, codes = load({"a.dotr": LIBRARY}, room="<urn:r>")
    assert [one.name.text for one in loader.loaded.open_parameters] == ["Beat"]
    assert load({"a.dotr": LIBRARY}, rooms="1")[1] == ["D1118"]
    assert load({"a.dotr": LIBRARY}, room="1 2")[1] == ["D1118"]
    assert load({"a.dotr": "PARAMETER ?x\nPARAMETER ?x\n"})[1] == ["D1116"]


def test_files_that_import_each_other_are_a_circle_and_a_file_twice_is_none() -> None:
    circle = {"a.dotr": "IMPORT <b.dotr> AS B\n", "b.dotr": "IMPORT <a.dotr> AS A\n"}
    loader, codes = load(circle)
    assert codes == ["D1110"]
    assert [unit.path for unit in loader.loaded.units] == ["a.dotr", "b.dotr"]
    twice = {"a.dotr": "IMPORT <b.dotr> AS B\nIMPORT <b.dotr> AS C\n", "b.dotr": QUERY.format("Q")}
    assert load(twice)[1] == []


def test_imports_nest_up_to_a_limit() -> None:
    files = {f"{n}.dotr": f"IMPORT <{n + 1}.dotr> AS L\n" for n in range(40)}
    loader, codes = load(files, "0.dotr")
    assert codes == ["D1005"]
    assert len(loader.loaded.units) == 33


def test_a_mistake_in_a_library_that_is_imported_twice_is_reported_once() -> None:
    files = {"a.dotr": "IMPORT <b.dotr> AS B\nIMPORT <b.dotr> AS C\n", "b.dotr": "RULE R\n"}
    assert load(files)[1] == load({"a.dotr": "IMPORT <b.dotr> AS B\n", "b.dotr": "RULE R\n"})[1] != []


def test_one_entailment_however_often_it_is_stated() -> None:
    loader, codes = load({"a.dotr": "ENTAILMENT none\nENTAILMENT None\n"})
    assert (loader.loaded.entailment, codes) == (Entailment.NONE, [])
    assert load({"a.dotr": "ENTAILMENT none\nENTAILMENT rdfs\n"})[1] == ["D1015"]
    assert load({"a.dotr": "ENTAILMENT owl\n"})[1] == ["D1015"]


def test_a_file_stands_behind_the_keyword_of_its_ending() -> None:
    assert load({"a.dotr": "RULES <b.ttl>\n"})[1] == ["D1016"]
    assert load({"a.dotr": "LARS <b.DLOG>\n"})[1] == ["D1016"]
    assert load({"a.dotr": "RULES <b.txt>\n", "b.txt": ""})[1] == []


def test_what_cannot_be_read_is_said_and_the_rest_is_read() -> None:
    loader, codes = load({"b.dotr": QUERY.format("Q")}, "a.dotr", "b.dotr")
    assert codes == ["D1000"]
    assert [one.name.text for _, one in loader.loaded.definitions] == ["Q"]


def test_rules_that_were_taken_out_are_passed_over() -> None:
    found = Diagnostics()
    texts = {"a.dotr": QUERY.format("P") + "IMPORT <b.dotr> AS B\n", "b.dotr": QUERY.format("Q")}
    loader = Loader(texts.__getitem__, found, removed={("a.dotr", "B_Q"), ("b.dotr", "P")})
    loader.paths(["a.dotr"])
    assert [one.name.text for _, one in loader.loaded.definitions] == ["P"]


def test_prefixes_of_a_text_with_errors_are_not_called_unused() -> None:
    for text, codes in (("PREFIX : <urn:>\n", ["D1102"]), ("PREFIX : <urn:>\nRULE\n", [])):
        found = Diagnostics()
        loader = Loader({"a.dotr": text}.__getitem__, found)
        loader.paths(["a.dotr"])
        before = len(found.found)
        loader.unused_prefixes()
        assert [one.code for one in found.found[before:]] == codes


def test_the_prefix_of_an_imported_library_is_not_called_unused() -> None:
    library = "PREFIX p: <urn:lib:>\nQUERY Q := { SELECT ?x WHERE { ?x a p:A } }\n"
    text = "PREFIX p: <urn:lib:>\nPREFIX q: <urn:other:>\n"
    for name, warned in (("dotr:lib.dotr", ["`q:`"]), ("lib.dotr", ["`p:`", "`q:`"])):
        found = Diagnostics()
        texts = {"a.dotr": f"{text}IMPORT <{name}> AS L\n", name: library}
        loader = Loader(texts.__getitem__, found)
        loader.paths(["a.dotr"])
        loader.unused_prefixes()
        assert [one.message.split()[2] for one in found.found if one.code == "D1102"] == warned
