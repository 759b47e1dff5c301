"""`dotr serve RULES…`: a deployment that listens; `dotr serve token new NAME` lets somebody in.

Place:   reads the configuration and everything that it names, refuses what is unsafe, and lets the room of
         that name work. What speaks HTTP is imported when it is to run.
Method:  an option sets a key of the configuration, over what the file has; the table `_KEYS` says which, and
         its help is what the configuration says of the key.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final
from urllib.parse import urlsplit

import click

from dotr.cli import options, show
from dotr.cli.deploy import summary_lines
from dotr.cli.live import watched
from dotr.cli.show import counted
from dotr.errors import Diagnostic, EngineError, Severity
from dotr.io.show import aligned
from dotr.io.tables.mapping import read_mapping
from dotr.lang.grammar.cursor import nearest
from dotr.program import Program
from dotr.program.names import duration_text
from dotr.serve.configuration import (
    FILE,
    SCHEMA,
    Configuration,
    Output,
    Override,
    Source,
    description,
    read_configuration,
)
from dotr.serve.deliveries import receivers
from dotr.serve.replayed import check_replayed
from dotr.serve.security import Tokens, check_certificate, new_token, refuse_unsafe
from dotr.serve.subscriptions import check_source
from dotr.service.deployment import propose
from dotr.service.journal import DATABASE, LOCK, Journal

_NEEDED: Final = ("starlette", "uvicorn", "prometheus_client")

_KEYS: Final = (
    ("--dir", ("dir",), "FOLDER", False),
    ("--listen", ("listen",), "HOST:PORT", False),
    ("--host", ("hosts",), "NAME", True),
    ("--background", ("background",), "FILE", True),
    ("--commit", ("commit",), "DURATION", False),
    ("--keep-messages", ("keep", "messages"), "DURATION", False),
    ("--keep-events", ("keep", "events"), "DURATION|SIZE", False),
    ("--inbox-max", ("inbox", "max"), "ROWS|SIZE", False),
    ("--outbox-max", ("outbox", "max"), "ROWS|SIZE", False),
    ("--tokens", ("tokens",), "FILE", False),
    ("--tls-cert", ("tls", "cert"), "FILE", False),
    ("--tls-key", ("tls", "key"), "FILE", False),
    ("--cors", ("cors",), "ORIGIN", True),
    ("--max-ahead", ("max-ahead",), "DURATION", False),
    ("--corrections", ("corrections",), "DURATION", False),
    ("--corrections-budget", ("corrections-budget",), "SHARE", False),
    ("--tick", ("tick",), "DURATION", False),
    ("--time-unit", ("time-unit",), "s|ms|us", False),
    ("--base", ("base",), "IRI", False),
)
"""Option, key of the configuration, what it takes, and whether it may be repeated."""


class _Serve(click.Command):
    """`dotr serve`, whose RULES `token` are a command of its own."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if args[:1] == ["token"]:
            return token.make_context(f"{info_name} token", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


def _keys(function: Any) -> Any:
    """The options of `_KEYS`, as one argument `overrides`."""

    def with_overrides(rules: tuple[str, ...], settings: tuple[str, ...], **given: Any) -> Any:
        own = {option: given.pop(_parameter(option)) for option, *_ in _KEYS}
        found = [
            Override(option, path, list(own[option]) if repeated else own[option])
            for option, path, _, repeated in _KEYS
            if own[option] not in (None, ())
        ]
        if rules:
            found.insert(0, Override("RULES", ("rules",), list(rules)))
        if given.pop("behind_proxy"):
            found.append(Override("--behind-proxy", ("behind-proxy",), "true"))
        found += [_set(one) for one in settings]
        return function(overrides=found, **given)

    with_overrides.__doc__ = function.__doc__
    for option, path, metavar, repeated in reversed(_KEYS):
        text = description(path) + (" Repeatable." if repeated else "")
        decorate = click.option(option, _parameter(option), metavar=metavar, multiple=repeated, help=text)
        with_overrides = decorate(with_overrides)
    return with_overrides


def _parameter(option: str) -> str:
    return option.removeprefix("--").replace("-", "_")


def _set(text: str) -> Override:
    key, equals, value = text.partition("=")
    path = tuple(key.strip().split("."))
    if not equals or not all(path) or not value.strip():
        raise click.BadParameter(f"`{text}` is not KEY=VALUE, such as sources.kitchen.time=arrival")
    return Override(f"--set {key.strip()}", path, value, yaml=True)


@click.command(cls=_Serve)
@click.argument("rules", metavar="[RULES...]", nargs=-1)
@click.option(
    "--config", metavar="FILE", help=f"The configuration (default: {FILE} of this folder, if it is there)."
)
@click.option(
    "--set",
    "settings",
    metavar="KEY=VALUE",
    multiple=True,
    help="Set any key of the configuration, as YAML: sources.kitchen='{http: {}}'. Repeatable.",
)
@click.option("--behind-proxy", is_flag=True, help=description(("behind-proxy",)))
@click.option("--check", is_flag=True, help="Read everything, compile the rules, report what would be done.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of the configuration, for editors.")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    help="How logs are written (default: text; json: one object a line).",
)
@options.plain
@options.functions
@_keys
def command(
    overrides: Sequence[Override],
    config: str | None,
    check: bool,
    schema: bool,
    log_format: str,
    plain: bool,
) -> int:
    """Serve a deployment over HTTP: documents in, events out, rules, answers.

    Without a configuration it listens on http://127.0.0.1:8080, for this machine alone, with the deployment
    .dotr and one stream, `input`; RULES are deployed first. Options override the configuration.
    `dotr serve token new NAME --scopes read,write` makes a token, without which nothing listens on other
    addresses. SIGHUP reads the configuration again; Ctrl-C or SIGTERM end the server after a commit. On a
    terminal a view of the server is below its log; --plain or NO_COLOR keep the log alone.

    Needs the extra `serve`: pip install 'dotr[serve]'.
    """
    if schema:
        sys.stdout.write(SCHEMA.read_text("utf-8"))
        return 0
    require()
    if config is None and os.path.isfile(FILE):
        config = FILE
        show.note(f"configured by {FILE}")
    configuration = read_configuration(config, overrides)
    configuration.import_functions()
    tokens = refuse(configuration)
    if check:
        for line in _report(configuration, tokens):
            click.echo(line)
        return 0
    watcher = None
    if log_format == "text" and watched(plain):
        watcher = import_module("dotr.cli.live_server").ServerView(configuration.dir)
    code: int = import_module("dotr.serve.server").run(configuration, log_format=log_format, watcher=watcher)
    return code


def require() -> None:
    """Raise EngineError D4205 if a package of the extra is missing."""
    missing = [name.replace("_", "-") for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise EngineError.of(
            "D4205", f"dotr serve needs {', '.join(missing)}", hint="pip install 'dotr[serve]'"
        )


def refuse(configuration: Configuration) -> Tokens | None:
    """Everything that is refused before a port is opened; the tokens. Raises DotrError."""
    refuse_unsafe(configuration)
    check_certificate(configuration)
    tokens = Tokens.read(configuration.tokens) if configuration.tokens is not None else None
    outputs = [output.file for output in configuration.outputs.values() if output.file is not None]
    files = [path for source in configuration.sources.values() for path in source.files or ()]
    own = [os.path.join(configuration.dir, name) for name in (DATABASE, LOCK)]
    read = [configuration.path, configuration.tokens, *configuration.rules, *configuration.background]
    if outputs:
        inputs = [*own, *files, *(path for path in read if path is not None)]
        options.outputs_apart(outputs, [], inputs, appearing=True)
    for name, source in configuration.sources.items():
        check_source(name, source)
        check_replayed(name, source)
        if source.map is not None:
            read_mapping(source.map)
    for receiver in receivers(configuration).values():  # which reads secrets, and connects nowhere yet
        receiver.close()
    return tokens


def _report(configuration: Configuration, tokens: Tokens | None) -> Iterator[str]:
    """What would be done. Raises ProgramError, DataError for rules or a background in error."""
    new = not os.path.exists(os.path.join(configuration.dir, DATABASE))
    with Journal.to_compare(configuration.dir) as journal:
        proposal = propose(journal, configuration.rules, configuration.background, configuration.base)
    program = proposal.compiled.program
    show.say_all([*proposal.warnings, *_unknown_rules(configuration, program)])
    scheme = "http" if configuration.tls is None else "https"
    reach = "this machine alone" if configuration.loopback else "every machine that reaches it"
    rows = [
        ("listen", f"{scheme}://{configuration.listen}", f"for {reach}"),
        ("deployment", configuration.dir, "new" if new else "continued"),
        ("commit", f"every {duration_text(configuration.commit)}", ""),
        (
            "keep",
            f"messages {duration_text(configuration.kept_messages)}",
            f"events {configuration.keep.events}",
        ),
    ]
    if configuration.corrections is not None:
        rows.append(("corrections", f"of {duration_text(configuration.corrections)}", ""))
    for name, source in configuration.sources.items():
        rows.append((f"source {name}", source.kind, _source(name, source)))
    for name, output in configuration.outputs.items():
        rules = ", ".join(output.rules) or "all rules"
        rows.append((f"output {name}", f"{output.kind} {_target(output)}", f"events of {rules}"))
    for one in tokens.rows if tokens is not None else ():
        rows.append((f"token {one.name}", ", ".join(sorted(one.scopes)), ""))
    if tokens is None:
        rows.append(("tokens", "none", "whoever reaches the address may do everything"))
    yield from aligned(rows).splitlines()
    if not program.rules:
        yield "no rules: PUT /v1/rules brings them"
    yield from summary_lines(proposal, dry_run=True)


def _source(name: str, source: Source) -> str:
    if source.http is not None:
        where = f"POST /v1/streams/{name}"
    else:
        where = ", ".join(source.files or [getattr(source, source.kind), *source.topics])
    return f"{where}; time: {source.time}"


def _target(output: Output) -> str:
    """Where an output goes; of a URL the host alone, since the rest is often a secret."""
    where = str(getattr(output, output.kind))
    return where if output.file is not None else urlsplit(where).netloc


def _unknown_rules(configuration: Configuration, program: Program) -> Iterator[Diagnostic]:
    known = [rule.name for rule in program.rules if not rule.private]
    for name, output in configuration.outputs.items():
        for rule in output.rules:
            if rule not in known:
                message = f"`{rule}` of the output `{name}` is no rule with events"
                hint = nearest(rule, known) or f"rules with events: {', '.join(known) or 'none'}"
                yield Diagnostic("D4150", message, hint=hint, severity=Severity.WARNING)


@click.group()
def token() -> None:
    """Tokens of a server: who may call it, and for what."""


@token.command("new")
@click.argument("name")
@click.option(
    "--scopes",
    required=True,
    metavar="SCOPE,…",
    help="What it is for: read, write, write:STREAM, rules, admin; none includes another.",
)
@click.option(
    "--tokens",
    "path",
    type=options.file_name,
    default="tokens",
    metavar="FILE",
    help="The file of tokens, as the configuration names it (default: tokens).",
)
def new(name: str, scopes: str, path: str) -> None:
    """Make a token, print it, and add its hash to the file of tokens.

    It is printed once and kept nowhere. A running server reads the file again at SIGHUP.
    """
    made = new_token(path, name, [scope.strip() for scope in scopes.split(",") if scope.strip()])
    click.echo(made)
    show.note(
        f"`{path}` has its hash, in {counted(len(Tokens.read(path).rows), 'row')}; it is not shown again"
    )
