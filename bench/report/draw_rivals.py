"""Pictures of Sluice beside its rivals: sorted speed-ups, distance from a copy, who wins where."""
import itertools
import math

from matplotlib.patches import Patch, Rectangle

import style
from summary import compared, failed, geomean

WINNER_STEPS = (0.5, 0.8, 1, 1.25, 2, 4, 8)  # between the colours of a heat map
COLUMNS = 10  # of a heat map, at most
ROW_FEATURES = ("cpg", "multiplier", "depthwise", "kernel_area", "r", "s", "dtype", "layout")  # that a heat map's row and panel fix


def speedup_axes(axes, data, theme):
    """Every call's speed-up, sorted; what failed stands at the left, below every number. Returns the legend's entries."""
    rows, lost = sorted(compared(data), key=lambda row: row.speedup), failed(data)
    low, high = (min(1, rows[0].speedup), max(1, rows[-1].speedup)) if rows else (0.5, 2)
    gutter = low / 1.6
    size, handles = style.mark_size(len(rows)), []
    routed = any(row.taken is not None for row in rows)
    for win in (True, False):
        for taken in (True, False) if routed else (None,):
            points = [(len(lost) + i, row.speedup) for i, row in enumerate(rows) if (row.speedup >= 1) == win and row.taken == taken]
            hue, marker = (theme.win, "o") if win else (theme.loss, "v")
            # What is kept is small and hollow: a thin line where thousands of marks run together.
            shape = {"s": 0.35 * size, "linewidths": 0.7, "facecolors": "none"} if taken is False else {"s": size, "linewidths": 0.9, "facecolors": hue}
            style.marks(axes, points, marker=marker, edgecolors=hue, **shape)
            if points:
                label = ("faster" if win else "slower") + ({True: ", taken", False: ", kept"}.get(taken, "")) + f": {len(points)}"
                handles.append(style.entry(label, theme, marker, hue, taken is False))
    if lost:
        axes.axhspan(gutter / 1.25, gutter * 1.25, color=theme.grid, zorder=0)
        style.marks(axes, [(i, gutter) for i in range(len(lost))], style.FAILURE, s=max(size, 18), marker="x", linewidths=1.2, color=theme.text)
        handles.append(style.entry(f"failed: {len(lost)}", theme, "x"))
    axes.axhline(1, color=theme.text, linewidth=1)
    if rows:
        mean = geomean(row.speedup for row in rows)
        axes.axhline(mean, color=theme.text, linewidth=1, linestyle=(0, (6, 4)))
        handles.append(style.entry(f"geometric mean: {mean:.2f}x", theme, "", line=(0, (6, 4))))
        if some := [row.speedup for row in rows if row.taken]:
            axes.axhline(geomean(some), color=theme.text, linewidth=1, linestyle=(0, (1, 3)))
            handles.append(style.entry(f"of those taken: {geomean(some):.2f}x", theme, "", line=(0, (1, 3))))
    axes.set_yscale("log")
    axes.set_ylim((gutter if lost else low) / 1.3, high * 1.2)
    style.log_ticks(axes.yaxis, low, high, "x", [(gutter, "failed")] if lost else ())
    axes.set_xlim(-max(1, len(rows) + len(lost)) * 0.02, (len(rows) + len(lost)) * 1.02)
    style.whole_ticks(axes.xaxis)
    axes.set_xlabel("measured calls, sorted")
    return handles


def speedup(data, theme):
    figure, (axes,), strip = style.panels(1, 5.4)
    handles = speedup_axes(axes, data, theme)
    axes.set_title("Speed-up over the fastest rival, call by call")
    style.legend(strip, handles, 3)
    return figure


def groups_of(rows, key="kind", most=18):
    """{kind: rows}: the kinds with most calls by name, the rest under 'other'; in order of family and kernel size."""
    groups = {}
    for row in rows:
        groups.setdefault(getattr(row.call, key), []).append(row)
    names = sorted(groups, key=lambda name: (-len(groups[name]), name))
    kept = names if len(names) <= most else names[:most - 1]
    order = sorted(kept, key=lambda name: (groups[name][0].call.family, groups[name][0].call.r * groups[name][0].call.s, name))
    out = {name: groups[name] for name in order}
    if len(kept) < len(names):
        out["other"] = [row for name in names[most - 1:] for row in groups[name]]
    return out


def distance_rows(data):
    return [row for row in compared(data) if row.copy_us]


def distance_axes(axes, data, theme):
    """Time over a copy of the same bytes, Sluice beside the fastest rival, geometric means by kind."""
    groups = groups_of(distance_rows(data), "kind_by_channels")
    means = {name: (geomean(row.time_us / row.copy_us for row in rows), geomean(row.rivals[row.rival] / row.copy_us for row in rows))
             for name, rows in groups.items()}
    names = sorted(means, key=lambda name: means[name][1])
    for y, name in enumerate(names):
        axes.plot(means[name], [y, y], color=theme.faint, linewidth=1.2, zorder=1)
    style.marks(axes, [(means[name][0], y) for y, name in enumerate(names)], s=52, marker="o", color=theme.win, zorder=3)
    style.marks(axes, [(means[name][1], y) for y, name in enumerate(names)], s=46, marker="s", facecolors=theme.back, edgecolors=theme.loss,
                linewidths=1.8, zorder=2)
    axes.axvline(1, color=theme.text, linewidth=1)
    axes.set_xscale("log")
    ends = [value for pair in means.values() for value in pair] + [1]
    axes.set_xlim(min(ends) / 1.15, max(ends) * 1.15)
    style.log_ticks(axes.xaxis, min(ends), max(ends))
    axes.set_ylim(-0.7, len(names) - 0.3)
    axes.set_yticks(range(len(names)), [f"{name} ({len(groups[name])})" for name in names])
    axes.set_xlabel("time / copy of the same bytes")
    return [style.entry("Sluice", theme, "o", theme.win), style.entry("fastest rival", theme, "s", theme.loss, True),
            style.entry("as fast as a copy", theme, "", line="-")]


def distance(data, theme):
    figure, (axes,), strip = style.panels(1, 1.6 + 0.34 * len(groups_of(distance_rows(data), "kind_by_channels")))
    handles = distance_axes(axes, data, theme)
    axes.set_title("How far from memory speed, by kind of call")
    style.legend(strip, handles)
    return figure


def _cell(axes, x, y, rows, theme):
    """One cell: the colour and the number say how much faster, hatching that a rival is, a cross how many calls failed."""
    good, bad = [row for row in rows if row.error is None], sum(row.error is not None for row in rows)
    mean = geomean(row.speedup for row in good)
    step = None if mean is None else sum(mean >= bound for bound in WINNER_STEPS)
    face = theme.grid if step is None else theme.steps[step]
    axes.add_patch(Rectangle((x, y - 0.5), 1, 1, facecolor=face, edgecolor=theme.back, linewidth=1.5,
                             hatch="////" if mean is not None and mean < 1 else None, zorder=1))
    lines = ([speed(mean)] if mean is not None else []) + ([f"✕{bad}" if bad < 1000 else "✕999+"] if bad else [])
    rgb = [int(face[i:i + 2], 16) for i in (1, 3, 5)]
    ink = "#ffffff" if 0.3 * rgb[0] + 0.6 * rgb[1] + 0.1 * rgb[2] < 130 else "#101214"
    # On a ground of its own: neither hatching nor a rule's frame runs through a number.
    axes.text(x + 0.42, y, "\n".join(lines), ha="center", va="center", fontsize=9 if len(lines) == 1 else 7.5, linespacing=1.0, color=ink,
              zorder=6, bbox={"facecolor": face, "edgecolor": "none", "pad": 0.8})
    taken = [row.taken for row in rows if row.taken is not None]
    if taken and not all(taken):
        fill = "left" if any(taken) else "none"
        axes.plot([x + 0.87], [y - 0.26], marker="o", markersize=5, color=ink, markerfacecoloralt="none", fillstyle=fill,
                  markeredgewidth=0.8, zorder=5)


def speed(ratio):
    return f"{ratio:.2f}" if ratio < 1 else f"{ratio:.1f}" if ratio < 10 else f"{ratio:.0f}"


def _spans(table, rows):
    """[(low, high)] of outputs, as powers of two, that the rules which take a panel's row of kernels allow; overlapping ones joined."""
    spans = []
    distinct = [dict(zip(ROW_FEATURES, one)) for one in {tuple(row.call.features[name] for name in ROW_FEATURES) for row in rows}]
    for rule in table.rules if table else ():
        if not rule.take or not any(rule.meets(one, ROW_FEATURES) for one in distinct):
            continue
        bounds = rule.when.get("outputs", {})
        bounds = {"min": min(bounds), "max": max(bounds)} if isinstance(bounds, list) else bounds
        spans.append((math.log2(max(1, bounds.get("min", 1))), math.log2(max(1, bounds.get("max", 2 ** 62)))))
    joined = []
    for low, high in sorted(spans):
        if joined and low <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return joined


def winners(data, theme, dtype, table):
    """Who wins where, for one dtype: kernels by size of the output, a panel a layout; the routing rules' ranges as frames."""
    rows = [row for row in data.comparisons if row.call.dtype == dtype and (row.error is not None or row.rivals)]
    names = list(groups_of(rows))
    powers = [math.log2(row.call.outputs) for row in rows]
    wide = next(wide for wide in itertools.count(2) if max(powers) // wide - min(powers) // wide < COLUMNS)  # a column: so many doublings
    first, last = int(min(powers) // wide), int(max(powers) // wide)
    layouts = [layout for layout in ("nchw", "nhwc") if any(row.call.layout == layout for row in rows)]
    figure, panels, strip = style.panels(len(layouts), 2.0 + 0.36 * len(names), sharey=True)
    for axes, layout in zip(panels, layouts):
        cells = {}
        for row in rows:
            if row.call.layout == layout:
                cells.setdefault((int(math.log2(row.call.outputs) // wide), row.call.kind if row.call.kind in names else "other"), []).append(row)
        for (x, name), inside in cells.items():
            _cell(axes, x, names.index(name), inside, theme)
        for y, name in enumerate(names):
            inside = [row for (_, kind), some in cells.items() if kind == name for row in some]
            for low, high in _spans(table, inside) if inside else ():
                low, high = max(low / wide, first), min(high / wide, last + 1)
                if low < high or first <= low <= last + 1:
                    axes.add_patch(Rectangle((low, y - 0.46), max(high - low, 0.05), 0.92, fill=False, edgecolor=theme.text, linewidth=1.6,
                                             zorder=4))
        axes.set_xlim(first, last + 1)
        axes.set_ylim(len(names) - 0.5, -0.5)
        ends = range(first, last + 2)
        every = 2 if len(ends) * len(layouts) > 14 else 1
        axes.set_xticks(ends, [_power(wide * i) if (i - first) % every == 0 else "" for i in ends])
        axes.set_xlabel("outputs of the call")
        axes.set_title(f"{layout.upper()}, {dtype}: {style.calls(sum(map(len, cells.values())))}")
        axes.grid(False)
    panels[0].set_yticks(range(len(names)), names)
    style.legend(strip, _winner_legend(theme, table, any(row.error is not None for row in rows)), 6)
    return figure


def _power(exponent):
    """2^20 as 1M."""
    prefixes = ("", "K", "M", "G", "T", "P")
    return f"{2 ** (exponent % 10)}{prefixes[min(exponent // 10, 5)]}"


def _winner_legend(theme, table, failures):
    labels = ["under 0.5x", "0.5 to 0.8x", "0.8 to 1x", "1 to 1.25x", "1.25 to 2x", "2 to 4x", "4 to 8x", "over 8x"]
    handles = [Patch(facecolor=face, edgecolor=theme.faint, hatch="////" if i < 3 else None, label=label)
               for i, (face, label) in enumerate(zip(theme.steps, labels))]
    if table:
        handles.append(Patch(facecolor="none", edgecolor=theme.text, linewidth=1.6, label="rules' range"))
        handles += [_dot(theme, "left", "some kept"), _dot(theme, "none", "all kept")]
    if failures:
        handles.append(style.entry("✕n: n failed", theme, ""))
    return handles


def _dot(theme, fill, label):
    one = style.entry(label, theme, "o")
    one.set_fillstyle(fill)
    one.set_markerfacecolor(theme.text)
    one.set_markerfacecoloralt("none")
    if fill == "none":
        one.set_markerfacecolor("none")
    return one
