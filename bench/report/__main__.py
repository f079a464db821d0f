"""`sluice report`: result files in, one HTML page and its pictures out. docs/program.md describes it.

    sluice report FILE... --out report.html     the page alone
    sluice report FILE... --out FOLDER          FOLDER/report.html and every picture as PNG, light and dark

Exit codes: 0 done, 2 bad input (nothing is written), 5 no matplotlib or no place to write.
"""
import argparse
import json
import os
import sys
import warnings

import files

USAGE, ENVIRONMENT = 2, 5


def complain(message, code):
    """One line, as the program's other complaints; never returns."""
    progress("")
    print(f"sluice: {''.join(one if one.isprintable() else ' ' for one in message)}", file=sys.stderr)
    sys.exit(code)


def progress(message):
    if sys.stderr.isatty():
        print(f"\r\033[K{message}", end="", file=sys.stderr, flush=True)


def arguments():
    parser = argparse.ArgumentParser(prog="sluice report", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE", help="results of sluice bench, bench/compare_torch.py, sluice tune, sluice_overhead")
    parser.add_argument("--out", required=True, metavar="PATH", help="an .html file, or a folder for the page and its pictures")
    parser.add_argument("--routing-table", metavar="PATH", help="table, or folder of tables, to draw (default: the one shipped for the device)")
    parser.add_argument("--json", action="store_true", help="print the report's numbers as one JSON object")
    return parser.parse_args()


def need_matplotlib():
    """Debian's matplotlib belongs to Debian's Python: where another comes first on PATH and has none, go on there."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        system = "/usr/bin/python3"
        if os.path.realpath(sys.executable) != os.path.realpath(system) and os.access(system, os.X_OK):
            os.execv(system, [system, "-B", *sys.argv])
        complain(f"report needs matplotlib for {sys.executable} ({error}); install python3-matplotlib", ENVIRONMENT)


def is_page(out):
    return out.endswith((".html", ".htm"))


def need_place(out):
    """Said before anything is drawn. A folder is made; the folder of a page must be there."""
    folder = os.path.dirname(os.path.abspath(out)) if is_page(out) else out
    try:
        if not is_page(out):
            os.makedirs(folder, exist_ok=True)
        if not os.path.isdir(folder) or not os.access(folder, os.W_OK):
            raise OSError(0, f"{folder} is no folder that can be written to")
    except OSError as error:
        complain(f"{out}: cannot be written: {error.strerror}", ENVIRONMENT)


def save(out, page, drawn):
    """The pictures first and the page last, so that a page never stands beside pictures that are not its own for long."""
    if is_page(out):
        files.write(out, page)
        return out
    for chart, light, dark in drawn:
        files.write(os.path.join(out, f"{chart.name}.png"), light)
        files.write(os.path.join(out, f"{chart.name}-dark.png"), dark)
    files.write(os.path.join(out, "report.html"), page)
    return os.path.join(out, "report.html")


def draw(charts, style):
    drawn = []
    for i, chart in enumerate(charts, 1):
        progress(f"drawing {chart.name} ({i}/{len(charts)})")
        pictures = []
        for theme in style.THEMES:
            with style.context(theme):
                figure = chart.draw(theme)
                counts = {"marks": style.count(figure, style.MARK), "failures": style.count(figure, style.FAILURE)}
                pictures.append(style.png(figure))
        chart.counts = counts
        drawn.append((chart, *pictures))
    progress("")
    return drawn


def main():
    options = arguments()
    import call
    import rows
    try:
        data = rows.read(options.files)
        import routing
        table = routing.find(data.device, options.routing_table)
    except call.Bad as error:
        complain(str(error), USAGE)
    if not (data.comparisons or data.timings or data.tuned or data.starts):
        complain("no measured call in the files: nothing to report", USAGE)
    routing.apply(table, data)
    need_matplotlib()
    need_place(options.out)
    import charts
    import page
    import style
    import summary
    warnings.filterwarnings("ignore", category=UserWarning)  # a glyph that the font lacks is drawn as a box
    numbers = summary.summary(data, table)
    planned, missing = charts.planned(data, table)
    drawn = draw(planned, style)
    text = page.page(data, numbers, table, drawn, missing).encode("utf-8", "replace")
    try:
        written = save(options.out, text, drawn)
    except OSError as error:
        complain(f"{options.out}: cannot be written: {error.strerror}", ENVIRONMENT)
    if options.json:
        losing = [{"signature": row.signature, "speedup": summary.rounded(row.speedup), "rival": row.rival, "taken": row.taken}
                  for row in summary.losses(data)]
        failures = [{"signature": row.signature, "error": row.error}
                    for some in (summary.failed(data), data.timings, data.tuned) for row in some if row.error is not None]
        print(json.dumps({"out": written, **numbers, "charts": [{"name": chart.name, **chart.counts} for chart, _, _ in drawn],
                          "not_measured": missing, "losses": losing, "failures": failures}, indent=2))
    else:
        print(f"{'written':<14}{written}: {len(drawn)} pictures" + (f", {len(missing)} not measured" if missing else ""))


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        sys.exit(ENVIRONMENT)
    except Exception as error:  # a traceback says nothing to who drew a report
        complain(f"internal error: {type(error).__name__}: {error}", ENVIRONMENT)
