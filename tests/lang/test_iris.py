"""References are resolved as in RFC 3986, sec. 5.4, also with schemes that urllib leaves alone."""

from __future__ import annotations

import pytest

from dotr.lang import check_program
from dotr.lang.grammar.cursor import is_absolute, resolve

BASE = "http://a/b/c/d;p?q"


@pytest.mark.parametrize(
    ("reference", "resolved"),
    [
        ("g:h", "g:h"), ("g", "http://a/b/c/g"), ("./g", "http://a/b/c/g"), ("g/", "http://a/b/c/g/"),
        ("/g", "http://a/g"), ("//g", "http://g"), ("?y", "http://a/b/c/d;p?y"), ("g?y", "http://a/b/c/g?y"),
        ("#s", "http://a/b/c/d;p?q#s"), ("g#s", "http://a/b/c/g#s"), ("g?y#s", "http://a/b/c/g?y#s"),
        (";x", "http://a/b/c/;x"), ("g;x", "http://a/b/c/g;x"), ("", "http://a/b/c/d;p?q"),
        (".", "http://a/b/c/"), ("./", "http://a/b/c/"), ("..", "http://a/b/"), ("../", "http://a/b/"),
        ("../g", "http://a/b/g"), ("../..", "http://a/"), ("../../g", "http://a/g"),
        ("../../../g", "http://a/g"), ("/./g", "http://a/g"), ("/../g", "http://a/g"),
        ("g.", "http://a/b/c/g."), ("..g", "http://a/b/c/..g"), ("./../g", "http://a/b/g"),
        ("g/./h", "http://a/b/c/g/h"), ("g/../h", "http://a/b/c/h"), ("http:g", "http:g"),
    ],
)  # fmt: skip
def test_the_examples_of_the_standard(reference: str, resolved: str) -> None:
    assert resolve(BASE, reference) == resolved


def test_a_base_without_an_authority_or_a_path() -> None:
    assert resolve("urn:x:y", "z") == "urn:z"
    assert resolve("http://a", "g") == "http://a/g"
    assert resolve("http://a/b?q#f", "#g") == "http://a/b?q#g"


@pytest.mark.parametrize("reference", ["1:x", ":x", "a_b:x"])
def test_a_colon_in_the_first_segment_is_a_scheme_and_a_wrong_one_is_refused(reference: str) -> None:
    """Such a reference lost what stood before its colon."""
    assert is_absolute(reference)
    text = f"BASE <http://a/b>\nQUERY Q := {{ SELECT ?x {{ ?x a <{reference}> }} }}"
    _, found = check_program(["a.dotr"], lambda _: text)
    assert [d.message for d in found if d.code == "D1008"] == [f"`<{reference}>` is not a valid IRI"]


def test_a_colon_behind_a_slash_is_part_of_a_path() -> None:
    assert not is_absolute("./1:x")
    assert resolve("http://a/b", "./1:x") == "http://a/1:x"
