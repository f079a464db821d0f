#!/usr/bin/env python3
"""Prints how near the limit each class of call is, from the rows of `sluice bench`, as a Markdown table.

    bench/report.py bench/results/nvidia-h200/kernels.json [--suite configs/suites/peers.json]
                    [--peers bench/results/nvidia-h200/compare.jsonl ...] [--worst 10] [--json]

A class is a kind of call (kernel, dtype, layout, channels a group); its number is a geometric mean of time / copy, or of time / floor
where arithmetic is the limit. --suite keeps the calls of one suite (in any dtype and batch). --peers adds the slowest call against its
fastest rival, both from one run of bench/compare_torch.py. --worst lists the rows furthest from their floor.
"""
import argparse
import json
import math
import re
import statistics


def parse(row):
    """A row with the numbers of its descriptor; what a descriptor leaves out follows as in benchdnn."""
    field = {key: int(value) for key, value in re.findall(r"([a-z]+)(\d+)", row["problem"])}
    call = {"g": field.get("g", 1), "n": field.get("mb", 2), "c": field["ic"], "k": field["oc"], "r": field.get("kh", 1)}  # conv1d has no kh, no ih
    call["h"], call["w"] = field.get("ih", 1), field.get("iw", field.get("ih"))
    call["s"] = field.get("kw", call["r"])
    call["stride"] = max(field.get("sh", 1), field.get("sw", field.get("sh", 1)))
    call["dil"] = 1 + max(field.get("dh", 0), field.get("dw", field.get("dh", 0)))
    call["cpg"], call["mult"] = call["c"] // call["g"], call["k"] // call["g"]
    call["depthwise"] = call["cpg"] == 1 and call["mult"] == 1
    call["half"] = row["dtype"] != "f32"
    return {**row, **call}


def square(*sizes):
    return lambda row: row["depthwise"] and row["r"] == row["s"] and row["r"] in sizes


def both(*conditions):
    return lambda row: all(condition(row) for condition in conditions)


def half(row):
    return row["half"]


def single(row):
    return not row["half"]


def layout(name):
    return lambda row: row["layout"] == name


def batch(low, high=1 << 62):
    return lambda row: low <= row["n"] <= high


def grouped(*sizes):
    return lambda row: row["cpg"] in sizes and row["cpg"] > 1


# name, which rows, what is compared with the time
CLASSES = [
    ("all, time / floor", lambda row: True, "floor_us"),
    ("all, time / copy", lambda row: True, "copy_us"),
    ("depthwise 3x3, batch over 1", both(square(3), batch(2)), "copy_us"),
    ("depthwise 5x5, batch over 1", both(square(5), batch(2)), "copy_us"),
    ("7x7 and 9x9, 16-bit, NCHW", both(square(7, 9), half, layout("nchw")), "copy_us"),
    ("7x7 and 9x9, 16-bit, NHWC", both(square(7, 9), half, layout("nhwc")), "copy_us"),
    ("7x7, fp32, time / floor", both(square(7), single), "floor_us"),
    ("13x13, 16-bit", both(square(13), half), "copy_us"),
    ("31x31, 16-bit", both(square(31), half), "copy_us"),
    ("1x31, 16-bit", both(lambda row: row["depthwise"] and (row["r"], row["s"]) == (1, 31), half), "copy_us"),
    ("13x13 and 31x31, fp32, time / floor", both(square(13, 31), single), "floor_us"),
    ("2, 4, 8 channels a group, 16-bit", both(grouped(2, 4, 8), half), "copy_us"),
    ("2, 4 channels a group, fp32", both(grouped(2, 4), single), "copy_us"),
    ("8 channels a group, fp32, time / floor", both(grouped(8), single), "floor_us"),
    ("multiplier 2 to 32", lambda row: row["cpg"] == 1 and 2 <= row["mult"] <= 32, "copy_us"),
    ("batch 1", batch(1, 1), "copy_us"),
]


def geomean(values):
    return math.exp(statistics.fmean(map(math.log, values)))


def shape(call):
    """What a suite's item fixes, whatever the batch."""
    return tuple(call[key] for key in ("c", "k", "g", "h", "w", "r", "s", "stride", "dil"))


def suite_shapes(path):
    with open(path) as file:
        return {(i["c"], i["k"], i["groups"], i["h"], i["w"], i["kh"], i["kw"], max(i["stride"]), max(i["dil"])) for i in json.load(file)}


def classes(rows):
    for title, holds, against in CLASSES:
        ratios = [row["time_us"] / row[against] for row in rows if holds(row)]
        if ratios:
            yield {"class": title, "calls": len(ratios), "ratio": round(geomean(ratios), 3), "worst": round(max(ratios), 2)}


def rivals(paths):
    rows = []
    for path in paths:
        with open(path) as file:
            rows += [dict(row, speedup=min(row["rivals"].values()) / row["time_us"])
                     for row in map(json.loads, file) if "time_us" in row and row["rivals"]]
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results")
    parser.add_argument("--suite")
    parser.add_argument("--peers", nargs="*", default=[])
    parser.add_argument("--worst", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with open(options.results) as file:
        results = json.load(file)
    rows = [parse(row) for row in results["rows"] if "time_us" in row]
    failed = [row for row in results["rows"] if "time_us" not in row]
    if options.suite:
        shapes = suite_shapes(options.suite)
        rows = [row for row in rows if shape(row) in shapes]
    table = list(classes(rows))
    report = {"gpu": results["gpu"], "rows": len(rows), "failed": len(failed), "classes": table}
    peers = rivals(options.peers)
    if peers:
        won = [row for row in peers if row["speedup"] >= 1]
        report["rivals"] = {"calls": len(peers), "faster": len(won), "speedup": round(geomean([row["speedup"] for row in peers]), 3)}
    worst = sorted(rows, key=lambda row: row["floor_us"] / row["time_us"])[:options.worst]
    report["worst"] = [{key: row[key] for key in ("signature", "time_us", "copy_us", "floor_us", "schedule", "config")} for row in worst]
    if options.json:
        print(json.dumps(report, indent=1))
        return
    print(f"{results['gpu']}, driver {results['driver']}, {len(rows)} calls"
          + (f", {len(failed)} without a time" if failed else "") + "\n")
    print("| class | calls | geometric mean | worst |\n|---|---|---|---|")
    for row in table:
        print(f"| {row['class']} | {row['calls']} | {row['ratio']:.2f} | {row['worst']:.2f} |")
    if peers:
        print(f"\nAgainst the fastest rival: {report['rivals']['speedup']:.2f} times as fast (geometric mean of {len(peers)} calls), "
              f"{report['rivals']['faster']} faster.")
    for row in worst:
        print(f"\n- {row['signature']}: {row['time_us']:.1f} us, {row['time_us'] / row['floor_us']:.2f} x floor, "
              f"{row['time_us'] / row['copy_us']:.2f} x copy, {row['schedule']} {row['config']}", end="")
    print()


if __name__ == "__main__":
    main()
