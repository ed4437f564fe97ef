"""The parts of a report: escaped, drawn to scale, self-contained, and usable in a browser."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import opened
from sklearn.metrics import accuracy_score, f1_score

from recipes.metrics import expected_calibration_error
from reporting.charts import Bar, Mark, Series, bar_chart, line_chart, radar
from reporting.classifier import (
    confusion_matrix,
    reliability_bins,
    reliability_chart,
    threshold_chart,
    threshold_curve,
)
from reporting.markup import Markup, embedded_json, number, shortest, tag
from reporting.page import Column, Section, Tile, facts, figure, interval, page, table, tiles, whisker
from reporting.records import Field, Shown, filter_link, record_list, short_list, thinned
from reporting.svg import Axis, Scale, cut, scale, text_width, tick_text

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&"


class Elements(HTMLParser):
    """All elements with their attributes; fails where one is closed that is not open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in ("meta", "input", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def test_text_is_escaped_and_markup_is_not() -> None:
    assert tag("p", "a < b & c", tag("b", "d"), None, 3) == "<p>a &lt; b &amp; c<b>d</b>3</p>"
    assert tag("a", href='"><script>', class_="x", aria_label="y", hidden=True, open=False, title=None) == (
        '<a href="&#34;&gt;&lt;script&gt;" class="x" aria-label="y" hidden></a>'
    )
    assert tag("td", tabindex=0) == '<td tabindex="0"></td>'
    assert tag("rect", x=1.0, y=-0.001, width=33.3333, height=10) == (
        '<rect x="1" y="0" width="33.33" height="10"></rect>'
    )


@pytest.mark.parametrize(("value", "text"), [(0.0, "0"), (-0.004, "0"), (100.0, "100"), (1.5, "1.5"), (-2.25, "-2.25")])
def test_coordinates_are_short(value: float, text: str) -> None:
    assert shortest(value) == text


def test_figures_read_as_in_a_table() -> None:
    assert [number(value) for value in (0.5, None, float("nan"), 1234.5678)] == ["0.500", "–", "–", "1,234.568"]
    assert interval({"value": 0.5, "low": 0.4, "high": 0.6}).striptags() == "0.500 [0.400, 0.600]"
    assert interval({"value": 0.5, "low": None, "high": None}).striptags() == "0.500"
    assert interval(None).striptags() == "–"


def test_embedded_json_closes_nothing_and_reads_back() -> None:
    value = {"text": f"{EVIL}<!-- 秋 \u2028", "n": None}
    text = embedded_json(value)
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == value
    with pytest.raises(ValueError, match="not JSON compliant"):
        embedded_json(float("nan"))


@pytest.mark.parametrize(
    ("low", "high", "ends", "ticks"),
    [
        (0.31, 0.78, (0.3, 0.8), ["0.3", "0.4", "0.5", "0.6", "0.7", "0.8"]),
        (0.0, 1.0, (0.0, 1.0), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (3.0, 12_400.0, (0.0, 15_000.0), ["0", "5,000", "10,000", "15,000"]),
        (-0.3, 0.3, (-0.4, 0.4), ["-0.4", "-0.2", "0.0", "0.2", "0.4"]),
    ],
)
def test_axes_end_at_round_values(low: float, high: float, ends: tuple[float, float], ticks: list[str]) -> None:
    made = scale(Axis(), [low, high], 0, 100)
    assert (made.low, made.high) == pytest.approx(ends)
    assert [tick_text(value, made.ticks()) for value in made.ticks()] == ticks


def test_scales_are_linear_or_logarithmic_and_may_fall() -> None:
    assert Scale(0, 4, 100, 20)(1) == pytest.approx(80)
    assert Scale(1, 1000, 0, 90, log=True)(10) == pytest.approx(30)
    assert scale(Axis(log=True), [100, 5000], 0, 1).ticks() == [100, 200, 500, 1000, 2000, 5000]
    with pytest.raises(ValueError, match="starts above 0"):
        scale(Axis("n", low=0, log=True), [1, 2], 0, 1)
    same = scale(Axis(), [0.7, 0.7], 0, 100)
    assert same.low < 0.7 < same.high


def test_wide_characters_take_their_room() -> None:
    assert text_width("秋季", 10) == 20
    assert text_width("ab", 10) == pytest.approx(11.2)
    assert cut("秋季派对", 30, 10) == "秋季…"
    assert cut("short", 1000) == "short"


def test_lines_bands_and_marks_lie_where_their_values_are() -> None:
    chart = line_chart(
        "accuracy",
        [Series("a", [(0, 0.0), (10, 1.0)], [(0.0, 0.5), (0.5, 1.0)]), Series("b & c", [(0, 0.5), (10, 0.5)])],
        Axis("records", 0, 10),
        Axis("", 0, 1),
        [Mark(5, "half")],
        height=242,
    )
    # Plot: y from 242 - 42 = 200 (at 0) to 14 (at 1); x from the tick texts' room, 10 + 3 * 0.56 * 12, to 406.
    left = 10 + 3 * 0.56 * 12
    assert f'd="M{left:.1f} 200.0L406.0 14.0" class="line"' in chart
    assert f'd="M{left:.1f} 107.0L406.0 107.0" class="line"' in chart
    assert f'd="M{left:.1f} 200.0L406.0 107.0L406.0 14.0L{left:.1f} 107.0Z" class="band s1"' in chart
    middle = (left + 406) / 2
    assert f'd="M{middle:.1f} 200.0L{middle:.1f} 14.0" class="mark"' in chart
    assert re.findall(r"<li>.*?</svg>(.*?)</li>", chart) == ["a", "b &amp; c"]


def test_points_that_are_no_numbers_are_left_out() -> None:
    chart = line_chart("loss", [Series("a", [(0, 1.0), (1, float("nan")), (2, 2.0)])], Axis(), Axis())
    assert "nan" not in chart
    assert len(Elements(chart).all("circle")) == 2


def test_a_bar_is_as_long_as_its_value() -> None:
    bars = [Bar("one", 0.5, 0.25, 0.75), Bar("two", 1.0)]
    elements = Elements(bar_chart("scores", bars, Axis("", 0, 1)))
    one, two = (float(rect["width"] or 0) for rect in elements.all("rect"))
    assert one == pytest.approx(two / 2, abs=0.02)
    assert "one: 0.500 [0.250, 0.750]" in elements.texts
    assert "two: 1.000" in elements.texts


def test_a_radar_puts_each_value_on_its_spoke() -> None:
    chart = radar("skills", ["north", "east", "south", "west"], {"x": [1.0, 0.5, 0.0, 0.25]})
    # Centre (210, 148), radius 108.
    assert 'd="M210.0 40.0L264.0 148.0L210.0 148.0L183.0 148.0Z" class="line"' in chart
    with pytest.raises(ValueError, match="give at least 3"):
        radar("skills", ["a", "b"], {"x": [1, 1]})


def test_reliability_bins_are_those_of_the_calibration_error() -> None:
    labels, p = [0, 1, 1, 1, 0], [0.05, 0.1, 0.15, 1.0, 0.95]
    bins = reliability_bins(labels, p)
    assert [one.count for one in bins] == [1, 2, 0, 0, 0, 0, 0, 0, 0, 2]
    assert (bins[1].mean, bins[1].share) == (pytest.approx(0.125), 1.0)
    assert (bins[9].mean, bins[9].share) == (pytest.approx(0.975), 0.5)
    # Wilson's interval of 1 of 2, by hand: (n p + z^2 / 2 +- z sqrt(n p q + z^2 / 4)) / (n + z^2) with z = 1.95996.
    assert (bins[9].share_low, bins[9].share_high) == pytest.approx((0.0945, 0.9055), abs=1e-4)
    chance = np.random.default_rng(0)
    p = chance.random(997)
    labels = (chance.random(997) < p**2).astype(int)
    error = sum(one.count / 997 * abs(one.mean - one.share) for one in reliability_bins(labels, p, 15) if one.count)
    assert error == pytest.approx(expected_calibration_error(labels, p, 15))
    assert len(Elements(reliability_chart("calibration", bins)).all("circle")) == 3


def test_the_threshold_curve_is_scikit_learns_at_each_threshold() -> None:
    chance = np.random.default_rng(1)
    p = np.round(chance.random(300), 2)  # with ties
    labels = (chance.random(300) < p).astype(int)
    curve = threshold_curve(labels, p)
    assert curve.thresholds == sorted(set(p))
    for threshold, accuracy, macro_f1 in zip(curve.thresholds, curve.accuracy, curve.macro_f1, strict=True):
        said = p >= threshold
        assert accuracy == pytest.approx(accuracy_score(labels, said))
        assert macro_f1 == pytest.approx(f1_score(labels, said, average="macro", zero_division=0))
    thin = threshold_curve(labels, p, most=10)
    assert len(thin.thresholds) == 10
    assert set(zip(thin.thresholds, thin.accuracy, strict=True)) <= set(
        zip(curve.thresholds, curve.accuracy, strict=True)
    )
    assert "chosen 0.420" in threshold_chart("thresholds", curve, 0.42)


def test_a_confusion_matrix_is_a_table_with_shares_of_the_true_class() -> None:
    elements = Elements(confusion_matrix("c", ["no", "yes"], [[30, 10], [0, 5]], {(0, 1): "#list?x=1", (1, 0): "#n"}))
    assert [text for text in elements.texts if "%" in text] == [
        "75.0\u00a0%",
        "25.0\u00a0%",
        "0.0\u00a0%",
        "100.0\u00a0%",
    ]
    assert [cell["class"] for cell in elements.all("td")[1:]] == ["right", "wrong", "wrong", "right"]
    assert [link["href"] for link in elements.all("a")] == ["#list?x=1"]  # a count of 0 leads nowhere


def test_a_whisker_is_drawn_to_scale() -> None:
    drawn = whisker({"value": 0.5, "low": 0.25, "high": 0.75}, 0, 1, reference=0.5)
    assert 'cx="80" cy="10"' in drawn
    assert 'd="M42.0 10.0L118.0 10.0" class="whisker"' in drawn


FIELDS = [
    Field("outcome", "Outcome", "choice", tones={"wrong": "bad"}),
    Field("p", "p(yes)", "share"),
    Field("tokens", "Tokens", "number", digits=0),
]


def shown(count: int) -> list[Shown]:
    values = [
        {"outcome": ("right", "wrong")[k % 3 == 0], "p": k / count, "tokens": 7 * k % count} for k in range(count)
    ]
    return [
        Shown(f"record {k} 秋季" if k else EVIL, values[k], [("Text", f"text of {k}\n{EVIL}")]) for k in range(count)
    ]


def whole_page(records: list[Shown]) -> str:
    sections = [
        Section("measures", "Measures", table("Measures", [Column("who"), Column("n", "number")], [["judge", 3]])),
        Section("facts", EVIL, facts([("data", EVIL), ("left out", None)]), lead=EVIL),
        Section("charts", "Charts", figure(EVIL, line_chart(EVIL, [Series(EVIL, [(0, 1)])], Axis(EVIL), Axis(EVIL)))),
        Section("few", "Few", short_list(FIELDS, records[:2])),
        Section("records", "Records", record_list("all", FIELDS, records, "-p"), wide=True),
        Section("link", "Link", tag("a", "the wrong ones", href=filter_link("all", outcome="wrong", q="秋季"))),
    ]
    return page("a report", EVIL, tiles([Tile(EVIL, "1", EVIL)]), sections, EVIL)


def test_a_page_holds_what_it_needs_and_nothing_of_what_it_was_told_becomes_an_element() -> None:
    text = whole_page(shown(3))
    elements = Elements(text)
    assert {name for name, _ in elements.found} & {"img", "link", "iframe", "object", "form", "base"} == set()
    assert [attributes.get("type") for attributes in elements.all("script")] == ["application/json", None]
    assert all(str(link["href"]).startswith("#") for link in elements.all("a"))
    assert not any("src" in attributes for _, attributes in elements.found)
    assert not re.search(r"@import|url\(", text)
    names = [attributes["id"] for _, attributes in elements.found if "id" in attributes]
    assert len(names) == len(set(names))


def test_the_page_lets_only_its_own_script_run() -> None:
    text = whole_page(shown(3))
    script = text.rsplit("<script>", 1)[1].split("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = next(m["content"] for m in Elements(text).all("meta") if m.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    assert f"script-src 'sha256-{digest}';" in policy


def test_half_a_surrogate_pair_does_not_stop_the_page() -> None:
    page("k", "\ud83d", "", []).encode()


def test_too_many_records_are_thinned_evenly_and_the_list_says_so() -> None:
    assert [one.title for one in thinned(shown(10), 4)] == [EVIL, "record 2 秋季", "record 5 秋季", "record 7 秋季"]
    assert len(thinned(shown(10), 10)) == 10
    listed = record_list("all", FIELDS, shown(20_001))
    assert "20,000 of 20,001 records are listed" in Markup(listed).split("</p>")[0]


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "report.html"
    path.write_text(whole_page(shown(300)), encoding="utf-8")
    return path


def titles(page: Any) -> list[str]:
    found: list[str] = page.locator("#all tbody .opener").all_text_contents()
    return found


def test_the_list_searches_filters_sorts_and_opens(written: Path) -> None:
    with opened(written) as page:
        status = page.locator("#all .status")
        assert status.text_content() == "300 records"
        assert titles(page) == [f"record {k} 秋季" for k in range(299, 249, -1)]  # by p, falling, fifty at first
        page.click("#all .more")
        assert len(titles(page)) == 100
        page.select_option("#all select", "wrong")
        assert status.text_content() == "100 of 300 records"
        page.fill("#all input", "  TEXT 17")
        page.locator("#all .status", has_text="4 of 300 records").wait_for()
        assert titles(page) == [f"record {k} 秋季" for k in (177, 174, 171, 117)]
        heading = page.locator("#all th[data-key=tokens]")
        heading.locator("button").click()  # 7 k mod 300: 117 -> 219, 171 -> 297, 174 -> 18, 177 -> 39
        assert titles(page) == [f"record {k} 秋季" for k in (174, 177, 117, 171)]
        assert heading.get_attribute("aria-sort") == "ascending"
        heading.locator("button").press("Enter")
        assert heading.get_attribute("aria-sort") == "descending"
        opener = page.locator("#all .opener").first
        opener.press("Enter")
        assert opener.get_attribute("aria-expanded") == "true"
        assert page.locator("#all .opened dd").all_text_contents() == [f"text of 171\n{EVIL}"]
        opener.press("Enter")
        assert page.locator("#all .opened").count() == 0
        page.click("text=Reset")
        assert status.text_content() == "300 records"


def test_a_link_sets_the_filters_of_the_list(written: Path) -> None:
    with opened(written) as page:
        page.click("text=the wrong ones")
        page.locator("#all .status", has_text="99 of 300 records").wait_for()  # the first, wrong too, is not named 秋季
        assert page.locator("#all select").input_value() == "wrong"
        assert page.evaluate("document.querySelector('#records').getBoundingClientRect().top") < 900


def test_what_was_told_is_shown_as_text(written: Path) -> None:
    with opened(written) as page:  # which fails at a dialog
        assert page.text_content("h1") == EVIL
        page.locator("#all th[data-key=title] button").click()
        assert titles(page)[0] == EVIL
        assert page.locator("img").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_fits_its_screen_and_its_text_stands_out(written: Path, width: int, scheme: str) -> None:
    with opened(written, width, scheme) as page:
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert min(page.evaluate(CONTRASTS).values()) >= 4.5  # WCAG 2.1, 1.4.3


# Contrast of every colour of text with the page's ground, by WCAG's relative luminance.
CONTRASTS = """() => {
    const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const luminance = (colour) => {
        context.fillStyle = colour;
        context.fillRect(0, 0, 1, 1);
        const [r, g, b] = [...context.getImageData(0, 0, 1, 1).data].map((value) => value / 255)
            .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const ground = luminance(getComputedStyle(document.body).backgroundColor);
    const found = {};
    for (const element of document.querySelectorAll("h1, h2, p, a, th, td, dt, dd, span, b, button, label, text")) {
        const style = getComputedStyle(element);
        const colour = element.localName === "text" ? style.fill : style.color;
        const [high, low] = [luminance(colour), ground].sort((a, b) => b - a);
        found[colour] = (high + 0.05) / (low + 0.05);
    }
    return found;
}"""


def test_a_list_of_twenty_thousand_answers_at_once(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(whole_page(shown(20_000)), encoding="utf-8")
    with opened(path) as page:
        took = page.evaluate(
            """() => {
                const root = document.querySelector("#all"), select = root.querySelector("select");
                const started = performance.now();
                select.value = "wrong";
                select.dispatchEvent(new Event("change"));
                root.querySelectorAll("thead button")[3].click();
                return [performance.now() - started, root.querySelectorAll("tbody tr").length];
            }"""
        )
        assert took[1] == 50
        assert took[0] < 1000  # milliseconds for a filter and a sort; some 50 on a slow core
