"""Random whole programs over graphs that come late, corrected, stopped and killed: what remains is what a run
in order reports.

    python -m tests.whole_corrections --runs 5000
    python -m tests.whole_corrections --runs 0 --deployed 500

Place:   tests/service/test_corrections.py runs some of them; the long run is started by hand. Engines are
         compared by tests/core/test_corrections.py.
Method:  a deployment is fed a file in order of arrival. It is killed between two writes of the disk, or
         stopped between two graphs, several times, each time with another pace of commits; the file may have
         grown meanwhile. What remains of its changes, in a file and in the outbox, is what an engine without
         corrections reports of the graphs that were taken, in order of time. What was too late is in the file
         of late graphs, once.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

import dotr
from dotr.explain.proofs import Corrected, EventProof
from dotr.io.changes import changes_formatter
from dotr.io.decode.rdf import split_triples
from dotr.io.feeds import FileSource
from dotr.io.sources import SourceOptions
from dotr.lasting import instants
from dotr.program import Program
from dotr.service.database import Disk
from dotr.service.deployment import commit_proposal, deployed_program, propose
from dotr.service.feed import CheckpointPolicy, Feed, FeedOptions, keeping_of, open_feed
from dotr.service.history import FedDeployment, Question, explained
from dotr.service.journal import Journal, planned
from dotr.service.outbox import Outbox, OutboxReader
from dotr.service.outputs import AppendingFile, FileSink
from tests.core.test_corrections import Message, compare_lasting, compare_whole, delayed, pushed
from tests.sequences import graph_of
from tests.service.test_feed import Killed, Stop
from tests.test_whole_lasting import loaded
from tests.whole import wholes
from tests.whole_lasting import HOLDS, lastings
from tests.whole_sequences import worlds

SECOND = 1_000_000


class Case(Struct, frozen=True):
    """A program as files, of which `roots` are deployed, its background, and messages as they come."""

    files: Mapping[str, str]
    roots: Sequence[str]
    background: str
    come: Sequence[Message]
    program: Callable[[], Program]

    def __str__(self) -> str:
        files = "".join(f"--- {name}\n{text}\n" for name, text in self.files.items())
        return f"{files}--- background\n{self.background}\n" + "\n".join(map(str, self.come))


def whole_case(random: Random) -> Case:
    """Of tests/whole.py."""
    whole = wholes(random)
    messages = [Message(one.time, one.text, None, None, False) for one in whole.stream]
    rules = whole.rules, whole.datalog
    return _case(rules, whole.background, delayed(random, messages))


def lasting_case(random: Random) -> Case:
    """Of tests/whole_lasting.py; its rules stay."""
    lasting = replace(lastings(random), then=())
    messages = [Message(one.time, one.graph, one.insert, one.delete, False) for one in lasting.stream]
    return _case(lasting.rules, lasting.background, delayed(random, messages))


def _case(rules: tuple[str, str], background: str, come: Sequence[Message]) -> Case:
    files = {"a.dotr": rules[0], "h.lars": HOLDS} | ({"a.dlog": rules[1]} if rules[1] else {})
    roots = [name for name in files if name != "h.lars"]
    return Case(files, roots, background, come, lambda: loaded(rules))


@st.composite
def sequence_cases(draw: st.DrawFn) -> Case:
    """Of tests/whole_sequences.py."""
    world = draw(worlds())
    messages = [Message(time, graph_of(rows), None, None, False) for time, rows in world.stream]
    files = {"a.dotr": world.rules, "r.dlog": world.datalog, "h.lars": world.heads}
    return Case(files, ["a.dotr"], "", delayed(Random(world.noise), messages), world.program)


class LateGraphs(AppendingFile):
    """Late graphs with their places."""

    def letter(self, line: str, place: str = "", time: int | None = None) -> None:
        super().letter(json.dumps({**json.loads(line), "place": place}), place, time)


class Pace(Struct, frozen=True):
    """How a deployment is fed all its life."""

    period: int
    share: float
    lateness: int


def feed(
    folder: Path,
    pace: Pace,
    *,
    disk: Disk | None = None,
    every: int = 10**9,
    keep_open: bool = False,
    stopping: Callable[[], bool] = lambda: False,
) -> Feed:
    """Feed `in.jsonl` to its end."""
    with Journal(str(folder / "state"), disk=disk) as journal:
        program = deployed_program(journal.deployed())
        options = FeedOptions(
            fail_on_error=False,
            corrections=pace.period * SECOND,
            corrections_share=pace.share,
            lateness=pace.lateness * SECOND,
        )
        policy = CheckpointPolicy(graphs=every, seconds=1e9, share=0)
        feeding = open_feed(journal, program, options, policy, lambda _finding: None)
        try:
            write = changes_formatter("jsonl", {})[1]
            out, late, refused = (str(folder / f"{name}.jsonl") for name in ("out", "late", "refused"))
            feeding.sinks = [FileSink(write, AppendingFile(journal, out, "jsonl")), Outbox(changes=True)]
            feeding.delayed = LateGraphs(journal, late, "jsonl")
            feeding.dead_letters = AppendingFile(journal, refused, "jsonl")
            feeding.stopping = stopping
            feeding.keeping = keeping_of(journal, feeding.pipeline)
            if (plan := journal.plan()) is not None:
                feeding.plan(plan, deployed_program(planned(plan)), split_triples(plan.background))
            feeding.resume()
            feeding.run(FileSource([str(folder / "in.jsonl")], SourceOptions(), fail=False), keep_open)
        finally:
            feeding.close()
    return feeding


def deploy(folder: Path, case: Case, keep: int = 0) -> None:
    """`keep`: messages, for so many seconds. Raises ProgramError, DataError."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in case.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "background.ttl").write_text(case.background, encoding="utf-8")
    with Journal(str(folder / "state"), create=True) as journal:
        roots = [str(folder / name) for name in case.roots]
        commit_proposal(journal, propose(journal, roots, [str(folder / "background.ttl")]))
        journal.keep(keep * SECOND)


def write(folder: Path, messages: Iterable[Message]) -> None:
    """The file that is fed."""
    lines = []
    for one in messages:
        parts = {"graph": one.graph, "insert": one.insert, "delete": one.delete}
        there = {name: text for name, text in parts.items() if text is not None}
        lines.append(json.dumps({"time": one.time, **there}) + "\n")
    (folder / "in.jsonl").write_text("".join(lines), encoding="utf-8")


def disturbed(folder: Path, case: Case, pace: Pace, random: Random, ends: int) -> int:
    """Feed a case that is killed and stopped at most so many times; how many ends struck."""
    struck, come = 0, case.come
    parts = sorted({random.randint(1, len(come)), len(come)})
    for end in parts:
        write(folder, come[:end])
        for left in range(ends, -1, -1):
            every, kills = random.choice((1, 2, 5, 10**9)), random.random() < 0.7
            disk = (
                Killed(random.randint(1, 12 + 24 * len(come) // min(every, 12))) if left and kills else None
            )
            stopping = Stop(random.randint(1, len(come)) if left and not kills else 10**9)
            try:
                feed(folder, pace, disk=disk, every=every, keep_open=end < len(come), stopping=stopping)
                break
            except KeyboardInterrupt:
                struck += 1
    return struck


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def remaining(changes: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """What remains; an event is taken back only after it was reported."""
    there: Counter[str] = Counter()
    for change in changes:
        event = {k: v for k, v in change.items() if k not in ("change", "corrected_at", "cause", "number")}
        there[json.dumps(event)] += change["change"]
        assert there[json.dumps(event)] >= 0, event
    return +there


def compare(folder: Path, case: Case, random: Random, ends: int = 4) -> int | None:
    """How many events corrections added or took back; None: the program is refused."""
    pace = Pace(random.choice((3, 6, 3600)), random.choice((0.05, 0.5, 0.95)), random.choice((0, 0, 2)))
    keep = random.choice((0, 2, 86_400))
    try:
        deploy(folder, case, keep)
        plain = dotr.Engine(case.program(), background=case.background, on_error="skip")
    except (dotr.ProgramError, dotr.DataError):
        return None
    disturbed(folder, case, pace, random, ends)
    changes = lines_of(folder / "out.jsonl")
    with OutboxReader(str(folder / "state")) as reader:
        assert [json.loads(row.line) for row in reader.after(0, 10**6)] == changes, "outbox"
        assert not reader.after(0, 10**6) or reader.after(0, 10**6)[-1].number == len(changes), "numbers"
    there = remaining(changes)
    if (folder / "refused.jsonl").stat().st_size:
        return 0
    dropped = Counter(one["place"].rpartition(":")[2] for one in lines_of(folder / "late.jsonl"))
    assert max(dropped.values(), default=1) == 1, "a late graph is reported twice"
    taken = [one for number, one in enumerate(case.come, 1) if str(number) not in dropped]
    expected: list[dotr.Event] = []
    for one in sorted(taken, key=lambda one: one.time):
        expected += pushed(plain, one)
    expected += plain.finish()
    if plain.refused:
        return 0
    wanted = Counter(json.dumps(json.loads(event.to_json())) for event in expected)
    assert there == wanted, f"more {there - wanted}, less {wanted - there}"
    with Journal(str(folder / "state"), exclusive=False) as journal:
        status = journal.status()
    assert (status["graphs"], status["late"]) == (len(taken), sum(dropped.values()))
    assert status["events"] == plain.counters.events
    if keep:
        explain(folder, changes, random, whole=keep > 1_000)
    return sum("corrected_at" in change for change in changes)


def explain(folder: Path, changes: Sequence[Mapping[str, Any]], random: Random, whole: bool) -> None:
    """Some events are explained: those that were withdrawn by what they were. `whole`: all is kept."""
    fed = FedDeployment(str(folder / "state"))
    last = {change["id"]: change["change"] for change in changes}
    gone = [name for name in last if last[name] < 0]
    there = [name for name in last if last[name] > 0]
    for name in random.sample(gone, min(3, len(gone))) + random.sample(there, min(2, len(there))):
        try:
            reasons = explained(fed, Question(event_id=name), verify=whole)
        except dotr.DataError:
            if whole:
                raise
            continue
        (found,) = reasons.found
        assert reasons.happened is (last[name] > 0), name
        corrected = [change for change in changes if change["id"] == name and "corrected_at" in change]
        event = found.event if isinstance(found, Corrected) else found
        assert isinstance(event, EventProof)
        assert event.id == name
        assert not corrected or (isinstance(found, Corrected) and len(found.changes) == len(corrected)), name
        for format_ in ("text", "json", "ttl", "html"):
            assert reasons.written(format_)


def deployed(number: int, folder: Path) -> int | None:
    """The case of a seed, deployed."""
    random = Random(number)
    case = (whole_case, lasting_case)[number % 2](random)
    try:
        return compare(folder, case, random)
    except dotr.ProgramError as error:
        if error.diagnostics[0].code != "D4013":
            raise
        return None


def main(arguments: Sequence[str] | None = None) -> None:
    """As the module says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=1_000, help="programs in an engine")
    parser.add_argument("--deployed", type=int, default=0, help="programs deployed, stopped and killed")
    parser.add_argument("--sequences", type=int, default=0, help="programs with sequences, deployed likewise")
    parser.add_argument("--seed", type=int, default=1)
    given_ = parser.parse_args(arguments)
    setattr(instants, "DEEPEST", 12)  # noqa: B010  # effects that follow one another without an end
    counts: Counter[str] = Counter()

    def note(kind: str, found: int | None) -> None:
        counts[kind] += 1
        counts[f"{kind}, corrected"] += bool(found)
        counts[f"{kind}, refused"] += found is None
        if sum(counts[one] for one in KINDS) % 100 == 0:
            print(dict(counts), flush=True)

    for number in range(given_.seed, given_.seed + given_.runs):
        print(f"seed {number}", end="\r", flush=True)
        note("engine", (compare_whole, compare_lasting)[number % 2](number))
    with tempfile.TemporaryDirectory() as folder:
        for number in range(given_.seed, given_.seed + given_.deployed):
            try:
                note("deployed", deployed(number, Path(folder) / str(number)))
            except BaseException:
                print(f"seed {number}", flush=True)
                raise
        if not given_.sequences:
            print(dict(counts))
            return

        @seed(given_.seed)
        @settings(
            max_examples=given_.sequences,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.generate, Phase.shrink),
        )
        @given(sequence_cases(), st.integers(0, 9_999))
        def each(case: Case, noise: int) -> None:
            with tempfile.TemporaryDirectory(dir=folder) as own, suppress(KeyboardInterrupt):
                note("sequences", compare(Path(own), case, Random(noise)))

        each()
    print(dict(counts))


KINDS = ("engine", "deployed", "sequences")

if __name__ == "__main__":
    main()
