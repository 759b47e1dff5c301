"""Files that are written whole or not at all: nobody ever finds half of one under its name.

Place:   whatever saves a file of its own goes through here: knowledge bases, closed backgrounds, checkpoints,
         formatted rules. The output of a run is not such a file: it can be read as it grows (outputs.py).
Method:  a file beside its place, with a name that nobody else has (made by this call alone, so that threads,
         processes and containers on one volume never share one), is synced and moved there. Whatever goes
         wrong, it is removed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from secrets import token_hex
from typing import Any

from dotr.io.files.outputs import is_device, keep_mode, unwritable

ENDING = ".new"
"""How a file is called while it is written, after random digits."""


def write_whole(path: str | os.PathLike[str], parts: Iterable[Any]) -> None:
    """Write bytes to a file, which replaces one that is there and has its permissions; a new one has what the
    process gives to new files.

    Raises EngineError D4201 where the disk does not take it, or the path is a folder, a pipe or a device.
    """
    path = os.fspath(path)
    if is_device(path):
        raise unwritable(path, OSError(22, "is not a file"))
    beside = ""
    try:
        name = os.path.join(os.path.dirname(path), f".dotr-{token_hex(8)}{ENDING}")
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        beside = name
        with open(file, "wb") as output:
            output.writelines(parts)
            output.flush()
            os.fsync(output.fileno())
        keep_mode(path, beside)
        os.replace(beside, path)
        beside = ""
    except OSError as error:
        raise unwritable(path, error) from None
    finally:
        if beside:
            with suppress(OSError):
                os.unlink(beside)
