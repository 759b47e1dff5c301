"""Which dotr this is.

Place:   below everything; state derived by an older version is recognised by it.
"""

__version__ = "0.2.0"
