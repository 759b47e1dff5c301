"""`dotr completion`: the script that completes verbs, options and file names in a shell.

Place:   `main.py` loads it for the verb, and when a shell asks (the variable that click looks at is set).
Method:  click's own scripts; where it knows no words, the names of files, since most arguments are files.
"""

from __future__ import annotations

from typing import Any, Final

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
)

VARIABLE: Final = "_DOTR_COMPLETE"


def _or_files(self: ShellComplete, args: list[str], incomplete: str) -> list[CompletionItem]:
    """The words that click knows; else the names of files."""
    known = ShellComplete.get_completions(self, args, incomplete)
    return known or [CompletionItem(incomplete, type="file")]


def _class(base: type[ShellComplete]) -> type[ShellComplete]:
    # `source` of bash asks the bash of this machine for its version; the script is for any of 4.4 or newer
    own: dict[str, Any] = {"get_completions": _or_files, "source": ShellComplete.source}
    return type(base.__name__, (base,), own)


SHELLS: Final = {base.name: _class(base) for base in (BashComplete, ZshComplete, FishComplete)}


def register() -> None:
    """Let click use these classes."""
    for name, shell in SHELLS.items():
        add_completion_class(shell, name)


@click.command()
@click.argument("shell", type=click.Choice(list(SHELLS)))
@click.pass_context
def command(context: click.Context, shell: str) -> int:
    """Print the script that makes a shell complete dotr's verbs, options and files.

    \b
    bash   dotr completion bash > ~/.local/share/bash-completion/completions/dotr
    zsh    dotr completion zsh > a folder of $fpath, as _dotr
    fish   dotr completion fish > ~/.config/fish/completions/dotr.fish
    """
    group = context.find_root().command
    click.echo(SHELLS[shell](group, {}, "dotr", VARIABLE).source())
    return 0
