"""`dotr kb shell FILES…`: a prompt over a knowledge base; `dotr close FILES…`: what follows, as RDF.

Place:   over knowledge_base/; a line of the prompt comes from a terminal or from standard input.
Method:  a line is a command and its argument; a line that ends in a backslash goes on. History and completion
         are those of the readline that comes with Python.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import click
import pyoxigraph as ox
from msgspec import Struct

from dotr.cli import options, show
from dotr.cli.options import OutputOptions, iri, passing, written_file
from dotr.cli.process import Terminated
from dotr.cli.query import table
from dotr.cli.show import counted, note
from dotr.errors import DotrError, UsageError
from dotr.io.decode.documents import (
    MAX_DOCUMENT,
    STREAM_BASE,
    Format,
    decode,
    format_of,
    plain_name,
    read_bytes,
    unknown_format,
)
from dotr.io.events import TermFormatter
from dotr.io.rules_and_background import read_standard_input
from dotr.knowledge_base import Change, KnowledgeBase, Watch
from dotr.lang.grammar.cursor import nearest
from dotr.rdf.terms import Triple, to_oxigraph

_PREFIX = re.compile(r"^[ \t]*@?prefix[ \t]+([\w.-]*):[ \t]*<([^<>\s]*)>", re.IGNORECASE | re.MULTILINE)
_WITH_PREFIXES = (Format.TURTLE, Format.TRIG)


class KnowledgeOptions(Struct, frozen=True):
    """How a knowledge base is made of files."""

    entailment: str | None = None
    datatypes: bool = False
    keep_contradictions: bool = False
    base: str = STREAM_BASE


knowledge_options = passing(
    "making",
    KnowledgeOptions,
    click.option(
        "--entailment",
        type=click.Choice(("none", "rdfs", "owl2rl")),
        help="Default: owl2rl, with rule files none.",
    ),
    click.option("--datatypes", is_flag=True, help="Check literals, too (dt-* of OWL 2 RL)."),
    click.option("--keep-contradictions", is_flag=True, help="Continue despite contradictions."),
    click.option(
        "--base",
        default=STREAM_BASE,
        type=iri,
        metavar="IRI",
        help="Resolve relative IRIs against this IRI.",
    ),
)


def is_rules(path: str) -> bool:
    """Whether a file has rules, by its name: everything else is RDF."""
    return path.endswith((".dlog", ".dotr"))


def made_of(files: Sequence[str], making: KnowledgeOptions) -> KnowledgeBase:
    """The knowledge base of RDF and rule files, with canonical terms and the prefixes of its files.

    Raises ProgramError, DataError.
    """
    rules = [path for path in files if is_rules(path)]
    documents = [path for path in files if not is_rules(path)]
    kb = KnowledgeBase(
        *documents,
        rules=rules,
        entailment=making.entailment or ("none" if rules else "owl2rl"),
        datatypes=making.datatypes,
        contradictions="keep" if making.keep_contradictions else "refuse",
        terms="canonical",
        base=making.base,
    )
    for path in documents:
        for name, iri_ in prefixes_of(path):
            kb.prefixes.setdefault(name, iri_)
    return kb


def prefixes_of(path: str) -> list[tuple[str, str]]:
    """The prefixes that a Turtle document declares."""
    if format_of(path) not in _WITH_PREFIXES:
        return []
    return _PREFIX.findall(decode(read_bytes(path, MAX_DOCUMENT), path))


@click.group()
def command() -> None:
    """Knowledge that lasts, without streams: dotr.KnowledgeBase, at a prompt."""


@command.command(short_help="Insert, delete, query, why, rules, watch.")
@click.argument("files", metavar="[FILE...]", nargs=-1)
@knowledge_options
@options.functions
def shell(files: tuple[str, ...], making: KnowledgeOptions) -> int:
    """Query and change what FILEs state: RDF, rules (.dlog, .dotr for its prologue), or one saved file (.kb).

    On a terminal it has history and completion, and continues after a mistake; on standard input it stops at
    the first, with its exit code. `help` lists the commands.
    """
    if len(files) == 1 and files[0].endswith(".kb"):
        kb = KnowledgeBase.open(files[0], terms="canonical")
    else:
        kb = made_of(files, making)
    opened = Shell(kb, _written_to_terminal if sys.stdout.isatty() else sys.stdout.write)
    if sys.stdin.isatty():
        opened.say_size()
        opened.run(lines_of_terminal(opened), forgiving=True)
    else:
        opened.run(iter(read_standard_input().splitlines()), forgiving=False)
    return 0


def _written_to_terminal(text: str) -> int:
    return sys.stdout.write(show.visible(text))


_WRITTEN: Mapping[str, Format] = {
    "turtle": Format.TURTLE,
    "nt": Format.NTRIPLES,
    "rdfxml": Format.RDFXML,
    "jsonld": Format.JSONLD,
    "trig": Format.TRIG,
    "nquads": Format.NQUADS,
}
_OXIGRAPH = {
    Format.RDFXML: ox.RdfFormat.RDF_XML,
    Format.JSONLD: ox.RdfFormat.JSON_LD,
    Format.TURTLE: ox.RdfFormat.TURTLE,
    Format.TRIG: ox.RdfFormat.TRIG,
}
_CHUNK = 10_000


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@options.output_value
@click.option("--only-derived", is_flag=True, help="Leave out what the files state.")
@click.option("--format", "format_", type=click.Choice(tuple(_WRITTEN)), help="Default: by FILE's name, nt.")
@click.option("-o", "--output", metavar="FILE", type=written_file,
              help="Write here instead of standard output (`-`).")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Let -o replace a file that exists.")
@click.option("-q", "--quiet", is_flag=True, help="No summary.")
@knowledge_options
@options.functions
def close(
    files: tuple[str, ...], only_derived: bool, output: OutputOptions, making: KnowledgeOptions
) -> None:
    """Print what FILEs state and everything that follows.

    FILEs are RDF, and rules: .dlog, or .dotr for its prologue. Without rules they are closed under OWL 2 RL,
    unless --entailment says otherwise. Contradictions are refused, with a proof.
    """
    kind = _format(output.format_, output.output)
    output.apart([], files)
    kb = made_of(files, making)
    derived = sorted(kb.triples(which="derived"))
    stated = [] if only_derived else sorted(kb.triples(which="stated"))
    out = output.open()
    for text in _text(sorted([*stated, *derived]), kind, kb.prefixes):
        out.write(text)
    out.finish()
    for one in kb.contradictions():
        note(str(one))
    if not output.quiet:
        note(f"{counted(len(kb) - len(derived), 'triple')} stated, {len(derived)} derived")


def _format(name: str | None, output: str | None) -> Format:
    """Raises UsageError D4127 where the two disagree, DataError D2008 for a name that says nothing."""
    if output is None:
        return _WRITTEN[name or "nt"]
    found = format_of(output)
    if plain_name(output) != output or (found is None and name is None):
        raise unknown_format(output)
    if name is not None and found is not None and _WRITTEN[name] is not found:
        raise UsageError.of(
            "D4127", f"--format {name} and the name `{output}` disagree", hint="leave one of them out"
        )
    kind = found if name is None else _WRITTEN[name]
    if kind not in _WRITTEN.values() or kind is None:
        raise unknown_format(output)
    return kind


def _text(triples: list[Triple], kind: Format, prefixes: Mapping[str, str]) -> Iterator[str]:
    """The triples as text, in canonical order."""
    if kind in (Format.NTRIPLES, Format.NQUADS):
        for start in range(0, len(triples), _CHUNK):
            yield "".join(f"{s} {p} {o} .\n" for s, p, o in triples[start : start + _CHUNK])
        return
    quads = (ox.Triple(*map(to_oxigraph, triple)) for triple in triples)  # type: ignore[arg-type]  # subjects are not literals
    if kind not in (Format.TURTLE, Format.TRIG):
        yield ox.serialize(quads, None, _OXIGRAPH[kind]).decode() + "\n"  # type: ignore[union-attr]  # bytes
        return
    usable = TermFormatter(prefixes).prefixes
    out = io.BytesIO()
    ox.serialize(quads, out, _OXIGRAPH[kind], prefixes=usable)
    yield out.getvalue().decode()


_HELP: Final = {
    "insert": "insert TURTLE          state triples; insert until TIME TURTLE: until then",
    "delete": "delete TURTLE          end their statements",
    "query": "query SELECT …         answers as a table; SELECT and ASK alone do as well",
    "why": "why S P O              the smallest proof of a triple, or what is missing for one",
    "rules": "rules [add|remove R]   the rules; one more, or one less",
    "watch": "watch SELECT …         show how its answers change from now on; watch alone: what is watched",
    "unwatch": "unwatch N              stop watching a query",
    "advance": "advance TIME           move on to a time: statements may end",
    "contradictions": "contradictions         the contradictions, with proofs",
    "prefix": "prefix P: <IRI>        declare a prefix; prefix alone: the declared ones",
    "size": "size                   the numbers of triples and rules",
    "save": "save FILE.kb           everything, closed and indexed",
    "help": "help                   this",
    "quit": "quit                   leave (as does the end of input)",
}


class Shell:
    """Owns a knowledge base and what is watched. `write` takes text for standard output."""

    def __init__(self, kb: KnowledgeBase, write: Callable[[str], Any]) -> None:
        self.kb = kb
        self._write = write
        self._watches: dict[int, tuple[Watch, str]] = {}
        self._made = 0

    def run(self, lines: Iterable[str], forgiving: bool) -> None:
        """Execute lines as commands until they end or one is `quit`. `forgiving`: errors are reported,
        and the next line is read.
        """
        whole = ""
        for line in lines:
            whole += line
            if whole.endswith("\\"):
                whole = whole[:-1] + "\n"
                continue
            text, whole = whole.strip(), ""
            if text in ("quit", "exit"):
                return
            try:
                self.do(text)
            except DotrError as error:
                if not forgiving:
                    raise
                show.errors(error)

    def do(self, line: str) -> None:
        """One command. Raises DotrError; nothing has changed then."""
        if not line or line.startswith("#"):
            return
        word, _, rest = line.partition(" ")
        if word.upper() in ("SELECT", "ASK") or word == "PREFIX":
            self._query(line)
            return
        known = {name: getattr(self, f"_{name}") for name in _HELP if name != "quit"}
        command = known.get(word.lower())
        if command is None:
            raise UsageError.of(
                "D4188",
                f"there is no command `{word}`",
                hint=nearest(word, known) or "`help` lists the commands",
            )
        command(rest.strip())

    def completions(self, text: str) -> list[str]:
        """What a word may go on to be: commands, prefixed names of predicates and classes."""
        words = [name for name in _HELP if name.startswith(text)]
        terms = self._terms()
        index = self.kb.vocabulary()
        words += sorted(name for name in map(terms.term, index) if name.startswith(text))
        return words

    def say_size(self) -> None:
        self._size("")

    # -- the commands

    def _insert(self, rest: str) -> None:
        until: str | int | None = None
        if rest.startswith("until "):
            _, time, rest = [*rest.split(" ", 2), ""][:3]
            until = _time(time)
        self._report(self.kb.insert(_ended(rest), until=until))

    def _delete(self, rest: str) -> None:
        self._report(self.kb.delete(_ended(rest)))

    def _query(self, rest: str) -> None:
        prepared = self.kb.prepare(rest)
        if prepared.is_ask:
            self._write(f"{str(prepared.ask()).lower()}\n")
            return
        answers = prepared()
        self._write(table(answers.variables, answers.rows, self._terms()))

    def _why(self, rest: str) -> None:
        self._write(f"{self.kb.explain(rest)}\n")

    def _rules(self, rest: str) -> None:
        word, _, text = rest.partition(" ")
        if not word:
            self._write("".join(f"{rule}\n" for rule in self.kb.rules))
        elif word in ("add", "remove"):
            change = self.kb.add_rules(text) if word == "add" else self.kb.remove_rules(text)
            self._report(change)
        else:
            raise UsageError.of("D4188", f"rules cannot `{word}`", hint="write rules add or remove")

    def _watch(self, rest: str) -> None:
        if rest:
            watch = self.kb.watch(rest)
            self._made += 1
            self._watches[self._made] = watch, rest
            self._write(f"[{self._made}] {show.counted(len(watch.answers), 'answer')}\n")
            return
        for number, (watch, text) in self._watches.items():
            self._write(
                f"[{number}] {' '.join(text.split())}   {show.counted(len(watch.answers), 'answer')}\n"
            )

    def _unwatch(self, rest: str) -> None:
        found = self._watches.pop(int(rest), None) if rest.isdigit() else None
        if found is None:
            raise UsageError.of(
                "D4188", f"there is no watched query `{rest}`", hint="`watch` lists the watched queries"
            )
        found[0].close()

    def _advance(self, rest: str) -> None:
        self._report(self.kb.advance(_time(rest)))

    def _contradictions(self, rest: str) -> None:
        for found in self.kb.contradictions():
            self._write(f"{found}\n")

    def _prefix(self, rest: str) -> None:
        if not rest:
            self._write(self._terms().header())
            return
        name, _, iri = rest.partition(":")
        iri = iri.strip()
        if not (iri.startswith("<") and iri.endswith(">")):
            raise UsageError.of(
                "D4188", f"`{rest}` is not a prefix", hint="write prefix ex: <http://example.org/>"
            )
        self.kb.prefixes[name.strip()] = iri[1:-1]

    def _size(self, rest: str) -> None:
        stated = sum(1 for _ in self.kb.triples(which="stated"))
        rules = f"{show.counted(len(self.kb.rules), 'rule')}, entailment {self.kb.entailment}"
        triples = f"{show.counted(len(self.kb), 'triple')}, {stated:,} stated"
        self._write(f"{triples}; {rules}\n")

    def _save(self, rest: str) -> None:
        self.kb.save(rest)

    def _help(self, rest: str) -> None:
        self._write("".join(f"{line}\n" for line in _HELP.values()))

    # -- output

    def _report(self, change: Change) -> None:
        """What a transaction did: first what went, then what came; and to what is watched."""
        terms = self._terms()
        for sign, triples in (("-", change.removed), ("+", change.added)):
            self._write("".join(f"{sign} {_shown(triple, terms)}\n" for triple in triples))
        if change.useless_deletes:
            self._write(f"not stated: {show.counted(change.useless_deletes, 'triple')} of these\n")
        if change.useless_removals:
            self._write(f"{show.counted(change.useless_removals, 'rule')} of these were not there\n")
        for number, (watch, _) in self._watches.items():
            for row, count in change.of(watch):
                values = (f"?{name} {terms.term(term)}" for name, term in row.asdict().items())
                times = f" ×{abs(count)}" if abs(count) > 1 else ""
                line = " ".join((f"[{number}]", "+" if count > 0 else "-", *values))
                self._write(f"{line}{times}\n")

    def _terms(self) -> TermFormatter:
        return TermFormatter(self.kb.prefixes)


def _shown(triple: Triple, terms: TermFormatter) -> str:
    subject, predicate, object_ = triple
    return f"{terms.term(subject)} {terms.predicate(predicate)} {terms.term(object_)}"


def _ended(turtle: str) -> str:
    """Turtle whose last dot may be left out."""
    text = turtle.rstrip()
    return text if not text or text.endswith((".", "}")) else f"{text} ."


def _time(text: str) -> str | int:
    return int(text) if text.lstrip("-").isdigit() else text


def lines_of_terminal(shell: Shell) -> Iterator[str]:
    """Lines typed at a prompt, with history and completion where Python has readline."""
    history = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state", "dotr", "kb_history")
    try:
        import readline  # noqa: PLC0415  # not on every system
    except ImportError:
        readline = None  # type: ignore[assignment]  # there is none
    if readline is not None:
        with suppress(OSError):
            readline.read_history_file(history)
        readline.set_completer_delims(" \t\n{};,")
        readline.set_completer(lambda text, n: dict(enumerate(shell.completions(text))).get(n))
        readline.parse_and_bind("tab: complete")
    try:
        prompt = "kb> "
        while True:
            try:
                line = input(prompt)
            except Terminated:
                raise
            except KeyboardInterrupt:
                print()
                prompt = "kb> "
                continue
            prompt = "... " if line.endswith("\\") else "kb> "
            yield line
    except EOFError:
        print()
    finally:
        if readline is not None:
            with suppress(OSError):
                history.parent.mkdir(parents=True, exist_ok=True)
                readline.write_history_file(history)
