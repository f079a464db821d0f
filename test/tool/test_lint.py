"""`sluice lint`: shipped tables, broken ones, winners that no longer apply or compile."""

import json
import pathlib
import subprocess
import sys
import unittest

from program import DEPTHWISE, ProgramTest, USAGE

CONFIGS = pathlib.Path(__file__).parents[2] / "configs"
SHIPPED = sorted(map(str, (CONFIGS / "routing").glob("*.json")))
SANITIZED = CONFIGS / "sanitized.json"


class Lint(ProgramTest):
    def write(self, text):
        path = self.folder / "table.json"
        path.write_text(text if isinstance(text, str) else json.dumps(text))
        return str(path)

    def test_every_shipped_table(self):
        self.assertTrue(SHIPPED)
        report = self.sluice("lint", *SHIPPED, "--json").record
        self.assertEqual([entry["file"] for entry in report["files"]], SHIPPED)
        for entry in report["files"]:
            self.assertEqual(entry["findings"], [], entry["file"])

    def test_a_hidden_rule_is_an_error(self):
        table = json.loads(pathlib.Path(SHIPPED[-1]).read_text())
        table["rules"].insert(0, {"name": "all", "route": "keep", "when": {}})
        outcome = self.sluice("lint", self.write(table), code=USAGE)
        self.assertIn("can never match", outcome.out)

    def test_a_decision_table(self):
        suite = self.folder / "suite.json"
        suite.write_text(json.dumps([f"{DEPTHWISE} dt=f16 tag=nhwc"]))
        out = self.folder / "decisions.json"
        self.sluice("tune", "--suite", str(suite), "--out", str(out), "--device", "host", "--tune-ms", "30000")
        report = self.sluice("lint", str(out), "--compile", "--json").record
        self.assertEqual(report["files"][0]["findings"], [])
        table = json.loads(out.read_text())
        table["decisions"][0]["schedule"] = "gone"
        self.assertIn("schedule gone does not exist", self.sluice("lint", self.write(table), code=USAGE).out)

    def test_the_list_of_sanitized_schedules(self):
        # Kernels that changed since are for `scripts/test-gpu --write` to list again, and no error.
        report = self.sluice("lint", str(SANITIZED), "--json").record
        self.assertEqual([finding for finding in report["files"][0]["findings"] if finding["error"]], [])
        shipped = json.loads(SANITIZED.read_text())
        first = shipped["runs"][0]["passed"][0]
        changed = json.loads(SANITIZED.read_text())
        changed["runs"][0]["passed"][0]["digest"] = "0" * 32
        outcome = self.sluice("lint", self.write(changed))
        self.assertIn("another build than this program's", outcome.out)
        self.assertIn(f"schedule {first['schedule']}: build ", outcome.out)
        self.assertIn("sluice tune --isolate", outcome.out)
        damaged = {
            "digest": dict(shipped, runs=[dict(shipped["runs"][0], passed=[dict(first, digest="12")])]),
            "racecheck": dict(shipped, runs=[dict(shipped["runs"][0], tools=["memcheck", "initcheck"])]),
            "was there before": dict(shipped, runs=shipped["runs"] + shipped["runs"]),
            "schema is 2": dict(shipped, schema=2),
            "not JSON": SANITIZED.read_text()[:-40],
        }
        for message, text in damaged.items():
            with self.subTest(message):
                self.assertIn(message, self.sluice("lint", self.write(text), code=USAGE).err)
        # Whoever names such a list hears of it before anything runs.
        outcome = self.sluice("explain", DEPTHWISE, "--device", "h200", SLUICE_SANITIZED=self.write(damaged["digest"]), code=USAGE)
        self.assert_one_complaint(outcome, "digest")
        outcome = self.sluice("env", "--json", SLUICE_SANITIZED=self.write(damaged["digest"])).record
        self.assertIn("digest", outcome["sanitized"]["problem"])

    def test_the_script_that_writes_the_list(self):
        script = CONFIGS.parent / "scripts" / "sanitized-list"
        path = self.folder / "table.json"
        report = self.sluice("env", "--json").out
        known = json.loads(report)["schedules"]

        def add(text):
            subprocess.run([sys.executable, script, path, "GPU", "1.2", "abc"], input=text, text=True, check=True, capture_output=True)
            self.sluice("lint", str(path))
            return json.loads(path.read_text())["runs"]

        path.write_text(json.dumps({"schema": 1, "note": "kept", "runs": [
            {"gpu": "old", "driver": "1", "compiler": "c", "commit": "before", "tools": ["memcheck", "racecheck", "initcheck"],
             "passed": [{key: known[0][key] for key in ("schedule", "digest")}, {"schedule": "gone", "digest": "0" * 32}]}]}))
        runs = add(report)
        self.assertEqual([(run["commit"], len(run["passed"])) for run in runs], [("before", 1), ("abc", len(known) - 1)])
        self.assertEqual(json.loads(path.read_text())["note"], "kept")
        self.assertEqual(add(report), runs, "again: nothing new")
        self.assertEqual(self.sluice("env", "--json", SLUICE_SANITIZED=str(path)).record["sanitized"]["list"], str(path))
        self.assertTrue(all(row["sanitized"] for row in self.sluice("env", "--json", SLUICE_SANITIZED=str(path)).record["schedules"]))

    def test_what_is_no_table(self):
        for text, message in (("{", "table.json"), ("{}", "neither a routing table"), ("[1]", "neither a routing table"),
                              ('{"rules": 3}', "table.json")):
            self.assertIn(message, self.sluice("lint", self.write(text), code=USAGE).err)


if __name__ == "__main__":
    unittest.main()
