#!/usr/bin/env python3
"""Draws the README's picture from measured rows, as `sluice report` draws them.

    bench/plot.py bench/results/nvidia-h200/compare*.jsonl --routing-table configs/routing/nvidia-h200.json --out docs/images/h200.png

Left: every measured call, its speed-up over the fastest rival, sorted; calls that the routing table keeps are hollow.
Right: time over a copy of the same bytes, Sluice beside the fastest rival, by kind of call (geometric means).
"""
import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "report"))
import draw_rivals  # noqa: E402
import files  # noqa: E402
import routing  # noqa: E402
import rows  # noqa: E402
import style  # noqa: E402
import summary  # noqa: E402
from call import Bad  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="+")
    parser.add_argument("--routing-table")
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    try:
        data = rows.read(options.rows)
        table = routing.find(data.device, options.routing_table)
        routing.apply(table, data)
    except Bad as error:
        sys.exit(f"plot.py: {error}")
    rivals = summary.summary(data, table)["rivals"]
    if not rivals or not rivals["calls"]:
        sys.exit("plot.py: no call beside a rival in the rows")
    with style.context(style.LIGHT):
        figure, (left, right), _ = style.panels(2, 5.2, strip=0.02, width=14)
        speedups = draw_rivals.speedup_axes(left, data, style.LIGHT)
        left.set_title("Speed-up over the fastest of cuDNN and PyTorch")
        left.legend(handles=speedups, loc="upper left")
        distances = draw_rivals.distance_axes(right, data, style.LIGHT)
        right.set_title("How far from memory speed, by kind of call")
        right.legend(handles=distances, loc="lower right")
        figure.suptitle(f"{data.device}: {rivals['calls']} calls of real networks and their neighbours", fontsize=13)
        picture = style.png(figure)
    files.write(options.out, picture)
    print(f"{options.out}: {rivals['calls']} calls, geometric mean {rivals['geomean_speedup']:.2f}x")


if __name__ == "__main__":
    main()
