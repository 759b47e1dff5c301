"""The fixtures of tests/cli: a folder with the paper's example, and the command line."""

from tests.cli.conftest import dotr, folder

__all__ = ["dotr", "folder"]
