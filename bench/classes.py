#!/usr/bin/env python3
"""Prints how near the limit each class of call is, from the rows of `sluice bench`, as a Markdown table.

    bench/classes.py bench/results/nvidia-h200/kernels*.json [--suite configs/suites/peers.json] [--worst 10] [--json]

A class is a kind of call (kernel, dtype, layout, channels a group); its number is a geometric mean of time / copy, or of time / floor
where arithmetic is the limit. --suite keeps the calls of one suite (in any dtype and batch). --worst lists the rows furthest from their
floor. `sluice report` draws the same rows.
"""
import argparse
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "report"))
import kinds  # noqa: E402
import rows  # noqa: E402
from call import Bad  # noqa: E402


def suite_shapes(path):
    """What a suite's items fix, whatever the batch."""
    with open(path) as file:
        return {(i["c"], i["k"], i["groups"], i["h"], i["w"], i["kh"], i["kw"], tuple(i["stride"]), tuple(i["dil"])) for i in json.load(file)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+")
    parser.add_argument("--suite")
    parser.add_argument("--worst", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    try:
        data = rows.read(options.results)
    except Bad as error:
        sys.exit(f"classes.py: {error}")
    timed = [row for row in data.timings if row.error is None]
    failed = len(data.timings) - len(timed)
    if options.suite:
        shapes = suite_shapes(options.suite)
        timed = [row for row in timed if (c := row.call) and (c.c, c.k, c.groups, c.h, c.w, c.r, c.s, c.stride, c.dilation) in shapes]
    table = kinds.classes(timed)
    worst = sorted(timed, key=lambda row: row.floor_us / row.time_us)[:options.worst]
    if options.json:
        shown = [{key: getattr(row, key) for key in ("signature", "time_us", "copy_us", "floor_us", "schedule", "config")} for row in worst]
        print(json.dumps({"gpu": data.device, "rows": len(timed), "failed": failed, "classes": table, "worst": shown}, indent=1))
        return
    print(f"{data.device}, driver {', '.join(data.drivers)}, {len(timed)} calls" + (f", {failed} without a time" if failed else "") + "\n")
    print("| class | calls | geometric mean | worst |\n|---|---|---|---|")
    for row in table:
        print(f"| {row['class']} | {row['calls']} | {row['ratio']:.2f} | {row['worst']:.2f} |")
    for row in worst:
        print(f"\n- {row.signature}: {row.time_us:.1f} us, {row.time_us / row.floor_us:.2f} x floor, "
              f"{row.time_us / row.copy_us:.2f} x copy, {row.schedule} {row.config}", end="")
    print()


if __name__ == "__main__":
    main()
