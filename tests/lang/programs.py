"""Random .dotr and .dlog texts that are right by construction, in any layout, with comments anywhere.

A text is drawn as a list of tokens; blanks and comments between them are drawn apart from it.
"""

from __future__ import annotations

from hypothesis import strategies as st

NAMES = ["Smoke", "Temp", "Drill", "Reading", "Again"]
CONSTANTS = [
    ":a",
    "ex:b",
    "<http://example.org/c>",
    "5",
    "2.5",
    "1e3",
    "-7",
    '"text"',
    "'it''s'"[:4],
    '"x"@en-GB',
    "true",
]
CONSTANTS += ['"2026-01-01T00:00:00Z"^^xsd:dateTime', '"""long "text" """', '"a\\nb"']
PREDICATES = [":p", "ex:q", "a", "<http://example.org/r>"]
PATHS = [":p/ex:q", ":p|^ex:q", "(:p/:q)*", "!(a|^:p)", ":p+", "^(:p|:q)?"]
UNITS = ["us", "ms", "s", "sec", "min", "minutes", "h", "hours", "d", "day"]
Tokens = list[str]

prologue = ["PREFIX", ":", "<http://example.org/building#>", "prefix", "ex:", "<http://example.org/>"]
prologue += ["Prefix", "xsd:", "<http://www.w3.org/2001/XMLSchema#>"]


@st.composite
def expressions(draw: st.DrawFn, leaves: list[str], depth: int = 2) -> Tokens:
    if depth == 0 or draw(st.booleans()):
        return [draw(st.sampled_from([*leaves, *leaves, *CONSTANTS]))]
    inner = expressions(leaves, depth - 1)
    match draw(st.integers(0, 7)):
        case 0:
            return [
                "(",
                *draw(inner),
                ")",
                draw(st.sampled_from(["+", "-", "*", "/"])),
                "(",
                *draw(inner),
                ")",
            ]
        case 1:
            return [
                "(",
                *draw(inner),
                draw(st.sampled_from(["=", "!=", "<", ">=", "<=", ">"])),
                *draw(inner),
                ")",
            ]
        case 2:
            return ["(", *draw(inner), ")", draw(st.sampled_from(["&&", "||"])), "(", *draw(inner), ")"]
        case 3:
            return ["!", "(", *draw(inner), ")"]
        case 4:
            return ["-", "(", *draw(inner), ")"]
        case 5:
            return ["if", "(", *draw(inner), ",", *draw(inner), ",", *draw(inner), ")"]
        case 6:
            return [
                "(",
                *draw(inner),
                draw(st.sampled_from(["IN", "not in"])),
                "(",
                *draw(inner),
                ",",
                "1",
                ")",
                ")",
            ]
        case _:
            return ["xsd:decimal", "(", *draw(inner), ")"]


@st.composite
def queries(draw: st.DrawFn) -> Tokens:
    variables = ["?x", "?y", "$z"]
    node = st.sampled_from([*variables, ":a", "ex:b"])
    found: Tokens = []
    for _ in range(draw(st.integers(1, 3))):
        verb = st.sampled_from([*PREDICATES, *PATHS, "?p"])
        anything = st.sampled_from([*variables, *CONSTANTS, "[ :p ?x ]", "( 1 ?y )", "_:b"])
        found += [draw(node), draw(verb), draw(anything), "."]
    if draw(st.booleans()):
        condition = draw(expressions(variables))
        found += ["FILTER", "(", *condition, ")"]
    if draw(st.booleans()):
        found += ["optional", "{", draw(node), draw(st.sampled_from(PREDICATES)), "?w", "}"]
    if draw(st.booleans()):
        found += ["FILTER", "NOT", "EXISTS", "{", "?x", ":q", "?u", "}"]
    if draw(st.booleans()):
        found += ["VALUES", "?x", "{", ":a", "UNDEF", "}"]
    if draw(st.booleans()):
        found += ["{", "?x", ":p", "1", "}", "UNION", "{", "?y", ":p", "2", "}"]
    head = draw(st.sampled_from([["SELECT", "*"], ["select", "distinct", "?x", "?y"], ["SELECT", "?x"]]))
    tail = draw(
        st.sampled_from(
            [[], ["ORDER", "BY", "DESC", "(", "?x", ")", "LIMIT", "3"], ["VALUES", "?y", "{", "1", "}"]]
        )
    )
    return ["{", *head, "WHERE", "{", *found, "}", *tail, "}"]


@st.composite
def durations(draw: st.DrawFn) -> Tokens:
    if draw(st.integers(0, 5)) == 0:
        return ["?patience"]
    return [str(draw(st.sampled_from([0, 1, 5, 24, 60, 90, 1000]))), draw(st.sampled_from(UNITS))]


@st.composite
def events(draw: st.DrawFn, name: str) -> Tokens:
    match draw(st.integers(0, 4)):
        case 0:
            return [name]
        case 1:
            return [name, ":=", "Shared"]
        case 2:
            return [name, ":=", draw(st.sampled_from(["ISTREAM", "dstream"])), "Shared"]
        case 3:
            return [name, ":=", draw(st.sampled_from(["ISTREAM", "dstream"])), *draw(queries())]
        case _:
            return [name, ":=", *draw(queries())]


@st.composite
def rules(draw: st.DrawFn, number: int) -> Tokens:
    """A rule; its names need not be known, for printing looks nothing up."""
    found = [
        *draw(st.sampled_from([[], [], ["private"]])),
        "RULE",
        f"R{number}",
        "define",
        "{",
        "dotr_a",
        "a",
        ":Fire",
        ";",
        ":at",
        "?room",
        ",",
        '"x"',
        ".",
        "dotr_b",
        ":p",
    ]
    found += [draw(st.sampled_from(["dotr_a", "5", ":c", "?room"])), "}", "FROM"]
    found += draw(
        st.sampled_from([["Smoke"], ["EVERY", "5", "min", "as", "Smoke"], ["Smoke", ":=", "Shared"]])
    )
    leaves = ["Smoke.?x", "Smoke.time", "Temp.?y", "?n"]
    for name in draw(st.lists(st.sampled_from(NAMES[1:]), max_size=3, unique=True)):
        window = ["WITHIN", *draw(durations()), draw(st.sampled_from(["FROM", "BEFORE"])), "Smoke"]
        match draw(st.integers(0, 2)):
            case 0:
                k = draw(st.sampled_from([["EACH"], ["LAST"], ["first", "3"], ["LAST", "1"], ["LAST", "?k"]]))
                found += ["AND", *k, *draw(events(name)), *window]
            case 1:
                window = draw(st.sampled_from([window, ["between", "Smoke", "AND", "Temp"]]))
                found += ["AND", "NOT", *draw(events(name)), *window]
            case _:
                argument = draw(st.sampled_from([["*"], ["DISTINCT", "Temp.?y"], ["Temp.?y", "+", "1"]]))
                found += [
                    "AND",
                    "COUNT",
                    "(",
                    *argument,
                    ")",
                    "AS",
                    "?n",
                    "OVER",
                    *draw(events(name)),
                    *window,
                ]
        if draw(st.booleans()):
            found += ["ON", *draw(expressions(leaves))]
    if draw(st.booleans()):
        found += ["WHERE", *draw(expressions(leaves))]
    found += ["WITH", "?room", ":=", *draw(expressions(leaves))]
    if draw(st.booleans()):
        found += [",", "?other", ":=", *draw(expressions(leaves))]
    if draw(st.booleans()):
        found += ["CONSUMING", "Temp", ",", "Reading"]
    return found


@st.composite
def blanks(draw: st.DrawFn) -> str:
    """What stands between two tokens: mostly a blank, sometimes a line end or a comment."""
    return draw(
        st.sampled_from(
            [" ", " ", " ", " ", " ", "\n", "\n\n", "  ", " # a comment\n", "\n# a line\n\n", "\t"]
        )
    )


def laid_out(draw: st.DrawFn, tokens: Tokens) -> str:
    return "".join(token + draw(blanks()) for token in tokens)


@st.composite
def programs(draw: st.DrawFn) -> str:
    """A .dotr text that can be parsed (its names need not be known)."""
    tokens = list(prologue)
    lines = [
        ["BACKGROUND", "<b.ttl>", ",", '"my b.ttl"'],
        ["RULES", "<r.dlog>"],
        ["ENTAILMENT", "none"],
        ["PARAMETER", "QUERY", "Shared", "(", "?x", ",", "?y", ")"],
        ["PARAMETER", "?patience", ":=", "10", "min"],
        ["PARAMETER", "?limit", ":=", "ex:b"],
        ["PARAMETER", "?k"],
        ["IMPORT", "<lost.dotr>", "AS", "Lost", "WITH", "Beat", ":=", "Shared", ",", "?k", ":=", "5", "s"],
        ["IMPORT", '"a b.dotr"', "WITH", "?m", ":=", "-5"],
        ["BASE", "<http://example.org/>"],
        ["hold", "*", "for", "10", "s"],
        ["HOLD", ":p", ",", "a", "ex:C", "FOR", "?patience"],
        ["HOLD", "<http://example.org/r>", "LATEST", "FOR", "90", "min"],
        ["HOLD", "ex:q", "latest"],
        ["HOLD", ":t", ",", "a", ":D", "FROM", "ex:from", "UNTIL", "<urn:until>", "FOR", "1", "h"],
        ["HOLD", ":u", "LATEST", "until", ":end"],
    ]  # fmt: skip
    for number in range(draw(st.integers(1, 4))):
        kind = draw(st.integers(0, 2))
        if kind == 0:
            tokens += draw(st.sampled_from(lines))
        elif kind == 1:
            tokens += ["QUERY", f"Q{number}", ":="]
            operator = draw(st.sampled_from([[], ["ISTREAM"], ["Dstream"]]))
            named = bool(operator) and draw(st.booleans())
            tokens += [*operator, *(["Shared"] if named else draw(queries()))]
        else:
            tokens += draw(rules(number))
    return laid_out(draw, tokens)


@st.composite
def atoms(draw: st.DrawFn) -> Tokens:
    node = st.sampled_from(["?x", "?y", ":a", "ex:b", "5"])
    match draw(st.integers(0, 3)):
        case 0:
            return [":p", "(", draw(node), ",", draw(node), ")"]
        case 1:
            return ["ex:C", "(", draw(node), ")"]
        case 2:
            return ["[", draw(node), ",", draw(st.sampled_from(["a", "?p", ":p"])), ",", draw(node), "]"]
        case _:
            return ["<http://example.org/r>", "(", draw(node), ",", '"text"@en', ")"]


@st.composite
def datalog(draw: st.DrawFn) -> str:
    """A .dlog text that can be parsed; it may be unsafe."""
    tokens = list(prologue)
    for _ in range(draw(st.integers(0, 4))):
        tokens += draw(atoms())
        if draw(st.booleans()):
            tokens += [",", *draw(atoms())]
        for number in range(draw(st.integers(0, 4))):
            tokens.append(":-" if number == 0 else ",")
            match draw(st.integers(0, 5)):
                case 0:
                    tokens += ["NOT", *draw(atoms())]
                case 1:
                    tokens += ["FILTER", "(", *draw(expressions(["?x", "?y"])), ")"]
                case 2:
                    tokens += ["BIND", "(", *draw(expressions(["?x", "?y"])), "AS", "?z", ")"]
                case 3:
                    tokens += [
                        "AGGREGATE",
                        "(",
                        *draw(atoms()),
                        ",",
                        *draw(atoms()),
                        "ON",
                        "?x",
                        "BIND",
                        "COUNT",
                        "(",
                        "*",
                        ")",
                    ]
                    tokens += ["AS", "?n", "BIND", "SUM", "(", "DISTINCT", "?y", ")", "AS", "?m", ")"]
                case _:
                    tokens += draw(atoms())
        tokens.append(".")
    return laid_out(draw, tokens)
