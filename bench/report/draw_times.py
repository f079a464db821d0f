"""Pictures of Sluice alone: percent of the copy ceiling, what a first call costs, what tuning gains."""
import math
import statistics

import style
from draw_rivals import groups_of
from summary import choices, geomean, percentile, slowdowns
from values import FIRST


def ceiling(rows, theme):
    """Percent of the copy's speed for every row, by kernel (vertical), layout (panels) and dtype (hue, shape). A large mark is a
    geometric mean; what failed stands left of zero."""
    rows = [row for row in rows if row.error is not None or row.copy_us]
    names = list(groups_of(rows))
    layouts = [layout for layout in ("nchw", "nhwc") if any(row.call.layout == layout for row in rows)]
    dtypes = [dtype for dtype in style.DTYPE_MARKERS if any(row.call.dtype == dtype for row in rows)]
    figure, panels, strip = style.panels(len(layouts), 1.8 + 0.5 * len(names), sharey=True)
    shown = [100 * row.copy_us / row.time_us for row in rows if row.error is None]
    right = max([100] + shown) * 1.04
    size, left = max(9.0, min(26.0, 9000.0 / len(rows))), -0.07 * right
    lost = any(row.error is not None for row in rows)
    for axes, layout in zip(panels, layouts):
        for offset, dtype in enumerate(dtypes):
            hue, marker = style.dtype_hue(theme, dtype), style.DTYPE_MARKERS[dtype]
            shift = (offset - (len(dtypes) - 1) / 2) * 0.26
            points, means, failures = [], [], []
            for row in rows:
                if (row.call.dtype, row.call.layout) == (dtype, layout):
                    y = (names.index(row.call.kind) if row.call.kind in names else len(names) - 1) + shift
                    if row.error is not None:
                        failures.append((left, y))
                    else:
                        points.append((100 * row.copy_us / row.time_us, y))
            for y in sorted({y for _, y in points}):
                means.append((geomean(x for x, at in points if at == y), y))
            style.marks(axes, points, s=size, marker=marker, color=hue, alpha=0.4, linewidths=0)
            style.marks(axes, means, "mean", s=58, marker=marker, color=hue, edgecolors=theme.back, linewidths=1, zorder=3)
            style.marks(axes, failures, style.FAILURE, s=26, marker="x", color=hue, linewidths=1.4)
        axes.axvline(100, color=theme.text, linewidth=1)
        axes.set_xlim(left * 1.6 if lost else 0, right)
        ticks = range(0, math.ceil(right), 25 if right < 160 else 50 if right < 400 else 200)
        axes.set_xticks([left, *ticks] if lost else ticks, ["failed", *ticks] if lost else ticks)
        if lost:
            axes.get_xticklabels()[0].set_rotation(90)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xlabel("percent of the copy's speed")
        axes.set_title(f"{layout.upper()}: {style.calls(sum(row.call.layout == layout for row in rows))}")
        for y in range(1, len(names)):
            axes.axhline(y - 0.5, color=theme.grid, linewidth=0.8)
        axes.grid(False, axis="y")
    counts = {name: len(some) for name, some in groups_of(rows).items()}
    panels[0].set_yticks(range(len(names)), [f"{name} ({counts[name]})" for name in names])
    handles = [style.entry(dtype, theme, style.DTYPE_MARKERS[dtype], style.dtype_hue(theme, dtype)) for dtype in dtypes]
    handles.append(style.entry("as fast as a copy", theme, "", line="-"))
    if lost:
        handles.append(style.entry("failed", theme, "x"))
    style.legend(strip, handles, 5)
    return figure


def milliseconds(value):
    return f"{value:.3g} ms" if value < 1000 else f"{value / 1000:.3g} s"


def cold_start(starts, theme):
    """Bars a process: the device's own start, which any program pays, and what its first call added."""
    figure, panels, _ = style.panels(2, 1.3 + 0.55 * len(starts), sharey=True, strip=0.02)
    what = (("the device's start (driver, context)", "init_ms", theme.faint, "////"), ("the first call, to its result", "finished_ms", theme.win, None))
    for axes, (title, field, hue, hatch) in zip(panels, what):
        values = [getattr(one, field) for one in starts]
        axes.barh(range(len(starts)), values, height=0.55, color=hue if hatch is None else theme.back, edgecolor=hue, hatch=hatch, gid=style.MARK)
        for y, value in enumerate(values):
            axes.text(value + max(values) * 0.02, y, milliseconds(value), va="center")
        axes.set_xlim(0, max(values) * 1.3)
        axes.set_ylim(len(starts) - 0.4, -0.6)
        axes.set_xlabel("milliseconds")
        axes.set_title(title)
        axes.grid(False, axis="y")
    panels[0].set_yticks(range(len(starts)), [f"{one.source[:28]}\n{one.did}" for one in starts], fontsize=10)
    return figure


def tuning_cost(rows, theme):
    """What one first use takes (decide, compile, verify, time), by kind of call: median, 10th and 90th percentile."""
    groups = groups_of(rows)
    figure, (axes,), strip = style.panels(1, 1.8 + 0.34 * len(groups))
    for y, some in enumerate(groups.values()):
        values = [row.first_use_ms for row in some]
        middle, low, high = statistics.median(values), percentile(values, 0.1), percentile(values, 0.9)
        axes.barh(y, middle, height=0.6, color=theme.win, gid=style.MARK)
        axes.plot([low, high], [y, y], color=theme.text, linewidth=1.4, marker="|", markersize=7)
        axes.text(max(middle, high) + axes_room(rows), y, milliseconds(middle), va="center", fontsize=10)
    axes.set_xlim(0, max(percentile([row.first_use_ms for row in some], 0.9) for some in groups.values()) * 1.18)
    axes.set_ylim(len(groups) - 0.4, -0.6)
    axes.set_yticks(range(len(groups)), [f"{name} ({len(some)})" for name, some in groups.items()])
    axes.set_xlabel("milliseconds")
    axes.set_title("What a first use costs, by kind of call")
    axes.grid(False, axis="y")
    style.legend(strip, [style.entry("median", theme, "s", theme.win), style.entry("10th to 90th percentile", theme, "|", line="-")])
    return figure


def axes_room(rows):
    """A gap before a bar's label, in milliseconds."""
    return percentile([row.first_use_ms for row in rows], 0.9) * 0.015


def untuned(rows, theme):
    """What runs where nothing is tuned, over the tuned winner: sorted, a mark a call and a way to choose."""
    figure, (axes,), strip = style.panels(1, 5)
    ways = choices(rows)
    ratios = {way: slowdowns(rows, way) for way in ways}
    lost = {way: sum(way in row.untuned for row in rows) - len(ratios[way]) for way in ways}
    shown = [ratio for some in ratios.values() for ratio in some]
    low, top = min([0.95, *shown]), max([1.2, *shown])
    size, handles, gutter, extra = style.mark_size(len(rows)), [], top * 1.25, []
    for way in ways:
        hue, marker = (theme.loss, "v") if way == FIRST else (theme.win, "o")
        style.marks(axes, list(enumerate(ratios[way])), s=size, marker=marker, facecolors="none", edgecolors=hue, linewidths=1)
        if ratios[way]:
            close = sum(ratio <= 1.05 for ratio in ratios[way])
            label = f"{way}: {geomean(ratios[way]):.2f}x (geometric mean), {close} of {len(ratios[way])} within 5 %"
            handles.append(style.entry(label, theme, marker, hue, True))
        if lost[way]:
            style.marks(axes, [(len(ratios[way]) + i, gutter) for i in range(lost[way])], style.FAILURE, s=max(size, 18), marker="x", color=hue)
            handles.append(style.entry(f"{way}: {lost[way]} without a time", theme, "x", hue))
            extra.append((gutter, "no time"))
            gutter *= 1.25
    axes.axhline(1, color=theme.text, linewidth=1)
    axes.set_yscale("log")
    axes.set_ylim(low / 1.05, gutter if extra else top * 1.1)
    style.log_ticks(axes.yaxis, low, top, "x", extra)
    axes.set_xlim(-1 - 0.02 * len(rows), len(rows) * 1.02)
    style.whole_ticks(axes.xaxis)
    axes.set_xlabel("tuned calls, sorted")
    axes.set_title("Time of what runs untuned, over the tuned winner's")
    style.legend(strip, handles, 1 if len(handles) < 3 else 2)
    return figure
