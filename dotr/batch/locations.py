"""Where logs and outputs are: a path of this machine, or a URI that only Spark can open.

Place:   pure; used by the command line and log_splits.py before anything is opened.
Method:  `file:` URIs are paths. A URI has a scheme of two letters or more (`C:/log` is a path on some
         machines), and no file of that name exists.
"""

from __future__ import annotations

import os
import re
from urllib.parse import unquote, urlsplit

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def plain_path(place: str) -> str:
    """`file:///a%20b` as a path; anything else as it is."""
    if not place.lower().startswith("file:/"):
        return place
    return unquote(urlsplit(place).path)


def is_remote(place: str) -> bool:
    """Whether `place` is a URI of another scheme than `file`: hdfs://…, s3a://…"""
    return _URI.match(place) is not None and plain_path(place) == place and not os.path.exists(place)


def as_path(uri: str) -> str:
    """A path in the form of the column `path`, from one of `inputFiles`: `file:/a b` from `file:///a%20b`."""
    scheme, rest = unquote(uri).split(":", 1)
    return f"{scheme}:{rest[2:] if rest.startswith('///') else rest}"
