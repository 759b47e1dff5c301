"""The tables that windows are kept in: points to visit, rows and how long they hold, logs of facts."""

from dotr.program.program import FactWindow, Modality
from dotr.windows.window_tables import FOREVER, Agenda, AtomTable
from dotr.windows.windows import FactView, PointLog


def test_an_agenda_gives_each_point_once_in_order_and_forgets_what_is_behind() -> None:
    agenda = Agenda()
    for point in (7, 3, 7, FOREVER, 5):
        agenda.add(point)
    assert agenda.dump() == [3, 5, 7]
    assert (agenda.after(0), agenda.after(3), agenda.after(6), agenda.after(7)) == (3, 5, 7, None)
    agenda.add(3)
    assert agenda.after(2) == 3, "it may be wanted again"
    other = Agenda()
    other.load([9, 4])
    assert other.after(0) == 4


def test_a_row_holds_as_long_as_its_longest_reason_and_begins_once() -> None:
    table = AtomTable(Agenda())
    index = table.index((0,))
    assert table.extend([("a", "b")], 5) == [("a", "b")]
    assert table.extend([("a", "b"), ("a", "c")], 3) == [("a", "c")]
    assert table.rows == {("a", "b"): 5, ("a", "c"): 3}
    assert {key: sorted(rows) for key, rows in index.items()} == {"a": [("a", "b"), ("a", "c")]}


def _log(count: int, streams: tuple[str, ...] = ("S",)) -> PointLog:
    return PointLog(FactWindow(count, streams), beginning=0)


def _view(log: PointLog, name: str, modality: Modality, count: int = 0, counted: bool = True) -> FactView:
    return FactView(Agenda(), log, name, modality, count, lambda point: f"@{point}", counted)


def _come(log: PointLog, view: FactView, point: int, *values: str, name: str = "S") -> set[str]:
    view.begin(point, point)
    log.add(point, name, [(point, (f"<{value}>",)) for value in values])
    view.refresh(point)
    return {row[0][1:-1] for row in view.table.rows}


def test_the_last_facts_push_out_the_oldest_in_canonical_order_within_a_point() -> None:
    log = _log(2)
    view = _view(log, "S", Modality.SOMETIME)
    assert _come(log, view, 1, "c", "a", "b") == {"b", "c"}
    assert _come(log, view, 2, "a") == {"c", "a"}
    assert log.beginning == 1
    assert _come(log, view, 3, "a", "a") == {"a"}
    assert log.beginning == 2


def test_at_least_counts_points_and_at_names_them() -> None:
    log = _log(3)
    often, when = _view(log, "S", Modality.AT_LEAST, 2), _view(log, "S", Modality.AT)
    for point in (1, 2):
        log.add(point, "S", [(point, ("a",))])
        often.refresh(point)
        when.refresh(point)
    assert set(often.table.rows) == {("a",)}
    assert set(when.table.rows) == {("a", "@1"), ("a", "@2")}


def test_a_log_of_several_streams_counts_all_and_shows_one() -> None:
    log = _log(2, ("S", "T"))
    view = _view(log, "S", Modality.SOMETIME)
    assert _come(log, view, 1, "a") == {"a"}
    assert _come(log, view, 2, "b", "c", name="T") == set()


def test_a_log_comes_back_as_it_was() -> None:
    log = _log(2)
    view = _view(log, "S", Modality.SOMETIME)
    _come(log, view, 1, "a", "b", "c")
    saved, rows = log.dump(), view.dump()
    other = _log(2)
    restored = _view(other, "S", Modality.SOMETIME)
    other.load(saved)
    restored.load(rows)
    assert set(restored.table.rows) == {("<b>",), ("<c>",)}
    assert _come(other, restored, 2, "d") == _come(log, view, 2, "d") == {"c", "d"}
