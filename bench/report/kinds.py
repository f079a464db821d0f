"""Classes of calls: what one limit holds for. Shared by the page, `--json` and bench/classes.py."""
import math
import statistics


def square(*sizes):
    return lambda call: call.family == "depthwise" and call.r == call.s and call.r in sizes


def both(*conditions):
    return lambda call: all(condition(call) for condition in conditions)


def half(call):
    return call.dtype != "f32"


def single(call):
    return call.dtype == "f32"


def layout(name):
    return lambda call: call.layout == name


def batch(low, high=1 << 62):
    return lambda call: low <= call.n <= high


def grouped(*sizes):
    return lambda call: call.cpg in sizes and call.cpg > 1


# name, which calls, what is compared with the time: the copy, or the floor where arithmetic is the limit
CLASSES = [
    ("all, time / floor", lambda call: True, "floor_us"),
    ("all, time / copy", lambda call: True, "copy_us"),
    ("depthwise 3x3, batch over 1", both(square(3), batch(2)), "copy_us"),
    ("depthwise 5x5, batch over 1", both(square(5), batch(2)), "copy_us"),
    ("7x7 and 9x9, 16-bit, NCHW", both(square(7, 9), half, layout("nchw")), "copy_us"),
    ("7x7 and 9x9, 16-bit, NHWC", both(square(7, 9), half, layout("nhwc")), "copy_us"),
    ("7x7, fp32, time / floor", both(square(7), single), "floor_us"),
    ("13x13, 16-bit", both(square(13), half), "copy_us"),
    ("31x31, 16-bit", both(square(31), half), "copy_us"),
    ("1x31, 16-bit", both(lambda call: call.family == "depthwise" and (call.r, call.s) == (1, 31), half), "copy_us"),
    ("13x13 and 31x31, fp32, time / floor", both(square(13, 31), single), "floor_us"),
    ("2, 4, 8 channels a group, 16-bit", both(grouped(2, 4, 8), half), "copy_us"),
    ("2, 4 channels a group, fp32", both(grouped(2, 4), single), "copy_us"),
    ("8 channels a group, fp32, time / floor", both(grouped(8), single), "floor_us"),
    ("multiplier 2 to 32", lambda call: call.cpg == 1 and 2 <= call.multiplier <= 32, "copy_us"),
    ("batch 1", batch(1, 1), "copy_us"),
]


def classes(timings):
    """A row a class that has calls: geometric mean and worst of time over its limit."""
    out = []
    for title, holds, against in CLASSES:
        ratios = [row.time_us / getattr(row, against) for row in timings if holds(row.call)]
        if ratios:
            out.append({"class": title, "calls": len(ratios), "ratio": round(math.exp(statistics.fmean(map(math.log, ratios))), 3),
                        "worst": round(max(ratios), 2)})
    return out
