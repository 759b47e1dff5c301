"""Frames of typed events: arguments, columns that are carried from the log, and the events of one rule.

Place:   `dotr.spark.detect` (frames.py); io/typed_events.py has the columns and makes the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from dotr.errors import UsageError
from dotr.events import Clock
from dotr.io.events import csv_columns
from dotr.io.typed_events import TRIGGER, Types
from dotr.lang.grammar.cursor import nearest
from dotr.program import Program

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

OWN: Final = ("time", "date", "rule", "id", "bindings", "match", "terms", "graph", TRIGGER)
"""The names of the columns of typed events."""


def check_typed(log: DataFrame, schema: str, types: Types | str | None, carry: Sequence[str]) -> None:
    """Raise UsageError D4123 for arguments of `detect` that do not exist, or do not fit together."""
    if schema not in ("terms", "typed"):
        raise UsageError.of("D4123", f"there is no schema `{schema}`", hint="terms or typed")
    if isinstance(carry, str):
        raise UsageError.of("D4123", "`carry` is a list of columns", label=carry, hint=f'carry=["{carry}"]')
    if not (types is None or types == "data" or names_kinds(types)):
        hint = 'types="data", or types={"celsius": "double"}'
        raise UsageError.of("D4123", f"`types` cannot be `{types}`", hint=hint)
    if schema == "terms" and (types or carry):
        word = "types" if types else "carry"
        raise UsageError.of("D4123", f"`{word}` belongs to typed events", hint='schema="typed"')
    wrong = [name for name in carry if name not in log.columns]
    if wrong:
        hint = nearest(wrong[0], log.columns) or f"its columns are {', '.join(log.columns)}"
        raise UsageError.of("D4123", f"the log has no column `{wrong[0]}`", hint=hint)
    lower = [name.lower() for name in carry]
    twice = [name for place, name in enumerate(carry) if name.lower() in lower[:place]]
    if twice:
        hint = "name it once; Spark does not tell upper from lower case"
        raise UsageError.of("D4123", f"`carry` has the column `{twice[0]}` twice", hint=hint)
    taken = [name for name in carry if name.lower() in OWN]
    if taken:
        raise UsageError.of(
            "D4123", f"events have a column `{taken[0]}` of their own", hint="rename the one of the log"
        )


def names_kinds(types: object) -> bool:
    """Whether `types` has the form of declared kinds."""
    if not isinstance(types, Mapping):
        return False
    return all(isinstance(name, str) and isinstance(kind, str) for name, kind in types.items())


def typed_events(
    events: DataFrame, log: DataFrame, program: Program, clock: Clock, carry: Sequence[str], times: str
) -> Any:
    """Typed events with the columns that are carried to them, and a method `rule` (the column of this name is
    `events["rule"]`).
    """
    made: Any = carried(events, log, clock, carry, times) if carry else events.drop(TRIGGER)
    made.rule = partial(of_rule, made, program, more=tuple(carry))
    return made


def carried(events: DataFrame, log: DataFrame, clock: Clock, carry: Sequence[str], times: str) -> DataFrame:
    """With columns of the log's row of the trigger's time; arrays of those of its rows, sorted, unless times
    are distinct. Null where the log has no such time: a trigger of EVERY.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415  # start-up

    mapped = [name for name in carry if _holds_map(log.schema[name].dataType)]
    if mapped and times != "distinct":
        hint = f'times="distinct" if they are, or carry to_json({mapped[0]})'
        raise UsageError.of(
            "D4123", f"`{mapped[0]}` has a map: Spark cannot sort what rows of one time have", hint=hint
        )
    time = f.col("time").cast("bigint") if clock.integer else f.unix_micros("time")
    rows = log.where("time IS NOT NULL").select(time.alias(TRIGGER), *[f.col(quoted(name)) for name in carry])
    if times != "distinct":
        together = f.array_sort(f.collect_list(f.struct(*map(quoted, carry)))).alias("row")
        rows = rows.groupBy(TRIGGER).agg(together)
        rows = rows.select(TRIGGER, *[f.col("row").getField(name).alias(name) for name in carry])
    return events.join(rows, TRIGGER, "left").drop(TRIGGER)


def _holds_map(type_: DataType) -> bool:
    from pyspark.sql.types import ArrayType  # noqa: PLC0415  # start-up

    inner = [field.dataType for field in getattr(type_, "fields", ())]
    inner += [type_.elementType] if isinstance(type_, ArrayType) else []
    return type_.typeName() in ("map", "variant") or any(map(_holds_map, inner))


def of_rule(events: DataFrame, program: Program, name: str, more: Sequence[str] = ()) -> DataFrame:
    """The events of one rule: time, id, a column for each variable of WITH, `terms`, and the columns `more`.
    A variable that is called as another of these columns keeps its question mark, as in CSV, whatever its
    case: for Spark they would be one.

    Raises UsageError D4123 for a name that no rule with events has.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415  # start-up

    rules = {rule.name: rule for rule in program.rules if not rule.private}
    rule = rules.get(name)
    if rule is None:
        hint = nearest(name, list(rules)) or f"the rules are {', '.join(rules)}"
        raise UsageError.of("D4123", f"no rule is called `{name}`", hint=hint)
    own = {name.lower() for name in ("terms", *csv_columns([])[:3], *more)}
    columns = [
        f.col(f"bindings.{quoted(variable)}").alias(f"?{variable}" if variable.lower() in own else variable)
        for variable in rule.variables
    ]
    rest = [f.col(quoted(column)) for column in ("terms", *more)]
    return events.where(f.col("rule") == name).select("time", "id", *columns, *rest)


def quoted(name: str) -> str:
    """A name as SQL has it."""
    return f"`{name.replace('`', '``')}`"
