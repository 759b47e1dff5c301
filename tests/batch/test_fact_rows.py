"""Facts as rows: what is written is read again, whatever it is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dotr.batch.facts import FactReader, fact_line
from tests.detect.building import at, facts, program, rule

PROGRAM = program(rule("R", at("A")), rule("S", at("B", variables="")), rule("T", at("C", variables="x")))
TERMS = st.sampled_from([None, 1, "<urn:x:a>", '"a\\tb\\n!"@en', '"!"', "_:b"])


@given(
    st.lists(st.tuples(TERMS, TERMS), max_size=4),
    st.integers(0, 3),
    st.lists(st.tuples(TERMS), max_size=4),
    st.integers(-5, 5),
)
def test_facts_are_read_as_they_were_written(
    two: list[tuple[object, object]], none: int, one: list[tuple[object]], time: int
) -> None:
    made = {"A": facts(time, *two), "B": facts(time, *[()] * none), "C": facts(time, *one)}  # type: ignore[arg-type]  # rows of terms
    made = {name: found for name, found in made.items() if found}
    lines = [fact_line("ABC".index(name), found) for name, found in made.items()]
    assert FactReader(PROGRAM).read("\n".join(lines), time) == made
