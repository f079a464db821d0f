"""`sluice bench` on the host device: rows, resuming, refusals."""

import json
import unittest

from program import DEPTHWISE, GROUPED, ProgramTest, USAGE

ROW = ["problem", "dtype", "layout", "signature", "time_us", "spread_us", "copy_us", "floor_us", "schedule", "config",
       "error_over_bound", "registers", "smem"]


class Bench(ProgramTest):
    def setUp(self):
        super().setUp()
        self.suite = self.folder / "suite.json"
        self.out = self.folder / "out.json"
        self.part = self.folder / "out.json.part"
        self.write_suite([f"{DEPTHWISE} dt=f16 tag=nhwc", f"{GROUPED} dt=f32 tag=nchw"])

    def write_suite(self, suite):
        self.suite.write_text(json.dumps(suite))

    def bench(self, *extra, code=0):
        return self.sluice("bench", "--suite", str(self.suite), "--out", str(self.out), "--device", "host", "--iters", "2", "--check", "500",
                           *extra, code=code)

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
        self.assertIn("not a file of `sluice bench`", self.bench(code=USAGE).err)


if __name__ == "__main__":
    unittest.main()
