"""A stream that comes in numbered batches, each maybe more than once: events in order, exactly once.

Place:   spark/streams.py calls it with every micro-batch, on the driver; nothing here knows Spark.
Method:  the engine of `dotr run` takes the batches one after the other. Of batch n first the events are
         written, to a file named by n, then the state behind it; each is complete or not there. A batch that
         comes again, since whoever counts batches was killed before the end was noted, starts from the
         state before it and writes the same bytes. The files, in the order of their names, are one after
         the other what `dotr run` prints.
Why not: append to one file. What a killed attempt appended would have to be found and cut off.
Bad input: D5220 a checkpoint of other rules or options · D5221 a state that is damaged or gone.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import field
from hashlib import blake2b
from operator import itemgetter
from pathlib import Path
from typing import Any

from dotr.core.deployment import Deployment
from dotr.core.parts import Part
from dotr.core.pipeline import Pipeline
from dotr.errors import DataError, Diagnostic, DotrError, EngineError, RefusedError
from dotr.events import Clock, Time
from dotr.io.error_policy import dead_letter
from dotr.io.files.outputs import unwritable
from dotr.io.output_formats import ENDINGS
from dotr.io.sinks import formatter, late_line
from dotr.late import dataclass
from dotr.rdf.terms import Triple
from dotr.tesla.digest import rule_digests

VERSION = 1
"""Of what a checkpoint holds."""

META = "dotr-stream.json"
FORMATS = ("jsonl", "nquads")
"""Those whose files can be put one behind the other."""

_KEPT = 3
_STATE = ".state"
_LAST = ".last"
"""Behind the number of the batch after which the last instant was closed; its files sort behind those of the
batch itself.
"""


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """How a stream is read and written; all of it stays as it is for as long as a checkpoint lasts.

    `late`: "drop", "keep" (in `_late`) or "fail"; `on_error`: "fail", "skip" or "keep" (in `_letters`).
    """

    format_: str = "jsonl"
    lateness: Time = 0
    late: str = "drop"
    on_error: str = "fail"
    max_jump: Time | None = None


@dataclass(slots=True)
class Taken:
    """What one batch came to."""

    number: int
    graphs: int = 0
    events: int = 0
    late: int = 0
    refused: int = 0


@dataclass(slots=True)
class _Written:
    """Lines of one batch, by the folder that they go to."""

    events: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    letters: list[str] = field(default_factory=list)


class MicroBatches:
    """Owns the engine of a stream, the folder of its events, and `checkpoint`, the folder of its states.

    Raises RefusedError D5001 for a folder of events that is not this checkpoint's, D5220.
    """

    def __init__(
        self, deployment: Deployment, out: str, checkpoint: str, options: StreamOptions | None = None
    ) -> None:
        self._deployment = deployment
        self._options = options or StreamOptions()
        self._out, self._states = Path(out), Path(checkpoint)
        head, self._format = formatter(
            self._options.format_, deployment.program.prefixes, deployment.program.rules
        )
        assert not head, "formats with a head cannot be put one behind the other"
        self._claim()
        self._at: str | None = None  # the state that the engine is in; None: whatever an error left
        self._lines = _Written()
        self._taken = Taken(-1)
        self.pipeline = self._fresh()

    # -- whose folders they are

    def _claim(self) -> None:
        meta = self._meta()
        known = _read_json(self._states / META)
        if known is not None:
            _compare(known, meta, str(self._states))
        try:
            self._states.mkdir(parents=True, exist_ok=True)
            self._out.mkdir(parents=True, exist_ok=True)
            owner = {"checkpoint": os.path.abspath(self._states)}
            owned = _read_json(self._out / f"_{META}") == owner
            if owned and known is None:
                raise _damaged(str(self._states), f"no {META}, but `{self._out}` has its events")
            if not owned:
                if any(self._out.iterdir()):
                    raise RefusedError(
                        Diagnostic(
                            "D5001",
                            f"`{self._out}` exists",
                            place=str(self._out),
                            notes=("it has no events of the stream with this checkpoint",),
                            hint="give another name",
                        )
                    )
                _write(self._out / f"_{META}", json.dumps(owner).encode())
            if known is None:
                _write(self._states / META, json.dumps(meta).encode())
        except OSError as error:
            raise unwritable(str(self._out), error) from None

    def _meta(self) -> dict[str, Any]:
        program, options = self._deployment.program, self._options
        background = blake2b(digest_size=16)
        for triple in sorted(self._deployment.background):
            background.update(f"{' '.join(triple)}\n".encode())
        return {
            "version": VERSION,
            "rules": {r.name: d for r, d in zip(program.rules, rule_digests(program), strict=True)},
            "background": background.hexdigest(),
            "format": options.format_,
            "lateness": options.lateness,
        }

    # -- the stream

    @property
    def clock(self) -> Clock | None:
        """How the stream writes time, as far as it is known; restores the last state if need be."""
        if self._at is None:
            self._go_behind(None)
        return self.pipeline.clock

    def take(
        self,
        number: int,
        clock: Clock | None,
        rows: Iterable[tuple[Time, list[Triple]]],
        letters: Sequence[str] = (),
    ) -> Taken:
        """Batch `number`: graphs in any order, times in µs; dead letters of documents that were refused.
        Writes its events, then its state. Without graphs `clock` may be None.

        Raises DataError for graphs in error under the policy `fail`, D2102 for another kind of time; then the
        batch has written nothing.
        """
        self._go_behind(number)
        self._at = None  # until all is done
        known = self.pipeline.clock
        if known is None and clock is not None:
            self.pipeline.begin(clock)
        elif clock is not None and known != clock:
            raise DataError(
                Diagnostic("D2102", "this batch writes time otherwise than those before", hint="--time-unit")
            )
        self._lines, self._taken = _Written(), Taken(number, refused=len(letters))
        if self._options.on_error == "keep":
            self._lines.letters += letters
        for time, graph in sorted(rows, key=itemgetter(0)):
            self._taken.graphs += 1
            self.pipeline.take(time, graph)
        self._done(_name(number))
        return self._taken

    def close(self) -> Taken | None:
        """The end of the stream for now: close its last instant. None where there is nothing to close."""
        self._go_behind(None)
        at = self._at
        if not at or at.endswith(_LAST) or self.pipeline.clock is None:
            return None
        self._at = None
        self._lines, self._taken = _Written(), Taken(_number(at))
        self.pipeline.close_all()
        self._done(at + _LAST)
        return self._taken

    def _done(self, name: str) -> None:
        """Run what is closed; write events, then state."""
        for events in self.pipeline.drain():
            clock = self.pipeline.clock
            assert clock is not None
            self._taken.events += len(events)
            self._lines.events.append(self._format(events, clock))
        ending = ENDINGS[self._options.format_]
        _put(self._out / f"{name}.{ending}", "".join(self._lines.events))
        _put(self._out / "_late" / f"{name}.jsonl", _lines(self._lines.late))
        _put(self._out / "_letters" / f"{name}.jsonl", _lines(self._lines.letters))
        state = zlib.compress(json.dumps(self.pipeline.snapshot()).encode(), 1)
        _write(self._states / f"{name}{_STATE}", state)
        self._at = name
        for old in self._names()[:-_KEPT]:
            with suppress(OSError):
                (self._states / f"{old}{_STATE}").unlink()

    # -- states

    def _names(self) -> list[str]:
        """The states that are there, in order."""
        if not self._states.is_dir():
            return []
        found = [path.name.removesuffix(_STATE) for path in self._states.glob(f"*{_STATE}")]
        return sorted(found, key=lambda name: (_number(name), name.endswith(_LAST)))

    def _go_behind(self, number: int | None) -> None:
        """Bring the engine into the last state before batch `number`, the very last for None."""
        names = [name for name in self._names() if number is None or _number(name) < number]
        last = names[-1] if names else ""
        if self._at == last:
            return
        if number and not last and self._names():
            raise _damaged(str(self._states), f"no state before batch {number} is left")
        self.pipeline = self._fresh()
        if last:
            path = self._states / f"{last}{_STATE}"
            try:
                state = json.loads(zlib.decompress(path.read_bytes()))
            except (OSError, ValueError, zlib.error) as error:
                raise _damaged(str(path), str(error)) from None
            self.pipeline.restore(state)
        self._at = last

    def _fresh(self) -> Pipeline:
        options = self._options
        return Pipeline(
            self._deployment,
            lateness=options.lateness,
            on_late=self._late,
            on_refused=None if options.on_error == "fail" else self._refused,
            max_jump=options.max_jump,
        )

    def _late(self, time: Time, part: Part) -> None:
        clock = self.pipeline.clock
        assert clock is not None
        if self._options.late == "fail":
            raise DataError(
                Diagnostic(
                    "D2301",
                    f"a graph is for {clock.text(time)}, an instant that is already closed",
                    hint="allow for disorder with a lateness, or drop such graphs",
                )
            )
        self._taken.late += 1
        if self._options.late == "keep":
            self._lines.late.append(late_line(time, part, clock))

    def _refused(self, time: Time, parts: Sequence[Part], error: DotrError) -> None:
        clock = self.pipeline.clock
        assert clock is not None
        self._taken.refused += len(parts)
        if self._options.on_error == "keep":
            for part in parts:
                more = json.loads(late_line(time, part, clock))
                self._lines.letters.append(dead_letter(error, None, "", more))


def _name(number: int) -> str:
    return f"{number:012}"


def _number(name: str) -> int:
    return int(name.removesuffix(_LAST))


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
    """A file, complete or not there."""
    part = path.with_name(f".{path.name}.part")
    try:
        with open(part, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError as error:
        raise unwritable(str(path), error) from None


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise _damaged(str(path), str(error)) from None


def _compare(known: dict[str, Any], meta: dict[str, Any], place: str) -> None:
    """Raise RefusedError D5220 unless a checkpoint is of the same rules and options."""
    if known.get("version") != VERSION:
        raise _damaged(place, f"version {known.get('version')!r}")
    rules, before = meta["rules"], known["rules"]
    told = [
        *(f"rule `{name}` is new" for name in rules if name not in before),
        *(f"rule `{name}` is gone" for name in before if name not in rules),
        *(f"rule `{name}` is another" for name in rules if name in before and rules[name] != before[name]),
    ]
    told += [
        f"the {what} is another" for what in ("background", "format", "lateness") if known[what] != meta[what]
    ]
    if told:
        raise RefusedError(
            Diagnostic(
                "D5220",
                "the checkpoint belongs to other rules or options",
                place=place,
                notes=tuple(told),
                hint="start anew with another --checkpoint and --out; rules that change while state stays "
                "are what `dotr deploy` and `dotr feed` are for",
            )
        )


def _damaged(place: str, what: str) -> EngineError:
    return EngineError(
        Diagnostic(
            "D5221",
            "the state of the stream cannot be read",
            place=place,
            label=what,
            hint="start anew with another --checkpoint and --out",
        )
    )
