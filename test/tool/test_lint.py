"""`sluice lint`: shipped tables, broken ones, winners that no longer apply or compile."""

import json
import pathlib
import unittest

from program import DEPTHWISE, ProgramTest, USAGE

SHIPPED = sorted(map(str, (pathlib.Path(__file__).parents[2] / "configs" / "routing").glob("*.json")))


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

    def test_what_is_no_table(self):
        for text, message in (("{", "table.json"), ("{}", "neither a routing table"), ("[1]", "neither a routing table"),
                              ('{"rules": 3}', "table.json")):
            self.assertIn(message, self.sluice("lint", self.write(text), code=USAGE).err)


if __name__ == "__main__":
    unittest.main()
