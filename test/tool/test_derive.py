"""`sluice derive`: rows in, a table out that reads back; bad rows are named."""

import json
import pathlib
import unittest

from program import ProgramTest, USAGE

HEADER = {"gpu": "NVIDIA H200", "capability": 90, "driver": "580", "torch": "2.11", "cudnn": 91900, "sluice": "0.1.0", "commit": "abc"}
SHIPPED = pathlib.Path(__file__).parents[2]


def row(kernel, batch, time, rival, **more):
    problem = f"g64mb{batch}ic64ih28oc64oh28kh{kernel}ph{kernel // 2} dt=f16 tag=nhwc"
    return {"signature": problem, "time_us": time, "rivals": {"cudnn": rival, "eager": rival * 2}, **more}


class Derive(ProgramTest):
    def setUp(self):
        super().setUp()
        self.out = self.folder / "table.json"

    def rows(self, *rows, header=HEADER):
        path = self.folder / f"rows{len(list(self.folder.iterdir()))}.jsonl"
        path.write_text("".join(json.dumps(r) + "\n" for r in ([header] if header else []) + list(rows)))
        return str(path)

    def derive(self, *words, code=0):
        return self.sluice("derive", *words, "--out", str(self.out), code=code)

    def test_a_table_that_explains_itself(self):
        rows = self.rows(row(3, 1, 10, 20), row(3, 32, 10, 15), row(5, 1, 10, 9), row(7, 1, 10, 30), row(7, 32, 10, 30))
        report = self.derive(rows, "--json").record
        self.assertEqual((report["derived_from"]["slower"], report["failed"]), (0, 0))
        table = json.loads(self.out.read_text())
        self.assertEqual(table["device"], {"name": "NVIDIA H200", "capability": 90})
        self.assertIn("cuDNN 9.19", table["rules"][0]["evidence"]["baseline"])
        self.assertIn("abc", table["rules"][0]["evidence"]["versions"])
        self.assertEqual(self.sluice("lint", str(self.out), "--json").record["files"][0]["findings"], [])
        for kernel, route in ((3, "take"), (5, "keep"), (7, "take")):
            words = row(kernel, 1, 1, 1)["signature"].split()
            record = self.sluice("explain", *words, "--device", "h200", "--routing-table", str(self.out), "--json").record
            self.assertEqual(record["route"], route, kernel)

    def test_whole_networks_are_left_out(self):
        rows = self.rows(*(row(kernel, batch, 10, 20) for kernel in (3, 5) for batch in (1, 8, 32)))
        suite = self.folder / "networks.json"
        entry = lambda kernel, *networks: {"c": 64, "h": 28, "w": 28, "k": 64, "groups": 64, "kh": kernel, "kw": kernel, "stride": [1, 1],
                                           "pad": [kernel // 2] * 2, "dil": [1, 1], "networks": networks}
        suite.write_text(json.dumps([entry(3, "a"), entry(5, "b", "c")]))
        report = self.derive(rows, "--suite", str(suite), "--json").record
        self.assertEqual((report["left_out_by"], report["groups"]), ("networks", 3))
        self.assertEqual((report["left_out"]["calls"], report["left_out"]["taken"]), (9, 0), "without a only 5x5 is known, without b or c 3x3")
        self.assertEqual(self.derive(rows, "--json").record["left_out_by"], "shapes")
        suite.write_text(json.dumps([entry(9, "c")]))
        self.assertIn("no suite names a network", self.derive(rows, "--suite", str(suite), code=USAGE).err)

    def test_failed_and_inaccurate_calls_are_lost(self):
        rows = self.rows(row(3, 1, 10, 20), row(3, 4, 10, 20), row(3, 2, 10, 20, error="relative L2 error 0.5"))
        report = self.derive(rows, "--json", "--min-cases", "1").record
        self.assertEqual((report["failed"], report["derived_from"]["slower"]), (1, 0))

    def test_bad_rows_are_named_and_the_table_stays(self):
        self.out.write_text("before")
        good = row(3, 1, 10, 20)
        for rows, message in (((dict(good, signature="x"),), ":2: signature"), ((dict(good, time_us=0),), "not above 0"),
                              ((dict(good, rivals={"cudnn": "fast"}),), ":2:"), ((), "no measured call")):
            self.assertIn(message, self.derive(self.rows(*rows), code=USAGE).err)
        self.assertIn("names the GPU", self.derive(self.rows(good, header=None), code=USAGE).err)
        other = self.rows(good, header=dict(HEADER, gpu="NVIDIA A100"))
        self.assertIn("NVIDIA A100", self.derive(self.rows(good), other, code=USAGE).err)
        self.assertIn("keep everything", self.derive(self.rows(row(3, 1, 20, 10)), code=USAGE).err)
        self.assertEqual(self.out.read_text(), "before")

    def test_the_shipped_table_follows_from_the_shipped_rows(self):
        names = ("compare.jsonl", "compare_bias.jsonl", "compare_bias_mult.jsonl", "networks.json", "networks_earlier.json", "grid.json")
        rows = [str(SHIPPED / "bench" / "results" / "nvidia-h200" / name) for name in names]
        report = self.derive(*rows, "--json").record
        self.assertEqual(report["derived_from"]["slower"], 0)
        self.assertEqual(json.loads(self.out.read_text()), json.loads((SHIPPED / "configs" / "routing" / "nvidia-h200.json").read_text()))


if __name__ == "__main__":
    unittest.main()
