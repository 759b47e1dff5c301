"""Random .lars files as text: right by grammar, names and variables as they come."""

from __future__ import annotations

import re

from hypothesis import strategies as st

_NAMES = st.sampled_from(["temp", "seen", "alarm", "Hot", "step_1"])
_VARIABLES = st.sampled_from(["?a", "?b", "?room", "?_1"])
_TERMS = st.one_of(_VARIABLES, st.sampled_from([":r1", "<urn:x>", "3", "-2.5", '"text"', '"mot"@fr', "true"]))
_DURATIONS = st.sampled_from(["0 s", "1 s", "90 sec", "1.5 min", "2 h", "1 d", "250 ms", "7 us"])
_FILTERS = st.sampled_from(
    ["FILTER(?a > 3 && ! BOUND(?b))", "FILTER(?a IN (1, 2))", "BIND(?a * 2 + 1 AS ?b)", "bind(STR(?a) AS ?b)"]
)
_TOTALS = st.sampled_from(["COUNT(*)", "COUNT(DISTINCT ?a)", "SUM(?a + 1)", "avg(?a)", "MIN(?a)", "MAX(?b)"])
_COMMENTS = st.sampled_from(["", "", "  # why\n", "\n\n# a line of its own\n"])


@st.composite
def _atoms(draw: st.DrawFn) -> str:
    return f"{draw(_NAMES)}({', '.join(draw(st.lists(_TERMS, max_size=3)))})"


@st.composite
def _windows(draw: st.DrawFn) -> str:
    if draw(st.booleans()):
        return f"WITHIN {draw(_DURATIONS)}"
    of = draw(st.lists(_NAMES, max_size=2))
    return f"WITHIN {draw(st.integers(1, 9))} facts" + (f" OF ({', '.join(of)})" if of else "")


@st.composite
def _literals(draw: st.DrawFn) -> str:
    atom, window = draw(_atoms()), draw(_windows())
    total = draw(_TOTALS)
    groups, key = ["", " PER ?a", " PER (?a)", " per (?a, ?room)"], ""
    if "facts" in window:  # brackets are the window's own key there, of variables of the atom
        groups = ["", " PER ?a", " per ?a, ?room"]
        own = draw(st.lists(st.sampled_from(sorted(set(re.findall(r"\?\w+", atom))) or [""]), max_size=2))
        if any(own) and "OF" not in window:
            key = f" PER ({', '.join(own)})"
    group = key + draw(st.sampled_from(groups))
    positive = draw(
        st.sampled_from(
            [
                atom,
                f"{atom} {window}{key}",
                f"{atom} SOMETIME {window}{key}",
                f"sometime {atom} {window}",
                f"{atom} ALWAYS {window}",
                f"ALWAYS {atom} {window}",
                f"{atom} AT ?t {window}{key}",
                f"{atom} AT LEAST 3 {window}{key}",
            ]
        )
    )
    return draw(
        st.one_of(
            st.just(positive),
            st.just(f"NOT {positive}"),
            _FILTERS,
            st.just(f"{total} AS ?n OVER {atom} {window}{group}"),
        )
    )


@st.composite
def lars_files(draw: st.DrawFn) -> str:
    """A prologue and some rules, with comments and blanks anywhere."""
    lines = ["PREFIX : <http://example.org/>"]
    if draw(st.booleans()):
        lines.append(f"STEP {draw(_DURATIONS)}")
    for _ in range(draw(st.integers(1, 5))):
        far = draw(_DURATIONS)
        at = draw(st.sampled_from(["", " AT ?t", f" AT ?t + {far}", f" at ?t - {far}"]))
        body = draw(st.lists(_literals(), max_size=4))
        arrow = " :- " if body else " "
        text = f",{draw(_COMMENTS)} ".join(body)
        lines.append(f"{draw(_atoms())}{at}{arrow}{text} .{draw(_COMMENTS)}")
    return "\n".join(lines) + "\n"
