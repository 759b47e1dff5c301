"""One stream in partitions, however it is cut, disordered and silent: the events of the stream in order."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from dotr.io.decode.documents import Format
from dotr.io.feeds import Document, DocumentSource, GraphSource, Position, together
from dotr.io.merged_source import MergedSource
from tests.service.deployments import deploy, feed, stream
from tests.service.test_source_and_sink import Queue

LINES = stream(60, bad=False)


@cache
def expected() -> tuple[str, ...]:
    """The events of the lines as one file, which is in order."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "in.jsonl")
        path.write_text("".join(f"{line}\n" for line in LINES))
        feed(deploy(Path(folder)), [str(path)], [f"{folder}/out.nq"])
        return tuple(Path(folder, "out.nq").read_text().splitlines())


class Restless(Queue):
    """A queue that is silent now and then."""

    def __init__(
        self, name: str, documents: dict[str, list[bytes]], batch: int, noise: random.Random, joined: bool
    ) -> None:
        super().__init__(documents, batch)
        self.name, self._noise, self._joined = name, noise, joined

    def open(self, partition: str, position: Position | None) -> Iterator[Sequence[Document]]:
        for batch in super().open(partition, position):
            for _ in range(self._noise.choice((0, 0, 1, 3))):
                yield ()
            yield together(batch) if self._joined else batch


def disordered(lines: Sequence[str], lateness: int, noise: random.Random) -> list[str]:
    """Lines of which none comes later than allowed."""
    keyed = [(json.loads(line)["time"] + noise.uniform(0, lateness), n) for n, line in enumerate(lines)]
    return [lines[n] for _, n in sorted(keyed)]


@settings(max_examples=40, deadline=None)
@given(
    partitions=st.integers(1, 5),
    sources=st.integers(1, 3),
    batch=st.sampled_from((1, 2, 7, 50)),
    lines=st.sampled_from((1, 1, 3, 20)),
    joined=st.booleans(),
    lateness=st.sampled_from((0, 1, 5)),
    every=st.sampled_from((1, 10, 1000)),
    seed=st.integers(0, 2**16),
)
def test_any_cut_of_a_stream_gives_its_events(
    partitions: int,
    sources: int,
    batch: int,
    lines: int,
    joined: bool,
    lateness: int,
    every: int,
    seed: int,
) -> None:
    noise = random.Random(seed)
    parts: list[list[str]] = [[] for _ in range(partitions * sources)]
    for line in LINES:
        noise.choice(parts).append(line)
    documents = [
        ["\n".join(part[i : i + lines]).encode() for i in range(0, len(part), lines)]
        for part in (disordered(part, lateness, noise) for part in parts)
    ]
    made: list[GraphSource] = []
    for number in range(sources):
        mine = documents[number * partitions : (number + 1) * partitions]
        queue = Restless(f"s{number}", {f"p{n}": of for n, of in enumerate(mine)}, batch, noise, joined)
        made.append(DocumentSource(queue, Format.JSONLINES, idle=None))
    source = made[0] if sources == 1 else MergedSource(made, None)
    with tempfile.TemporaryDirectory() as folder:
        state = deploy(Path(folder))
        found = feed(
            state, [], [f"{folder}/out.nq"], source=source, lateness=lateness * 1_000_000, every=every
        )
        assert found.totals.late == 0
        assert tuple(Path(folder, "out.nq").read_text().splitlines()) == expected()
