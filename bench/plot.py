#!/usr/bin/env python3
"""Draws the README's picture from measured rows.

    bench/plot.py bench/results/nvidia-h200/compare.jsonl --table configs/routing/nvidia-h200.json --out docs/images/h200.png

Left: every measured call, its speed-up over the fastest rival, sorted; calls that the routing table keeps are hollow.
Right: time over a copy of the same bytes, Sluice beside the fastest rival, by kind of call (geometric means).
"""
import argparse
import json
import math
import os

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

TAKEN, KEPT, RIVAL = "#0072b2", "#b0b0b0", "#d55e00"  # distinguishable by the colour-blind and in print


def load(paths):
    header, rows = {}, []
    for path in paths:
        with open(path) as file:
            for row in map(json.loads, file):
                if "gpu" in row:
                    header = row
                elif "time_us" in row and row["rivals"]:
                    rival = min(row["rivals"].values())
                    rows.append(dict(row, features=features(row), rival_us=rival, speedup=rival / row["time_us"]))
    return header, rows


def features(row):
    """What a routing rule asks about a call (docs/routing.md)."""
    p, q = ((row[size] + 2 * row["pad"][i] - (row["dil"][i] * (row[taps] - 1) + 1)) // row["stride"][i] + 1
            for i, (size, taps) in enumerate((("h", "kh"), ("w", "kw"))))
    return {"cpg": row["c"] // row["groups"], "multiplier": row["k"] // row["groups"], "r": row["kh"], "s": row["kw"],
            "stride": max(row["stride"]), "dilation": max(row["dil"]), "bias": row.get("bias", 0), "n": row["n"],
            "p": p, "q": q, "outputs": row["n"] * row["k"] * p * q, "dtype": row["dtype"], "layout": row["layout"]}


def meets(value, condition):
    if isinstance(condition, list):
        return value in condition
    return condition.get("min", -math.inf) <= value <= condition.get("max", math.inf)


def taken(point, table):
    for rule in table["rules"]:
        if all(meets(point[feature], condition) for feature, condition in rule["when"].items()):
            return rule["route"] == "take"
    return False


def kind(point):
    if point["cpg"] > 1:
        return f"{point['cpg']} channels a group"
    if point["multiplier"] > 1:
        return f"multiplier {point['multiplier']}"
    return f"depthwise {point['r']}x{point['s']}"


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="+")
    parser.add_argument("--table", required=True)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    header, rows = load(options.rows)
    with open(options.table) as file:
        table = json.load(file)
    for row in rows:
        row["taken"] = taken(row["features"], table)

    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 5), gridspec_kw={"width_ratios": [1.1, 1]}, layout="constrained")
    rows.sort(key=lambda row: row["speedup"])
    for flag, label, style in ((True, "taken", dict(color=TAKEN)), (False, "kept (the rival runs)", dict(facecolors="none", edgecolors=KEPT))):
        points = [(i, row["speedup"]) for i, row in enumerate(rows) if row["taken"] == flag]
        if points:
            left.scatter(*zip(*points), s=12, label=f"{label}: {len(points)} calls", **style)
    left.axhline(1, color="black", linewidth=0.8)
    left.set_yscale("log")
    left.set_yticks([0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 50])
    left.get_yaxis().set_major_formatter(matplotlib.ticker.FuncFormatter(lambda v, _: f"{v:g}x"))
    left.minorticks_off()
    left.set_xlabel("measured calls, sorted")
    mean = geomean([row["speedup"] for row in rows if row["taken"]])
    left.set_title(f"Speed-up over the fastest of cuDNN and PyTorch\ngeometric mean of taken calls {mean:.2f}x", fontsize=11)
    left.legend(loc="upper left", frameon=False)

    groups = {}
    for row in rows:
        groups.setdefault(kind(row["features"]), []).append(row)
    names = sorted(groups, key=lambda name: geomean([row["rival_us"] / row["copy_us"] for row in groups[name]]))
    for y, name in enumerate(names):
        ours = geomean([row["time_us"] / row["copy_us"] for row in groups[name]])
        rival = geomean([row["rival_us"] / row["copy_us"] for row in groups[name]])
        right.plot([ours, rival], [y, y], color="#dddddd", zorder=1)
        right.scatter([ours], [y], color=TAKEN, marker="o", zorder=2, label="Sluice" if y == 0 else None)
        right.scatter([rival], [y], color=RIVAL, marker="s", zorder=2, label="fastest rival" if y == 0 else None)
    right.axvline(1, color="black", linewidth=0.8)
    right.set_xscale("log")
    right.set_xticks([1, 2, 5, 10, 20, 50])
    right.get_xaxis().set_major_formatter(matplotlib.ticker.FuncFormatter(lambda v, _: f"{v:g}"))
    right.minorticks_off()
    right.set_yticks(range(len(names)), [f"{name} ({len(groups[name])})" for name in names])
    right.set_xlabel("time / copy of the same bytes")
    right.set_title("How far from memory speed, geometric means by kind", fontsize=11)
    right.legend(loc="lower right", frameon=False)
    figure.suptitle(f"{header.get('gpu', '')}: {len(rows)} calls of real networks and their neighbours", fontsize=12)
    os.makedirs(os.path.dirname(options.out) or ".", exist_ok=True)
    figure.savefig(options.out, dpi=110)
    print(f"{options.out}: {len(rows)} calls, {sum(row['taken'] for row in rows)} taken, geometric mean {mean:.2f}x; "
          f"slowest taken {min(row['speedup'] for row in rows if row['taken']):.2f}x")


if __name__ == "__main__":
    main()
