"""`dotr spark entry-point`: what spark-submit needs to run dotr on a cluster.

Place:   writes one small Python file; every verb runs through it as it does through `dotr`.
"""

from __future__ import annotations

import click

from dotr.cli import show
from dotr.cli.options import file_name
from dotr.io.files.outputs import open_output

ENTRY_POINT = '''\
"""dotr under spark-submit: the arguments are those of `dotr`.

    spark-submit --master yarn dotr-submit.py batch fire.dotr --log hdfs:///log --out hdfs:///fires
"""

import sys

try:
    from dotr.cli.main import run
except ImportError:
    sys.exit(f"the driver's Python, {sys.executable}, has no dotr: install it, or send an environment along")

code = run()
if code:
    sys.exit(code)
'''


@click.group(short_help="What spark-submit needs to run dotr.")
def command() -> None:
    """What Spark's own commands need to run dotr."""


@command.command("entry-point", short_help="Write the file that spark-submit starts.")
@click.option(
    "-o",
    "--output",
    type=file_name,
    metavar="FILE",
    default="dotr-submit.py",
    help="The file to write (default: dotr-submit.py; `-`: standard output).",
)
@click.option("--overwrite", is_flag=True, help="Replace a file that exists.")
def entry_point(output: str, overwrite: bool) -> None:
    """Write a Python file that spark-submit starts: spark-submit … dotr-submit.py VERB …"""
    file = open_output(output, overwrite)
    file.write(ENTRY_POINT)
    file.finish()
    output = "dotr-submit.py" if output == "-" else output
    show.note(f"{output}: spark-submit … {output} batch RULES LOG… --out DIR")
