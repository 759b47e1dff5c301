"""Where Spark runs and with what, who decides, and what is told when a worker is another: without a JVM."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest
from click.testing import CliRunner
from pyspark import cloudpickle

from dotr import __version__
from dotr.batch.facts import Cut, Layout
from dotr.batch.log import Piece, Split, packed
from dotr.batch.spark.cluster import SparkRunner
from dotr.batch.spark.session import (
    SparkOptions,
    as_own_error,
    configured,
    crossing,
    own,
    settings_for,
    shipped,
)
from dotr.batch.time_cuts import Even, Uneven
from dotr.cli.main import run
from dotr.cli.options import chosen_engine
from dotr.cli.stream import spark as command
from dotr.detect.partitioning import Partitioning
from dotr.errors import DataError, Diagnostic, EngineError, UsageError


def test_the_defaults_file_and_submit_arguments_are_read(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text(
        "# ours\nspark.master   spark://host:7077\nspark.executor.memory=4g\nspark.ui.enabled: true\n",
        encoding="utf-8",
    )
    found = configured({"SPARK_CONF_DIR": str(tmp_path), "MASTER": "local[9]"})
    assert found == {
        "spark.master": "spark://host:7077",
        "spark.executor.memory": "4g",
        "spark.ui.enabled": "true",
    }
    arguments = "--master yarn --conf spark.executor.memory=8g pyspark-shell"
    found = configured({"SPARK_CONF_DIR": str(tmp_path), "PYSPARK_SUBMIT_ARGS": arguments})
    assert (found["spark.master"], found["spark.executor.memory"]) == ("yarn", "8g")
    assert configured({"SPARK_REMOTE": "sc://host"}) == {"spark.remote": "sc://host"}


def test_a_cluster_keeps_its_own_shuffles_and_its_ui() -> None:
    ours = settings_for("yarn")
    assert ours["spark.ui.showConsoleProgress"] == "false"
    assert "log4j2" in ours["spark.driver.extraJavaOptions"]
    assert not {"spark.ui.enabled", "spark.sql.shuffle.partitions", "spark.driver.host"} & ours.keys()
    assert settings_for("local[3]")["spark.sql.shuffle.partitions"] == "24"
    assert "spark.driver.extraJavaOptions" not in settings_for("sc://host")


def test_what_is_sent_along_becomes_settings() -> None:
    options = SparkOptions(
        conf={"spark.archives": "a.tgz"}, packages=("g:a:1", "g:b:2"), archives=("env.tgz#env",)
    )
    assert options.settings() == {
        "spark.archives": "a.tgz,env.tgz#env",
        "spark.jars.packages": "g:a:1,g:b:2",
    }
    with pytest.raises(UsageError, match=r"D4128[\s\S]*`spark\.executor\.memory`"):
        SparkOptions(conf={"executor.memory": "4g"}).settings()


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (["--conf", "spark.x"], "D4128"),
        (["--conf", "memory=4g"], "did you mean `spark.memory`?"),
        (["--engine", "local", "--packages", "g:a:1"], "D4121"),
        (["--pakages", "g:a:1"], "--packages"),
    ],
)
def test_wrong_options_are_refused_before_spark_starts(
    option: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "r.dotr").write_text("RULE R DEFINE { dotr_id a <urn:R> } FROM EVERY 5 s AS T\n")
    (tmp_path / "log.jsonl").write_text("")
    arguments = ["batch", str(tmp_path / "r.dotr"), str(tmp_path / "log.jsonl")]
    assert run([*arguments, "--out", str(tmp_path / "out"), *option]) == 2
    assert words in capsys.readouterr().err


def test_the_entry_point_runs_dotr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "dotr-submit.py"
    runner = CliRunner()
    assert runner.invoke(command, ["entry-point", "-o", str(path)]).exit_code == 0
    assert isinstance(runner.invoke(command, ["entry-point", "-o", str(path)]).exception, Exception)
    monkeypatch.setattr(sys, "argv", ["dotr-submit.py", "batch", "--nonsense"])
    with pytest.raises(SystemExit) as ended:
        run_path(str(path), run_name="__main__")
    assert ended.value.code == 2


def twice(batches: Any) -> Any:
    for batch in batches:
        yield batch * 2


def shipped_there(work: Any) -> Any:
    """A function as it comes out of Spark's own pickle."""
    return pickle.loads(cloudpickle.dumps(work))  # noqa: S301  # our own bytes


def test_a_task_runs_only_where_dotr_is_the_same() -> None:
    there = shipped_there(shipped(twice))
    assert list(there(iter([1, 2]))) == [2, 4]
    other = shipped_there(shipped(twice, version="0.0.7"))
    with pytest.raises(RuntimeError) as raised:
        list(other(iter([1])))
    error = as_own_error(raised.value)
    assert isinstance(error, EngineError)
    assert f"has dotr {__version__}, the driver 0.0.7" in str(error)
    assert error.diagnostics[0].code == "D4307"


def test_a_function_names_nothing_of_dotr_on_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker without dotr could not even unpickle it, and would say so in a traceback."""
    content = cloudpickle.dumps(shipped(twice))
    for name in [name for name in sys.modules if name == "dotr" or name.startswith("dotr.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "dotr", None)  # type: ignore[arg-type]  # None: not to be imported
    there = pickle.loads(content)  # noqa: S301  # our own bytes
    with pytest.raises(RuntimeError, match="dotr-worker:") as raised:
        list(there(iter([1])))
    monkeypatch.undo()
    assert "a Spark worker has no dotr" in str(own(str(raised.value)))


def test_an_error_of_a_worker_is_found_in_whatever_spark_says() -> None:
    error = DataError(Diagnostic("D2001", "no subject", place="log.jsonl:3", hint="write one"))
    found = own(f"Job aborted\n  File x\nRuntimeError: {crossing(error)}\n\tat java")
    assert isinstance(found, DataError)
    assert found.diagnostics == error.diagnostics
    assert own("Job aborted") is None
    assert as_own_error(ValueError("executor lost")).diagnostics[0].code == "D4303"


def row_groups(count: int, size: int, file: str = "a.parquet") -> list[Split]:
    return [Split((Piece(file, i, i + 1, 10, size),)) for i in range(count)]


def test_row_groups_are_packed_up_to_a_bound_and_not_below_the_tasks() -> None:
    mega = 1 << 20
    large = packed([*row_groups(100, 30 * mega), *row_groups(3, 30 * mega, "b.parquet")], 4)
    sizes = [sum(piece.size for piece in split.pieces) for split in large]
    assert len(large) == 26
    assert all(64 * mega <= size <= 128 * mega for size in sizes)
    assert large[0].pieces == (Piece("a.parquet", 0, 4, 40, 120 * mega),)
    assert sum(piece.graphs for split in large for piece in split.pieces) == 1030
    assert len(packed(row_groups(24, mega), 12)) == 12
    assert packed(row_groups(3, mega), 12) == tuple(row_groups(3, mega))
    assert packed([], 12) == ()


def test_parts_are_numbered_without_holes() -> None:
    cuts = (Cut(1, Uneven((10, 20))), Cut(3), Cut(2, Even(7)))
    layout = Layout(Partitioning((), ()), cuts, last=30)
    total, added = layout.numbered(-3)
    parts = [layout.part(0, 0, slice_) for slice_ in range(3)]
    parts += [layout.part(1, bucket, 0) for bucket in range(3)]
    parts += [layout.part(2, bucket, slice_) for slice_ in range(-1, 5) for bucket in range(2)]
    assert total == len(parts)
    assert sorted(part // 3 + added[part % 3] for part in parts) == list(range(total))


@pytest.mark.parametrize(
    ("asked", "places", "environment", "engine", "why"),
    [
        (SparkOptions(), ["log/", "out"], {}, "local", "on this machine"),
        (SparkOptions(), ["log/", "out"], {"MASTER": "local[4]"}, "local", "on this machine"),
        (SparkOptions(), ["log/", "hdfs://host/out"], {}, "spark", "hdfs://host/out"),
        (SparkOptions(conf={"spark.x": "1"}), ["log/"], {}, "spark", "--conf is given"),
        (SparkOptions(), ["log/"], {"SPARK_REMOTE": "sc://host"}, "spark", "configured for sc://host"),
        (SparkOptions(), ["log/"], {"PYSPARK_GATEWAY_PORT": "1"}, "spark", "spark-submit"),
    ],
)
def test_auto_chooses_an_engine_and_says_why(
    asked: SparkOptions, places: list[str], environment: dict[str, str], engine: str, why: str
) -> None:
    chosen = chosen_engine(asked, places, environment)
    assert chosen[0] == engine
    assert why in chosen[1]


class Ended:
    """A session whose Java process has ended."""

    def stop(self) -> None:
        raise ConnectionRefusedError(111, "Connection refused")


def test_a_session_without_java_is_closed_without_another_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that SIGTERM ended, Java with it, was reported as a bug of dotr (D4999)."""
    runner = SparkRunner()
    monkeypatch.setattr(runner, "_session", Ended())
    monkeypatch.setattr(runner, "_own", True)
    runner.close()
    assert runner._session is None
