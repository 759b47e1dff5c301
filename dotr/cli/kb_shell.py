"""The commands of `dotr kb shell`.

Place:   under cli/kb.py, which says where lines come from; everything is done by a KnowledgeBase.
Method:  a line is a command and its argument; a line that ends in a backslash goes on. History and completion
         are those of the readline that comes with Python.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from dotr.cli import show
from dotr.cli.process import Terminated
from dotr.cli.query import table
from dotr.errors import DotrError, UsageError
from dotr.io.term_formatting import TermFormatter
from dotr.knowledge_base import Change, KnowledgeBase, Watch
from dotr.lang.grammar.base import nearest
from dotr.rdf.terms import Triple

_HELP: Final = {
    "insert": "insert TURTLE          state triples; insert until TIME TURTLE: until then",
    "delete": "delete TURTLE          end their statements",
    "query": "query SELECT …         answers as a table; SELECT and ASK alone do as well",
    "why": "why S P O              the smallest proof of a triple, or what is missing for one",
    "rules": "rules [add|remove R]   the rules; one more, or one less",
    "watch": "watch SELECT …         show how its answers change from now on; watch alone: what is watched",
    "unwatch": "unwatch N              do not any more",
    "advance": "advance TIME           go on to a time: statements end",
    "contradictions": "contradictions         what contradicts itself, with proofs",
    "prefix": "prefix P: <IRI>        name a namespace; prefix alone: those that are named",
    "size": "size                   how much there is",
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
        """Do what lines say until they end or quit. `forgiving`: errors are reported and it goes on."""
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
            raise UsageError.of("D4188", f"nothing is watched as `{rest}`", hint="`watch` lists what is")
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
