"""A deployment: rules that outlive the process, with the files and background they were deployed with.

Place:   `dotr deploy`, `undeploy`, `status` and `feed` work on one; tables are the journal's.
Method:  every rule file that was read is kept, so a feed runs what was deployed, whatever became of the
         files. What a redeploy keeps is decided by rule digests (detect/digest.py): a rule whose digest is
         unchanged finds its state under it again.
         Closed background: `dotr deploy` keeps the one it compiled, `dotr feed` loads it. The key is a hash
         of everything that the closure follows from: the explicit background (known by the hash in the
         deployment, files added for one feed by their bytes), all Datalog rules, the relations that queries
         read, and dotr's version. One entry is kept, in the journal, with a hash of its own content. An entry
         that does not fit or is damaged is replaced by a new closure.
Why not: closing at every start: under OWL 2 RL over 100k triples that is seconds, loading is a tenth of one.
Bad input: D5209 no such rule · D5210 a rule whose events another one reads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from hashlib import blake2b
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from dotr.budget import BUDGET
from dotr.core.deployment import Deployment, Settings
from dotr.core.pipeline import NOBODY, Pipeline, PipelineObserver
from dotr.detect.digest import rule_digests
from dotr.errors import (
    NOT_WRITTEN,
    DataError,
    Diagnostic,
    Diagnostics,
    EngineError,
    ProgramError,
    RefusedError,
    Severity,
)
from dotr.events import Clock, Time
from dotr.extract.extractor import wanted
from dotr.io.decode.documents import MAX_DOCUMENT, STREAM_BASE, content_hash, read_bytes
from dotr.io.decode.rdf import STRICT, ParseChoices, split_triples
from dotr.io.rules_and_background import read_background, read_rules_text
from dotr.io.sources import resolve
from dotr.lang import check_program, load_program, warnings_of
from dotr.lang.loading import Loader
from dotr.program import Program, Rule
from dotr.rdf.terms import Triple
from dotr.regex import regex
from dotr.service.journal import Deployed, Journal, PlannedProgram
from dotr.version import __version__


class Added(Struct, frozen=True):
    """Background files beside the deployed ones, for one feed."""

    paths: Sequence[str] = ()
    base: str = STREAM_BASE
    limit: int = MAX_DOCUMENT
    choices: ParseChoices | None = None

    def triples(self) -> list[Triple]:
        return read_background(self.paths, self.base, self.limit, choices=self.choices)

    def hashes(self) -> list[str]:
        """What the triples follow from. Reads the files, parses none."""
        files = resolve(self.paths)
        choices = self.choices or STRICT
        read = [] if choices.rdf12 == STRICT.rdf12 else [choices.rdf12]
        read += [f"{iri} {content_hash(text.encode())}" for iri, text in sorted(choices.contexts.items())]
        return [self.base, *read, *(f"{file} {content_hash(read_bytes(file, self.limit))}" for file in files)]


NOTHING_ADDED = Added()


def resumed(
    journal: Journal,
    program: Program,
    added: Added = NOTHING_ADDED,
    *,
    materialize_all: bool = False,
    budget: int = BUDGET,
    observer: PipelineObserver = NOBODY,
    make: Callable[..., Pipeline] = Pipeline,
    **more: Any,
) -> Pipeline:
    """The pipeline of a deployment, by `make`, before its state is restored; `more` is handed on to it.
    Raises ProgramError, DataError, EngineError.
    """
    settings = Settings(materialize_all=materialize_all, budget=budget)
    journal.keep_functions(program.versions)
    return make(_compiled(journal, program, added, settings), observer, **more)


def _compiled(journal: Journal, program: Program, added: Added, settings: Settings) -> Deployment:
    """Closes the background only where the journal has not kept it, and keeps it then."""

    def background() -> list[Triple]:
        return split_triples(journal.background()) + added.triples()

    key = closed_key(program, journal.deployed().background, added, settings.materialize_all)
    kept = journal.closed(key)
    if kept is not None:
        deployment = Deployment(program, background, settings, closed=kept)
        with suppress(EngineError, *NOT_WRITTEN):  # damaged, or of another version: closed again
            deployment.load()
            return deployment
    deployment = Deployment(program, background, settings)
    journal.keep_closed(key, deployment.closed_background())
    return deployment


def closed_key(
    program: Program, background: str, added: Added = NOTHING_ADDED, materialize_all: bool = False
) -> str:
    """A name for the closed background; `background` is the hash of the deployed triples."""
    hashes = added.hashes() if added.paths else ()
    parts = [
        __version__,
        program.entailment,
        *map(repr, program.datalog),
        "needed",
        *sorted(wanted(program, materialize_all)),
        "background",
        background,
        *hashes,
    ]
    return blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()


class RuleChange(StrEnum):
    """What a redeploy means for one rule."""

    ADDED = "added"
    SAME = "same"
    CHANGED = "changed"
    REMOVED = "removed"


class DeploymentChange(Struct, frozen=True):
    """One line of what a deploy says: a rule, what becomes of it, and why."""

    rule: str
    change: RuleChange
    why: str = ""


class Proposal(Struct, frozen=True):
    """A deploy that was checked and compiled but not yet done."""

    deployed: Deployed
    compiled: Deployment
    differences: tuple[DeploymentChange, ...]
    background_changed: tuple[int, int]
    """How many triples of the background are new, and how many are gone."""
    warnings: tuple[Diagnostic, ...]


def deployed_program(deployed: Deployed) -> Program:
    """The program as deployed, from the stored texts."""
    texts = deployed.texts or {}

    def read(path: str) -> str:
        if path not in texts:
            raise FileNotFoundError(2, "not part of the deployment", path)
        return texts[path]

    return load_program(list(deployed.files), read, deployed.removed) if deployed.files else Program()


def deployed_background(journal: Journal) -> list[Triple]:
    """The background as deployed."""
    return split_triples(journal.background())


def propose(
    journal: Journal,
    rules: Sequence[str],
    more_background: Sequence[str] = (),
    base: str = STREAM_BASE,
    limit: int = MAX_DOCUMENT,
    budget: int = BUDGET,
    on_stage: Callable[[str], None] = lambda _stage: None,
) -> Proposal:
    """Check and compile what a deployment would be with these rule files added or replaced.

    `on_stage` is called with what begins now. Paths in the deployment are relative to the folder it lies in.
    Raises ProgramError, DataError.
    """
    old = journal.deployed()
    home = journal.folder.absolute().parent
    given = [_relative(path, home) for path in rules]
    files = [*old.files, *(path for path in dict.fromkeys(given) if path not in old.files)]
    texts: dict[str, str] = {}

    def fresh(path: str) -> str:
        if path not in texts:
            texts[path] = read_rules_text(_found(path, home))
        return texts[path]

    def read(path: str) -> str:
        if path not in texts and path in stored:
            texts[path] = stored[path]
        return fresh(path)

    stored = old.texts or {}
    Loader(fresh, Diagnostics()).paths(given)  # the files given, and all that these name, are read again
    removed = frozenset((file, rule) for file, rule in old.removed if file not in given)
    program, found = _checked(files, read, removed)
    paths = [_found(path, home) for path in program.background]
    named = {_found(path, home): span for path, span in program.named.items()}
    on_stage("read the background")
    background = tuple(read_background([*paths, *more_background], base, limit, named=named))
    on_stage(f"close {len(background):,} triples")
    return _proposal(
        journal, program, found, Deployed(tuple(files), texts, removed), background, Settings(budget=budget)
    )


def propose_texts(
    journal: Journal, texts: Mapping[str, str], roots: Sequence[str], budget: int = BUDGET
) -> Proposal:
    """Check and compile what a deployment would be with these rule files and no others, the background being
    the same.

    `texts`: by names that are relative; what `roots` name, and what these import, is deployed. Imports are
    looked for among the texts, then in the deployment, and as patterns of dotr; no file is read. Raises
    ProgramError, DataError D5216.
    """
    old = journal.deployed()
    stored = old.texts or {}
    read_texts: dict[str, str] = {}

    def read(path: str) -> str:
        name = os.path.normpath(path) if not path.startswith("dotr:") else path
        if name in texts:
            text = texts[name]
        elif name.startswith("dotr:"):
            text = read_rules_text(name)
        elif name in stored:
            text = stored[name]
        else:
            raise FileNotFoundError(2, "neither sent nor deployed", path)
        read_texts[path] = text
        return text

    for name in (*texts, *roots):
        if not _is_plain(name):
            raise DataError.of(
                "D5216", f"`{name}` is not the name of a rule file", hint="a relative name: building.dotr"
            )
    program, found = _checked(roots, read, frozenset())
    before = deployed_program(old)
    for path in program.background:
        if path not in before.background:
            raise DataError.of(
                "D5216",
                f"the background `{path}` is not that of the deployment",
                notes=tuple(f"it has `{known}`" for known in before.background),
                hint="deploy it with dotr deploy, or name it in the configuration",
            )
    background = tuple(deployed_background(journal))
    deployed = Deployed(tuple(roots), read_texts)
    return _proposal(journal, program, found, deployed, background, Settings(budget=budget))


def _is_plain(name: str) -> bool:
    """Whether a name is relative, and stays where it is."""
    parts = name.split("/")
    return bool(name) and all(_PART.fullmatch(part) and part.strip(".") for part in parts)


_PART = regex(r"[A-Za-z0-9_.-]{1,100}")


def _checked(
    files: Sequence[str], read: Callable[[str], str], removed: frozenset[tuple[str, str]]
) -> tuple[Program, list[Diagnostic]]:
    """The program of rule files, and what is to be said of it. Raises ProgramError."""
    program, found = check_program(files, read, removed)
    errors = [d for d in found if d.severity is Severity.ERROR]
    if errors:
        raise ProgramError(errors)
    if program is None:
        program = load_program(files, read, removed)  # says what the check does not count as an error
    return program, found


def _proposal(
    journal: Journal,
    program: Program,
    found: list[Diagnostic],
    deployed: Deployed,
    background: tuple[Triple, ...],
    settings: Settings,
) -> Proposal:
    """A program that was checked, compiled, and what it changes."""
    compiled = Deployment(program, background, settings)
    compiled.compile()  # what cannot run is reported now
    before = deployed_program(journal.deployed())
    was, now = set(deployed_background(journal)), set(background)
    hash_ = blake2b(_text_of(background).encode(), digest_size=16).hexdigest()
    return Proposal(
        replace(deployed, background=hash_, functions=program.versions),
        compiled,
        differences(before, program),
        (len(now - was), len(was - now)),
        warnings_of(found, bool(deployed.removed)),
    )


def commit_proposal(journal: Journal, proposal: Proposal) -> None:
    """Do what was proposed."""
    compiled = proposal.compiled
    key = closed_key(compiled.program, proposal.deployed.background)
    closed = compiled.closed_background()
    journal.deploy(proposal.deployed, _text_of(compiled.background), (key, closed))


def plan_of(proposal: Proposal, time: Time, clock: Clock) -> PlannedProgram:
    """What was proposed, to be deployed from a time on."""
    deployed = proposal.deployed
    content = {
        "files": list(deployed.files),
        "texts": dict(deployed.texts or {}),
        "removed": sorted(map(list, deployed.removed)),
        "background": deployed.background,
        "functions": deployed.functions,
    }
    return PlannedProgram(time, (clock.integer, clock.unit), content, _text_of(proposal.compiled.background))


def refuse_planned(journal: Journal) -> None:
    """Raise RefusedError D5211 while a change is planned: what it was planned over would not be there."""
    plan = journal.plan()
    if plan is not None:
        raise RefusedError.of(
            "D5211",
            f"a change is planned from {Clock(*plan.clock).text(plan.time)} on",
            place=str(journal.folder),
            hint="feed beyond that time, or withdraw the plan: dotr undeploy --planned",
        )


def undeploy(journal: Journal, name: str) -> Program:
    """Take one rule out; the program that is left. Raises DataError D5209, RefusedError D5210, D5211."""
    whole, left = undeployed(journal, name)
    journal.deploy(whole, journal.background())
    return left


def undeployed(journal: Journal, name: str) -> tuple[Deployed, Program]:
    """What would be deployed without one rule, and the program of it. Raises as `undeploy`."""
    refuse_planned(journal)
    deployed = journal.deployed()
    program = deployed_program(deployed)
    if name not in {rule.name for rule in program.rules}:
        have = ", ".join(f"`{rule.name}`" for rule in program.rules) or "none"
        raise DataError.of(
            "D5209", f"no rule `{name}` is deployed", notes=(f"deployed: {have}",), hint="dotr status"
        )
    readers = [
        rule.name
        for rule in program.rules
        if rule.name != name and any(p.chained and p.stream == name for p in rule.positions)
    ]
    if name in program.lars.reads:
        readers.append("LARS")
    if readers:
        kind = program.rules[program.rule_index(name)].kind
        raise RefusedError.of(
            "D5210",
            f"{kind} `{name}` is read by {', '.join(f'`{reader}`' for reader in readers)}",
            notes=("a rule without the events it reads would silently stop",),
            hint="deploy .lars files that do not read it"
            if readers[0] == "LARS"
            else f"undeploy {readers[0]} first",
        )
    left = program.without([name])
    removed = deployed.removed | {(file, name) for file in deployed.files}
    whole = replace(deployed, removed=removed, functions=left.versions)
    return whole, left


def differences(before: Program, after: Program) -> tuple[DeploymentChange, ...]:
    """Rule by rule, what changed from one program to another: those of `after` in order, then the removed."""
    old = dict(zip((rule.name for rule in before.rules), rule_digests(before), strict=True))
    found = []
    for rule, digest in zip(after.rules, rule_digests(after), strict=True):
        if rule.name not in old:
            found.append(DeploymentChange(rule.name, RuleChange.ADDED))
        elif old[rule.name] == digest:
            found.append(DeploymentChange(rule.name, RuleChange.SAME))
        else:
            found.append(DeploymentChange(rule.name, RuleChange.CHANGED, _why(rule, before, after)))
    names = {rule.name for rule in after.rules}
    found += [
        DeploymentChange(rule.name, RuleChange.REMOVED) for rule in before.rules if rule.name not in names
    ]
    return tuple(found)


def _why(rule: Rule, before: Program, after: Program) -> str:
    """What about a rule is different, in the words of its author."""
    old = before.rules[before.rule_index(rule.name)]
    if old != rule:
        return "its text changed"
    was, now = before.selects, after.selects
    for position in rule.positions:
        if not position.within_instant and was.get(position.stream) != now.get(position.stream):
            return f"its query `{position.name}` changed"
    if any(position.held for position in rule.positions) and before.lars != after.lars:
        return "the rules of what holds changed"
    if before.entailment is not after.entailment:
        return "ENTAILMENT changed"
    chained = [p.stream for p in rule.positions if p.chained]
    changed = {d.rule for d in differences_of(chained, before, after)}
    if changed:
        first = min(changed, key=chained.index)
        return f"{after.rules[after.rule_index(first)].kind} `{first}`, which it reads, changed"
    return "Datalog rules that its queries reach changed"


def differences_of(names: Sequence[str], before: Program, after: Program) -> list[DeploymentChange]:
    """The differences of some rules that are in both programs, without those that are the same."""
    old = dict(zip((rule.name for rule in before.rules), rule_digests(before), strict=True))
    new = dict(zip((rule.name for rule in after.rules), rule_digests(after), strict=True))
    return [DeploymentChange(name, RuleChange.CHANGED) for name in names if old.get(name) != new.get(name)]


def _relative(path: str, home: Path) -> str:
    """A path as the deployment calls it: relative to its folder where that is possible."""
    return os.path.relpath(os.path.abspath(path), home)


def _found(path: str, home: Path) -> str:
    """A path of the deployment as this process finds it."""
    if path.startswith("dotr:") or os.path.isabs(path):
        return path
    return os.path.relpath(home / path)


def _text_of(lines: Iterable[tuple[str, str, str]]) -> str:
    """Triples as N-Triples text, one a line."""
    return "".join(f"{s} {p} {o} .\n" for s, p, o in lines)
