"""Dumps of observations, in the most awkward order."""

PREFIXES = """@prefix : <http://example.org/> . @prefix sosa: <http://www.w3.org/ns/sosa/> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""


def observation(number: int, second: int) -> str:
    return (
        f":o{number} a sosa:Observation ; sosa:madeBySensor :s{number % 3} ; sosa:hasResult _:r{number} ; "
        f'sosa:resultTime "2026-01-01T00:{second // 60:02}:{second % 60:02}Z"^^xsd:dateTime .\n'
    )


def dump(count: int) -> str:
    """Observations from the last to the first; their results, then the sensors, stand behind all of them."""
    observed = "".join(observation(n, n) for n in reversed(range(count)))
    results = "".join(f"_:r{n} :celsius {n} .\n" for n in range(count))
    return PREFIXES + observed + results + "".join(f":s{n} :in :room{n} .\n" for n in range(3))


def dump_of(count: int) -> str:
    """As `dump`, results first, each second many times."""
    results = "".join(f"_:r{n} :celsius {n} .\n" for n in range(count))
    return PREFIXES + results + "".join(observation(n, n % 3600) for n in reversed(range(count)))
