"""A closed background beside what is deployed: in a row of the database, a large one in a file, to be mapped.

Place:   under journal.py, whose row says which file it is.
Method:  the file has its hash in its name. The row also has the size and the time at which it was written: a
         file that has them still is what was written. One that has not (the folder was copied) is read and
         compared with its name.
"""

from __future__ import annotations

import json
import os
import zlib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from dotr.datalog.closing import Closed
from dotr.errors import NOT_WRITTEN, DotrError
from dotr.io.files.mapped import content_name, mapped
from dotr.io.files.whole_files import write_whole
from dotr.rdf.checked_blocks import Content

ROW_LIMIT = 64 * 1024 * 1024
"""Bytes beyond which a file is better than a row."""

_FILE: Final = b"dotr file "
_NAME: Final = "closed-*.background"


def write(folder: Path, closed: Closed) -> bytes:
    """What the row is to say; a file is written instead of those that are there. Raises EngineError D4201."""
    contents = closed.contents()
    if not closed.index.large and sum(memoryview(part).nbytes for part in contents) <= ROW_LIMIT:
        return zlib.compress(b"".join(contents), 1)
    path = folder / _NAME.replace("*", content_name(contents))
    write_whole(str(path), contents)
    for other in folder.glob(_NAME):
        if other != path:
            other.unlink(missing_ok=True)  # who has it mapped keeps it
    stat = path.stat()
    return _FILE + json.dumps([path.name, stat.st_size, stat.st_mtime_ns]).encode()


def read(folder: Path, row: bytes) -> Content | None:
    """The content that a row has or names; None where it is missing or damaged."""
    if not row.startswith(_FILE):
        try:
            return zlib.decompress(row)
        except zlib.error:
            return None
    try:
        name, size, written = json.loads(row[len(_FILE) :])
        if not fnmatchcase(name, _NAME) or os.path.basename(name) != name:
            return None
        path = str(folder / name)
        content = mapped(path)
        stat = os.stat(path)
    except (DotrError, OSError, *NOT_WRITTEN):
        return None
    if (stat.st_size, stat.st_mtime_ns) != (size, written):
        return content if name == _NAME.replace("*", content_name([content])) else None
    return content
