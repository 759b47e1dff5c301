"""Fuzz the lexer and the parsers: nothing but findings ever comes out, in bounded time.

    python tests/fuzz_language.py --seed 1 --count 100000

Inputs are random characters, random tokens, and mutations (cut, doubled, swapped, inserted, nested) of the
programs under tests/golden, examples, patterns and rules. A failing input is printed; the last line counts.
Runs with different seeds are the pieces of a long run. `pytest tests/lang/test_fuzz.py` runs some hundred.
The long run: seeds 10 to 26, 60000 inputs each, 1020000 in all, no failure, 58 to 112 s a piece.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from dotr.errors import DotrError, ProgramError
from dotr.lang import check_program, parse_datalog, parse_program, parse_query

ROOT = Path(__file__).parent.parent
SLOW = 5.0
"""Seconds that no input of the sizes made here may take."""

_WORDS = (
    "PREFIX BASE BACKGROUND RULES ENTAILMENT PARAMETER IMPORT QUERY PRIVATE RULE DEFINE FROM EVERY AS AND "
    "AFTER EACH LAST FIRST NOT ON OVER WITHIN BEFORE BETWEEN WHERE WITH CONSUMING COUNT SUM AVG MIN MAX "
    'COLLECT STDDEV MEDIAN PERCENTILE LOCAL DATE AT MONDAY MONTH DAY 08:00 "UTC" '
    "DISTINCT SELECT ASK CONSTRUCT OPTIONAL MINUS UNION GRAPH SERVICE FILTER BIND VALUES UNDEF "
    "EXISTS GROUP BY HAVING ORDER LIMIT OFFSET IN IF STR COALESCE BOUND NOW REGEX AGGREGATE true "
    "false a none rdfs min s h Fire Smoke Tick dotr_x A.?v A.time ?x ?y $z : :a ex:b _:b <http://e/> "
    "<x> @en ^^ 1 2.5 1e3 { } ( ) [ ] , ; . | / * + - ? ! = != < > <= >= := :- && || ^ # \\ % & @ “ é "
    '→ "s" \'q\' """l"""'
)
WORDS = _WORDS.split()
Run = Callable[[str], object]


def _program(text: str) -> object:
    return check_program(["fuzz.dotr"], _reader(text))


def _reader(text: str) -> Callable[[str], str]:
    def read(path: str) -> str:
        if path in ("fuzz.dotr", "fuzz.dlog"):
            return text
        raise FileNotFoundError(2, "no such file", path)

    return read


def _datalog(text: str) -> object:
    return check_program(["fuzz.dlog"], _reader(text))


RUNS: tuple[Run, ...] = (_program, _datalog, parse_query, parse_program, parse_datalog)


def seeds() -> list[str]:
    """Texts to mutate: the project's own programs and queries, in a fixed order."""
    folders = ("tests/golden", "examples", "patterns", "rules")
    files = sorted(
        f for folder in folders for f in (ROOT / folder).rglob("*.d*") if f.suffix in (".dotr", ".dlog")
    )
    return [text for f in files if len(text := f.read_text(encoding="utf-8")) < 4_000]


def inputs(seed: int, count: int, texts: list[str]) -> Iterator[str]:
    """`count` texts that depend on `seed` alone."""
    rng = random.Random(seed)
    for _ in range(count):
        kind = rng.random()
        if kind < 0.15:
            yield "".join(chr(_code(rng)) for _ in range(rng.randrange(120)))
        elif kind < 0.4:
            yield _spaced(rng, [rng.choice(WORDS) for _ in range(rng.randrange(60))])
        else:
            yield _mutated(rng, rng.choice(texts))


def _code(rng: random.Random) -> int:
    return rng.choice((rng.randrange(128), rng.randrange(128), rng.randrange(0x2FF), rng.randrange(0xD800)))


def _spaced(rng: random.Random, words: list[str]) -> str:
    return "".join(word + rng.choice(("", " ", " ", "\n")) for word in words)


def _mutated(rng: random.Random, text: str) -> str:
    for _ in range(rng.randrange(1, 5)):
        a, b = sorted((rng.randrange(len(text) + 1), rng.randrange(len(text) + 1)))
        b = min(b, a + 80)
        match rng.randrange(6):
            case 0:
                text = text[:a] + text[b:]
            case 1:
                text = text[:b] + text[a:b] + text[b:]
            case 2:
                text = text[:a] + rng.choice(WORDS) + text[a:]
            case 3:
                text = text[:a] + rng.choice(WORDS) + text[b:]
            case 4:
                text = text[:a] + rng.choice("({[<\"'#\\\n") * rng.randrange(1, 90) + text[a:]
            case _:
                text = text[:a] + chr(_code(rng)) + text[a + 1 :]
        if not text:
            return text
    return text


def attempt(run: Run, text: str) -> str:
    """What is wrong with how `run` takes `text`; empty when nothing is."""
    begun = time.perf_counter()
    try:
        run(text)
    except ProgramError:
        pass
    except DotrError as error:
        if run is not parse_program:
            return f"{type(error).__name__}: {error}"
    except Exception as error:  # the very thing that is looked for
        return f"{type(error).__name__}: {error}"
    took = time.perf_counter() - begun
    return f"took {took:.1f} s" if took > SLOW else ""


def fuzz(seed: int, count: int) -> Iterator[tuple[str, str]]:
    """(text, what is wrong) of every input that is taken badly."""
    texts = seeds()
    for number, text in enumerate(inputs(seed, count, texts)):
        wrong = attempt(RUNS[number % 2 if number % 8 else number // 8 % len(RUNS)], text)
        if wrong:
            yield text, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else "")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=10_000)
    options = parser.parse_args()
    begun = time.perf_counter()
    failures = 0
    for text, wrong in fuzz(options.seed, options.count):
        failures += 1
        print(f"{wrong}\n{text!r}\n")
    seconds = time.perf_counter() - begun
    print(f"seed {options.seed}: {options.count} inputs, {failures} failures, {seconds:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
