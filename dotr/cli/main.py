"""The command `dotr`: verbs, exit codes, and how errors reach a human.

Place:   the outermost layer; a verb's module is loaded when it is called for.
Method:  `main` runs a verb and turns what ends it into an exit code: 0 done · 1 the answer is no · 2 usage ·
         3 bad input · 4 environment or engine · 5 refused for safety · 130 stopped by Ctrl-C,
         SIGTERM or SIGHUP (process.py).
Why not: click's own error output: it knows neither places nor hints, and one code for everything.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

import click

from dotr import __version__
from dotr.cli import process, show
from dotr.errors import (
    DataError,
    DotrError,
    EngineError,
    ProgramError,
    RefusedError,
    UnsupportedError,
    UsageError,
)
from dotr.io.outputs import unwritable

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

VERBS = {
    "demo": "Run an example, a building on fire: offline, in seconds.",
    "init": "Make a folder to begin with: rules, a stream, tests.",
    "check": "Report every mistake in rule files.",
    "fmt": "Rewrite rule files in canonical form.",
    "plan": "Show what will run: queries, joins, horizons, bounds of the state.",
    "run": "Replay sources through rules and print composite events.",
    "show": "Write a run as one page: events along time, each with its proof.",
    "watch": "Print how the answers of a query begin and end.",
    "explain": "Explain why an event happened, or why a rule did not fire.",
    "state": "Print what holds at one time, as RDF.",
    "test": "Run tests of rules.",
    "patterns": "List the pattern libraries that come with dotr.",
    "compare": "Compare what two versions of rules find in one log.",
    "query": "Answer SPARQL over what holds at one time, or over the background.",
    "close": "Print everything that follows from RDF and rules.",
    "kb": "Use a knowledge base at a prompt: insert, delete, query, why, rules, watch.",
    "deploy": "Check rules and register them in a deployment directory.",
    "feed": "Push sources into a deployment; resumes where it stopped, exactly once.",
    "status": "Show what is deployed: watermark, state, counts.",
    "serve": "Run a deployment as a server: HTTP in, events out, rules, answers, a console.",
    "undeploy": "Remove a rule from a deployment.",
    "batch": "Detect over historical logs, locally or on Spark.",
    "stream": "Detect events in a Spark stream, in order and exactly once.",
    "spark": "Write what spark-submit needs to run dotr.",
    "convert": "Convert streams between formats.",
    "map": "Propose and check mappings from the rows of tables to graphs.",
    "times": "Show the times in sources: range, order, gaps, lateness.",
    "lsp": "Run a language server for editors.",
    "completion": "Print the script that completes commands and options in bash, zsh or fish.",
    "help": "Print a page of the manual, offline.",
    "docs": "Build the manual as a site.",
    "doctor": "Check what works on this machine, and how to fix the rest.",
}

_HOMES = {
    "close": "kb:close",
    "compare": "test:compare",
    "demo": "help:demo",
    "docs": "help:docs",
    "fmt": "check:fmt",
    "init": "help:init",
    "map": "convert:mappings",
    "patterns": "help:patterns",
    "show": "picture",
    "spark": "stream:spark",
    "state": "explain:state",
    "status": "deploy:status",
    "times": "convert:times",
    "undeploy": "deploy:undeploy",
    "watch": "query:watch",
}
"""Verbs of modules that are called by another one, as module:command; others are `command` of their own."""

EXIT_CODES: tuple[tuple[type[DotrError], int], ...] = (
    (ProgramError, 3),
    (DataError, 3),
    (UnsupportedError, 3),
    (UsageError, 2),
    (EngineError, 4),
    (RefusedError, 5),
)

_EPILOG = "Data goes to standard output, everything else to standard error. Start with: dotr demo"


class NobodyListensError(Exception):
    """The reader of our output went away. (A BrokenPipeError click would take for itself, exiting with 1.)"""


class Verbs(click.Group):
    """A group whose verbs are imported when they are run, so that `dotr --help` is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        gc.disable()  # nothing that a module makes while it loads goes away again
        try:
            home, _, name = _HOMES.get(cmd_name, cmd_name).partition(":")
            command: click.Command = getattr(import_module(f"dotr.cli.{home}"), name or "command")
        finally:
            gc.freeze()  # nor later: no collection need look at it
            gc.enable()
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem  # noqa: PLC0415  # start-up: when a shell asks

        found = [
            CompletionItem(name, help=text) for name, text in VERBS.items() if name.startswith(incomplete)
        ]
        return found or super().shell_complete(ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise NobodyListensError from None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in VERBS:
            from difflib import get_close_matches  # noqa: PLC0415  # start-up: most commands are there

            near = get_close_matches(args[0], VERBS, 1)
            hint = f" Did you mean `{near[0]}`?" if near else ""
            raise click.UsageError(f"there is no command `{args[0]}`.{hint}", ctx)
        return super().resolve_command(ctx, args)


@click.group(
    cls=Verbs,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, message="dotr %(version)s")
def group() -> None:
    """A stream reasoner: describe a situation once, learn when it happens."""


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point: run a verb and exit with its code."""
    process.prepare()
    try:
        code = run(arguments)
    except KeyboardInterrupt:  # another one, while the first was being reported
        code = process.STOPPED
    sys.exit(code)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a verb and return its exit code. Errors a user can correct never show a traceback."""
    return process.settle(_run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    if "_DOTR_COMPLETE" in os.environ:
        from dotr.cli.completion import register  # noqa: PLC0415  # start-up: when a shell asks

        register()
    try:
        _refuse_impossible(sys.argv[1:] if arguments is None else arguments)
        code = group.main(list(arguments) if arguments is not None else None, "dotr", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.UsageError as error:
        error.show()
        return 2
    except click.ClickException as error:
        error.show()
        return 2
    except DotrError as error:
        show.errors(error)
        return exit_code(error)
    except (NobodyListensError, BrokenPipeError):
        process.discard(sys.stdout)  # not an error, but nothing more can be said there
        return 0
    except (KeyboardInterrupt, click.exceptions.Abort):
        # if it interrupted an exec of text (dataclasses has them), CPython would end by the signal instead of
        # with this code, although it was caught; the next exec of text resets that (run_eval_code_obj)
        exec("")  # noqa: S102  # see above
        with suppress(OSError):  # the terminal may be what is gone
            show.note("stopped")
        return process.STOPPED
    except Exception as error:
        if isinstance(error, ModuleNotFoundError):
            from dotr.cli.packages import missing  # noqa: PLC0415  # start-up: most have what they use

            if (lacking := missing(error)) is not None:
                show.errors(lacking)
                return 4
        if isinstance(error, OSError) and error.filename is not None:
            show.errors(_inaccessible(error))
            return 4
        if isinstance(error, OSError) and process.cannot_be_written(error):
            show.errors(unwritable("standard output", error))
            return 4
        if os.environ.get("DOTR_TRACEBACK"):
            raise
        if isinstance(error, MemoryError):
            show.errors(_OUT_OF_MEMORY)
            return 4
        show.errors(_our_fault(error))
        return 4


def _refuse_impossible(arguments: Sequence[str]) -> None:
    """Raise UsageError D4114 for what no shell can hand over, and no file be called."""
    for argument in arguments:
        try:
            possible = b"\0" not in os.fsencode(argument)
        except UnicodeEncodeError:
            possible = False
        if not possible:
            raise UsageError.of(
                "D4114",
                "an argument has a character that no file name may have",
                label=ascii(argument)[:200],
                hint="delete the NUL, or the half of a UTF-16 surrogate pair",
            )


def exit_code(error: DotrError) -> int:
    return next(code for kind, code in EXIT_CODES if isinstance(error, kind))


def _inaccessible(error: OSError) -> EngineError:
    path = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else str(error.filename)
    reason = (error.strerror or str(error)).lower()
    message = f"the operating system does not give access to `{path[:200]}`: {reason}"
    return EngineError.of("D4203", message, hint="check the path and who may use it")


def _our_fault(error: Exception) -> EngineError:
    what = f"dotr itself failed: {type(error).__name__}: {error}"
    hint = "this is a bug; with DOTR_TRACEBACK=1 in the environment the message shows where"
    return EngineError.of("D4999", what, hint=hint)


_OUT_OF_MEMORY = EngineError.of(
    "D4204", "memory ran out", hint="feed less at once, or use shorter windows"
)  # made before there is none


if __name__ == "__main__":
    main()
