"""The picture of a rank comparison, and its page."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.ecomqa.ranks import RankComparison, Shift
from reporting.markup import Content, Markup, number, tag
from reporting.page import Column, Section, figure, page, paragraph, stack, table
from reporting.svg import WIDTH, cut, drawing, label, line, text_width


def slope_chart(shifts: Sequence[Shift], names: tuple[str, str]) -> Markup:
    """Each model as a line from its place in the first table to that in the second, the best at the top.

    Equal ranks stand one below the other, so that every name can be read.
    """
    row, top = 19.0, 34.0
    orders = [sorted(shifts, key=lambda one: one.first_rank), sorted(shifts, key=lambda one: one.second_rank)]
    places = [{one.model: top + row * k for k, one in enumerate(order)} for order in orders]
    left, right = 148.0, WIDTH - 148.0
    drawn = [
        label(left, 14, cut(names[0], left), "end", "name"),
        label(right, 14, cut(names[1], left), "start", "name"),
    ]
    for one in shifts:
        up, down = places[0][one.model], places[1][one.model]
        colour = "s1" if one.shift > 0 else "s2" if one.shift < 0 else "s3"
        said = f"{one.model}: {one.first_rank} ({number(one.first, 1)}) to {one.second_rank} ({number(one.second, 1)})"
        ends = (tag("circle", cx=x, cy=y, r=3, class_="dot") for x, y in ((left + 6, up), (right - 6, down)))
        drawn += [
            tag("g", tag("title", said), line(left + 6, up, right - 6, down, "line"), *ends, class_=colour),
            label(left, up + 4, f"{shortened(one.model, left - 22)} {one.first_rank}", "end"),
            label(right, down + 4, f"{one.second_rank} {shortened(one.model, left - 22)}"),
        ]
    return drawing(f"Ranks in {names[0]} and {names[1]}", top + row * len(shifts), *drawn)


def shortened(name: str, room: float) -> str:
    """A name, or its beginning and its end: the end often holds a model's size."""
    end = name[-5:]
    return name if text_width(name) <= room else cut(name, room - text_width(end)) + end


def signed(shift: int) -> str:
    return f"{shift:+d}" if shift else "0"


def _p_value(p: float | None) -> str:
    return "below 0.001" if p is not None and p < 0.001 else number(p)


def ranks_page(comparison: RankComparison, names: tuple[str, str], measures: str) -> str:
    """The comparison as one HTML file: slope picture, correlations, and the table.

    Args:
        measures: what was compared, in words.
    """
    shifts = comparison.shifts
    rows: list[list[Content]] = [
        [one.model, one.first_rank, one.second_rank, signed(one.shift), number(one.first, 1), number(one.second, 1)]
        for one in shifts
    ]
    numbers = ("rank " + names[0], "rank " + names[1], "shift", names[0], names[1])
    columns = [Column("model"), *(Column(name, "number") for name in numbers)]
    lead = (
        f"{len(shifts)} models, {measures}. Spearman's rho {number(comparison.spearman)} "
        f"(p {_p_value(comparison.spearman_p)}), Kendall's tau-b {number(comparison.kendall)} "
        f"(p {_p_value(comparison.kendall_p)})."
    )
    alone = paragraph("Only in one table: " + ", ".join(comparison.alone) + ".") if comparison.alone else None
    body = stack(
        figure("From rank to rank", slope_chart(shifts, names), "Blue rises, orange falls, green stays."),
        table("Ranks and scores", columns, rows),
        alone,
    )
    title = f"{names[0]} and {names[1]}"
    return page("Rank comparison", title, lead, [Section("ranks", "Ranks", body, "1 is best. Equal scores share it.")])
