"""The numbers of a report: what its page prints on top, and `--json` whole."""
import math
import statistics

import kinds
from values import FIRST, MODEL


def geomean(values):
    values = list(values)
    return math.exp(statistics.fmean(map(math.log, values))) if values else None


def rounded(value, digits=6):
    """To so many significant digits: JSON for people."""
    return None if value is None else float(f"{value:.{digits}g}")


def percentile(values, at):
    values = sorted(values)
    return values[round(at * (len(values) - 1))]


def compared(data):
    """Rows that can be compared: Sluice was right and timed, and some rival was timed."""
    return [row for row in data.comparisons if row.error is None and row.rivals]


def failed(data):
    return [row for row in data.comparisons if row.error is not None]


def losses(data):
    """Calls on which a rival was faster: first those that the routing table takes, the slowest first."""
    return sorted((row for row in compared(data) if row.speedup < 1), key=lambda row: (not row.taken, row.speedup))


def _speedups(rows):
    return {"calls": len(rows), "geomean_speedup": rounded(geomean(row.speedup for row in rows)),
            "slower": sum(row.speedup < 1 for row in rows), "least": rounded(min((row.speedup for row in rows), default=None))}


def _rivals(data, table):
    rows = compared(data)
    out = {"rows": len(data.comparisons), **_speedups(rows), "failed": len(failed(data)),
           "without_rival": sum(row.error is None and not row.rivals for row in data.comparisons),
           "rival_failures": sum(len(row.rivals_failed) for row in data.comparisons),
           "fastest_rival": {name: sum(row.rival == name for row in rows) for name in sorted({row.rival for row in rows})}}
    commits = sorted({row.commit for row in rows})
    if len(commits) > 1:  # rows of several states of the kernels: one mean would hide which is which
        out["by_commit"] = {commit: _speedups([row for row in rows if row.commit == commit]) for commit in commits}
    if table:
        out["taken"] = _speedups([row for row in rows if row.taken])
        out["kept"] = _speedups([row for row in rows if not row.taken])
        out["failed_taken"] = sum(bool(row.taken) for row in failed(data))
    return out


def _ceiling(rows):
    timed = [row for row in rows if row.error is None and row.copy_us]
    if not timed:
        return None
    out = {"calls": len(timed), "percent_of_copy": rounded(100 * geomean(row.copy_us / row.time_us for row in timed)),
           "time_over_copy": rounded(geomean(row.time_us / row.copy_us for row in timed))}
    if all(row.floor_us for row in timed):
        out["time_over_floor"] = rounded(geomean(row.time_us / row.floor_us for row in timed))
    return out


def choices(rows):
    """How calls would have run untuned, by how the configuration is chosen: those ways that the rows hold."""
    return [choice for choice in (FIRST, MODEL) if any(choice in row.untuned for row in rows)]


def slowdowns(rows, choice):
    """Sorted: times of what is chosen so, over the tuned winners', where both were timed."""
    return sorted(ratio for row in rows if (ratio := row.slowdown(choice)))


def _untuned(rows):
    out = {"calls": len(rows)}
    for choice in choices(rows):
        ratios = slowdowns(rows, choice)
        out[choice.replace(" ", "_")] = {
            "timed": len(ratios), "not_timed": sum(choice in row.untuned for row in rows) - len(ratios), "geomean_slowdown": rounded(geomean(ratios)),
            "within_5_percent": sum(ratio <= 1.05 for ratio in ratios), "worst": rounded(max(ratios, default=None))}
    return out


def first_uses(data):
    """Rows of calls that were new, one a call: a row beside rivals is among both kinds."""
    return list({row.signature: row for row in (*data.timings, *data.comparisons) if row.first_use_ms}.values())


def summary(data, table):
    """One JSON object. What was not measured is null."""
    prepare = [row.first_use_ms for row in first_uses(data)]
    return {
        "device": data.device, "drivers": data.drivers, "commits": data.commits, "rival_versions": data.rival_versions,
        "inputs": [{"file": name, "holds": what} for name, what in data.files], "repeated_rows": data.repeated,
        "routing_table": table.origin if table else None,
        "rivals": _rivals(data, table) if data.comparisons else None,
        "copy": {"bench": _ceiling(data.timings), "comparison": _ceiling(data.comparisons),
                 "bench_failed": sum(row.error is not None for row in data.timings) if data.timings else None},
        "classes": kinds.classes([row for row in data.timings if row.error is None]),
        "prepare_ms": {"calls": len(prepare), "median": rounded(statistics.median(prepare)), "p10": rounded(percentile(prepare, 0.1)),
                       "p90": rounded(percentile(prepare, 0.9))} if prepare else None,
        "first_calls": [{"source": one.source, "device_init_ms": rounded(one.init_ms), "first_call_ms": rounded(one.first_ms), "did": one.did}
                        for one in data.starts],
        "dispatch_ns": [{"source": one.source, **{name: rounded(ns) for name, ns in one.ways_ns.items()}} for one in data.starts],
        "untuned": _untuned(data.tuned) if data.tuned else None,
    }
