"""The report as one HTML file: no script, nothing from a network, every text from the data escaped."""
import base64
import html

from summary import failed, losses

MOST = 500  # rows of a table; what is beyond is counted, and is in --json

CSS = """
:root{color-scheme:light dark;--back:#fff;--text:#1c1f23;--faint:#5a626b;--line:#d5d9de;--mark:#b34700}
@media screen and (prefers-color-scheme:dark){:root{--back:#14171a;--text:#e8eaed;--faint:#a3abb4;--line:#363c43;--mark:#f0903c}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:64rem;padding:1.5rem 1rem 4rem;background:var(--back);color:var(--text);font:16px/1.5 system-ui,sans-serif}
h1{font-size:1.6rem;margin:0 0 .25rem}h2{font-size:1.2rem;margin:2.5rem 0 .5rem}
p,figcaption{max-width:50rem}.faint,figcaption{color:var(--faint)}figcaption{font-size:.9rem}
figure{margin:0}img{display:block;width:100%;height:auto}
table{border-collapse:collapse;font-size:.875rem;font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--faint);padding-bottom:.4rem}
th,td{text-align:left;vertical-align:top;padding:.25rem .75rem .25rem 0;border-bottom:1px solid var(--line)}
td.n,th.n{text-align:right;white-space:nowrap}td.code{font-family:ui-monospace,monospace;font-size:.8rem;overflow-wrap:anywhere}
.scroll{overflow-x:auto;max-height:32rem;overflow-y:auto}.scroll:focus{outline:2px solid var(--faint)}
.bad{color:var(--mark);font-weight:600}
@media print{body{max-width:none;padding:0;font-size:10pt}.scroll{max-height:none;overflow:visible}figure,tr{break-inside:avoid}
h2{break-after:avoid}thead{display:table-header-group}}
"""


def text(value):
    return html.escape(str(value), quote=True)


def cell(value):
    """A number to the right, anything else to the left; None is what nobody measured."""
    if value is None:
        return '<td class="n">-</td>'
    if isinstance(value, (int, float)):
        return f'<td class="n">{value:g}</td>' if isinstance(value, int) else f'<td class="n">{value:.4g}</td>'
    return f"<td>{text(value)}</td>"


def table(caption, heads, rows, code=()):
    """heads: (title, is a number). Columns in `code` are in fixed width and may break anywhere."""
    shown = rows[:MOST]
    more = "" if len(rows) <= MOST else f" The first {MOST} of {len(rows)} are shown; --json has all."
    out = [f'<div class="scroll" tabindex="0" role="region" aria-label="{text(caption)}"><table><caption>{text(caption)}{more}</caption><thead><tr>']
    out += [f'<th scope="col"{" class=n" if number else ""}>{text(title)}</th>' for title, number in heads]
    out.append("</tr></thead><tbody>")
    for row in shown:
        cells = [f'<td class="code">{text(value)}</td>' if i in code else cell(value) for i, value in enumerate(row)]
        out.append("<tr>" + "".join(cells) + "</tr>")
    return "".join(out) + "</tbody></table></div>"


def facts(pairs):
    rows = "".join(f'<tr><th scope="row">{text(name)}</th><td>{value}</td></tr>' for name, value in pairs if value)
    return f"<table><tbody>{rows}</tbody></table>"


def _times(value):
    return "" if value is None else f"{value:.2f} times as fast"


def _group(group):
    if not group["calls"]:
        return "none"
    worse = f'<span class="bad">{group["slower"]} slower</span>' if group["slower"] else "none slower"
    return f"{group['calls']} calls: {_times(group['geomean_speedup'])} (geometric mean), {worse}, least {group['least']:.2f}"


def head(numbers):
    """The table on top: what was measured on what, and the numbers that matter."""
    rivals, copy, untuned, prepare = numbers["rivals"], numbers["copy"], numbers["untuned"], numbers["prepare_ms"]
    pairs = [("device", text(numbers["device"])), ("driver", text(", ".join(numbers["drivers"]))), ("commit", text(", ".join(numbers["commits"]))),
             ("rivals", text("; ".join(numbers["rival_versions"]))),
             ("inputs", "<br>".join(text(f"{one['file']}: {one['holds']}") for one in numbers["inputs"])),
             ("repeated rows", numbers["repeated_rows"] and f"{numbers['repeated_rows']}; the last row of a call counts")]
    if rivals:
        pairs += [("against the fastest rival", _group(rivals)), ("failed", f'<span class="bad">{rivals["failed"]} calls</span>' if rivals["failed"] else "none"),
                  ("without a rival", rivals["without_rival"] and f"{rivals['without_rival']} calls, in no mean"),
                  ("rivals that could not run", rivals["rival_failures"] and f"{rivals['rival_failures']} times"),
                  ("fastest rival", text(", ".join(f"{name} {count}" for name, count in rivals["fastest_rival"].items())))]
        pairs += [(f"at {text(commit) or 'no commit'}", _group(group)) for commit, group in rivals.get("by_commit", {}).items()]
        if "taken" in rivals:
            pairs += [("routing table", text(numbers["routing_table"])), ("taken by it", _group(rivals["taken"])), ("kept by it", _group(rivals["kept"]))]
    for name, one in (("speed of a copy, sluice bench", copy["bench"]), ("speed of a copy, beside rivals", copy["comparison"])):
        pairs.append((name, one and f"{one['percent_of_copy']:.3g} % (geometric mean of {one['calls']} calls)"
                      + (f"; {one['time_over_floor']:.2f} times the floor" if "time_over_floor" in one else "")))
    pairs += [("failed in sluice bench", copy["bench_failed"] and f'<span class="bad">{copy["bench_failed"]} calls</span>'),
              ("first use", prepare and f"{prepare['median']:g} ms in the median, {prepare['p10']:g} to {prepare['p90']:g} (10th to 90th percentile)")]
    for way, one in (untuned or {}).items():
        if way != "calls" and one["geomean_slowdown"]:
            pairs.append((f"{way.replace('_', ' ')} / tuned", f"{one['geomean_slowdown']:.2f} (geometric mean of {one['timed']} calls), "
                          f"{one['within_5_percent']} within 5 %, {one['not_timed']} not timed"))
    return facts(pairs)


def tables(data, numbers, routing):
    out = []
    slower = losses(data)
    if numbers["rivals"]:
        out.append("<h2>Calls that a rival runs faster</h2>")
        route = {True: "taken", False: "kept", None: ""}
        rows = [[row.speedup, row.time_us, row.rivals[row.rival], row.rival, route[row.taken], row.signature, f"{row.schedule} {row.config}"]
                for row in slower]
        out.append(table("Those that the routing table takes come first: there the loss is real.",
                         [("speed-up", 1), ("us", 1), ("rival us", 1), ("rival", 0), ("route", 0), ("call", 0), ("schedule", 0)], rows, (5, 6))
                   if rows else "<p>None.</p>")
    bad = failed(data) + [row for row in data.timings if row.error is not None] + [row for row in data.tuned if row.error is not None]
    if bad:
        out.append("<h2>What failed</h2>" + table("Calls without a number, with the reason.", [("reason", 0), ("call", 0)],
                                                  [[row.error, row.signature] for row in bad], (1,)))
    if numbers["classes"]:
        out.append("<h2>How near the limit, by class</h2>" + table(
            "Time over a copy of the same bytes, or over the floor where arithmetic is the limit (sluice bench).",
            [("class", 0), ("calls", 1), ("geometric mean", 1), ("worst", 1)],
            [[row["class"], row["calls"], row["ratio"], row["worst"]] for row in numbers["classes"]]))
    if numbers["dispatch_ns"]:
        ways = sorted({name for one in numbers["dispatch_ns"] for name in one if name != "source"})
        out.append("<h2>The host's cost of a call</h2>" + table(
            "Nanoseconds a call, medians of interleaved batches (sluice_overhead). bare: the driver's launch alone; c_: through the C ABI.",
            [("run", 0)] + [(name, 1) for name in ways], [[one["source"]] + [one.get(name) for name in ways] for one in numbers["dispatch_ns"]]))
    if routing:
        out.append("<h2>The routing rules</h2>" + table("In order; the first that matches decides.", [("", 1), ("route", 0), ("rule", 0), ("conditions", 0)],
                   [[i + 1, "take" if rule.take else "keep", rule.name, ", ".join(map(_condition, rule.when.items()))]
                    for i, rule in enumerate(routing.rules)]))
    return "".join(out)


def _condition(item):
    name, condition = item
    if isinstance(condition, list):
        return f"{name} {'/'.join(map(str, condition))}"
    return f"{name} {condition.get('min', '')}..{condition.get('max', '')}"


def picture(chart, light, dark):
    encode = lambda data: "data:image/png;base64," + base64.b64encode(data).decode()  # noqa: E731
    return (f'<figure id="{text(chart.name)}"><h2>{text(chart.title)}</h2><picture>'
            f'<source media="screen and (prefers-color-scheme: dark)" srcset="{encode(dark)}">'
            f'<img src="{encode(light)}" alt="{text(chart.alt)}"></picture><figcaption>{text(chart.caption)}</figcaption></figure>')


def page(data, numbers, routing, drawn, missing):
    """drawn: [(chart, light PNG, dark PNG)]."""
    title = f"Sluice on {numbers['device']}"
    gaps = "<h2>Not measured</h2><ul>" + "".join(f"<li>{text(one)}</li>" for one in missing) + "</ul>" if missing else ""
    return ('<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">'
            f'<meta name="generator" content="sluice report"><title>{text(title)}</title><style>{CSS}</style></head><body><main>'
            f"<h1>{text(title)}</h1><p class=\"faint\">Depthwise and grouped convolutions: what was measured, against whom, and where it loses.</p>"
            + head(numbers) + "".join(picture(*one) for one in drawn) + tables(data, numbers, routing) + gaps + "</main></body></html>\n")
