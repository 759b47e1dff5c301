"""Times that are no instant as they stand: too fine, of a repeated or a skipped hour, intervals, strings."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from math import floor
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dotr
from dotr.errors import DataError, UsageError
from dotr.io.errors import ErrorPolicy
from dotr.io.graphs import Bookmark, SourceOptions
from dotr.io.sources import Sources
from dotr.io.tables.cells import CellError, DateFormat
from dotr.io.tables.compiled import compile_mapping
from dotr.io.tables.mapping import parse_mapping
from dotr.io.tables.rows import passes_of
from dotr.io.time import TimeError, TimestampExtractor, parse_datetime, to_instant, zone_of
from dotr.io.time_reading import EXACT, Notes, TimeReading, time_reading

EPOCH = datetime(1970, 1, 1)
ZONES = ("Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "America/New_York", "Africa/Casablanca")
GENERATED = "http://www.w3.org/ns/prov#generatedAtTime"
RESULT_TIME = "http://www.w3.org/ns/sosa/resultTime"
DATETIME = "http://www.w3.org/2001/XMLSchema#dateTime"


def read(path: Path, fail: bool = True, **options: Any) -> Sources:
    reading = TimeReading(**{k: options.pop(k) for k in list(options) if k in TimeReading.__match_args__})
    return Sources([str(path)], SourceOptions(reading=reading, **options), ErrorPolicy(fail=fail))


def times(path: Path, **options: Any) -> list[int]:
    return [graph.time for graph in read(path, **options)]


def code(error: Any) -> str:
    return str(error.value.code if isinstance(error.value, TimeError) else error.value.diagnostics[0].code)


# ---------------------------------------------- finer than a microsecond


@given(
    st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)),
    st.text("0123456789", min_size=1, max_size=12),
    st.sampled_from(["Z", "+00:00", "+05:30", "-14:00"]),
)
def test_what_is_finer_is_cut_towards_the_past(second: datetime, digits: str, zone: str) -> None:
    text = f"{second.replace(microsecond=0).isoformat()}.{digits}{zone}"
    whole = parse_datetime(f"{second.replace(microsecond=0).isoformat()}{zone}")
    exact = whole + Decimal(f"0.{digits}") * 1_000_000
    notes: Notes = set()
    assert parse_datetime(text, None, EXACT, notes) == floor(exact)
    assert ("cut" in notes) is (floor(exact) != exact)
    if notes:
        with pytest.raises(TimeError, match="finer than a microsecond"):
            parse_datetime(text, None, TimeReading(finer="refuse"))
    format_ = DateFormat("%Y-%m-%d %H:%M:%S.%f", UTC)
    assert format_.micros(text.replace("T", " ")[: -len(zone)]) == parse_datetime(f"{text[: -len(zone)]}Z")


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("1969-12-31T23:59:59.9999999Z", -1),
        ("1969-12-31T23:59:59.000000999Z", -1_000_000),
        ("1970-01-01T00:00:00.000000999Z", 0),
        ("2025-11-04T00:00:01.1234567Z", 1_762_214_401_123_456),
        ("1970-01-01T23:59:59.999999999Z", 86_399_999_999),
    ],
)
def test_no_cut_time_is_of_a_later_second_or_day(text: str, micros: int) -> None:
    assert parse_datetime(text) == micros


LINES = """{"time":"2025-11-04T00:00:00.1234560Z","graph":"<urn:a> a <urn:E> ."}
{"time":"2025-11-04T00:00:01.1234567Z","graph":"<urn:b> a <urn:E> ."}
{"time":"2025-11-04T00:00:02.123456789+00:00","graph":"<urn:c> a <urn:E> ."}
"""
FINE = f'"2025-11-04T00:00:01.123456789Z"^^<{DATETIME}>'
CUT = 1_762_214_401_123_456


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.jsonl", '{"time":"2025-11-04T00:00:01.123456789Z","graph":""}'),
        ("a.jsonl", json.dumps({"graph": f"<urn:o> <http://www.w3.org/ns/sosa/resultTime> {FINE} ."})),
        ("a.ttl", f"<urn:o> <http://www.w3.org/ns/sosa/resultTime> {FINE} ."),
        ("a.nt", f"<urn:o> <http://www.w3.org/ns/sosa/resultTime> {FINE} .\n"),
        ("a.ttl", f"<> <http://www.w3.org/ns/prov#generatedAtTime> {FINE} ."),
        ("a.trig", f"<urn:g> <{GENERATED}> {FINE} . <urn:g> {{ <urn:a> a <urn:E> }}"),
        ("a.nq", f"<urn:g> <{GENERATED}> {FINE} .\n<urn:a> <urn:b> <urn:c> <urn:g> .\n"),
        ("a.rdfp", 'H time "2025-11-04T00:00:01.123456789Z" .\nTX .\nA <urn:a> <urn:b> <urn:c> .\nTC .\n'),
        ("2025-11-04T00-00-01.123456789Z.ttl", "<urn:a> <urn:b> <urn:c> ."),
        (
            "a.jsonld",
            json.dumps(
                {
                    "@id": "urn:o",
                    "http://www.w3.org/ns/sosa/resultTime": {
                        "@value": "2025-11-04T00:00:01.123456789Z",
                        "@type": DATETIME,
                    },
                }
            ),
        ),
        ("log.ttl", f'VERSION "1.2-messages"\nMESSAGE\n<urn:o> <{RESULT_TIME}> {FINE} .\n'),
    ],
)
def test_every_format_takes_counts_and_names_them(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    sources = read(file)
    assert [graph.time for graph in sources] == [CUT]
    assert sources.extractor.beside == {"cut": 1}
    assert sources.extractor.first["cut"].startswith(str(file))
    refused = read(file, fail=False, finer="refuse")
    assert list(refused) == []
    assert [refused.refusals.count, code_of(refused)] == [1, "D2105"]


def code_of(sources: Sources) -> str:
    assert sources.refusals.first is not None
    return sources.refusals.first.diagnostics[0].code


def test_a_log_of_seven_and_nine_digits_loses_nothing(tmp_path: Path) -> None:
    file = tmp_path / "net.jsonl"
    file.write_text(LINES)
    sources = read(file)
    assert [graph.time % 1_000_000 for graph in sources] == [123_456] * 3
    assert sources.extractor.beside == {"cut": 2}
    assert sources.extractor.first == {"cut": f"{file}:2"}


ROWS = {
    'ts|datetime("iso")': ["2025-11-04T00:00:01.1234567Z", "2025-11-04 00:00:02.123456789+00:00"],
    'ts|datetime("%F %T.%f", "UTC")': ["2025-11-04 00:00:01.1234567", "2025-11-04 00:00:02.123456789"],
    "ts|epoch(ns)": ["1762214401123456700", "1762214402123456789"],
    "ts|epoch(us)": ["1762214401123456.7", "1762214402123456.789"],
    "ts|epoch(s)": ["1762214401.1234567", "1762214402.123456789"],
    "ts": ["2025-11-04T00:00:01.1234567Z", "2025-11-04T00:00:02.123456789+00:00"],
}


@pytest.mark.parametrize("time", ROWS)
@pytest.mark.parametrize("also", [True, False])
def test_rows_of_tables_are_cut_and_counted_once_each(tmp_path: Path, time: str, also: bool) -> None:
    file = tmp_path / "t.csv"
    file.write_text("ts,id\n" + "".join(f"{ts},{n}\n" for n, ts in enumerate(ROWS[time])))
    said = f"; <urn:at> {{{time}}}" if also else ""
    mapping = parse_mapping(f"# time: {time}\n<urn:x{{id}}> a <urn:E> {said} .", "t.map")
    sources = read(file, mappings=(mapping,))
    graphs = list(sources)
    assert [graph.time for graph in graphs] == [CUT, CUT + 1_000_000]
    assert sources.extractor.beside == {"cut": 2}
    assert sources.extractor.first == {"cut": f"{file}:2"}
    if also and "|" in time:
        assert graphs[0].triples[1][2] == f'"2025-11-04T00:00:01.123456Z"^^<{DATETIME}>'
    refused = read(file, fail=False, mappings=(mapping,), finer="refuse")
    assert (list(refused), refused.refusals.count, code_of(refused)) == ([], 2, "D2105")


@given(st.integers(-(10**18), 10**18))
def test_nanoseconds_of_an_epoch_are_rounded_down(nanoseconds: int) -> None:
    mapping = parse_mapping("# time: ts|epoch(ns)\n<urn:x> a <urn:E> .", "t.map")
    compiled = compile_mapping(mapping, ["ts"], 1, "", "t")
    assert compiled.instants([str(nanoseconds)]) == [(nanoseconds // 1000, False)]
    assert compiled.instants([str(nanoseconds)] * 3) == [(nanoseconds // 1000, False)] * 3


@pytest.mark.parametrize("text", ["1e999999999", "-1e999999", "NaN", "Infinity", "1_0", "x", "1" * 60])
def test_what_is_no_epoch_in_nanoseconds_is_refused(text: str) -> None:
    mapping = parse_mapping("# time: ts|epoch(ns)\n<urn:x> a <urn:E> .", "t.map")
    (found,) = compile_mapping(mapping, ["ts"], 1, "", "t").instants([text])
    assert isinstance(found, CellError)
    assert found.code == "D2404"


NANOSECONDS = [-1, -1000, -1001, 1999, 1_762_214_401_123_456_789]
MICROS = [-1, -1, -2, 1, CUT]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_nanoseconds_of_parquet_are_rounded_down(tmp_path: Path, zone: str) -> None:
    stamps = pa.array(NANOSECONDS, pa.timestamp("ns", tz=zone))
    graphs = pa.array(["<urn:a> <urn:b> <urn:c> ."] * len(stamps))
    pq.write_table(pa.table({"time": stamps, "graph": graphs}), tmp_path / "log.parquet")
    pq.write_table(pa.table({"ts": stamps}), tmp_path / "table.parquet")
    sources = read(tmp_path / "log.parquet")
    assert [graph.time for graph in sources] == MICROS
    assert sources.extractor.beside == {"cut": 4}
    mapping = parse_mapping("# time: ts\n<urn:x> a <urn:E> .", "t.map")
    table = read(tmp_path / "table.parquet", mappings=(mapping,))
    assert [graph.time for graph in table] == MICROS
    assert table.extractor.beside == {"cut": 4}
    for file in ("log.parquet", "table.parquet"):
        refused = read(
            tmp_path / file, fail=False, mappings=(mapping,) if "table" in file else (), finer="refuse"
        )
        list(refused)
        assert code_of(refused) == "D2105"


RULES = """PREFIX : <urn:>
RULE S DEFINE { dotr_e a :S ; :x ?x } FROM Q := { SELECT ?x WHERE { ?x a :E } } WITH ?x := Q.?x
"""


def test_python_takes_them_too(tmp_path: Path) -> None:
    (tmp_path / "net.jsonl").write_text(LINES)
    engine = dotr.Engine.from_text(RULES)
    assert [event.time.microsecond for event in engine.feed(tmp_path / "net.jsonl")] == [123_456] * 3
    assert engine.times_changed == {"cut": 2}
    pushed = dotr.Engine.from_text(RULES)
    pushed.push("<urn:a> a <urn:E> .", at="2025-11-04T00:00:01.123456789Z")
    pushed.push("<urn:b> a <urn:E> .", at=pd.Timestamp("2025-11-04T00:00:02.123456789Z"))
    assert [event.time.microsecond for event in pushed.finish()] == [123_456]
    assert pushed.times_changed == {"cut": 2}
    strict = dotr.Engine.from_text(RULES, sub_microsecond="refuse")
    for at in ("2025-11-04T00:00:01.123456789Z", pd.Timestamp("2025-11-04T00:00:02.123456789Z")):
        with pytest.raises(DataError, match="D2105"):
            strict.push("<urn:a> a <urn:E> .", at=at)
    with pytest.raises(DataError, match="D2105"):
        list(strict.feed(tmp_path / "net.jsonl"))
    with pytest.raises(UsageError, match="D4187"):
        dotr.Engine.from_text(RULES, sub_microsecond="round")


# ---------------------------------------------- hours that come twice, or never


def naive(local: int) -> datetime:
    return EPOCH + timedelta(microseconds=local)


@given(st.datetimes(datetime(1975, 1, 1), datetime(2037, 1, 1)), st.sampled_from(ZONES))
def test_choices_are_those_of_pandas(shown: datetime, zone: str) -> None:
    local = (shown.replace(microsecond=0) - EPOCH) // timedelta(microseconds=1)
    stamp = pd.Timestamp(naive(local))
    for word, first in (("earlier", True), ("later", False)):
        expected = stamp.tz_localize(zone, ambiguous=first, nonexistent="shift_forward")
        reading = TimeReading(ambiguous=word, nonexistent="forward")
        assert to_instant(local, zone_of(zone), "x", reading) == expected.value // 1000


@pytest.mark.parametrize(
    ("zone", "text", "earlier", "later"),
    [
        ("Europe/Berlin", "2026-10-25T02:30:00", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"),
        ("America/New_York", "2026-11-01T01:00:00", "2026-11-01T05:00:00Z", "2026-11-01T06:00:00Z"),
        ("Australia/Lord_Howe", "2026-04-05T01:45:00", "2026-04-04T14:45:00Z", "2026-04-04T15:15:00Z"),
    ],
)
def test_the_two_passes_of_an_hour(zone: str, text: str, earlier: str, later: str) -> None:
    for word, expected in (("earlier", earlier), ("later", later)):
        notes: Notes = set()
        found = parse_datetime(text, zone_of(zone), TimeReading(ambiguous=word), notes)
        assert (found, notes) == (parse_datetime(expected), {word})
    with pytest.raises(TimeError, match="came twice") as error:
        parse_datetime(text, zone_of(zone))
    assert "--ambiguous-time" in error.value.hint


@pytest.mark.parametrize("text", ["2026-03-29T02:00:00", "2026-03-29T02:30:00.5", "2026-03-29T02:59:59"])
def test_a_skipped_time_is_the_instant_of_the_change(text: str) -> None:
    notes: Notes = set()
    zone = zone_of("Europe/Berlin")
    found = parse_datetime(text, zone, TimeReading(nonexistent="forward"), notes)
    assert (found, notes) == (parse_datetime("2026-03-29T01:00:00Z"), {"forward"})
    with pytest.raises(TimeError, match="never came") as error:
        parse_datetime(text, zone)
    assert "--nonexistent-time forward" in error.value.hint


def inferred(shown: list[str], zone: str) -> list[int] | None:
    """What pandas infers; None where it does not."""
    try:
        stamps = pd.DatetimeIndex(shown).tz_localize(zone, ambiguous="infer")
    except Exception as error:  # of pytz, or of pandas
        if type(error).__name__ != "AmbiguousTimeError" and "dst switches" not in str(error):
            raise
        return None
    return [stamp.value // 1000 for stamp in stamps]


STEPS = st.lists(st.integers(0, 5), min_size=1, max_size=30)


@given(STEPS, st.integers(0, 20), st.sampled_from([5, 10, 15, 20, 30, 60]))
def test_passes_are_those_that_pandas_infers(steps: list[int], start: int, minutes: int) -> None:
    """Instants in order, shown as a clock on a wall in Berlin does."""
    instant = pd.Timestamp("2026-10-24T22:00:00Z") + pd.Timedelta(minutes=start * minutes)
    shown = []
    for step in steps:
        instant += pd.Timedelta(minutes=step * minutes)
        shown.append(instant.tz_convert("Europe/Berlin").tz_localize(None).isoformat())
    expected = inferred(shown, "Europe/Berlin")
    repeated = [t for t in shown if "2026-10-25T02:00:00" <= t < "2026-10-25T03:00:00"]
    locals_ = [(datetime.fromisoformat(t) - EPOCH) // timedelta(microseconds=1) for t in repeated]
    words = passes_of(locals_)
    if expected is not None:
        zone, given_ = zone_of("Europe/Berlin"), iter(words)
        found = []
        for text in shown:
            word = next(given_) if text in repeated else "refuse"
            found.append(parse_datetime(text, zone, TimeReading(ambiguous=word)))
        assert found == expected
    elif repeated:  # beside pandas' answers only those where rows share their times, and once go back
        back = sum(b < a for a, b in pairwise(locals_))
        assert (set(words) == {"undecided"}) is (back != 1)


def shown_rows(
    count: int = 240, minutes: int = 1, start: str = "2026-10-24T23:00:00Z"
) -> tuple[list[str], list[int]]:
    instants = pd.date_range(start, periods=count, freq=f"{minutes}min")
    shown = [t.isoformat() for t in instants.tz_convert("Europe/Berlin").tz_localize(None)]
    return shown, [t.value // 1000 for t in instants]


TEMPLATE = '# time: ts|datetime("iso")\n<urn:x{id}> a <urn:E> ; <urn:at> {ts|datetime("iso")} .'


ROW_OF = {
    "csv": "{0},{1}\n",
    "jsonl": '{{"time": "{1}", "graph": "<urn:x{0}> a <urn:E> ."}}\n',
    "nq": f'<urn:g{{0}}> <{GENERATED}> "{{1}}"^^<{DATETIME}> .\n<urn:x{{0}}> <urn:a> <urn:E> <urn:g{{0}}>.\n',
    "rdfp": 'H time "{1}" .\nTX .\nA <urn:x{0}> <urn:a> <urn:E> .\nTC .\n',
    "ttl": f'\nMESSAGE\n<urn:x{{0}}> <{RESULT_TIME}> "{{1}}"^^<{DATETIME}> .\n',
}
HEADS = {"csv": "id,ts\n", "ttl": 'VERSION "1.2-messages"\n'}


def written(folder: Path, form: str, shown: list[str]) -> tuple[Path, dict[str, Any]]:
    """A file of graphs at these times, and the options that it is read with."""
    file = folder / f"a.{form}"
    if form == "parquet":
        columns = {"id": list(range(len(shown))), "ts": pa.array(shown, pa.string())}
        pq.write_table(pa.table(columns), file)
    else:
        rows = (ROW_OF[form].format(number, text) for number, text in enumerate(shown))
        file.write_text(HEADS.get(form, "") + "".join(rows))
    mappings = (parse_mapping(TEMPLATE, "t.map"),) if form in ("csv", "parquet") else ()
    return file, {"mappings": mappings, "zone": "Europe/Berlin", "ambiguous": "infer"}


FORMS = ("csv", "parquet", "jsonl", "nq", "rdfp", "ttl")


@pytest.mark.parametrize("form", FORMS)
def test_the_order_of_rows_decides_and_nothing_is_refused(tmp_path: Path, form: str) -> None:
    shown, expected = shown_rows()
    file, options = written(tmp_path, form, shown)
    sources = read(file, **options)
    graphs = list(sources)
    assert [graph.time for graph in graphs] == expected
    assert sources.extractor.beside == {"earlier": 60, "later": 60}
    if form in ("csv", "parquet"):  # the time in the graph is that of the graph
        assert [graph.triples[1][2][1:20] for graph in graphs] == [naive(t).isoformat() for t in expected]


@pytest.mark.parametrize("form", FORMS)
def test_where_the_order_says_nothing_rows_are_refused_with_a_right_hint(tmp_path: Path, form: str) -> None:
    shown, expected = shown_rows()
    file, options = written(tmp_path, form, [*shown[:60], *shown[120:]])  # one pass is missing
    sources = read(file, fail=False, **options)
    assert [graph.time for graph in sources] == [*expected[:60], *expected[180:]]
    assert sources.refusals.count == 60
    first = sources.refusals.first
    assert first is not None
    assert first.diagnostics[0].code == "D2108"
    assert "the order of the rows does not show" in first.diagnostics[0].hint
    assert "infer" not in first.diagnostics[0].hint


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("step", [7, 13])
def test_reading_goes_on_anywhere_in_the_hour(tmp_path: Path, form: str, step: int) -> None:
    shown, expected = shown_rows(60, 5, "2026-10-24T23:40:00Z")
    file, options = written(tmp_path, form, shown)
    graphs = [item for item in read(file, **options).items() if hasattr(item, "part")]
    for number in range(0, len(graphs), step):
        at = graphs[number]
        again = read(file, **options)
        again.bookmarks = {str(file): Bookmark(at.how, at.end, at.carried)}
        assert [graph.time for graph in again] == expected[number + 1 :]


def test_columns_are_decided_each_by_its_own_order(tmp_path: Path) -> None:
    """What began in the first pass of the hour may end in the second."""
    shown, expected = shown_rows(48, 5)
    (tmp_path / "t.csv").write_text(
        "began,ended\n" + "".join(f"{a},{b}\n" for a, b in zip(shown, shown[6:], strict=False))
    )
    mapping = parse_mapping(
        '# time: ended|datetime("iso")\n<urn:x> <urn:began> {began|datetime("iso")} .', "t.map"
    )
    graphs = list(read(tmp_path / "t.csv", mappings=(mapping,), zone="Europe/Berlin", ambiguous="infer"))
    assert [graph.time for graph in graphs] == expected[6:]
    assert [graph.triples[0][2][1:20] for graph in graphs] == [naive(t).isoformat() for t in expected[:-6]]


def test_a_file_that_grows_is_left_before_the_rows_that_wait(tmp_path: Path) -> None:
    shown, expected = shown_rows(48, 5)
    file, options = written(tmp_path, "csv", shown[:20])
    first = list(read(file, growing=True, **options).items())
    assert [item.time for item in first[:-1]] == expected[:12]
    written(tmp_path, "csv", shown)
    rest = read(file, growing=True, **options)
    rest.bookmarks = {str(file): Bookmark(first[-1].how, first[-1].end, first[-1].carried)}
    assert [graph.time for graph in rest] == expected[12:]


def test_a_mapping_says_it_itself(tmp_path: Path) -> None:
    shown, expected = shown_rows(48, 5)
    file, options = written(tmp_path, "csv", [*shown, "2027-03-28T02:30:00"])
    said = parse_mapping(f"# ambiguous: infer\n# nonexistent: forward\n{TEMPLATE}", "t.map")
    sources = read(file, mappings=(said,), zone=options["zone"])
    assert [graph.time for graph in sources] == [*expected, parse_datetime("2027-03-28T01:00:00Z")]
    with pytest.raises(DataError, match="D2401"):
        parse_mapping(f"# ambiguous: guess\n{TEMPLATE}", "t.map")


def test_python_infers_for_files_and_frames(tmp_path: Path) -> None:
    shown, expected = shown_rows(48, 5)
    file, _ = written(tmp_path, "csv", shown)
    (tmp_path / "t.map").write_text(TEMPLATE)
    frame = pd.DataFrame({"id": range(len(shown)), "ts": shown})
    for source in (file, frame):
        engine = dotr.Engine.from_text(RULES)
        more = {"mapping": tmp_path / "t.map", "time_zone": "Europe/Berlin"}
        found = [event.time for event in engine.feed(source, ambiguous_time="infer", **more)]
        assert [
            (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) for time in found
        ] == expected
        assert engine.times_changed == {"earlier": 12, "later": 12}
        with pytest.raises(DataError, match="D2108"):
            list(dotr.Engine.from_text(RULES).feed(source, **more))


# ---------------------------------------------- strings, datatypes of one's own, intervals


def said(value: str, **options: Any) -> int:
    extractor = TimestampExtractor("<urn:when>" if options.pop("named", True) else None, **options)
    property_ = "<urn:when>" if extractor.time_path else "<http://www.w3.org/ns/sosa/phenomenonTime>"
    return extractor.time([("<urn:o>", property_, value)], "", "x")


@pytest.mark.parametrize(
    ("value", "micros"),
    [
        ('"2025-11-04T00:00:00Z"', 1_762_214_400_000_000),
        ('"2025-11-04T00:00:00Z"^^<https://uri.etsi.org/ngsi-ld/DateTime>', 1_762_214_400_000_000),
        ('"2025-11-04T01:00:00+01:00"^^<urn:my:time>', 1_762_214_400_000_000),
        ('"12"', 12_000_000),
        ('"12"^^<http://www.w3.org/2001/XMLSchema#long>', 12_000_000),
        ('"12"^^<http://www.w3.org/2001/XMLSchema#unsignedInt>', 12_000_000),
    ],
)
def test_what_time_path_names_is_a_time_under_any_datatype_of_ones_own(value: str, micros: int) -> None:
    assert said(value) == micros
    with pytest.raises(DataError, match="D2105"):
        said(value, named=False)


@pytest.mark.parametrize(
    "value",
    [
        '"2025"^^<http://www.w3.org/2001/XMLSchema#gYear>',
        '"12.5"^^<http://www.w3.org/2001/XMLSchema#decimal>',
        '"2025-11-04"',
        '"12"@en',
        "<urn:x>",
        '"noon"',
    ],
)
def test_what_means_something_else_is_none(value: str) -> None:
    with pytest.raises(DataError, match="D2105"):
        said(value)


INTERVAL = '"2017-06-06T12:00:00Z/2017-06-06T12:36:12.1234567Z"'


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("tail", ["", "^^<urn:my:interval>"])
def test_of_an_interval_the_end_that_is_asked_for_is_taken(named: bool, tail: str) -> None:
    with pytest.raises(DataError, match="D2105") as error:
        said(INTERVAL + tail, named=named)
    assert "--interval begin" in error.value.diagnostics[0].hint
    begin, end = parse_datetime("2017-06-06T12:00:00Z"), parse_datetime("2017-06-06T12:36:12.123456Z")
    assert said(INTERVAL + tail, named=named, reading=TimeReading(interval="begin")) == begin
    assert said(INTERVAL + tail, named=named, reading=TimeReading(interval="end")) == end


def test_intervals_stand_in_lines_and_cells_too(tmp_path: Path) -> None:
    interval = INTERVAL.strip('"')
    (tmp_path / "a.jsonl").write_text(json.dumps({"time": interval, "graph": ""}))
    (tmp_path / "t.csv").write_text(f"ts\n{interval}\n")
    mapping = parse_mapping('# time: ts|datetime("iso")\n<urn:x> a <urn:E> .', "t.map")
    for file, more in ((tmp_path / "a.jsonl", {}), (tmp_path / "t.csv", {"mappings": (mapping,)})):
        assert times(file, interval="begin", **more) == [parse_datetime("2017-06-06T12:00:00Z")]
        with pytest.raises(DataError, match="D2105"):
            times(file, **more)


@pytest.mark.parametrize("value", ['"2017-06-06T12:00:00Z/x"', '"2017-06-06T12:00:00Z/2017-13-06T12:00:00Z"'])
def test_both_ends_of_an_interval_are_instants(value: str) -> None:
    with pytest.raises(DataError, match="D2105"):
        said(value, reading=TimeReading(interval="begin"))


def test_a_choice_that_there_is_not_is_refused() -> None:
    with pytest.raises(UsageError, match="D4187"):
        time_reading(ambiguous_time="first")


@pytest.mark.parametrize("form", FORMS)
def test_a_file_that_ended_in_the_second_pass_is_read_on_in_it(tmp_path: Path, form: str) -> None:
    shown, expected = shown_rows(48, 5)
    count = next(at for at in range(1, 48) if shown[at] < shown[at - 1]) + 3
    file, options = written(tmp_path, form, shown[:count])
    *first, end = read(file, **options).items()
    assert [item.time for item in first] == expected[:count]
    written(tmp_path, form, shown)
    rest = read(file, **options)
    rest.bookmarks = {str(file): Bookmark(end.how, end.end, end.carried)}
    assert [graph.time for graph in rest] == expected[count:]
