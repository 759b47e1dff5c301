"""Where a stream's events and state go: ownership of folders, and files that are complete or absent.

Place:   micro_batches.py (one engine, in order) and spark/distributed.py (many detectors) write through it.
Method:  files are named by the number of their batch; a repeated batch writes the same files again.
Bad input: D5001 a folder of other events · D5220 a checkpoint of other rules or options · D5221 a damaged or
         missing one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from msgspec import Struct

from dotr.core.deployment import Deployment
from dotr.errors import EngineError, RefusedError
from dotr.events import Time
from dotr.io.files.outputs import unwritable
from dotr.io.files.whole_files import write_whole
from dotr.io.output_formats import ENDINGS

VERSION = 1
"""The version of a checkpoint's content."""

META = "dotr-stream.json"
FORMATS = ("jsonl", "nquads")
"""Formats whose files can be concatenated."""

ORDERED = "ordered"
DISTRIBUTED = "distributed"
MODES = (ORDERED, DISTRIBUTED)


class StreamOptions(Struct, frozen=True):
    """How a stream is read and written; fixed for the lifetime of a checkpoint.

    `late`: "drop", "keep" (in `_late`) or "fail"; `on_error`: "fail", "skip" or "keep" (in `_letters`).
    """

    format_: str = "jsonl"
    lateness: Time = 0
    late: str = "drop"
    on_error: str = "fail"
    max_jump: Time | None = None


class Taken(Struct):
    """The result of one batch."""

    number: int
    graphs: int = 0
    events: int = 0
    late: int = 0
    refused: int = 0


class StreamFolder:
    """Owns the folder of a stream's events, and `states`, that of its state.

    `more`: content of the checkpoint beside rules and options; earlier values take precedence. `send`: takes
    the events of a batch, as text, if they do not go to files. Raises RefusedError D5001 for a folder of
    events that is not this checkpoint's, D5220; EngineError D5221.
    """

    def __init__(
        self,
        deployment: Deployment,
        out: str,
        states: str,
        options: StreamOptions,
        mode: str = ORDERED,
        more: Mapping[str, Any] | None = None,
        send: Callable[[str], None] | None = None,
    ) -> None:
        self.out, self.states = Path(out), Path(states)
        self._send = send
        self._ending = ENDINGS[options.format_]
        meta = {**_meta(deployment, options), "mode": mode}
        self.noted: dict[str, Any] = dict(more or {})
        """The checkpoint's content beside rules and options."""
        self._claim(meta)

    def _claim(self, meta: dict[str, Any]) -> None:
        known = _read_json(self.states / META)
        if known is not None:
            _compare(known, meta, str(self.states))
            self.noted = known.get("noted", {})
        try:
            self.states.mkdir(parents=True, exist_ok=True)
            self.out.mkdir(parents=True, exist_ok=True)
            owner = {"checkpoint": os.path.abspath(self.states)}
            owned = _read_json(self.out / f"_{META}") == owner
            if owned and known is None:
                raise damaged(str(self.states), f"no {META}, but `{self.out}` has its events")
            if not owned:
                if any(self.out.iterdir()):
                    raise RefusedError.of(
                        "D5001",
                        f"`{self.out}` exists",
                        place=str(self.out),
                        notes=("it has no events of the stream with this checkpoint",),
                        hint="give another name",
                    )
                _write(self.out / f"_{META}", json.dumps(owner).encode())
            if known is None:
                _write(self.states / META, json.dumps({**meta, "noted": self.noted}).encode())
        except OSError as error:
            raise unwritable(str(self.out), error) from None

    def write_batch(
        self, name: str, events: str, late: Sequence[str] = (), letters: Sequence[str] = ()
    ) -> None:
        """The files of a batch; none if there is nothing to write."""
        if self._send is None:
            _put(self.out / f"{name}.{self._ending}", events)
        else:
            self._send(events)
        _put(self.out / "_late" / f"{name}.jsonl", _lines(late))
        _put(self.out / "_letters" / f"{name}.jsonl", _lines(letters))

    def write_state(self, name: str, content: bytes) -> None:
        _write(self.states / name, content)


def batch_name(number: int) -> str:
    """The name of a batch's files; they sort in the order of batches."""
    return f"{number:012}"


def known_mode(states: str) -> str | None:
    """The mode of an existing checkpoint, or None. Raises EngineError D5221."""
    known = _read_json(Path(states) / META)
    return None if known is None else known.get("mode", ORDERED)


def known_notes(states: str) -> Mapping[str, Any]:
    """An existing checkpoint's content beside rules and options; empty without one."""
    known = _read_json(Path(states) / META)
    return {} if known is None else known.get("noted", {})


def _meta(deployment: Deployment, options: StreamOptions) -> dict[str, Any]:
    program = deployment.program
    background = blake2b(digest_size=16)
    for triple in sorted(deployment.background):
        background.update(f"{' '.join(triple)}\n".encode())
    return {
        "version": VERSION,
        "rules": {r.name: d for r, d in zip(program.rules, deployment.digests(), strict=True)},
        "background": background.hexdigest(),
        "format": options.format_,
        "lateness": options.lateness,
    }


def _lines(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _put(path: Path, text: str) -> None:
    """A file with a text; none for an empty one."""
    try:
        if text:
            path.parent.mkdir(exist_ok=True)
            _write(path, text.encode())
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(str(path), error) from None


def _write(path: Path, content: bytes) -> None:
    """A file, complete or absent."""
    write_whole(path, [content])


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise damaged(str(path), str(error)) from None


def _compare(known: dict[str, Any], meta: dict[str, Any], place: str) -> None:
    """Raise RefusedError D5220 unless a checkpoint has the same rules and options."""
    if known.get("version") != VERSION:
        raise damaged(place, f"version {known.get('version')!r}")
    rules, before = meta["rules"], known["rules"]
    differences = [
        *(f"rule `{name}` is new" for name in rules if name not in before),
        *(f"rule `{name}` is gone" for name in before if name not in rules),
        *(f"rule `{name}` is another" for name in rules if name in before and rules[name] != before[name]),
    ]
    differences += [
        f"the {what} is another" for what in ("background", "format", "lateness") if known[what] != meta[what]
    ]
    mode = known.get("mode", ORDERED)
    if mode != meta["mode"]:
        differences.append(f"the mode is {mode}, not {meta['mode']}")
    if differences:
        raise RefusedError.of(
            "D5220",
            "the checkpoint belongs to other rules or options",
            place=place,
            notes=tuple(differences),
            hint="start again with another --checkpoint and --out; rules that change while state stays "
            "are what `dotr deploy` and `dotr feed` are for",
        )


def damaged(place: str, what: str) -> EngineError:
    """D5221."""
    return EngineError.of(
        "D5221",
        "the state of the stream cannot be read",
        place=place,
        label=what,
        hint="start again with another --checkpoint and --out",
    )
