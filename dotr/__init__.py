"""dotr: a stream reasoner. See README.md; the Python surface is this module."""

__version__ = "0.1.0"
