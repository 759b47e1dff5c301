"""Outputs that are read by the same run: refused before a byte of them is lost.

Place:   asked by the verbs that write, when they know what they read and before they open what they write.
Method:  a file is known by its device and number, which hard and symbolic links share; an output folder by
         its path. `NAME.part`, which an output is until it is finished, counts as the output.
Refused: D5002.
"""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from itertools import product
from typing import TypeAlias

from dotr.errors import DataError, RefusedError
from dotr.io.decode.documents import format_of
from dotr.io.files.sources import resolve

Identity: TypeAlias = tuple[int, int]


def refuse_overlap(
    outputs: Sequence[str], inputs: Sequence[str], stdout: int | None = None, appearing: bool = False
) -> None:
    """Raise RefusedError D5002 if one of the outputs is one of the inputs, or has it inside.

    `inputs`: files, folders, globs and "-"; what is not there is passed over. `stdout`: the descriptor of
    standard output where data go there. `appearing`: files that come into being meanwhile are read, too.
    """
    for output, path in product(outputs, inputs) if appearing else ():
        if not os.path.exists(output) and _would_be_read(os.path.realpath(output), os.path.realpath(path)):
            raise _refused(output, output)
    files: dict[Identity, str] = {}
    folders: dict[str, str] = {}
    for output in outputs:
        plain = output.rstrip("/") or output
        for there in (plain, f"{plain}.part"):
            if os.path.isdir(there):
                folders[os.path.realpath(there) + os.sep] = output
            elif (found := _identity(there)) is not None:
                files[found] = output
    if stdout is not None and (found := _identity(stdout)) is not None:
        files[found] = "standard output"
    if not files and not folders:
        return
    for file in _files(inputs):
        name = files.get(_identity(0 if file == "-" else file) or (-1, -1))
        if name is None and folders:
            real = os.path.realpath(file)
            name = next((folders[folder] for folder in folders if real.startswith(folder)), None)
        if name is not None:
            raise _refused(name, file)


def _identity(file: str | int) -> Identity | None:
    """What a regular file is known by; None for anything else."""
    try:
        found = os.stat(file)
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def _would_be_read(output: str, path: str) -> bool:
    """Whether a file that is not there yet would be among those of a folder or glob."""
    if not glob.has_magic(path):
        return format_of(output) is not None and output.startswith(path + os.sep)
    if "**" in path:  # which stands for no folder, too
        return fnmatch(output, path) or fnmatch(output, path.replace("**/", ""))
    parts, patterns = output.split(os.sep), path.split(os.sep)
    return len(parts) == len(patterns) and all(map(fnmatch, parts, patterns))


def _files(inputs: Sequence[str]) -> Iterator[str]:
    for path in inputs:
        with suppress(DataError):  # reported by whoever reads it
            yield from resolve([path])


def _refused(output: str, file: str) -> RefusedError:
    return RefusedError.of(
        "D5002",
        f"`{output}` is also read by this run",
        place=file,
        notes=("what is read would be lost, or what is written would be read again",),
        hint="give the output another name",
    )
