"""A file in blocks of whole lines, in linear time however long a line is.

Place:   under the readers of JSON lines, N-Quads and message logs.
Method:  the parts of a line that goes on are kept apart until its end is there.
Why not: join what is left of a block with the next one: a line of n blocks is copied n times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

Read: TypeAlias = Callable[[int], bytes]
"""The next bytes of a file, at most so many; none at its end."""


def line_blocks(
    read: Read, size: int, head: bytes, limit: int, too_long: Callable[[], Exception]
) -> Iterator[bytes]:
    """What `read` gives behind `head`, cut behind line ends; the last block may lack its end.

    `head` is looked at before the first read, which may have to wait. Raises what `too_long` makes for a line
    of more than `limit` bytes.
    """
    begun: list[bytes] = []  # parts of a line that goes on
    length = 0
    block = head or read(size)
    while block:
        cut = block.rfind(b"\n") + 1
        if cut:
            yield b"".join((*begun, block[:cut])) if begun else block[:cut]
            begun, length = [], 0
        if cut < len(block):
            begun.append(block[cut:])
            length += len(block) - cut
            if length > limit:
                raise too_long()
        block = read(size)
    if begun:
        yield b"".join(begun)
