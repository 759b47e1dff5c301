"""The files of the console: the page at `/` and what it loads from `/console/`.

Place:   routes of app.py give a request the bytes of a file; the files are in the folder `console` beside
         this one, and the grammars of editors in lang/editor/.
Method:  the folder is listed once, and a path is looked up in the list, so no path leads out of it. A file is
         read when it is first asked for, and kept with its gzip form and its ETag, a hash of its bytes: a
         browser asks whether it changed (`no-cache`), so that an upgrade shows at once.
Why not: Starlette's StaticFiles: its ETag is of the time and the size, and it compresses nothing.
"""

from __future__ import annotations

import gzip
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from dotr.lang import editor

FOLDER: Final = Path(__file__).parent / "console"
INDEX: Final = "index.html"

TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}

_GRAMMARS: Final = {f"grammar/{name}.json": f"{name}.tmLanguage.json" for name in ("dotr", "dlog", "lars")}


class StaticFile(NamedTuple):
    """A file as it is sent."""

    content: bytes
    packed: bytes
    """By gzip."""
    media: str
    etag: str


class StaticFiles:
    """Owns the files of the console by the paths behind `/console/`."""

    def __init__(self, folder: Path = FOLDER) -> None:
        grammars = Path(editor.__file__).parent
        found = (path for path in folder.rglob("*") if path.is_file() and path.suffix in TYPES)
        self._paths = {path.relative_to(folder).as_posix(): path for path in found}
        self._paths |= {name: grammars / file for name, file in _GRAMMARS.items()}
        self._read: dict[str, StaticFile] = {}

    def names(self) -> list[str]:
        """Every file, in order."""
        return sorted(self._paths)

    def find(self, name: str) -> StaticFile | None:
        """A file; None where there is none of that name."""
        found = self._read.get(name)
        if found is None and (path := self._paths.get(name)) is not None:
            content = path.read_bytes()
            etag = f'W/"{sha256(content).hexdigest()[:32]}"'
            found = StaticFile(content, gzip.compress(content, 9, mtime=0), TYPES[path.suffix], etag)
            self._read[name] = found
        return found
