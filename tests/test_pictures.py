"""Pictures: what comes from outside stays text, what is drawn is well formed, and the same each time."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dotr
from dotr.explain.text import Node
from dotr.lang import parse_program
from dotr.pictures.bars import bars
from dotr.pictures.graph import Arrow, Box, graph
from dotr.pictures.markup import STYLE, Html, fragment, page, text
from dotr.pictures.table import table
from dotr.pictures.timeline import Mark, timeline
from dotr.pictures.tree import tree

HOSTILE = "<script>alert(1)</script>\"'&<img src=x onerror=1>"
strings = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=20)

TAGS = (
    *("div", "p", "span", "code", "table", "thead", "tbody", "tr", "th", "td", "details", "summary", "h3"),
    *("svg", "title", "line", "text", "g", "a", "circle", "rect", "path", "defs", "marker", "style"),
)


class Reader(HTMLParser):
    """Which elements there are, and that each ends."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.attributes: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.open.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def pictures(a: str, b: str, times: list[int]) -> list[Html]:
    return [
        timeline([Mark(a if t % 2 else b, t, b, f"#{a}", t % 3 == 0) for t in times], str, [a], label=b),
        tree([Node(a, [Node(b, right=a)], right=b), Node(b)]),
        table((a, b), [[text(b), text(a)]], {1}, more=len(times)),
        bars([(a, len(times)), (b, 0)]),
        graph([Box(a, [b, a]), Box("z" + a, [a])], [Arrow(a, "z" + a, b), Arrow(a, a), Arrow("z" + a, a)]),
    ]


@given(strings, strings, st.lists(st.integers(-(10**17), 10**17), max_size=60))
def test_whatever_comes_from_outside_stays_text(a: str, b: str, times: list[int]) -> None:
    for picture in pictures(a, b, times):
        found = Reader(fragment(picture))
        assert set(found.tags) <= set(TAGS)
        assert not found.open
        assert not [name for name in found.attributes if name.startswith("on")]
        assert picture in pictures(a, b, times)  # the same each time


def test_a_page_runs_and_fetches_nothing() -> None:
    made = page(HOSTILE, *pictures(HOSTILE, HOSTILE, [1, 2, 3]))
    found = Reader(re.sub("<meta[^>]*>", "", made))
    assert set(found.tags) <= {*TAGS, "html", "head", "body", "header", "main", "h1", "title", "style"}
    assert "default-src 'none'" in made
    assert "@import" not in made
    assert "url(http" not in made


def parsed(picture: str) -> ElementTree.Element:
    return ElementTree.fromstring(picture)  # noqa: S314  # our own


def circles(picture: Html) -> list[ElementTree.Element]:
    return parsed(picture).findall(".//{http://www.w3.org/2000/svg}circle")


def test_marks_stand_in_the_order_of_their_times_and_in_their_lanes() -> None:
    marks = [Mark("Hot", 10, "a"), Mark("Fire", 15, "b"), Mark("Hot", 30, "c")]
    found = circles(timeline(marks, str))
    places = [(float(one.get("cx", "")), float(one.get("cy", ""))) for one in found]
    (first, hot), (third, also_hot), (second, fire) = places
    assert first < second < third
    assert hot == also_hot < fire
    middle = first + (third - first) * 0.25
    assert second == pytest.approx(middle, abs=0.2)


def test_a_lone_instant_stands_inside_its_lane() -> None:
    drawn = timeline([Mark("Fire", 7, "a"), Mark("Fire", 7, "b")], str)
    (begin,) = re.findall(r'<line x1="([\d.]+)" x2="[\d.]+" y1="23"', drawn)
    for place in re.findall(r'cx="([\d.]+)"', drawn):
        assert float(place) > float(begin) + 40


def test_a_label_of_a_loop_is_not_above_another_arrow() -> None:
    """`NOT` of a rule that reads its own past was read as a label of the arrow to the next rule."""
    boxes = [Box("fire", ["Fire"]), Box("call", ["Call"])]
    drawn = graph(boxes, [Arrow("fire", "fire", "NOT", True), Arrow("fire", "call")])
    (path,) = re.findall(r'd="M[\d.]+ ([\d.]+) H', drawn)
    (label,) = re.findall(r'<text x="[\d.]+" y="([\d.]+)">NOT', drawn)
    assert float(label) > float(path) + 10


def test_many_marks_are_columns_that_count() -> None:
    drawn = timeline([Mark("Hot", n // 100, "x") for n in range(10_000)], str)
    shapes = parsed(drawn)
    columns = shapes.findall(".//{http://www.w3.org/2000/svg}rect")
    counts = [one[0].text or "" for one in columns]
    assert sum(int(count.partition(" ")[0].replace(",", "")) for count in counts) == 10_000
    assert len(drawn) < 40_000


def test_columns_of_what_is_gone_hang_hollow_below_the_others() -> None:
    marks = [Mark("Hot", n // 100, "x", gone=n % 4 == 0) for n in range(1_000)]
    columns = parsed(timeline(marks, str)).findall(".//{http://www.w3.org/2000/svg}rect")
    new, gone = ([one for one in columns if one.get("class") == kind] for kind in ("mark", "gone"))
    assert [sum(int((one[0].text or "").split()[0]) for one in each) for each in (new, gone)] == [750, 250]
    middle = {float(one.get("y", "")) for one in gone}
    assert len(middle) == 1
    assert {float(one.get("y", "")) + float(one.get("height", "")) for one in new} == middle


def test_an_event_that_moved_is_drawn_at_both_times() -> None:
    drawn = timeline([Mark("Hot", 10, "moved by 5 s", moved_to=15), Mark("Hot", 20, "b")], str)
    assert len(circles(drawn)) == 3
    assert 'class="gone"' in drawn
    assert 'class="move"' in drawn


def test_boxes_stand_to_the_right_of_what_leads_to_them_and_circles_end() -> None:
    boxes = [Box(name, [name]) for name in "abcd"]
    arrows = [Arrow("a", "b"), Arrow("b", "c"), Arrow("c", "b"), Arrow("a", "d"), Arrow("d", "c")]
    shapes = parsed(graph(boxes, arrows))
    lefts = [float(one.get("x", "")) for one in shapes.findall(".//{http://www.w3.org/2000/svg}rect")]
    texts = [one.text for one in shapes.iter("{http://www.w3.org/2000/svg}text")]
    left = dict(zip(texts, lefts, strict=True))
    assert left["a"] < left["d"] < left["c"]
    assert left["a"] < left["b"] < left["c"], "the arrow back closes the circle"


def test_a_circle_after_a_beginning_is_read_from_left_to_right() -> None:
    boxes = [Box(name, [name]) for name in "abc"]
    shapes = parsed(graph(boxes, [Arrow("c", "b"), Arrow("a", "b"), Arrow("b", "c")]))
    lefts = [float(one.get("x", "")) for one in shapes.findall(".//{http://www.w3.org/2000/svg}rect")]
    texts = [one.text for one in shapes.iter("{http://www.w3.org/2000/svg}text")]
    assert [name for _, name in sorted(zip(lefts, texts, strict=True))] == ["a", "b", "c"]


RULES = """
PREFIX : <urn:ex:>
RULE Hot
DEFINE { dotr_hot a :Hot ; :of ?m }
FROM Temp := { SELECT ?m ?c { ?o :celsius ?c ; :of ?m FILTER(?c > 60) } }
WITH ?m := Temp.?m
"""


def test_what_notebooks_show_is_drawn() -> None:
    engine = dotr.Engine.from_text(RULES, keep="horizon")
    for time in range(5):
        engine.push(f"<urn:ex:o> <urn:ex:celsius> {70 + time} ; <urn:ex:of> <urn:ex:oven> .", at=time)
    (event,) = engine.finish()
    shown = [engine, engine.funnel(), engine.program, engine.plan, event, event.explain()]
    for one in shown:
        html = one._repr_html_()
        assert html.startswith('<div class="dotr"><style>')
        assert "script" not in Reader(html).tags
    assert "<details" in event.explain()._repr_html_()
    assert dict(engine.funnel()) == {"Hot": engine.counters.funnel["Hot"]}
    assert ">5<" in engine.funnel()._repr_html_()


def test_a_knowledge_base_and_its_changes_are_drawn() -> None:
    base = dotr.KnowledgeBase(prefixes={"": "urn:ex:"})
    change = base.insert(":a :in :b . :b a :Room .")
    assert "<td>+</td><td>:b</td><td>a</td><td>:Room</td>" in change._repr_html_()
    assert '<td>:in</td><td class="n">1</td>' in base._repr_html_()
    assert '<div class="tree">' in base.explain(("<urn:ex:a>", "<urn:ex:in>", "<urn:ex:b>"))._repr_html_()
    removed = base.delete(":a :in :b .")
    assert "<td>−</td><td>:a</td><td>:in</td>" in removed._repr_html_()


def test_plots_need_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = dotr.Engine.from_text(RULES)
    engine.push("<urn:ex:o> <urn:ex:celsius> 70 ; <urn:ex:of> <urn:ex:oven> .", at=1)
    events = engine.finish()
    monkeypatch.setattr("dotr.io.event_plots.find_spec", lambda name: None)
    for plot in (events.plot, engine.funnel().plot):
        with pytest.raises(dotr.EngineError, match="matplotlib") as raised:
            plot()
        assert raised.value.diagnostics[0].hint == "pip install matplotlib"


def test_plots_have_a_row_a_rule_and_a_bar_a_step() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    engine = dotr.Engine.from_text(RULES)
    for time in range(3):
        engine.push("<urn:ex:o> <urn:ex:celsius> 70 ; <urn:ex:of> <urn:ex:oven> .", at=time)
    ax = engine.finish().plot()
    assert [one.get_text() for one in ax.get_yticklabels()] == ["Hot"]
    assert [one.get_text() for one in engine.funnel().plot().get_yticklabels()] == [
        "Hot: Temp",
        "Hot: events",
    ]


def test_pictures_have_the_colours_of_the_console() -> None:
    """By name where a name is the same, in light and in dark."""
    found: list[list[str]] = []
    for path in (STYLE, STYLE.parents[1] / "serve" / "console" / "style.css"):
        found.append(re.findall(r"--(?:c[0-7]|line|good|bad|warn): #[0-9a-f]+", path.read_text("utf-8")))
    assert set(found[0]) == set(found[1])
    assert len(found[0]) == 2 * 12


def crossed(boxes: list[Box], arrows: list[Arrow]) -> list[str]:
    """Boxes that an arrow passes behind, by points of its drawn path."""
    drawn = ElementTree.fromstring(graph(boxes, arrows))  # noqa: S314  # our own
    space = "{http://www.w3.org/2000/svg}"
    rects = [
        tuple(float(rect.get(name, "0")) for name in ("x", "y", "width", "height"))
        for rect in drawn.iter(f"{space}rect")
    ]
    found = []
    for path in drawn.iter(f"{space}path"):
        if "arrow" not in path.get("class", ""):
            continue
        for x, y in points(path.get("d", "")):
            for left, top, wide, high in rects:
                if left + 1 < x < left + wide - 1 and top + 1 < y < top + high - 1:
                    found.append(f"{path.get('d')} in {left} {top}")
                    break
    return found


def points(path: str) -> list[tuple[float, float]]:
    """Points along a path of M, H and C."""
    x = y = 0.0
    found = []
    for command, rest in re.findall(r"([MHCc])([^MHCc]*)", path):
        numbers = [float(one) for one in rest.split()]
        if command == "M":
            x, y = numbers
        elif command == "H":
            found += [(x + (numbers[0] - x) * n / 20, y) for n in range(21)]
            x = numbers[0]
        elif command == "C":
            x1, y1, x2, y2, x3, y3 = numbers
            for n in range(41):
                t, u = n / 40, 1 - n / 40
                a, b, c, d = u**3, 3 * u * u * t, 3 * u * t * t, t**3
                found.append((a * x + b * x1 + c * x2 + d * x3, a * y + b * y1 + c * y2 + d * y3))
            x, y = x3, y3
    return found


@given(st.integers(2, 9), st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=14))
def test_no_arrow_of_a_plan_passes_behind_a_box(count: int, pairs: list[tuple[int, int]]) -> None:
    boxes = [Box(str(n), ["box " + "x" * (7 * n % 23), "more"][: 1 + n % 2]) for n in range(count)]
    arrows = [Arrow(str(a % count), str(b % count)) for a, b in pairs if a % count != b % count]
    assert crossed(boxes, arrows) == []


def test_a_rule_has_one_colour_on_every_page_whichever_rules_had_events() -> None:
    marks = [Mark("C", 1, ""), Mark("B", 2, "")]
    drawn = timeline(marks, str, ["B", "C"], colours=["A", "B", "C"])
    assert re.findall(r'class="lane(\d)"', drawn) == ["1", "2"]
    rule = "RULE {0} DEFINE {{ dotr_e a <urn:{0}> }} FROM {0}Q := {{ SELECT ?x {{ ?x a <urn:k{0}> }} }}\n"
    engine = dotr.Engine(parse_program("".join(rule.format(name) for name in "ABC")))
    events = dotr.Events.of(
        [
            *engine.push("<urn:o> a <urn:kC> .", at=1),
            *engine.push("<urn:o> a <urn:kB> .", at=2),
            *engine.finish(),
        ]
    )
    html = events._repr_html_()
    assert re.findall(r'<g class="lane(\d)">', html) == ["1", "2"]
    assert html.index("<title>B</title>") < html.index("<title>C</title>")
    bars_ = engine.funnel()._repr_html_()
    assert re.findall(r'class="dot lane(\d)"></span>(\w)', bars_) == [("0", "A"), ("1", "B"), ("2", "C")]
