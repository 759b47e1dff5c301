"""`dotr lsp`: a language server over standard input and output.

Place:   speaks the protocol through pygls; what a name is, where it is defined and what may stand at a place
         is answered first, by functions that do not know the protocol.
Method:  an answer comes from the checked program where there is one, else from the last one that was right;
         where names stand is read off the tokens, so that it works in the middle of an edit. Text is examined
         when no newer one has come for a moment, so that edits of a large file do not queue; questions are
         asked of the text as it is. What cannot be read has no answer, and ends nothing. A signal ends the
         process there and then: a thread waits for what the editor says next, and nothing has to be saved.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast
from urllib.parse import unquote

import click
from msgspec import Struct, field

from dotr import __version__
from dotr.cli import options
from dotr.cli.plan import query_lines, rule_lines
from dotr.cli.process import POLITE, STOPPED
from dotr.cli.show import note
from dotr.core.deployment import Deployment
from dotr.errors import DataError, Diagnostic, Diagnostics, DotrError, EngineError, Severity, UsageError
from dotr.io.rules_and_background import SCHEME, read_rules_text, shipped
from dotr.lang import check_program
from dotr.lang.editor.textmate import VOCABULARY
from dotr.lang.grammar.cursor import Token, tokenize
from dotr.lang.loading import Reader, join
from dotr.lang.printer import format_text
from dotr.program import Program
from dotr.program.sequences import RowPattern
from dotr.regex import regex
from dotr.service.overview import overview
from dotr.source import Source, Span

if TYPE_CHECKING:
    from pygls.lsp.server import LanguageServer


_BEFORE_A_POSITION = frozenset(("FROM", "EACH", "LAST", "FIRST", "NOT", "OVER", "AS"))
_AFTER_ALIAS = ":="
_DEFINING = ("QUERY", "RULE", "SEQUENCE")
_BEHIND_SOURCES = frozenset(("PER", "AND", "WITHIN"))
_ROW = regex(r"(?i)(?:(PREV)\s*\(\s*\d*|(?:FIRST|LAST)\s*\(\s*(\w+|\*)[\s,\d]*)\)\.$")
"""What a row is called before its attribute: `LAST(X, 1).`, `PREV(2).`"""


class Completion(Struct, frozen=True):
    """A possible completion at a place. `kind`: keyword, function, query, rule, sequence, attribute,
    variable, prefix, term.
    """

    label: str
    kind: str
    detail: str = ""


class Analysis(Struct):
    """A string that was examined. `program` is the last one that was right."""

    source: Source
    program: Program | None
    found: list[Diagnostic]
    tokens: list[Token]
    _plans: dict[str, str] = field(default_factory=dict)

    def at(self, offset: int) -> int | None:
        """The number of the token that an offset is in, or just after."""
        for number, token in enumerate(self.tokens):
            if token.start <= offset <= token.end and token.kind != "end":
                following = self.tokens[number + 1]
                return number + 1 if offset == following.start and following.kind in _NAMES else number
        return None

    def span(self, token: Token) -> Span:
        return Span(self.source, token.start, token.end)

    def rule_around(self, number: int) -> tuple[int, int] | None:
        """The tokens `[first, last)` of the rule or sequence around a token."""
        starts = [n for n, token in enumerate(self.tokens) if token.key in (*_DEFINING, "IMPORT")]
        before = [n for n in starts if n <= number]
        if not before or self.tokens[before[-1]].key not in ("RULE", "SEQUENCE"):
            return None
        after = [n for n in starts if n > number]
        return before[-1], after[0] if after else len(self.tokens)

    def plan_of(self, name: str) -> str:
        """How a rule or a query runs, as `dotr plan` shows it; the background is not read for it."""
        if not self._plans and self.program is not None:
            try:
                shown = overview(Deployment(self.program))
            except DotrError:
                return ""
            self._plans.update({one["name"]: "\n".join(query_lines(one)) for one in shown["queries"]})
            self._plans.update({one["name"]: "\n".join(rule_lines(one)) for one in shown["rules"]})
        return self._plans.get(name, "")


_NAMES = frozenset(("name", "attribute", "timeof", "var", "pname"))


def analyse(path: str, text: str, read: Reader, before: Analysis | None = None) -> Analysis:
    """Examine a string, which `read` gives for `path`."""
    source = Source(path, text)
    try:
        program, found = check_program([path], read)
    except DotrError as error:
        program, found = None, list(error.diagnostics)
    if program is None and before is not None:
        program = before.program
    return Analysis(source, program, found, tokenize(source, Diagnostics()))


# -- definitions


def definition(analysis: Analysis, offset: int) -> Span | None:
    """Where the name at an offset is defined."""
    number = analysis.at(offset)
    if number is None:
        return None
    token = analysis.tokens[number]
    match token.kind:
        case "attribute" | "timeof":
            name, _, rest = token.text.partition(".")
            if offset > token.start + len(name) and token.kind == "attribute":
                return _variable(analysis, number, name, rest)
            return _position(analysis, number, name) or _named(analysis, name)
        case "var":
            return _parameter(analysis, token.text)
        case "pname":
            return _prefix(analysis, token.text.partition(":")[0])
        case "iri":
            return _file(analysis, number, token.text)
        case "name":
            own = None if _is_stream(analysis, number) else _position(analysis, number, token.text)
            if own is not None and own.start != token.start:
                return own
            return _named(analysis, token.text)
        case _:
            return None


def _named(analysis: Analysis, name: str) -> Span | None:
    """A QUERY, RULE or SEQUENCE of this file, else one that the program has from another."""
    for before, token in zip(analysis.tokens, analysis.tokens[1:], strict=False):
        if before.key in _DEFINING and token.text == name:
            return analysis.span(token)
    program = analysis.program
    if program is None:
        return None
    rule = next((rule for rule in program.rules if rule.name == name), None)
    if rule is not None:
        return rule.span
    return program.selects[name].span if name in program.selects else None


def _position(analysis: Analysis, number: int, name: str) -> Span | None:
    """Where a position of the rule around a token is named."""
    around = analysis.rule_around(number)
    if around is None:
        return None
    for at in range(around[0] + 2, around[1]):
        token = analysis.tokens[at]
        if token.kind == "name" and token.text == name:
            before, after = analysis.tokens[at - 1], analysis.tokens[at + 1]
            if after.key == _AFTER_ALIAS or before.key in _BEFORE_A_POSITION or before.kind == "integer":
                return analysis.span(token)
    return _element(analysis, around, name)


def _element(analysis: Analysis, around: tuple[int, int], name: str) -> Span | None:
    """Where the pattern of a sequence has an element first, or OF a source."""
    tokens = analysis.tokens[around[0] + 2 : around[1]]
    if analysis.tokens[around[0]].key != "SEQUENCE":
        return None
    return next((analysis.span(t) for t in tokens if t.kind == "name" and t.text == name), None)


def _variable(analysis: Analysis, number: int, name: str, variable: str) -> Span | None:
    """Where the query, or the WITH, of a position gives a variable its value."""
    stream = _stream(analysis, number, name)
    if stream is None or analysis.program is None:
        return None
    if stream in analysis.program.selects:
        span = analysis.program.selects[stream].span
    else:
        rule = next((rule for rule in analysis.program.rules if rule.name == stream), None)
        bound = [] if rule is None else [b for b in rule.bindings if f"?{b.variable}" == variable]
        return bound[0].span if bound else None
    if span is None:
        return None
    at = span.source.text.find(variable, span.start)
    return Span(span.source, at, at + len(variable)) if 0 <= at < span.end else span


def _stream(analysis: Analysis, number: int, name: str) -> str | None:
    """The stream of a position of the rule around a token."""
    around = analysis.rule_around(number)
    if around is None or analysis.program is None or number == around[0] + 1:
        return None
    rule_name = analysis.tokens[around[0] + 1].text
    for rule in analysis.program.rules:
        if rule.name == rule_name:
            if isinstance(rule.trigger, RowPattern):
                source = rule.trigger.only_source(name)
                return None if source is None else source.stream
            return next((position.stream for position in rule.positions if position.name == name), None)
    return None


def _parameter(analysis: Analysis, variable: str) -> Span | None:
    for before, token in zip(analysis.tokens, analysis.tokens[1:], strict=False):
        if before.key == "PARAMETER" and token.text == variable:
            return analysis.span(token)
    return None


def _prefix(analysis: Analysis, prefix: str) -> Span | None:
    for before, token in zip(analysis.tokens, analysis.tokens[1:], strict=False):
        if before.key == "PREFIX" and token.text == f"{prefix}:":
            return analysis.span(token)
    return None


def _file(analysis: Analysis, number: int, iri: str) -> Span | None:
    """The beginning of the rule file that an IMPORT, a RULES or a LARS names."""
    if number == 0 or analysis.tokens[number - 1].key not in ("IMPORT", "RULES", "LARS"):
        return None
    return Span(Source(join(analysis.source.name, iri[1:-1]), ""), 0, 0)


# -- hover


def hover(analysis: Analysis, offset: int) -> str | None:
    """A description of the name at an offset, as Markdown: what it is; for a rule or position, how it
    runs.
    """
    number = analysis.at(offset)
    program = analysis.program
    if number is None or program is None:
        return None
    token = analysis.tokens[number]
    if token.kind == "pname":
        prefix, _, local = token.text.partition(":")
        return f"`<{program.prefixes[prefix]}{local}>`" if prefix in program.prefixes else None
    if token.kind not in ("name", "attribute", "timeof"):
        return None
    name, _, rest = token.text.partition(".")
    stream = _stream(analysis, number, name)
    around = analysis.rule_around(number)
    own = "" if around is None else analysis.tokens[around[0] + 1].text
    sequence = next((r for r in program.rules if r.name == own and isinstance(r.trigger, RowPattern)), None)
    if sequence is not None and token.key in ("FIRST", "LAST", "PREV") and token.kind == "name":
        return None
    if sequence is not None and number != (around or (0, 0))[0] + 1:
        assert isinstance(sequence.trigger, RowPattern), "the trigger of a sequence"
        element = next((one for one in sequence.trigger.elements if one.name == name), None)
        if element is not None:
            of = [_facts_of(program, sequence.trigger.sources[place].stream) for place in element.sources]
            said = f"**{name}**: an element of sequence `{own}`, rows: {'; '.join(of)}"
            return (
                f"**{token.text}**: {'the time' if token.kind == 'timeof' else 'an attribute'} of {said}"
                if rest
                else said
            )
    if stream is not None:
        said = f"**{name}**: {_facts_of(program, stream)}"
        what = "the time of" if token.kind == "timeof" else "an attribute of"
        lines = [f"**{token.text}**: {what} {said}" if rest else said]
        plan = _of_position(analysis.plan_of(own), name)
        return "\n\n".join([*lines, *([f"```\n{plan}\n```"] if plan else [])])
    found = next((rule for rule in program.rules if rule.name == name), None)
    if found is not None:
        plan = analysis.plan_of(name)
        return f"**{name}**: a {found.kind} ({_listed(_variables(program, name))})\n\n```\n{plan}\n```"
    if name in program.selects:
        users = [rule.name for rule in program.rules if name in {p.stream for p in rule.positions}]
        used = f"used by {', '.join(users)}" if users else "used by no rule"
        plan = analysis.plan_of(name)
        shown = f"\n\n```\n{plan}\n```" if plan else ""
        return f"**{name}**: a query ({_listed(_variables(program, name))}), {used}{shown}"
    return None


def _facts_of(program: Program, stream: str) -> str:
    """A stream, its kind and its attributes."""
    kind = next((rule.kind for rule in program.rules if rule.name == stream), "query")
    return f"facts of {kind} `{stream}` ({_listed(_variables(program, stream))})"


def _variables(program: Program, stream: str) -> Sequence[str]:
    if stream in program.selects:
        return program.selects[stream].variables
    return next((rule.variables for rule in program.rules if rule.name == stream), ())


def _listed(variables: Sequence[str]) -> str:
    return ", ".join(f"?{name}" for name in variables) or "no attributes"


def _of_position(plan: str, name: str) -> str:
    """The lines of a rule's plan that are about a position."""
    lines = plan.splitlines()
    for number, line in enumerate(lines):
        words = line.replace("├─", " ").replace("└─", " ").split()
        if name in words[:6] and ("[" in line or "(" in line or "every" in words or "each" in words):
            depth = len(line) - len(line.lstrip(" │├└─"))
            shown = [line.strip(" │├└─")]
            for following in lines[number + 1 :]:
                bare = following.lstrip(" │├└─")
                if len(following) - len(bare) <= depth or "├─" in following or "└─" in following:
                    break
                shown.append(f"  {bare}")
            return "\n".join(shown)
    return ""


# -- renaming


_NAME = regex(r"[A-Za-z_][A-Za-z0-9_]*")
_PREFIX_NAME = regex(r"(?:[A-Za-z][A-Za-z0-9_-]*)?")


def renamed(analysis: Analysis, offset: int) -> list[Span]:
    """Every place of the name at an offset in its file, in order; none where nothing can be renamed.

    What can be: a QUERY, RULE or SEQUENCE that this file defines, a position of a rule (in that rule), an
    element of a sequence, a PARAMETER and a PREFIX.
    """
    number = analysis.at(offset)
    if number is None:
        return []
    token = analysis.tokens[number]
    match token.kind:
        case "pname":
            prefix = token.text.partition(":")[0]
            if _prefix(analysis, prefix) is None or offset > token.start + len(prefix):
                return []
            return [_head(analysis, one, prefix) for one in analysis.tokens if _has_prefix(one, prefix)]
        case "var":
            if _parameter(analysis, token.text) is None:
                return []
            same = (one for one in analysis.tokens if one.kind == "var" and one.text == token.text)
            return [Span(analysis.source, one.start + 1, one.end) for one in same]
        case "name" | "attribute" | "timeof":
            name = token.text.partition(".")[0]
            if offset > token.start + len(name):
                return []
            return _renamed_name(analysis, number, name)
        case _:
            return []


def _has_prefix(token: Token, prefix: str) -> bool:
    return token.kind == "pname" and token.text.partition(":")[0] == prefix


def _head(analysis: Analysis, token: Token, name: str) -> Span:
    return Span(analysis.source, token.start, token.start + len(name))


def _renamed_name(analysis: Analysis, number: int, name: str) -> list[Span]:
    """The places of a position in its rule; else of what the file defines, but positions of that name."""
    places = _places(analysis, name)
    if number not in places:
        return []
    around = analysis.rule_around(number)
    own = around is not None and _is_own(analysis, around, name)
    if own and not _is_stream(analysis, number):
        assert around is not None
        inside = [one for one in places if around[0] <= one < around[1] and not _is_stream(analysis, one)]
        return [_head(analysis, analysis.tokens[one], name) for one in inside]
    defined = {
        token.text
        for before, token in pairwise(analysis.tokens)
        if before.key in _DEFINING and token.kind == "name"
    }
    if name not in defined:
        return []
    found = []
    for one in places:
        rule = analysis.rule_around(one)
        hidden = rule is not None and _is_own(analysis, rule, name) and one != rule[0] + 1
        if not hidden or _is_stream(analysis, one):
            found.append(_head(analysis, analysis.tokens[one], name))
    return found


def _places(analysis: Analysis, name: str) -> list[int]:
    """The numbers of tokens that have a name or begin with it, outside of queries and templates."""
    found, depth = [], 0
    for number, token in enumerate(analysis.tokens):
        depth += (token.key == "{") - (token.key == "}")
        named = depth == 0 and token.kind in ("name", "attribute", "timeof")
        if named and token.text.partition(".")[0] == name:
            found.append(number)
    return found


def _is_own(analysis: Analysis, around: tuple[int, int], name: str) -> bool:
    """Whether a name is that of a position of the rule, by `name :=`, or of an element of the sequence that
    is no source.
    """
    tokens = analysis.tokens[around[0] + 2 : around[1]]
    if any(one.text == name and after.key == _AFTER_ALIAS for one, after in pairwise(tokens)):
        return True
    if analysis.tokens[around[0]].key != "SEQUENCE":
        return False
    words = [token.text.upper() for token in tokens]
    begin = words.index("OF") if "OF" in words else len(tokens)
    end = next((n for n in range(begin, len(words)) if words[n] in _BEHIND_SOURCES), len(words))
    return name in {one.text for one in tokens[:begin]} - {one.text for one in tokens[begin:end]}


def _is_stream(analysis: Analysis, number: int) -> bool:
    """Whether a token is the query or rule that a position takes its facts from: it follows `NAME :=`."""
    before = analysis.tokens[max(0, number - 2) : number]
    if number > 2 and analysis.tokens[number - 3].key in _DEFINING:  # `SEQUENCE Name := …`
        return False
    return [one.key if one.kind == "op" else one.kind for one in before] == ["name", _AFTER_ALIAS]


def rename(analysis: Analysis, offset: int, name: str, read: Reader) -> tuple[list[Span], str]:
    """The places to write a name, and what to write; the renamed text is checked. Raises UsageError D4148."""
    places = renamed(analysis, offset)
    if not places:
        raise _no_rename("there is nothing here that can be renamed")
    kind = analysis.tokens[analysis.at(offset) or 0].kind
    new = name.removeprefix("?") if kind == "var" else name.removesuffix(":") if kind == "pname" else name
    if (_PREFIX_NAME if kind == "pname" else _NAME).fullmatch(new) is None:
        raise _no_rename(f"`{name}` is no name")
    text = analysis.source.text
    for place in reversed(places):
        text = text[: place.start] + new + text[place.end :]
    path = analysis.source.name
    after = analyse(path, text, lambda asked: text if asked == path else read(asked))
    before = [one.code for one in analysis.found if one.severity is Severity.ERROR]
    wrong = [one for one in after.found if one.severity is Severity.ERROR and one.code not in before]
    if wrong:
        raise _no_rename(f"with this name the file would be wrong: {wrong[0].message}")
    return places, new


def _no_rename(message: str) -> UsageError:
    return UsageError.of("D4148", message, hint="rename what this file defines, to a name that is free")


# -- completion


def completions(analysis: Analysis, offset: int) -> list[Completion]:
    """The possible completions at an offset, in order of their labels."""
    text = analysis.source.text
    start = offset
    while start and (text[start - 1].isalnum() or text[start - 1] in "_?:-"):
        start -= 1
    row = _ROW.search(text[max(0, start - 80) : start])
    if row is not None:
        return sorted(_attributes(analysis, offset, row[1] or row[2]), key=_label)
    if start and text[start - 1] == "." and (name := _word_before(text, start - 1)):
        return sorted(_attributes(analysis, offset, name), key=_label)
    typed = text[start:offset]
    if ":" in typed:
        return sorted(_terms(analysis, typed.partition(":")[0]), key=_label)
    if typed.startswith("?"):
        variables = {token.text for token in analysis.tokens if token.kind == "var" and token.end != offset}
        return [Completion(one, "variable") for one in sorted(variables)]
    return sorted({*_names(analysis), *_words(analysis.source.name)}, key=_label)


def _label(one: Completion) -> tuple[str, str]:
    return one.label, one.kind


def _word_before(text: str, at: int) -> str:
    start = at
    while start and (text[start - 1].isalnum() or text[start - 1] == "_"):
        start -= 1
    return text[start:at]


def _attributes(analysis: Analysis, offset: int, name: str) -> Iterator[Completion]:
    number = max((n for n, token in enumerate(analysis.tokens) if token.start < offset), default=0)
    stream = _stream(analysis, number, name) or name
    if analysis.program is not None:
        for variable in _variables(analysis.program, stream):
            yield Completion(f"?{variable}", "attribute", stream)
    yield Completion("time", "attribute", "when it happened")


def _terms(analysis: Analysis, prefix: str) -> Iterator[Completion]:
    """Names with a prefix that the file has already."""
    begin = f"{prefix}:"
    seen = {
        token.text
        for before, token in pairwise([Token("end", "end", "", -1, -1), *analysis.tokens])
        if token.kind == "pname" and token.text.startswith(begin)
        if before.kind != "integer" or before.end != token.start  # a time of day: `08:00`
    }
    yield from (Completion(one, "term") for one in seen if one != begin)


def _names(analysis: Analysis) -> Iterator[Completion]:
    for before, token in zip(analysis.tokens, analysis.tokens[1:], strict=False):
        if before.key in _DEFINING and token.kind == "name":
            yield Completion(token.text, before.key.lower())
        elif before.key == "PREFIX" and token.kind == "pname":
            yield Completion(token.text, "prefix")
        elif token.key == _AFTER_ALIAS and before.kind == "name":
            yield Completion(before.text, "query")
    if analysis.program is not None:
        for rule in analysis.program.rules:
            yield Completion(rule.name, "sequence" if isinstance(rule.trigger, RowPattern) else "rule")
        yield from (Completion(name, "query") for name in analysis.program.selects if name.isidentifier())


def _words(path: str) -> Iterator[Completion]:
    keywords, functions = VOCABULARY.get(path.rpartition(".")[2], VOCABULARY["dotr"])
    yield from (Completion(word, "keyword") for word in keywords)
    yield from (Completion(word, "function") for word in functions if word not in keywords)


_PAUSE = 0.05
"""Seconds without a newer text after which one is examined."""

_LONGEST = 256 * 1024 * 1024
"""Bytes of a message: a rule file of the largest size, escaped."""

_SHOWN = 200
"""Diagnostics of a document that are published at most."""


@click.command()
@options.functions
def command() -> None:
    """Serve an editor: diagnostics, hover, definitions, completion, renaming, formatting.

    Needs the extra `lsp`: pip install 'dotr[lsp]'.
    """
    try:
        server = make_server()
    except ImportError:
        raise EngineError.of(
            "D4205", "the language server needs pygls", hint="pip install 'dotr[lsp]'"
        ) from None
    with _ended_by_signals():
        server.start_io(cast("BinaryIO", _Messages(sys.stdin.buffer)))


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Within it a signal ends the process from a thread that waits for it: the main thread may begin to wait
    for the editor between a signal's arrival and its handler, and then the handler waits, too.
    """
    reads, writes = socket.socketpair()
    writes.setblocking(False)
    for number in (signal.SIGINT, *POLITE):
        signal.signal(number, lambda _number, _frame: None)
    before = signal.set_wakeup_fd(writes.fileno())
    waiting = threading.Thread(target=_stop_after, args=(reads,), daemon=True)
    waiting.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        writes.close()
        waiting.join()  # else it may write, or die, while the interpreter ends
        reads.close()


def _stop_after(reads: socket.socket) -> None:
    """End the process after a signal; return once the other end is closed."""
    while (number := reads.recv(1)) and number[0] not in (signal.SIGINT, *POLITE):
        pass
    if not number:
        return
    with suppress(OSError):
        note("stopped")
        sys.stderr.flush()
    os._exit(STOPPED)


class _Messages:
    """Owns what the editor says, for pygls: lines of a head, and bodies of a size that a program may have."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def readline(self) -> bytes:
        return self._stream.readline(_LONGEST)

    def read(self, size: int) -> bytes:
        """Raises DataError D2006 for more than `_LONGEST` bytes."""
        if size > _LONGEST:
            raise DataError.of(
                "D2006",
                f"a message of the editor has {size:,} bytes",
                place="<stdin>",
                hint=f"rule files have at most {_LONGEST:,} bytes: open a smaller one",
            )
        return self._stream.read(size)


def make_server() -> LanguageServer:
    """A server without a client yet. Raises ImportError without pygls."""
    from lsprotocol import types  # noqa: PLC0415  # an extra
    from pygls import uris  # noqa: PLC0415  # an extra
    from pygls.exceptions import JsonRpcInvalidParams  # noqa: PLC0415  # an extra
    from pygls.lsp.server import LanguageServer  # noqa: PLC0415  # an extra
    from pygls.workspace import TextDocument  # noqa: PLC0415  # an extra

    server = LanguageServer("dotr", __version__)
    known: dict[str, Analysis] = {}
    newest: dict[str, object] = {}
    severities = {
        Severity.ERROR: types.DiagnosticSeverity.Error,
        Severity.WARNING: types.DiagnosticSeverity.Warning,
        Severity.INFO: types.DiagnosticSeverity.Information,
    }
    kinds = {
        "keyword": types.CompletionItemKind.Keyword,
        "function": types.CompletionItemKind.Function,
        "query": types.CompletionItemKind.Interface,
        "rule": types.CompletionItemKind.Class,
        "sequence": types.CompletionItemKind.Class,
        "attribute": types.CompletionItemKind.Field,
        "variable": types.CompletionItemKind.Variable,
        "prefix": types.CompletionItemKind.Module,
        "term": types.CompletionItemKind.Value,
    }

    def path_of(uri: str) -> str:
        return str(uris.to_fs_path(uri) or uri)

    def text_of(uri: str) -> str | None:
        """The text of a document, as the editor has it if it is open; None if there is none to read."""
        document = server.workspace.text_documents.get(unquote(uri))  # as pygls keeps them
        if document is not None:
            return str(document.source)
        try:
            return read_rules_text(path_of(uri))
        except (OSError, ValueError, DotrError):
            return None

    def read(path: str) -> str:
        """The text of a file: as the editor has it, if it is open."""
        if not path.startswith(SCHEME):
            for document in server.workspace.text_documents.values():
                if path == path_of(document.uri):
                    return str(document.source)
        return read_rules_text(path)

    def range_of(span: Span) -> types.Range:
        return types.Range(position(span.source, span.start), position(span.source, span.end))

    def position(source: Source, offset: int) -> types.Position:
        line, column = source.position(offset)
        before = source.line(line)[: column - 1]
        return types.Position(line - 1, len(before.encode("utf-16-le")) // 2)

    def location(span: Span) -> types.Location | None:
        name = span.source.name
        path = str(shipped(name.removeprefix(SCHEME))) if name.startswith(SCHEME) else name
        uri = uris.from_fs_path(str(Path(path).absolute()))
        return None if uri is None else types.Location(uri, range_of(span))

    def look(uri: str) -> Analysis | None:
        text = text_of(uri)
        if text is None:
            known.pop(uri, None)
            return None
        known[uri] = analyse(path_of(uri), text, read, known.get(uri))
        return known[uri]

    def publish(uri: str) -> None:
        analysis = look(uri)
        if analysis is None:
            return
        own = [
            one for one in analysis.found if one.span is None or one.span.source.name == analysis.source.name
        ]
        others = len(analysis.found) - len(own)
        own.sort(key=lambda one: one.severity is not Severity.ERROR)
        shown = [protocol(one) for one in own[:_SHOWN]]
        start = types.Range(types.Position(0, 0), types.Position(0, 0))
        for more, where in ((len(own) - _SHOWN, "here"), (others, "in files that this one names")):
            if more > 0:
                text = f"{more} more {where}"
                shown.append(types.Diagnostic(start, text, types.DiagnosticSeverity.Warning, source="dotr"))
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, shown))

    def protocol(one: Diagnostic) -> types.Diagnostic:
        start = types.Range(types.Position(0, 0), types.Position(0, 1))
        parts = [one.message, *([f"found: {one.label}"] if one.label else []), *one.notes]
        parts += [f"hint: {one.hint}"] if one.hint else []
        return types.Diagnostic(
            range_of(one.span) if one.span is not None else start,
            "\n".join(parts),
            severities[one.severity],
            one.code,
            source="dotr",
        )

    def current(uri: str) -> Analysis | None:
        analysis = known.get(uri)
        return analysis if analysis is not None and analysis.source.text == text_of(uri) else look(uri)

    def offset(params: Any, analysis: Analysis) -> int:
        document = TextDocument(params.text_document.uri, analysis.source.text)
        return document.offset_at_position(params.position)

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def changed(params: Any) -> None:
        uri = params.text_document.uri
        newest[uri] = turn = object()
        await asyncio.sleep(_PAUSE)
        if newest.get(uri) is turn:
            publish(uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        known.pop(params.text_document.uri, None)
        newest.pop(params.text_document.uri, None)
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(params.text_document.uri, []))

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hovered(params: types.HoverParams) -> types.Hover | None:
        analysis = current(params.text_document.uri)
        text = None if analysis is None else hover(analysis, offset(params, analysis))
        return None if text is None else types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text))

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    def defined(params: types.DefinitionParams) -> types.Location | None:
        analysis = current(params.text_document.uri)
        span = None if analysis is None else definition(analysis, offset(params, analysis))
        return None if span is None else location(span)

    @server.feature(
        types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=[".", ":", "?"])
    )
    def completed(params: types.CompletionParams) -> list[types.CompletionItem]:
        analysis = current(params.text_document.uri)
        found = [] if analysis is None else completions(analysis, offset(params, analysis))
        return [
            types.CompletionItem(one.label, kind=kinds[one.kind], detail=one.detail or None) for one in found
        ]

    @server.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
    def can_rename(params: types.PrepareRenameParams) -> types.Range | None:
        analysis = current(params.text_document.uri)
        if analysis is None:
            return None
        at = offset(params, analysis)
        return next((range_of(one) for one in renamed(analysis, at) if one.start <= at <= one.end), None)

    @server.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
    def do_rename(params: types.RenameParams) -> types.WorkspaceEdit | None:
        analysis = current(params.text_document.uri)
        if analysis is None:
            return None
        try:
            places, new = rename(analysis, offset(params, analysis), params.new_name, read)
        except DotrError as error:
            raise JsonRpcInvalidParams(error.diagnostics[0].message) from None
        return types.WorkspaceEdit(
            changes={params.text_document.uri: [types.TextEdit(range_of(one), new) for one in places]}
        )

    @server.feature(types.TEXT_DOCUMENT_FORMATTING)
    def formatted(params: types.DocumentFormattingParams) -> list[types.TextEdit] | None:
        written = text_of(params.text_document.uri)
        if written is None:
            return None
        source = Source(path_of(params.text_document.uri), written)
        try:
            text = format_text(source)
        except DotrError:
            return None  # what is wrong is published already
        whole = types.Range(types.Position(0, 0), position(source, len(source.text)))
        return [] if text == source.text else [types.TextEdit(whole, text)]

    return server
