#!/usr/bin/env python3
"""Turns measured rows (bench/compare_torch.py) into a routing table.

    bench/derive_routing.py rows.jsonl [more.jsonl ...] --out configs/routing/nvidia-h200.json

A rule is a box in the space of problem features. It is grown from measured calls that were faster than the best peer by at
least --margin, and never contains a measured call that was not (one that failed or was inaccurate counts as lost). Inside one class
of call (channels a group, multiplier, kernel, stride, dilation, bias, dtype, layout) a box spans neighbouring output counts; classes
that differ in one feature are then joined as long as the joined box holds no loser and no value that was not measured. Everything
outside the boxes is kept, and so is what no row has: activations, a residual, narrow alignment, weights in ohwi.
"""
import argparse
import json
import math
import statistics

EXACT = ("cpg", "multiplier", "r", "s", "stride", "dilation", "bias")  # one value, or neighbours that were all measured
SPANS = ("n", "p", "q", "outputs")                                     # the span between measured calls
NAMES = ("dtype", "layout")                                            # sets

ACCURATE = {"f32": 1e-5, "f16": 1e-3, "bf16": 8e-3}  # relative L2 against float64; the output's rounding alone is 2e-4 and 1.7e-3


def features(row):
    p = (row["h"] + 2 * row["pad"][0] - (row["dil"][0] * (row["kh"] - 1) + 1)) // row["stride"][0] + 1
    q = (row["w"] + 2 * row["pad"][1] - (row["dil"][1] * (row["kw"] - 1) + 1)) // row["stride"][1] + 1
    return {"cpg": row["c"] // row["groups"], "multiplier": row["k"] // row["groups"], "r": row["kh"], "s": row["kw"],
            "stride": max(row["stride"]), "dilation": max(row["dil"]), "bias": row.get("bias", 0), "n": row["n"],
            "p": p, "q": q, "outputs": row["n"] * row["k"] * p * q, "dtype": row["dtype"], "layout": row["layout"]}


class Box:
    """Conditions of one rule, and the measured calls that it was made of."""

    def __init__(self, points):
        self.points = points
        self.ranges = {f: (min(p[f] for p in points), max(p[f] for p in points)) for f in EXACT + SPANS}
        self.sets = {f: frozenset(p[f] for p in points) for f in NAMES}

    def holds(self, point):
        return (all(low <= point[f] <= high for f, (low, high) in self.ranges.items())
                and all(point[f] in allowed for f, allowed in self.sets.items()))

    def differs(self, other):
        return [f for f in EXACT if self.ranges[f] != other.ranges[f]] + [f for f in NAMES if self.sets[f] != other.sets[f]]

    def joined(self, other):
        return Box(self.points + other.points)

    def gapless(self):
        """Between 3x3 and 7x7 nobody measured 5x5, and 3 channels a group load otherwise than 2 or 4."""
        return all({p[f] for p in self.points} >= set(range(low, high + 1)) for f, (low, high) in self.ranges.items() if f in EXACT)


def derive(points, margin, min_cases):
    won = lambda point: point["speedup"] >= 1 + margin
    losers = [p for p in points if not won(p)]
    clean = lambda box: not any(box.holds(p) for p in losers)
    classes = {}
    for point in points:
        classes.setdefault(tuple(point[f] for f in EXACT + NAMES), []).append(point)
    boxes = []
    for group in classes.values():
        run = []
        for point in sorted(filter(won, group), key=lambda p: (p["n"], p["outputs"])):
            if run and not clean(Box(run + [point])):
                boxes.append(Box(run))
                run = []
            run.append(point)
        if run:
            boxes.append(Box(run))
    changed = True
    while changed:
        changed = False
        pairs = [(i, j) for i in range(len(boxes)) for j in range(i) if len(boxes[i].differs(boxes[j])) <= 1]
        pairs.sort(key=lambda ij: len(boxes[ij[0]].points) + len(boxes[ij[1]].points), reverse=True)
        for i, j in pairs:
            union = boxes[i].joined(boxes[j])
            if union.gapless() and clean(union):
                boxes = [box for n, box in enumerate(boxes) if n not in (i, j)] + [union]
                changed = True
                break
    boxes = [box for box in boxes if len(box.points) >= min_cases]
    return sorted(boxes, key=lambda box: (-len(box.points), sorted(box.ranges.items())))


def name(box):
    low_high = lambda f: "-".join(str(v) for v in sorted(set(box.ranges[f])))
    cpg, mult = box.ranges["cpg"], box.ranges["multiplier"]
    kind = "dw" if cpg == (1, 1) and mult == (1, 1) else ("dw-mult" + low_high("multiplier") if cpg == (1, 1) else "grp" + low_high("cpg"))
    if box.ranges["bias"] != (0, 1):
        kind += "-bias" if box.ranges["bias"] == (1, 1) else "-nobias"
    parts = [kind, low_high("r") + "x" + low_high("s")]
    if box.ranges["stride"] != (1, 1):
        parts.append("s" + low_high("stride"))
    if box.ranges["dilation"] != (1, 1):
        parts.append("d" + low_high("dilation"))
    return "-".join(parts + ["+".join(sorted(box.sets["dtype"])), "+".join(sorted(box.sets["layout"]))])


def rule(box, baseline, versions, used):
    title = name(box)
    used[title] = used.get(title, 0) + 1
    speedups = [p["speedup"] for p in box.points]
    when = {f: {"min": low, "max": high} for f, (low, high) in box.ranges.items()}
    when.update({f: sorted(allowed) for f, allowed in box.sets.items()})
    return {"name": title if used[title] == 1 else f"{title}-{used[title]}", "route": "take", "when": when,
            "evidence": {"cases": len(speedups), "min_speedup": round(min(speedups), 3),
                         "median_speedup": round(statistics.median(speedups), 3), "baseline": baseline, "versions": versions}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="+")
    parser.add_argument("--out", required=True)
    parser.add_argument("--margin", type=float, default=0.05, help="least speed-up over the best peer, minus 1 (default 0.05)")
    parser.add_argument("--min-cases", type=int, default=2, help="a rule rests on at least this many measured calls (default 2)")
    options = parser.parse_args()

    header, points = {}, []
    for path in options.rows:
        with open(path) as file:
            for row in map(json.loads, file):
                if "gpu" in row:
                    header = row
                else:
                    right = row.get("relative_l2", math.inf) < ACCURATE[row["dtype"]]  # NaN is not
                    points.append(dict(features(row), speedup=row.get("speedup", 0.0) if right else 0.0))
    if not points:
        parser.error("no row has a speed-up: nothing to derive from")
    cudnn = header["cudnn"]
    baseline = f"fastest of cuDNN {cudnn // 10000}.{cudnn // 100 % 100} (every engine), PyTorch {header['torch']} eager and native"
    versions = f"sluice {header['sluice']} at {header['commit'] or 'an unknown commit'}" + (f", driver {header['driver']}" if header.get("driver") else "")
    boxes = derive(points, options.margin, options.min_cases)
    if not boxes:
        parser.error("no call was faster: the table would keep everything")
    used = {}
    table = {"schema": 1, "device": {"name": header["gpu"], "capability": header["capability"]},
             "note": f"Made by bench/derive_routing.py from {len(points)} measured calls, margin {options.margin:.0%}. "
                     "A call outside every rule is kept.",
             "measured": {"align": {"min": 16}, "residual": {"max": 0}, "activation": ["none"], "weight_layout": ["oihw"]}, "rules": [rule(box, baseline, versions, used) for box in boxes]}
    with open(options.out, "w") as file:
        json.dump(table, file, indent=2)
        file.write("\n")
    taken = sum(len(box.points) for box in boxes)
    lost = [p for p in points if p["speedup"] < 1]
    print(f"{len(points)} calls: {taken} taken by {len(boxes)} rules, {len(points) - taken} kept ({len(lost)} were slower than a peer)")
    geomean = lambda values: math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")
    print(f"geometric mean of the speed-up over the best peer: taken {geomean([p['speedup'] for b in boxes for p in b.points]):.2f}")


if __name__ == "__main__":
    main()
