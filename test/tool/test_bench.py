"""`sluice bench` on the host device: rows, resuming, refusals."""

import json
import os
import pathlib
import tempfile
import unittest

from program import DEPTHWISE, ENVIRONMENT, GROUPED, ProgramTest, USAGE

ROW = ["problem", "dtype", "layout", "signature", "time_us", "spread_us", "interval_us", "copy_us", "floor_us", "schedule", "config",
       "error_over_bound", "registers", "smem", "schedules", "prepare_ms", "compiles"]
FAKE_CUDNN = os.environ["FAKE_CUDNN_PATH"]


class Bench(ProgramTest):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="sluice-test-")
        cls.addClassCleanup(folder.cleanup)
        cls.shared_cache = pathlib.Path(folder.name)

    def setUp(self):
        super().setUp()
        self.cache = self.shared_cache  # the same few calls in every test: compiled and tuned once
        self.suite = self.folder / "suite.json"
        self.out = self.folder / "out.json"
        self.part = self.folder / "out.json.part"
        self.write_suite([f"{DEPTHWISE} dt=f16 tag=nhwc", f"{GROUPED} dt=f32 tag=nchw"])

    def write_suite(self, suite):
        self.suite.write_text(json.dumps(suite))

    def bench(self, *extra, code=0, iters=2, **environment):
        return self.sluice("bench", "--suite", str(self.suite), "--out", str(self.out), "--device", "host", "--iters", str(iters),
                           "--check", "500", *extra, code=code, **environment)

    def bench_cudnn(self, script, *extra, **more):
        return self.bench("--cudnn-library", FAKE_CUDNN, "--json", *extra, FAKE_CUDNN=script, **more)

    def results(self):
        return json.loads(self.out.read_text())

    def test_every_call_has_a_row(self):
        tally = self.bench("--json", "--commit", "abc").record
        self.assertEqual((tally["timed"], tally["failed"], tally["already_there"], tally["left"]), (2, 0, 0, 0))
        found = self.results()
        self.assertEqual(found["commit"], "abc")
        self.assertGreater(found["fma_per_s"], 0)
        self.assertGreater(found["mma_macs_per_s"], 0)
        self.assertEqual({row["problem"] for row in found["rows"]}, {DEPTHWISE, GROUPED})
        for row in found["rows"]:
            self.assertEqual(list(row), ROW)
            self.assertGreater(row["time_us"], 0)
            self.assertGreaterEqual(row["floor_us"], row["copy_us"])
            self.assertLess(row["error_over_bound"], 1)
        self.assertFalse(self.part.exists())

    def test_what_is_there_is_not_measured_again(self):
        self.bench()
        before = self.results()
        self.write_suite([f"{DEPTHWISE} dt=f16 tag=nhwc", f"{DEPTHWISE} dt=f32 tag=nhwc"])
        tally = self.bench("--json").record
        self.assertEqual((tally["timed"], tally["already_there"]), (1, 1))
        after = self.results()
        self.assertEqual(len(after["rows"]), 3)
        for row in before["rows"]:
            self.assertIn(row, after["rows"])

    def test_a_kill_loses_at_most_the_row_in_flight(self):
        self.bench()
        found = self.results()
        rows = [json.dumps(row) for row in found.pop("rows")]
        self.out.unlink()
        self.part.write_text("\n".join([json.dumps(found), rows[0], rows[1][:40]]))
        tally = self.bench("--json").record
        self.assertEqual((tally["timed"], tally["already_there"]), (1, 1))
        self.assertEqual(len(self.results()["rows"]), 2)

    def test_a_budget_stops_and_the_same_command_goes_on(self):
        tally = self.bench("--json", "--budget", "1e-9").record
        self.assertEqual((tally["timed"], tally["left"]), (0, 2))
        self.assertEqual(self.bench("--json").record["timed"], 2)

    def test_combinations_and_samples(self):
        entry = {"c": 8, "h": 7, "w": 9, "k": 8, "groups": 8, "kh": 3, "kw": 3, "stride": [1, 1], "pad": [1, 1], "dil": [1, 1],
                 "N": [2], "dt": ["fp16"]}
        self.write_suite([entry])
        self.assertEqual(self.bench("--json").record["timed"], 2, "two layouts")
        tally = self.bench("--json", "--batch", "1,2", "--dt", "f16,bf16", "--tag", "nhwc").record
        self.assertEqual((tally["timed"], tally["already_there"]), (3, 1), "what is asked for wins over the entry")
        self.out.unlink()
        self.assertEqual(self.bench("--json", "--batch", "1,2", "--sample", "3").record["timed"], 3)
        self.assertEqual(self.bench("--json", "--batch", "1,2", "--sample", "4").record["already_there"], 3, "a larger sample only adds")

    def test_a_suite_of_lines(self):
        self.suite.write_text(f"# benchdnn\n--mode=P\n  {DEPTHWISE} dt=f16 tag=nhwc  # the first\n\n{GROUPED}\n")
        self.assertEqual(self.bench("--json").record["timed"], 3, "a layout that is left open is both")
        tally = self.bench("--json", "--tag", "nhwc").record
        self.assertEqual((tally["timed"], tally["already_there"]), (0, 2), "what is asked for wins over the line")
        self.suite.write_text(f"{DEPTHWISE}\nnonsense\n")
        self.assertIn("line 2", self.bench(code=USAGE).err)

    def test_bad_input_names_what_is_wrong(self):
        self.assertIn("f8: use f32, f16 or bf16", self.bench("--dt", "f8", code=USAGE).err)
        self.assertIn("--out", self.sluice("bench", "--suite", str(self.suite), code=USAGE).err)
        self.write_suite([DEPTHWISE, "g8mb1ic9ih10oc8kh3"])
        self.assertIn("entry 1", self.bench(code=USAGE).err)
        self.assertFalse(self.out.exists() or self.part.exists())

    def test_results_of_another_machine_are_not_mixed(self):
        self.bench()
        found = self.results()
        for key in ("gpu", "driver"):
            self.out.write_text(json.dumps(dict(found, **{key: "another"})))
            before = self.out.read_text()
            self.assertIn(f'{key} = "another"', self.bench(code=USAGE).err)
            self.assertEqual(self.out.read_text(), before)
        self.out.write_text("[1, 2")
        message = self.bench(code=USAGE).err
        self.assertIn("not JSON", message)
        self.assertIn("name another --out", message)
        self.assertEqual(self.out.read_text(), "[1, 2")

    def test_without_cudnn_it_says_so(self):
        tally = self.bench("--json").record
        self.assertEqual((tally["cudnn"], tally["compared"]), (None, 0))
        self.assertIn("GPUs only", tally["cudnn_problem"])
        for row in self.results()["rows"]:
            self.assertNotIn("rivals", row)

    def test_cudnn_is_a_rival_in_every_row(self):
        self.write_suite([f"{DEPTHWISE} dt=f16 tag=nhwc", f"{GROUPED} dt=f32 tag=nchw bias=same act=relu"])
        tally = self.bench_cudnn("engines=slow:a,wrong:b").record
        self.assertEqual((tally["cudnn"], tally["compared"], tally["cudnn_problem"]), ("9.19.0", 2, None))
        self.assertIn(os.path.realpath(FAKE_CUDNN), [os.path.realpath(path) for path in tally["cudnn_libraries"]])
        self.assertEqual(sum(tally["verdicts"].values()), 2)
        found = self.results()
        self.assertEqual((found["cudnn"], found["protocol"], found["capability"]), (91900, "cold", 90))
        for row in found["rows"]:
            fused = "bias" in row["signature"]
            self.assertEqual(list(row["rivals"]), ["cudnn", "cudnn_conv"] if fused else ["cudnn"])
            self.assertIn(row["verdict"], ("faster", "same", "slower", "ambiguous"))
            for name, detail in row["rival_details"].items():
                self.assertEqual(row["rivals"][name], detail["time_us"])
                self.assertGreater(detail["time_us"], 2500, "it sleeps three milliseconds")
                self.assertEqual((detail["engine"], detail["mode"], detail["workspace"], detail["tried"]), ("eng0{k2=0}", "a", 0, 2))
                self.assertEqual([one["engine"] for one in detail["dropped"]], ["eng1{k2=10}"])
                self.assertTrue(detail["dropped"][0]["outcome"].startswith("wrong"), detail)

    def test_rows_without_cudnn_are_measured_again_with_it(self):
        self.bench()
        self.assertEqual(self.bench_cudnn("engines=ok:a").record["timed"], 2)
        self.assertEqual(self.bench_cudnn("engines=ok:a").record["already_there"], 2)
        self.assertIn("cudnn = 91900", self.bench(code=USAGE).err)
        self.assertIn("cudnn = 91900", self.bench_cudnn("version=91901;engines=ok:a", code=USAGE).err)

    def test_where_no_engine_is_right_there_is_no_rival(self):
        self.assertEqual(self.bench_cudnn("engines=wrong:a,noexec:b,huge:f").record["compared"], 0)
        for row in self.results()["rows"]:
            self.assertEqual(row["rivals"], {})
            self.assertIn("no engine ran right", row["rival_details"]["cudnn"]["error"])
            self.assertEqual(len(row["rival_details"]["cudnn"]["dropped"]), 3)
        self.assertEqual(self.bench_cudnn("engines=wrong:a").record["already_there"], 2, "they were tried")

    def test_every_engine_for_a_sample(self):
        tally = self.bench_cudnn("engines=slow:a,ok:", "--cudnn-sample", "1").record
        self.assertEqual(tally["every_engine"]["calls"], 1)
        self.assertGreater(tally["every_engine"]["heuristic_over_best"], 2)
        engines = sorted(row["rival_details"]["cudnn"]["engines"] for row in self.results()["rows"])
        self.assertEqual(engines, ["all", "heuristic"])
        self.out.unlink()
        self.assertEqual(self.bench_cudnn("engines=slow:a,ok:", "--cudnn-engines", "all").record["every_engine"]["calls"], 2)

    def test_a_cudnn_that_was_named_must_be_there(self):
        for library, script, message in (("/nowhere/libcudnn.so.9", "", "/nowhere/libcudnn.so.9"),
                                         (FAKE_CUDNN, "version=8905", "cuDNN 8.9.5"), (FAKE_CUDNN, "create=1001", "CUDNN_STATUS_1001")):
            outcome = self.bench("--cudnn-library", library, code=3 if "create" in script else ENVIRONMENT, FAKE_CUDNN=script)
            self.assertIn(message, outcome.err)
            self.assertFalse(self.out.exists() or self.part.exists())

    def test_a_call_that_took_the_device_away_goes_without_cudnn(self):
        self.bench_cudnn("engines=ok:a")
        found = self.results()
        rows = found.pop("rows")
        lost = {key: rows[0][key] for key in ("problem", "dtype", "layout", "signature", "rivals", "rival_details")}
        self.out.unlink()
        self.part.write_text("".join(json.dumps(one) + "\n" for one in (found, {**lost, "error": "timing the call", "device_lost": True}, rows[1])))
        self.assertEqual(self.bench_cudnn("engines=ok:a").record["timed"], 1)
        again = {row["signature"]: row for row in self.results()["rows"]}[lost["signature"]]
        self.assertIn("time_us", again)
        self.assertEqual(again["rivals"], {})
        self.assertIn("not tried", again["rival_details"]["cudnn"]["error"])
        self.assertEqual(self.bench_cudnn("engines=ok:a").record["already_there"], 2)

    def test_the_number_of_engines_can_be_bounded(self):
        self.write_suite([f"{DEPTHWISE} dt=f16 tag=nhwc"])
        self.bench_cudnn("engines=ok:a,ok:b,ok:f", "--cudnn-limit", "2")
        detail = self.results()["rows"][0]["rival_details"]["cudnn"]
        self.assertEqual([(one["engine"], one["outcome"][:10]) for one in detail["dropped"]], [("eng2{k2=20}", "not tried:")])

    def test_other_schedules_beside_the_winner(self):
        self.write_suite([f"{DEPTHWISE} dt=f16 tag=nhwc"])
        self.bench()
        base = self.results()["rows"][0]
        self.assertLessEqual(set(base["schedules"]), {"dw_flat"})
        self.assertTrue(base["schedules"] or base["schedule"] == "dw_flat")
        self.out.unlink()
        self.bench("--every-schedule")
        every = self.results()["rows"][0]
        self.assertGreater(len(every["schedules"]), 1)
        self.assertNotIn(every["schedule"], every["schedules"])
        # All that can run, also where tuning found another batch's configuration to be a schedule's fastest.
        call = self.sluice("explain", DEPTHWISE, "--dt", "f16", "--tag", "nhwc", "--device", "host", "--json").record
        self.assertEqual({*every["schedules"], every["schedule"]}, {one["schedule"] for one in call["candidates"]})

    def test_warm_rows_are_a_file_of_their_own(self):
        self.bench("--warm")
        self.assertEqual(self.results()["protocol"], "warm")
        self.assertIn('protocol = "warm"', self.bench(code=USAGE).err)

    def test_its_rows_make_a_routing_table(self):
        self.bench_cudnn("engines=slow:a")
        table = self.folder / "routing.json"
        report = self.sluice("derive", str(self.out), "--out", str(table), "--min-cases", "1", "--json").record
        self.assertGreater(report["rules"], 0)
        rule = json.loads(table.read_text())["rules"][0]
        self.assertEqual(rule["evidence"]["baseline"], "fastest engine of cuDNN 9.19")
        self.out.unlink()
        self.bench_cudnn("engines=slow:a", "--warm")
        self.assertIn("measured cold", self.sluice("derive", str(self.out), "--out", str(table), code=USAGE).err)


if __name__ == "__main__":
    unittest.main()
