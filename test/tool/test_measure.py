"""`scripts/measure`: its stages on the host device, with suites of a few tiny calls."""

import json
import os
import pathlib
import subprocess
import unittest

from program import ENVIRONMENT, PROGRAM, ProgramTest, USAGE

SCRIPT = pathlib.Path(__file__).parents[2] / "scripts" / "measure"
CALL = {"c": 8, "h": 7, "w": 7, "k": 8, "groups": 8, "kh": 3, "kw": 3, "stride": [1, 1], "pad": [1, 1], "dil": [1, 1]}


class Measure(ProgramTest):
    def setUp(self):
        super().setUp()
        self.out, self.suites = self.folder / "out", self.folder / "suites"

    def measure(self, *arguments, code=0, **environment):
        process = subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, timeout=500, stdin=subprocess.DEVNULL,
                                 env=self.environment(**{"BUILD": os.path.dirname(PROGRAM), "DEVICE": "host", **environment}))
        self.assertEqual(process.returncode, code, f"--- stdout\n{process.stdout}\n--- stderr\n{process.stderr}")
        return process

    def test_bad_words_touch_nothing(self):
        self.assertIn("scripts/measure OUT [STAGE...]", self.measure(code=USAGE).stderr)
        self.assertIn("unknown stage 'benhc'; one of: first_use compile compare bench tune tables",
                      self.measure(self.out, "bench", "benhc", code=USAGE).stderr)
        self.assertIn("no /nowhere/sluice; build it with", self.measure(self.out, "bench", code=ENVIRONMENT, BUILD="/nowhere").stderr)
        self.assertFalse(self.out.exists())

    def test_rehearsal(self):
        self.suites.mkdir()
        for name, calls in {"peers": [{**CALL, "N": [1], "dt": ["fp16", "fp32"], "tag": ["nchw"]}],
                            "networks": [{**CALL, "networks": ["one"]}, {**CALL, "h": 6, "networks": ["two"]}],
                            "grid": [{**CALL, "N": [2], "dt": ["f32"], "tag": ["nhwc"]}]}.items():
            (self.suites / f"{name}.json").write_text(json.dumps(calls))
        stages = [self.out, "compile", "bench", "tune"]
        environment = {"SUITES": str(self.suites), "SAMPLE": "2", "COMMIT": "abc", "SLUICE_TUNE_BUDGET_MS": "60000"}
        self.measure(*stages, **environment)
        rows = {name: json.loads((self.out / f"{name}.json").read_text()) for name in ("networks", "kernels", "grid")}
        self.assertEqual({name: len(file["rows"]) for name, file in rows.items()}, {"networks": 2, "kernels": 2, "grid": 1})
        self.assertEqual({file["commit"] for file in rows.values()}, {"abc"})
        tuned = json.loads((self.out / "decisions.json").read_text())["decisions"]
        self.assertEqual(len({d["problem"] for d in tuned}), len(tuned))
        self.assertTrue(all(d["schedule"] for d in tuned))

        self.measure(self.out, "first_use", **environment)
        first = json.loads((self.out / "first_use.json").read_text())["rows"]
        self.assertEqual([one["compiles"] > 0 and one["prepare_ms"] > 0 for one in first], [True, True])
        self.assertEqual({one["compiles"] for one in rows["kernels"]["rows"]}, {0}, "compiled ahead")
        self.assertFalse((self.out / "first_use").exists())

        again = self.measure(*stages, **environment).stdout  # nothing is measured twice
        self.assertEqual(again.count("calls      0 timed, 0 failed"), 3, again)
        self.assertEqual(again.count("calls      0 tuned"), 3, again)


if __name__ == "__main__":
    unittest.main()
