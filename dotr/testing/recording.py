"""Today's behaviour as a test file, to keep.

Place:   `dotr test --record`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from dotr.events import Composite
from dotr.io.term_formatting import TermFormatter
from dotr.testing.case_runs import Bench
from dotr.testing.suites import Case, FilesStep, Scalar, Suite


def recorded(
    rules: Sequence[str], sources: Sequence[str], mapping: str | None, unit: str, suite: Suite, name: str
) -> str:
    """A test file that expects what the rules find in the sources now, and nothing else.

    `mapping`: the file through which the sources are read, where they are tables.

    Events of PRIVATE rules never come out, and are not in it.

    Raises what running them raises.
    """
    bench = Bench(suite)
    span = suite.rules[0].span
    through = None if mapping is None else Scalar(mapping, span)
    case = Case(name, span, tuple(FilesStep(Scalar(source, span), through) for source in sources), only=True)
    outcome = bench.run(case)
    if outcome.error is not None:
        raise outcome.error
    assert outcome.given is not None
    clock, terms = outcome.given.clock, TermFormatter(bench.prefixes)
    events = [event for event in outcome.events if event.rule not in bench.private]
    lines = [f"rules: {_list(rules)}"]
    if unit != "s":
        lines.append(f"time_unit: {unit}")
    lines += ["tests:", f"  - name: {_text(name)}", "    stream:"]
    more = "" if mapping is None else f", map: {_text(mapping)}"
    lines += [f"      - {{ from: {_text(source)}{more} }}" for source in sources]
    lines.append("    only: true")
    lines.append("    expect:" if events else "    expect: []")
    for event in events:
        lines.append(f"      - {{ {_event(event, clock.text(event.time), terms)} }}")
    return "\n".join(lines) + "\n"


def _event(event: Composite, time: str, terms: TermFormatter) -> str:
    pairs = [("rule", event.rule), ("at", time)]
    own = {"rule", "at"}  # keys of an expectation itself; a variable of that name is written with its `?`
    for name, term in event.bindings:
        if term[0] != "_":
            pairs.append((f"?{name}" if name in own else name, terms.term(term)))
    return ", ".join(f"{_text(name)}: {_text(value)}" for name, value in pairs)


def _list(values: Sequence[str]) -> str:
    return _text(values[0]) if len(values) == 1 else f"[{', '.join(map(_text, values))}]"


def _text(value: str) -> str:
    """A scalar of YAML, quoted where it must be."""
    plain = value.replace("_", "").replace("-", "").replace(".", "").replace("/", "")
    return value if plain.isalnum() and value[0].isalnum() else json.dumps(value, ensure_ascii=False)
