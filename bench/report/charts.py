"""Which pictures follow from the data, with their captions; and what cannot be drawn because nobody measured it."""
import dataclasses

import draw_rivals
import draw_times
import style
import summary


@dataclasses.dataclass
class Chart:
    name: str      # of its file
    title: str
    caption: str   # what it shows, and by which protocol it was measured
    alt: str       # the same in words and numbers, for who does not see it
    draw: object   # theme -> figure


RIVALS = ("Every contender in one process by one protocol (bench/compare_torch.py): CUDA-graph replays that rotate over enough buffer sets to "
          "leave the L2 cache, contenders interleaved, the median of seven. The fastest rival of each call is cuDNN (every engine tried), "
          "PyTorch eager, or PyTorch's own depthwise kernel.")
COPY = "The ceiling is a device copy of the same bytes, timed in the same run: a kernel that only moved its data would reach 100 %."


def planned(data, table):
    """([Chart], [what is missing, in words])."""
    charts, missing = [], []
    if summary.compared(data) or summary.failed(data):
        charts += _rivals(data, table)
    else:
        missing.append("Speed-up over rivals, distance from a copy beside rivals, and who wins where: not measured (rows of `sluice bench` with cuDNN, or of bench/compare_torch.py).")
    timings = data.timings or [row for row in data.comparisons if row.copy_us or row.error is not None]
    if any(row.error is None and row.copy_us for row in timings):
        charts.append(_ceiling(timings, bool(data.timings)))
    else:
        missing.append("Percent of the copy ceiling: not measured (rows of sluice bench, or of bench/compare_torch.py).")
    charts += _costs(data, missing)
    if data.tuned:
        charts.append(_untuned(data.tuned))
    else:
        missing.append("Heuristic against the tuned winner: not measured (decision tables of sluice tune).")
    return charts, missing


def _rivals(data, table):
    rows, lost, slower = summary.compared(data), summary.failed(data), summary.losses(data)
    mean = summary.geomean(row.speedup for row in rows)
    said = f"{len(rows)} calls, geometric mean {mean:.2f} times as fast" if rows else "no call that can be compared"
    keep = "" if table is None else " Small hollow marks are calls that the routing table keeps: there the rival runs, whatever Sluice would do."
    charts = [Chart("speedup", "Speed-up over the fastest rival", f"{RIVALS}{keep} What failed stands at the left, below every number.",
                    f"Sorted speed-ups: {said}, {len(slower)} slower than a rival, {len(lost)} failed.",
                    lambda theme: draw_rivals.speedup(data, theme))]
    if draw_rivals.distance_rows(data):
        charts.append(Chart("distance", "Distance from memory speed",
                            f"Geometric means of time over a copy of the same bytes, by kind of call, with the number of calls. {RIVALS}",
                            f"Time over copy by kind of call, Sluice beside the fastest rival, {len(rows)} calls.",
                            lambda theme: draw_rivals.distance(data, theme)))
    rules = "" if table is None else (
        f" Frames are the ranges of output sizes within which some rule of {table.origin} takes such kernels in this type and layout; a rule "
        "asks more of a call (stride, batch, bias ...), so a dot says what is really taken: full all calls of the cell, half some, hollow none.")
    for dtype in (dtype for dtype in style.DTYPE_MARKERS if any(row.call.dtype == dtype and (row.error is not None or row.rivals)
                                                                 for row in data.comparisons)):
        some = [row for row in rows if row.call.dtype == dtype]
        won = sum(row.speedup >= 1 for row in some)
        charts.append(Chart(f"winners-{dtype}", f"Who wins where, {dtype}",
                            "A cell holds the calls of one kernel and layout whose outputs lie between two marks; its number is their geometric mean "
                            f"speed-up over the fastest rival. Orange and hatched: the rival is faster.{rules}",
                            f"Heat map of {len(some)} calls in {dtype} by kernel and output size: Sluice wins {won}, a rival {len(some) - won}.",
                            lambda theme, dtype=dtype: draw_rivals.winners(data, theme, dtype, table)))
    return charts


def _ceiling(timings, benched):
    good = [row for row in timings if row.error is None and row.copy_us]
    share = 100 * summary.geomean(row.copy_us / row.time_us for row in good)
    how = ("sluice bench: graph replays over rotating buffers, interleaved with the copy, the median" if benched else
           "bench/compare_torch.py: graph replays over rotating buffers, interleaved with the copy and the rivals, the median of seven")
    return Chart("copy", "Percent of the copy ceiling", f"{COPY} Large marks are geometric means. Measured by {how}.",
                 f"Percent of a copy's speed by kernel size, layout and dtype: {len(good)} calls, geometric mean {share:.0f} percent, "
                 f"{len(timings) - len(good)} failed.", lambda theme: draw_times.ceiling(timings, theme))


def _costs(data, missing):
    charts = []
    if data.starts:
        charts.append(Chart("cold-start", "Cold start",
                            "The first call of a process (sluice_overhead): the device's own start, which every program pays, and then the call from a "
                            "context with nothing in memory to its result. Under each name: what the process compiled, tuned, and found in the stores.",
                            "; ".join(f"{one.source}: device {draw_times.milliseconds(one.init_ms)}, first call "
                                      f"{draw_times.milliseconds(one.finished_ms)}, {one.did}" for one in data.starts),
                            lambda theme: draw_times.cold_start(data.starts, theme)))
    else:
        missing.append("Cold start: not measured (sluice_overhead).")
    paid = summary.first_uses(data)
    if paid:
        charts.append(Chart("tuning-cost", "Cost of a first use",
                            "Calls that were new, on the host's clock: decide, compile candidates, check each, time them, within the tuning budget of "
                            "that run.",
                            f"Cost of a first use by kind of call, {len(paid)} calls.", lambda theme: draw_times.tuning_cost(paid, theme)))
    else:
        missing.append("Cost of a first use: not measured (prepare_ms of a row that compiled kernels: scripts/measure, first_use).")
    return charts


def _untuned(tuned):
    said = [f"{way}: {len(ratios)} calls" + (f", geometric mean {summary.geomean(ratios):.2f}" if ratios else "")
            for way in summary.choices(tuned) for ratios in [summary.slowdowns(tuned, way)]]
    return Chart("untuned", "Heuristic against tuned",
                 "From decision tables (sluice tune): what runs where nothing is tuned, over the tuned winner, both timed in one interleaved run. 1 = tuning "
                 "found nothing faster. First in order: the schedules' own order. Heuristic: the candidate of which the table's model expects most, where a "
                 "model was there. Crosses: that candidate was not timed.",
                 "Time over the tuned winner's. " + "; ".join(said) + ".", lambda theme: draw_times.untuned(tuned, theme))
