"""Pages of D2401 to D2413: tables and their mappings, dumps, archives, Jelly.

Place:   read by explain.py.
"""

from __future__ import annotations

from typing import Final

from dotr.lang.pages.page import Page, PageKind


def _page(code: str, title: str, text: str, wrong: str, right: str) -> Page:
    return Page(code, title, text, wrong, right, PageKind.OTHER)


PAGES: Final = (
    _page(
        "D2401",
        "a mapping that cannot be read",
        "A mapping is Turtle with {column} where a cell goes, below comment lines that say the rest: "
        "`# time:`, `# format:`, `# files:`, `# delimiter:`, `# quote:`, `# columns:`, `# missing:`, "
        "`# encoding:`. The place is the line of the mapping.",
        '# tiem: seen\n[] :value {temp|deciml(",")}^^xsd:decimal .',
        '# time: seen\n[] :value {temp|replace(",", ".")}^^xsd:decimal .',
    ),
    _page(
        "D2402",
        "a column that is not there",
        "The mapping names a column that the table does not have, or has twice. Where all columns seem to be "
        "one, the delimiter is another. A table without a header line has its names in `# columns:`.",
        "# time: tmie",
        "# time: time",
    ),
    _page(
        "D2403",
        "a row with too few or too many cells",
        "Every row has as many cells as the header. Mostly a cell with the delimiter in it is not quoted.",
        "s1,21,5,room 1",
        's1,"21,5",room 1',
    ),
    _page(
        "D2404",
        "a cell outside its datatype",
        "A typed cell must be in the lexical space of its datatype, a cell under a filter what the filter "
        "reads, a cell under `iri` an absolute IRI. Words that mean that there is no value are listed in "
        "`# missing:`.",
        "[] :value {temp}^^xsd:decimal .   # and a cell `n/a`",
        "# missing: n/a",
    ),
    _page(
        "D2405",
        "a damaged row",
        "A quoted cell that does not end, a NUL, or bytes of another encoding. The row is refused, and "
        "reading goes on with the next line.",
        's1,"21',
        's1,"21"',
    ),
    _page(
        "D2406",
        "a row without a time",
        "The cell that `# time:` names is missing in this row.",
        "s1,,21.5",
        "s1,2026-01-01T08:00:00Z,21.5",
    ),
    _page(
        "D2407",
        "a table without a mapping",
        "What the rows of a table mean stands nowhere in it. `dotr map new` proposes a mapping, `dotr map "
        "check` shows what it makes of the first rows.",
        "dotr run hot.dotr readings.csv",
        "dotr run hot.dotr readings.csv --map readings.map",
    ),
    _page(
        "D2408",
        "a value that is not one cell",
        "A line of JSON lines that is not an object, or a value that is an array or an object where the "
        "mapping wants a cell; a column of lists in a Parquet file. Fields of objects are named with a dot.",
        '{"id": "s1", "at": {"lat": 56.1}}   # and {at} in the mapping',
        '{"id": "s1", "at": {"lat": 56.1}}   # and {at.lat} in the mapping',
    ),
    _page(
        "D2410",
        "a dump with nothing to split by",
        "`--split` takes a dump apart by the subjects of a class, or by those with a property, by an IRI or "
        "with a prefix that everybody knows (sosa, ssn, saref, prov, …). The message lists classes that the "
        "dump has.",
        "dotr run hot.dotr dump.ttl --split sosa:Observations",
        "dotr run hot.dotr dump.ttl --split sosa:Observation",
    ),
    _page(
        "D2411",
        "an archive of several files",
        "A ZIP archive with one file is read as that file. Several files are several sources.",
        "dotr run hot.dotr readings.zip",
        "unzip readings.zip -d readings; dotr run hot.dotr readings",
    ),
    _page(
        "D2412",
        "what is not Jelly",
        "The file is damaged, is not Jelly at all, or has terms that dotr does not read, such as triples as "
        "terms. Frames before the one that the message names were read.",
        "dotr run hot.dotr readings.jelly   # cut off in the middle",
        "dotr run hot.dotr readings.jelly   # copied again",
    ),
    _page(
        "D2413",
        "Jelly without its package",
        "Jelly is read and written with pyjelly, which comes with the extra `jelly`.",
        "pip install dotr",
        "pip install 'dotr[jelly]'",
    ),
    _page(
        "D4153",
        "what is not a table, or has no mapping",
        "Frames of pandas and tables of Arrow are fed with `mapping=`, without paths beside them.",
        "engine.feed(frame)",
        'engine.feed(frame, mapping="readings.map")',
    ),
    _page(
        "D4152",
        "a mapping that is for other tables",
        "`# files:` and `# format:` of a mapping say which tables it is for.",
        "dotr map check weather.map traffic.csv   # weather.map says # files: weather*.csv",
        "dotr map check traffic.map traffic.csv",
    ),
)
