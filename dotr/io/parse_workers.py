"""Processes that parse the lines of a file ahead of the rules: `dotr run --jobs N`.

Place:   used by reader.py for JSON lines in files; `dotr run` owns them.
Method:  lines go to the processes in groups, in turn, and what they say comes back in that order, as
         columns. A process takes what is sent at once and parses afterwards, so whoever sends does not wait.
         What a process leaves alone (errors, messages with other parts) is parsed here, as without it:
         diagnostics, order and bytes are the same.
Why not: threads: pyoxigraph keeps the interpreter's lock, two threads take longer than one. A pool of the
         standard library: its threads wait for the lock that the rules hold.
Bad input: D4314 a process that ends early.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from queue import SimpleQueue
from threading import Thread
from typing import IO, Any, NamedTuple, TypeAlias

from dotr.errors import DataError, EngineError
from dotr.io.decode.json_lines import LineBatch, Lines, Said
from dotr.rdf.terms import Triple

Found: TypeAlias = tuple[list[list[Triple]], list[Said]] | None
"""What `Lines.graphs` gives."""

GROUP = 8
"""Batches that are sent at once."""

WAITING = 3
"""Groups that each process may have in hand."""

_SIZE = 4
_PROGRAM = "import sys; sys.path[:] = {path!r}; from dotr.io.parse_workers import work; work({base!r})"


class Parsed(NamedTuple):
    """Lines, and what a process found in them."""

    batch: LineBatch
    found: Found


class ParseWorkers:
    """Owns the processes; they are started when the first lines come. `close` ends them."""

    def __init__(self, count: int, base: str | None) -> None:
        self._count, self._base = count, base
        self._running: list[subprocess.Popen[bytes]] = []
        self._free = True

    def parsed(self, batches: Iterator[LineBatch]) -> Iterator[Parsed]:
        """The batches in their order, as far ahead as the processes are. Raises what reading them raises,
        after the batches before it, and EngineError D4314.
        """
        running = self._started()
        sent: deque[tuple[int, list[LineBatch]]] = deque()
        groups = enumerate(_groups(batches))
        wrong: DataError | None = None
        try:
            while True:
                while wrong is None and len(sent) < WAITING * self._count:
                    try:
                        number, group = next(groups, (0, []))
                    except DataError as error:
                        wrong = error
                        break
                    if not group:
                        break
                    _send(running[number % self._count], [batch.contents for batch in group])
                    sent.append((number % self._count, group))
                if not sent:
                    break
                worker, group = sent[0]
                found = _received(running[worker])
                sent.popleft()
                yield from map(Parsed, group, found)
        finally:
            if sent:  # somebody stopped in the middle: nobody waits for what is on its way
                _end(running)
        self._free = True
        if wrong is not None:
            raise wrong

    def _started(self) -> list[subprocess.Popen[bytes]]:
        """The processes, new ones where those that are there are still at something else."""
        if not self._free:
            self.close()
        self._free = False
        while len(self._running) < self._count:
            program = _PROGRAM.format(path=sys.path, base=self._base)
            command, pipe = [sys.executable, "-c", program], subprocess.PIPE
            self._running.append(subprocess.Popen(command, stdin=pipe, stdout=pipe))  # noqa: S603  # this Python
        return self._running

    def close(self) -> None:
        """End the processes, whatever they are doing."""
        _end(self._running)
        self._running, self._free = [], True

    def __enter__(self) -> ParseWorkers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _send(worker: subprocess.Popen[bytes], contents: list[list[bytes]]) -> None:
    assert worker.stdin is not None
    try:
        _write(worker.stdin, contents)
    except OSError:
        raise _ended(worker) from None


def _received(worker: subprocess.Popen[bytes]) -> list[Found]:
    assert worker.stdout is not None
    found: list[Found] | None = _read(worker.stdout)
    if found is None:
        raise _ended(worker)
    return found


def _ended(worker: subprocess.Popen[bytes]) -> EngineError:
    status = worker.wait()
    return EngineError.of(
        "D4314",
        "a process that parses for this run ended early",
        label=f"signal {-status}" if status < 0 else f"status {status}",
        notes=("most likely memory ran out and the system ended it",),
        hint="--jobs 1 parses in the process of the rules",
    )


def _end(running: list[subprocess.Popen[bytes]]) -> None:
    """Kill processes."""
    for process in running:
        process.kill()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()
        process.wait()


def _groups(batches: Iterator[LineBatch]) -> Iterator[list[LineBatch]]:
    """Batches in groups; those before an error come before it."""
    wrong: DataError | None = None
    ended = False
    while not ended:
        group: list[LineBatch] = []
        try:
            group.extend(islice(batches, GROUP))
        except DataError as error:
            wrong = error
        ended = len(group) < GROUP
        if group:
            yield group
    if wrong is not None:
        raise wrong


def work(base: str | None) -> None:
    """What a process does: parse what comes, until who sends it is gone."""
    import signal  # noqa: PLC0415  # of the processes alone

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started it ends it
    waiting: SimpleQueue[Any] = SimpleQueue()

    def take() -> None:
        while (groups := _read(sys.stdin.buffer)) is not None:
            waiting.put(groups)
        os._exit(0)  # who started it is gone, or ends it: nobody waits for the rest

    Thread(target=take, daemon=True).start()
    lines = Lines("", base)
    with suppress(OSError):  # nobody takes it any more
        while True:
            groups = waiting.get()
            _write(sys.stdout.buffer, [lines.graphs(contents) for contents in groups])
    os._exit(0)


def _write(to: IO[bytes], value: Any) -> None:
    content = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    to.write(len(content).to_bytes(_SIZE, "little"))
    to.write(content)
    to.flush()


def _read(source: IO[bytes]) -> Any:
    """The next value, None at the end."""
    head = source.read(_SIZE)
    size = int.from_bytes(head, "little")
    content = source.read(size) if len(head) == _SIZE else b""
    return pickle.loads(content) if content and len(content) == size else None  # noqa: S301  # of our own process
