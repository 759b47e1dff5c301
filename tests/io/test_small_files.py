"""Files of a folder read together are those read one by one."""

from __future__ import annotations

import gzip
import os
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from dotr.errors import DataError
from dotr.io.errors import ErrorPolicy
from dotr.io.graphs import Bookmark, ReadEvent, SourceOptions
from dotr.io.sources import SmallFiles, Sources

HEAD = "PREFIX : <urn:x:>\n"
USUAL = [":a :b 1 .", ":a :b 1, 2 ; a :c .", ":a :b :c . :a :b :c .", ""]
ODD = [":a :b 'x' .", "_:b :p _:c .", ":a :b", "<a> <b> <c> .", "# only this", ':a :b "\xff" .']
LOG = b'VERSION "1.2-messages"\nPREFIX : <urn:x:> :a :b 1 .\nMESSAGE\n:a :b 2 .\n'


@st.composite
def contents(draw: st.DrawFn) -> bytes:
    text = draw(st.sampled_from(USUAL * 6 + ODD))
    content = (draw(st.sampled_from([HEAD, HEAD, HEAD, ""])) + text).encode("latin1")
    kind = draw(st.integers(0, 30))
    return gzip.compress(content) if kind == 1 else LOG if kind == 2 else content


names = st.sampled_from(
    ["{}.ttl"] * 12 + ["{}.nt", "{}.ttl.gz", "none{}.ttl", "2026-01-01T00-00-{:02}Z.ttl", "{}.trig"]
)


def read(paths: list[str], fail: bool, cache: int, bookmarks: dict[str, Bookmark]) -> Any:
    policy = ErrorPolicy(fail=fail)
    sources = Sources(paths, SourceOptions(cache=cache), policy, bookmarks=bookmarks)
    found: list[Any] = []
    wrong: list[str] = []
    try:
        for item in sources.items():
            found.append(item._replace(error=None) if isinstance(item, ReadEvent) else item)
            wrong += [str(item.error)] if isinstance(item, ReadEvent) and item.error else []
    except DataError as error:
        wrong.append(str(error))
    return found, wrong, sources.extractor.time_sources, sources.clock


@given(st.data())
def test_small_files_read_together_are_those_read_one_by_one(data: st.DataObject) -> None:
    """Compressed ones, message logs, errors, times of two kinds or none, and what is not kept in memory."""
    few = data.draw(st.booleans())
    files = data.draw(
        st.lists(st.tuples(names if not few else st.just("{}.ttl"), contents()), min_size=2, max_size=9)
    )
    fail, cache = data.draw(st.booleans()), data.draw(st.sampled_from([1 << 20, 300]))
    with (
        tempfile.TemporaryDirectory() as folder,
        patch("dotr.io.sources.MANY", data.draw(st.integers(2, 5))),
    ):
        for number, (name, content) in enumerate(files):
            Path(folder, name.format(number)).write_bytes(content)
        behind = os.path.join(folder, files[0][0].format(0))
        bookmarks = {behind: Bookmark("whole", 3)} if data.draw(st.booleans()) else {}
        together = read([folder], fail, cache, bookmarks)
        with patch.object(SmallFiles, "take", return_value=None):
            assert together == read([folder], fail, cache, bookmarks)


def test_a_usual_folder_is_read_together(tmp_path: Path) -> None:
    for number in range(150):
        (tmp_path / f"{number}.ttl").write_text(f"{HEAD}:a :b {number} .")
    with patch("dotr.io.sources.FileReader") as reader:
        assert len(list(Sources([str(tmp_path)]))) == 150
    assert not reader.called
