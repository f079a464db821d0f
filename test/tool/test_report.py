"""`sluice report`: from measured rows to a page whose numbers, marks and failures are those of the rows."""

import base64
import html.parser
import json
import math
import os
import pathlib
import subprocess
import sys
import unittest

from program import DEPTHWISE, ENVIRONMENT, GROUPED, ProgramTest, USAGE

TREE = pathlib.Path(__file__).parents[2]
SHIPPED = TREE / "bench" / "results" / "nvidia-h200"
HEADER = {"gpu": "NVIDIA H200", "capability": 90, "driver": "580", "torch": "2.11", "cudnn": 91900, "sluice": "0.1.0", "commit": "abc"}
PNG = b"\x89PNG\r\n\x1a\n"
EVIL = "<script>alert('$\\\\frac{1}$')</script>"


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def row(kernel, batch, time, rival, **more):
    signature = f"g64mb{batch}ic64ih28oc64oh28kh{kernel}ph{kernel // 2} dt=f16 tag=nhwc"
    return {"signature": signature, "time_us": time, "copy_us": 4.0, "prepare_ms": 100 * batch, "compiles": 9, "schedule": "dw_flat", "config": "vec=1",
            "rivals": {"cudnn": rival, "eager": rival * 2}, **more}


class Page(html.parser.HTMLParser):
    """What a reader gets: pictures with their alternative texts, the text, and whatever would load or run something."""

    def __init__(self, text):
        super().__init__()
        self.images, self.outside, self.text, self.depth = [], [], "", []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "img":
            self.images.append((attributes["alt"], attributes["src"]))
        for name in ("src", "srcset", "href"):
            if name in attributes and not attributes[name].startswith("data:image/png;base64,"):
                self.outside.append(attributes[name])
        if tag in ("script", "iframe", "link", "object"):
            self.outside.append(tag)
        if tag not in ("meta", "img", "source", "br"):
            self.depth.append(tag)

    def handle_endtag(self, tag):
        assert self.depth and self.depth.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data):
        self.text += data


class Report(ProgramTest):
    def setUp(self):
        super().setUp()
        self.out = self.folder / "report.html"

    def file(self, name, content):
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    def rows(self, *rows, header=HEADER, name="rows.jsonl"):
        return self.file(name, "".join(json.dumps(one) + "\n" for one in (header, *rows) if one))

    def report(self, *files, out=None, extra=(), **environment):
        return self.sluice("report", *map(str, files), "--out", str(out or self.out), "--json", *extra, **environment).record

    def page(self, path=None):
        text = (path or self.out).read_text(encoding="utf-8")
        page = Page(text)
        self.assertEqual((page.outside, page.depth), ([], []))
        self.assertEqual(len(page.images), text.count("<figure"))
        for alt, source in page.images:
            self.assertGreater(len(alt), 20)
            self.assertTrue(base64.b64decode(source.partition(",")[2]).startswith(PNG))
        return page

    def chart(self, numbers, name):
        return next(one for one in numbers["charts"] if one["name"] == name)


class Shipped(Report):
    def test_numbers_marks_and_losses_are_those_of_the_rows(self):
        folder = self.folder / "report"
        numbers = self.report(*sorted(SHIPPED.glob("*.json*")), out=folder)
        lines = [json.loads(line) for path in sorted(SHIPPED.glob("compare*.jsonl")) for line in path.read_text().splitlines()]
        for name in ("grid.json", "networks.json", "networks_earlier.json"):
            lines += json.loads((SHIPPED / name).read_text())["rows"]
        rows = {one["signature"]: min(one["rivals"].values()) / one["time_us"] for one in lines if "gpu" not in one}  # the last file's, of one call in several
        rivals = numbers["rivals"]
        self.assertEqual((rivals["rows"], rivals["calls"], rivals["failed"]), (len(rows), len(rows), 0))
        self.assertAlmostEqual(rivals["geomean_speedup"], geomean(rows.values()), delta=1e-3)
        slower = {signature for signature, speedup in rows.items() if speedup < 1}
        self.assertEqual(rivals["slower"], len(slower))
        self.assertEqual({one["signature"] for one in numbers["losses"]}, slower)
        self.assertEqual(sum(one["calls"] for one in rivals["by_commit"].values()), len(rows))
        self.assertEqual(self.chart(numbers, "speedup"), {"name": "speedup", "marks": len(rows), "failures": 0})

        bench = {one["signature"]: one for name in ("first_use.json", "grid.json", "kernels.json", "kernels_earlier.json", "kernels_more.json", "networks.json", "networks_earlier.json", "networks_more.json")
                 for one in json.loads((SHIPPED / name).read_text())["rows"]}.values()
        self.assertEqual(self.chart(numbers, "copy"), {"name": "copy", "marks": len(bench), "failures": 0})
        self.assertAlmostEqual(numbers["copy"]["bench"]["percent_of_copy"], 100 * geomean([one["copy_us"] / one["time_us"] for one in bench]), delta=0.05)
        self.assertEqual(self.chart(numbers, "cold-start")["marks"], 2)

        page = self.page(folder / "report.html")
        for signature in slower:
            self.assertIn(signature, page.text)
        self.assertIn(f"{len(rows)} calls: {geomean(rows.values()):.2f} times as fast", page.text)
        tuned = json.loads((SHIPPED / "decisions.json").read_text())["decisions"]
        predicted = [one for one in tuned if any("predicted" in candidate for candidate in one["candidates"])]
        self.assertEqual(self.chart(numbers, "untuned"), {"name": "untuned", "marks": len(tuned) + len(predicted), "failures": 0})
        self.assertEqual({path.name for path in folder.iterdir()},
                         {"report.html"} | {one["name"] + end for one in numbers["charts"] for end in (".png", "-dark.png")})
        for path in folder.glob("*.png"):
            self.assertTrue(path.read_bytes().startswith(PNG))

    def test_an_installed_tree_can_be_moved(self):
        """The scripts and the shipped tables go with the program."""
        subprocess.run([os.environ["CMAKE"], "--install", os.environ["SLUICE_BUILD"], "--component", "program", "--prefix", str(self.folder / "first")],
                       check=True, capture_output=True)
        (self.folder / "first").rename(self.folder / "moved")
        process = subprocess.run([str(self.folder / "moved" / "bin" / "sluice"), "report", self.rows(row(3, 1, 10, 20)), "--out", str(self.out), "--json"],
                                 check=True, capture_output=True, text=True, cwd=self.folder, env=self.environment())
        self.assertEqual(json.loads(process.stdout)["routing_table"], "nvidia-h200.json")
        self.page()


class Measured(Report):
    def test_from_bench_on_the_host_device(self):
        suite, results = self.file("suite.json", [f"{DEPTHWISE} dt=f16 tag=nhwc", f"{GROUPED} dt=f32 tag=nchw"]), self.folder / "results.json"
        self.sluice("bench", "--suite", suite, "--out", str(results), "--device", "host", "--iters", "2", "--check", "500", "--commit", "abc")
        numbers = self.report(results)
        rows = json.loads(results.read_text())["rows"]
        self.assertEqual((numbers["device"], numbers["commits"], numbers["routing_table"]), ("host", ["abc"], None))
        self.assertAlmostEqual(numbers["copy"]["bench"]["time_over_copy"] / geomean([one["time_us"] / one["copy_us"] for one in rows]), 1, delta=1e-3)
        self.assertEqual(numbers["charts"], [{"name": name, "marks": 2, "failures": 0} for name in ("copy", "tuning-cost")])
        self.assertEqual(numbers["prepare_ms"]["calls"], 2)
        self.assertIsNone(numbers["rivals"])
        self.assertEqual(len(numbers["not_measured"]), 3)
        self.assertIn("Not measured", self.page().text)

    def test_rows_of_bench_beside_cudnn_are_comparisons_too(self):
        suite, results = self.file("suite.json", [f"{DEPTHWISE} dt=f16 tag=nhwc", f"{GROUPED} dt=f32 tag=nchw"]), self.folder / "results.json"
        self.sluice("bench", "--suite", suite, "--out", str(results), "--device", "host", "--iters", "2", "--check", "500", "--commit", "abc",
                    "--cudnn-library", os.environ["FAKE_CUDNN_PATH"], FAKE_CUDNN="engines=ok:a")
        numbers = self.report(results)
        rows = json.loads(results.read_text())["rows"]
        self.assertEqual((numbers["rivals"]["calls"], numbers["rival_versions"]), (2, ["cuDNN 9.19"]))
        self.assertAlmostEqual(numbers["rivals"]["geomean_speedup"] / geomean([one["rivals"]["cudnn"] / one["time_us"] for one in rows]), 1, delta=1e-3)
        self.assertEqual(self.chart(numbers, "speedup")["marks"], 2)

    def test_from_tune_on_the_host_device(self):
        suite, table = self.file("suite.json", [f"{DEPTHWISE} dt=f16 tag=nhwc", f"{GROUPED} dt=f32 tag=nchw"]), self.folder / "table.json"
        self.sluice("tune", "--suite", suite, "--out", str(table), "--device", "host", "--tune-ms", "30000")
        document, ratios = json.loads(table.read_text()), []
        for one in document["decisions"]:
            us = {(c["schedule"], c["config"]): c["median_us"] for c in one["candidates"]}
            first = one["candidates"][0]
            if first["outcome"] in ("timed", "slow"):
                ratios.append(first["median_us"] / us[one["schedule"], one["config"]])
        numbers = self.report(table)["untuned"]["first_in_order"]
        self.assertEqual((numbers["timed"], numbers["not_timed"]), (len(ratios), 2 - len(ratios)))
        self.assertAlmostEqual(numbers["geomean_slowdown"] / geomean(ratios), 1, delta=1e-3)
        # Where a model said what it expects, its pick is a second curve; a pick without a time is a cross.
        for one, candidates in ((one, one["candidates"]) for one in document["decisions"]):
            for i, candidate in enumerate(candidates):
                candidate["predicted"] = 1.0 + i
        one = document["decisions"][0]
        winner = next(c for c in one["candidates"][1:] if c["outcome"] in ("timed", "slow"))  # whichever it was: not the one that fails
        one["schedule"], one["config"] = winner["schedule"], winner["config"]
        one["candidates"][0]["outcome"] = "compile: no"
        numbers = self.report(self.file("more.json", document))
        self.assertEqual(numbers["untuned"]["heuristic"]["not_timed"], numbers["untuned"]["first_in_order"]["not_timed"])
        self.assertGreaterEqual(numbers["untuned"]["heuristic"]["not_timed"], 1)
        chart = self.chart(numbers, "untuned")
        self.assertEqual(chart["marks"] + chart["failures"], 4)


class Failures(Report):
    def test_failures_are_drawn_and_named_and_in_no_mean(self):
        early = {"n": 2, "c": 8, "h": 9, "w": 9, "k": 8, "groups": 8, "kh": 3, "kw": 3, "stride": [1, 1], "pad": [1, 1], "dil": [1, 1],
                 "dtype": "f32", "layout": "nchw", "bias": 0, "error": "out of memory"}
        numbers = self.report(self.rows(row(3, 1, 10, 20), row(3, 2, 10, 5), row(5, 1, 10, 90, error="relative L2 error 0.5"), early,
                                        row(7, 1, 10, 20, rivals={}), row(9, 1, 10, 40, failed={"native": "no such kernel"})))
        rivals = numbers["rivals"]
        self.assertEqual((rivals["rows"], rivals["calls"], rivals["failed"], rivals["without_rival"], rivals["rival_failures"]), (6, 3, 2, 1, 1))
        self.assertAlmostEqual(rivals["geomean_speedup"], geomean([2, 0.5, 4]), delta=1e-3)
        self.assertEqual(self.chart(numbers, "speedup"), {"name": "speedup", "marks": 3, "failures": 2})
        self.assertEqual(self.chart(numbers, "copy")["failures"], 2)
        self.assertEqual([one["error"] for one in numbers["failures"]], ["relative L2 error 0.5", "out of memory"])
        page = self.page()
        for text in ("relative L2 error 0.5", "out of memory", "g8mb2ic8", "2 calls", "2 failed"):
            self.assertIn(text, page.text + " ".join(alt for alt, _ in page.images))

    def test_a_call_measured_twice_counts_once(self):
        rows = self.rows(row(3, 1, 10, 20), row(3, 1, 10, 30))
        numbers = self.report(rows)
        first = self.out.read_bytes()
        self.assertEqual(numbers, self.report(rows))
        self.assertEqual(self.out.read_bytes(), first, "the same rows give the same page")
        self.assertEqual((numbers["repeated_rows"], numbers["rivals"]["calls"], numbers["rivals"]["geomean_speedup"]), (1, 1, 3))

    def test_a_first_use_is_of_a_row_that_compiled(self):
        new, warm = row(3, 1, 10, 20), row(3, 1, 11, 20, prepare_ms=5, compiles=0)
        other = row(5, 1, 10, 20, prepare_ms=7)
        del other["compiles"]  # of before rows said so
        for rows in ((new, warm, other), (warm, new, other)):
            numbers = self.report(self.rows(*rows))
            self.assertEqual((numbers["prepare_ms"]["calls"], numbers["prepare_ms"]["median"]), (1, 100))
        self.assertIsNone(self.report(self.rows(warm, other))["prepare_ms"])

    def test_texts_of_rows_are_only_texts(self):
        bad = row(3, 2, 10, 20, schedule=EVIL, config="\x1b[31m\u202e", error=f"{EVIL}\n{EVIL}")
        numbers = self.report(self.rows(row(3, 1, 20, 10, schedule=EVIL), bad, header=dict(HEADER, gpu=f"H\"200 {EVIL}", commit=EVIL)))
        text = self.out.read_text()
        self.assertNotIn("<script", text)
        self.assertNotIn("\x1b", text)
        self.assertNotIn("\u202e", text)
        self.assertIn(EVIL, self.page().text)
        self.assertEqual(numbers["rivals"]["failed"], 1)


class Refused(Report):
    def test_bad_input_is_one_message_and_leaves_the_output(self):
        self.out.write_text("before")
        good, bench = row(3, 1, 10, 20), json.loads((SHIPPED / "kernels.json").read_text())
        header = {key: value for key, value in bench.items() if key != "rows"}
        other = self.rows(good, header=dict(HEADER, gpu="NVIDIA A100"), name="other.jsonl")
        for number, (content, message) in enumerate((
                ("", "the file is empty"), ("\n \n", "the file is empty"), ("[1, 2", "not JSON"), ("[1]", "a JSON object"), ("{}", "not a results file"),
                (json.dumps(bench)[:2000], "not JSON"), (dict(header, rows=[]), "nothing to report"), (dict(header, rows={}), "must be a list"),
                (dict(header, rows=[dict(bench["rows"][0], time_us=-1)]), "time_us = -1"),
                (dict(header, rows=[dict(bench["rows"][0], time_us="3")]), "time_us = '3'"),
                (dict(header, rows=[dict(bench["rows"][0], copy_us=1e-300)]), "copy_us = 1e-300"),
                (dict(header, rows=[dict(bench["rows"][0], signature="g8ic9oc8")]), "row 1"),
                (json.dumps(HEADER), "no row"), (json.dumps(HEADER) + "\n" + json.dumps(good)[:50], ":2: not JSON"),
                (json.dumps(good), "not a results file"), (json.dumps(good) + "\n" + json.dumps(good), "must name the GPU"),
                (json.dumps(HEADER) + "\n" + json.dumps(dict(good, rivals={"cudnn": 0})), "cudnn = 0"),
                (json.dumps(HEADER) + "\n" + json.dumps(good).replace("20", "NaN"), "NaN"), ("[" * 100000, "not JSON"),
                ({"ways": {}, "device": "NVIDIA H200"}, "first_call"), ({"rules": []}, "--routing-table"),
                ({"schema": 1, "device": {"name": "NVIDIA H200"}, "decisions": [{"problem": DEPTHWISE, "schedule": "a", "candidates": [{"schedule": "b"}]}]},
                 "not among its candidates"))):
            path = self.file(f"bad{number}.json", content)
            outcome = self.sluice("report", path, "--out", str(self.out), code=USAGE)
            self.assert_one_complaint(outcome, path if "nothing" not in message else "", message)
        self.assert_one_complaint(self.sluice("report", self.rows(good), other, "--out", str(self.out), code=USAGE), "A100", "H200", "other.jsonl")
        (self.folder / "binary").write_bytes(bytes(range(256)))
        self.assert_one_complaint(self.sluice("report", str(self.folder / "binary"), "--out", str(self.out), code=USAGE), "UTF-8")
        self.assertEqual(self.out.read_text(), "before")
        self.assertEqual(list(self.folder.glob("*.next")), [])

    def test_routing_tables_that_do_not_fit(self):
        rows = self.rows(row(3, 1, 10, 20))
        self.sluice("report", rows, "--out", str(self.out), "--routing-table", self.routing_table({"name": "NVIDIA A100", "capability": 80}), code=USAGE)
        broken = self.routing_table(rules=[{"name": "x", "route": "take", "when": {"colour": [1]}}])
        self.assert_one_complaint(self.sluice("report", rows, "--out", str(self.out), "--routing-table", broken, code=USAGE), "colour")
        self.assertFalse(self.out.exists())
        keeps = self.report(rows, SLUICE_ROUTING_TABLE=self.routing_table())
        self.assertEqual((keeps["rivals"]["taken"]["calls"], keeps["rivals"]["kept"]["calls"]), (0, 1))

    def test_what_the_machine_lacks_is_said(self):
        rows = self.rows(row(3, 1, 10, 20))
        (self.folder / "lacks").mkdir()
        (self.folder / "lacks" / "matplotlib.py").write_text("raise ImportError('none here')")
        outcome = self.sluice("report", rows, "--out", str(self.out), code=ENVIRONMENT, PYTHONPATH=str(self.folder / "lacks"))
        self.assert_one_complaint(outcome, "python3-matplotlib")
        self.assert_one_complaint(self.sluice("report", rows, "--out", str(self.out), code=ENVIRONMENT, PATH="/nowhere"), "python3")
        outcome = self.sluice("report", rows, "--out", str(self.folder / "no" / "such" / "x.html"), code=ENVIRONMENT)
        self.assert_one_complaint(outcome, "cannot be written")
        self.assertFalse(self.out.exists())
        self.assertIn("--out", self.sluice("report", rows, code=USAGE).err)


class Modules(ProgramTest):
    """The scripts' own modules, called here."""

    def setUp(self):
        super().setUp()
        sys.path.insert(0, str(TREE / "bench" / "report"))
        import routing
        import rows
        self.data = rows.read(sorted(map(str, SHIPPED.glob("*.json*"))))
        self.table = routing.find(self.data.device)
        routing.apply(self.table, self.data)

    def test_calls_are_routed_as_the_library_routes_them(self):
        asked = self.data.comparisons[::75] + [one for one in self.data.comparisons if not one.taken][::20]
        self.assertEqual({one.taken for one in asked}, {True, False})
        for one in asked:
            record = self.sluice("explain", *one.signature.split(), "--device", "h200", "--json").record
            self.assertEqual(record["route"], "take" if one.taken else "keep", one.signature)
            if one.taken:
                self.assertEqual(record["rule"], self.table.rules[self.table.rule_of(one.call.features)].name)

    def texts(self, figure):
        import matplotlib.text
        figure.canvas.draw()
        beyond = set()  # labels of ticks outside of the axes, which exist and are never drawn
        for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
            low, high = sorted(axis.get_view_interval())
            beyond |= {label for tick in axis.get_major_ticks() if not low <= tick.get_loc() <= high for label in (tick.label1, tick.label2)}
        for text in figure.findobj(matplotlib.text.Text):
            if text.get_visible() and text.get_text().strip() and text not in beyond:
                yield text.get_text(), text.get_window_extent()

    def test_no_label_covers_another(self):
        """No text touches another, and none leaves its picture."""
        import charts
        import style
        from values import FIRST, MODEL, Start, Tuned
        data = self.data
        for number, one in enumerate(data.comparisons):  # with failures, and small and huge calls
            one.error = "failed" if number % 7 == 0 else None
        for number, one in enumerate(data.timings):
            one.error = "failed" if number % 7 == 0 else None
            one.first_use_ms = 300.0 + 13 * number
        data.tuned = [Tuned(one.call, one.signature, one.time_us, {FIRST: (one.time_us * 3 if number % 5 else None, "no"),
                                                                        MODEL: (one.time_us * 1.2 if number % 9 else None, "no")})
                      for number, one in enumerate(data.comparisons)]
        data.starts = [Start(f"run{i}-{'x' * 20}.json", 200.0 + i, 3.0 * 100 ** i, 3.1 * 100 ** i, "30 compiled, 1 tuned, 0 from the store", {})
                       for i in range(3)]
        planned, missing = charts.planned(data, self.table)
        self.assertEqual((len(planned), missing), (9, []))
        for chart in planned:
            with style.context(style.LIGHT), self.subTest(chart.name):
                figure = chart.draw(style.LIGHT)
                found, width, height = list(self.texts(figure)), *figure.canvas.get_width_height()
                self.assertGreater(len(found), 5)
                for i, (text, box) in enumerate(found):
                    self.assertTrue(box.x0 > -1 and box.y0 > -1 and box.x1 < width + 1 and box.y1 < height + 1, f"{text!r} leaves the picture: {box}")
                    for other, at in found[:i]:
                        across, along = min(box.x1, at.x1) - max(box.x0, at.x0), min(box.y1, at.y1) - max(box.y0, at.y0)
                        self.assertFalse(across > -3 and along > 1, f"{text!r} covers or touches {other!r}")
                style.png(figure)


if __name__ == "__main__":
    unittest.main()
