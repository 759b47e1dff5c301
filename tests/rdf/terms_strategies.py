"""Random terms of every kind, well and ill typed, rich in ties; for the tests of rdf/ and expressions/."""

from __future__ import annotations

from hypothesis import strategies as st

from dotr.rdf.terms import RDF, XSD, Term, literal

INTEGERS = [
    "0",
    "1",
    "2",
    "-1",
    "7",
    "01",
    "+1",
    "-0",
    "10",
    "100",
    "60",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "-9223372036854775809",
    "+0018446744073709551615",
    "18446744073709551616",
    "-100000000000000000000",
    "1000000000000000000000000000000",
    "1000000000000000000000000000001",
    "9007199254740993",
    "4611686018427387904",
    "",
    " 1",
    "x",
    "1.0",
    "1e0",
]
DECIMALS = [
    "0.0",
    "1.0",
    "1",
    "1.50",
    ".5",
    "5.",
    "-0.0",
    "-2.5",
    "0.1",
    "0.2",
    "2.5",
    "0.000000000000000001",
    "0.000000001",
    "0.0000000005",
    "170141183460469231731.687303715884105727",
    "100000000000000000000",
    "-170141183460469231731.687303715884105728",
    "170141183460469231732",
    "+0170141183460469231732.50",
    "1000000000000000000000000000000.000000000000000001",
    "-9999999999999999999999999999999999999999.9",
    "0.0000000001",
    "0.9999999999999999999",
    "9007199254740993.0",
    "1.1234567890123456789",
    "12345678901234567.125",
    "1.10000000000000000000",
    ".",
    "1e3",
    "3.3",
    "1.1",
]
DOUBLES = [
    "0",
    "-0",
    "1",
    "1.0",
    "1e0",
    "2.5",
    "-2.5",
    "-0.3",
    "0.1",
    "1E22",
    "1e-7",
    "1.5E10",
    "INF",
    "+INF",
    "-INF",
    "NaN",
    "inf",
    "1e400",
    "1e-400",
    "4.9e-324",
    "1.7976931348623157e308",
    "9007199254740992",
    "9223372036854775808",
    "1.100000023841858",
    "x",
    "",
    ".5",
    "5.",
    "1.e2",
    "16777217",
    "1e30",
    "1e-30",
]
DATETIMES = [
    "2020-01-01T00:00:00Z",
    "2020-01-01T00:00:00",
    "2020-01-01T01:00:00+01:00",
    "2020-01-01T00:00:00.500Z",
    "2020-01-01T24:00:00Z",
    "2019-12-31T24:00:00Z",
    "2020-02-30T00:00:00Z",
    "2020-02-29T12:30:15.25-05:30",
    "2020-01-01T14:00:00+14:00",
    "2020-01-01T00:00:00-00:00",
    "-0001-03-01T00:00:00Z",
    "0000-01-01T00:00:00Z",
    "12020-01-01T00:00:00Z",
    "2020-01-01T00:00:00.123456789012345678Z",
    "2020-01-02T00:00:00",
    "2020-01-01T10:00:00",
    "x",
    "2020-01-01",
    "1969-12-31T23:59:59.999999Z",
    "0099-12-31T23:59:59Z",
]
OTHERS = {
    "date": ["2020-01-01", "2020-01-01Z", "2020-01-01+00:00", "2020-01-02-05:00", "2020-13-01", "x"],
    "time": ["00:00:00", "24:00:00", "12:30:00.50Z", "12:30:00+01:00", "x"],
    "gYear": ["2020", "2021Z", "x"],
    "gYearMonth": ["2020-01", "2020-01+00:00", "x"],
    "gMonth": ["--01", "--13"],
    "gDay": ["---01", "---32"],
    "gMonthDay": ["--01-01", "--02-30"],
    "duration": ["P1Y", "P12M", "PT60S", "P1D", "-P1Y", "P0D", "P1Y2M3DT4H5M6.70S", "P", "P1M", "P30D"],
    "dayTimeDuration": ["P1D", "PT24H", "PT0S", "-PT1H", "P1Y"],
    "yearMonthDuration": ["P1Y", "P12M", "P0M", "-P1M", "P1D"],
    "dateTimeStamp": ["2020-01-01T00:00:00Z", "2020-01-01T00:00:00"],
    "normalizedString": ["a", "b"],
    "anyURI": ["a:b"],
    "foo": ["a", "b"],
}
WORDS = [
    "",
    "a",
    "b",
    "abc",
    "ABC",
    "hello",
    "héllo",
    "straße",
    "1",
    "10",
    "9",
    "5",
    "true",
    "a b/c",
    "x\ny",
    'q"\\',
    "𝒳y",
    "-",
    "en",
    "http://a/b",
    "\x7f\x01",
    "İ",
    "1.5",
    " 1 ",
]
LANGUAGES = ["en", "EN", "fr", "en-us", "de-CH"]
INTEGER_TYPES = [
    "byte",
    "short",
    "int",
    "long",
    "unsignedByte",
    "unsignedShort",
    "unsignedInt",
    "unsignedLong",
]
INTEGER_TYPES += ["positiveInteger", "negativeInteger", "nonPositiveInteger", "nonNegativeInteger"]


def typed(names: list[str], lexicals: list[str]) -> st.SearchStrategy[Term]:
    return st.builds(
        lambda text, name: literal(text, XSD + name), st.sampled_from(lexicals), st.sampled_from(names)
    )


EDGES = [2**31, 2**53, 2**63, 2**64, 10**30, 10**310]
"""Where integers change their ways in one machine or another; they go on at both sides."""

around = st.builds(
    lambda sign, edge, off: sign * edge + off,
    st.sampled_from([-1, 1]),
    st.sampled_from(EDGES),
    st.integers(-3, 3),
)
integers = typed(["integer"], INTEGERS) | (st.integers(-(2**63), 2**63 - 1) | around).map(
    lambda v: literal(str(v), XSD + "integer")
)
small_integers = st.integers(-3, 12).map(lambda v: literal(str(v), XSD + "integer"))
decimals = typed(["decimal"], DECIMALS) | st.decimals(-1000, 1000, places=3).map(
    lambda v: literal(format(v, "f"), XSD + "decimal")
)
doubles = typed(["double"], DOUBLES) | st.floats().map(lambda v: literal(repr(v), XSD + "double"))
floats = typed(["float"], DOUBLES) | st.floats(width=32).map(lambda v: literal(repr(v), XSD + "float"))
numbers = small_integers | integers | decimals | doubles | floats | typed(INTEGER_TYPES, INTEGERS)
booleans = typed(["boolean"], ["true", "false", "1", "0", "TRUE", ""])
characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
strings = (st.sampled_from(WORDS) | st.text(characters, max_size=6)).map(literal)
language_strings = st.builds(
    lambda text, tag: literal(text, language=tag), st.sampled_from(WORDS), st.sampled_from(LANGUAGES)
)
datetimes = typed(["dateTime"], DATETIMES)
others = st.one_of([typed([name], lexicals) for name, lexicals in OTHERS.items()]) | st.sampled_from(
    ['"a"^^<http://example.org/t>', '"1"^^<http://example.org/t>', f'"<b/>"^^<{RDF}XMLLiteral>']
)
iris = st.sampled_from(["<http://a/b>", "<http://a/bc>", "<http://a/b#c>", "<urn:x>", "<http://a/é>"])
blanks = st.sampled_from(["_:a", "_:b", "_:b1"])
literals = st.one_of(numbers, booleans, strings, language_strings, datetimes, others)
terms = st.one_of(literals, literals, iris, blanks)
