"""IRI references resolved against a base.

Place:   called by base.py for BASE and relative IRIs.
Method:  RFC 3986, sec. 5.2 (strict), on the text: nothing is decoded, no scheme is special.
Why not: urllib.parse.urljoin, which knows a list of schemes and leaves `urn:` and its like alone.
"""

from __future__ import annotations

import re
from typing import Final

from dotr.regex import regex

_PARTS: Final = regex(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
_SCHEME: Final = regex(r"[^:/?#]*:")


def is_absolute(reference: str) -> bool:
    """Whether it begins with a scheme, right or wrong: the first segment of a relative one has no colon."""
    return _SCHEME.match(reference) is not None


def resolve(base: str, reference: str) -> str:
    """The absolute IRI of a valid reference. `base` is absolute. Linear."""
    scheme, authority, path, query, fragment = _split(reference)
    if scheme is None:
        base_scheme, base_authority, base_path, base_query, _ = _split(base)
        scheme = base_scheme
        if authority is None:
            authority = base_authority
            if path == "":
                path = base_path
                query = base_query if query is None else query
            elif not path.startswith("/"):
                path = _merge(base_authority, base_path, path)
    path = _without_dots(path)
    out = f"{scheme}:"
    if authority is not None:
        out += f"//{authority}"
    out += path
    if query is not None:
        out += f"?{query}"
    if fragment is not None:
        out += f"#{fragment}"
    return out


def _split(text: str) -> tuple[str | None, str | None, str, str | None, str | None]:
    hit = _PARTS.match(text)
    assert hit is not None, "the pattern matches every text"
    return hit.group(1), hit.group(2), hit.group(3) or "", hit.group(4), hit.group(5)


def _merge(authority: str | None, base_path: str, path: str) -> str:
    if authority is not None and not base_path:
        return "/" + path
    return base_path[: base_path.rfind("/") + 1] + path


def _without_dots(path: str) -> str:
    """Remove `.` and `..` segments (sec. 5.2.4)."""
    if "." not in path:
        return path
    rooted = path.startswith("/")
    segments = path.split("/")
    out: list[str] = []
    for segment in segments[1:] if rooted else segments:
        if segment == "..":
            if out:
                out.pop()
        elif segment != ".":
            out.append(segment)
    if segments[-1] in (".", ".."):
        out.append("")
    return ("/" if rooted else "") + "/".join(out)
