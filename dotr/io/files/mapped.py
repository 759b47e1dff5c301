"""Files that are mapped into memory instead of read: closed backgrounds, which all processes then share.

Place:   batch/, service/ and knowledge_base/ write and map what rdf/mapped_columns.py makes of an index.
Method:  a file is written beside its place and moved there, so that nobody maps half of one; it is never
         changed afterwards. Who has mapped one keeps it, even where its name is removed meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from hashlib import blake2b
from mmap import ACCESS_READ, mmap
from typing import Any

from dotr.io.decode.documents import unreadable
from dotr.io.files.outputs import unwritable
from dotr.rdf.mapped_columns import damaged


def mapped(path: str) -> mmap:
    """The content of a file. Raises DataError D2003, EngineError D5101 for an empty one."""
    try:
        with open(path, "rb") as file:
            return mmap(file.fileno(), 0, access=ACCESS_READ)
    except OSError as error:
        raise unreadable(path, error) from None
    except ValueError:  # nothing can be mapped of an empty file
        raise damaged() from None


def write_whole(path: str, parts: Iterable[Any]) -> None:
    """Write bytes to a file, all or nothing. Raises EngineError where the disk does not take it."""
    beside = f"{path}.{os.getpid()}.new"
    try:
        with open(beside, "wb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError as error:
        raise unwritable(path, error) from None


def content_name(parts: Iterable[Any]) -> str:
    """A name for bytes: 32 hexadecimal digits."""
    found = blake2b(digest_size=16)
    for part in parts:
        found.update(part)
    return found.hexdigest()
