"""`sluice rewrite`: an ONNX model in, a rewritten one out, or nothing."""

import json
import os
import unittest

import onnx_file
from program import DEVICE, ENVIRONMENT, USAGE, ProgramTest


class Rewrite(ProgramTest):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "model.onnx"
        self.out = self.folder / "out.onnx"
        self.before = onnx_file.network()
        self.model.write_bytes(self.before)

    def rewrite(self, *arguments, **more):
        return self.sluice("rewrite", str(self.model), *arguments, **more)

    def tearDown(self):
        self.assertEqual(self.model.read_bytes(), self.before, "the input is never modified")
        self.assertEqual([p.name for p in self.folder.iterdir() if p.name.startswith(".")], [], "no temporary is left")

    def test_a_rewritten_model_appears_with_a_table_on_stdout(self):
        outcome = self.rewrite("-o", str(self.out), "--device", "h200", "--force")
        self.assertIn("depthwise", outcome.out)
        self.assertIn("OPTIONAL", outcome.out)
        self.assertIn("2 of 2 replaced", outcome.out)
        written = self.out.read_bytes()
        self.assertIn(b"ai.sluice", written)
        self.assertNotIn(b"Relu", written)
        again = self.sluice("rewrite", str(self.out), "--device", "h200", "--dry-run", "--json").record
        self.assertEqual(again["nodes"], [], "nothing is left to replace")

    def test_the_report_is_json(self):
        record = self.rewrite("-o", str(self.out), "--device", "h200", "--force", "--json").record
        self.assertEqual((record["device"], record["graph_nodes"]), ("NVIDIA H200", 3))
        self.assertEqual(record["actions"]["take"], 2)
        self.assertEqual((record["model"], record["out"], record["error"]), (str(self.model), str(self.out), None))
        first = record["nodes"][0]
        self.assertEqual((first["name"], first["verdict"], first["action"], first["absorbed"]),
                         ("depthwise", "OPTIONAL", "take", 1))
        self.assertIn("g144mb1ic144ih56", first["signature"])

    def test_routing_decides_without_force(self):
        record = self.rewrite("--device", "h200", "--dry-run", "--json").record
        self.assertEqual([n["action"] for n in record["nodes"]][1], "keep", "no table takes a dense convolution")
        self.assertTrue(record["nodes"][1]["rule"])

    def test_a_dry_run_writes_nothing(self):
        outcome = self.rewrite("-o", str(self.out), "--device", "h200", "--dry-run", "--force")
        self.assertIn("2 of 2 would be replaced", outcome.out)
        self.assertFalse(self.out.exists())

    def test_required_nodes_that_nothing_serves_fail_and_are_named(self):
        outcome = self.rewrite("-o", str(self.out), "--device", "mi300x", "--regular", "none", "--json", code=DEVICE)
        self.assertFalse(self.out.exists())
        self.assertTrue(outcome.err.startswith("sluice: "), str(outcome))
        for part in ("depthwise", "dense", "g144mb1ic144ih56", "rocm"):
            self.assertIn(part, outcome.err)
        record = json.loads(outcome.out)
        self.assertEqual((record["error"]["graph"], len(record["error"]["failures"])), ("untouched", 2))
        self.assertIsNone(record["out"])

    def test_a_file_says_what_the_regular_lowering_can(self):
        table = self.routing_table("any", [{"name": "dense is beyond us", "route": "take", "when": {"groups": {"max": 1}}}])
        record = self.rewrite("-o", str(self.out), "--device", "h200", "--regular", table, "--json").record
        self.assertEqual([n["verdict"] for n in record["nodes"]], ["OPTIONAL", "REQUIRED"])
        self.assertEqual(record["nodes"][1]["action"], "take")

    def test_a_symbolic_batch_is_planned_only_for_a_given_one(self):
        self.before = onnx_file.network(batch="N")
        self.model.write_bytes(self.before)
        unknown = self.rewrite("--device", "h200", "--dry-run", "--json").record
        self.assertEqual([n["verdict"] for n in unknown["nodes"]], ["UNSUPPORTED"] * 2)
        self.assertIn("--batch", unknown["nodes"][0]["reason"])
        known = self.rewrite("--device", "h200", "--dry-run", "--json", "--batch", "32").record
        self.assertEqual([n["verdict"] for n in known["nodes"]], ["OPTIONAL"] * 2)
        self.assertIn("mb32", known["nodes"][0]["signature"])

    def test_a_models_names_cannot_command_the_terminal(self):
        self.before = onnx_file.network().replace(b"depthwise", b"dep\x1b[2Jwi")
        self.model.write_bytes(self.before)
        self.assertNotIn("\x1b", self.rewrite("--device", "h200", "--dry-run").out)
        outcome = self.rewrite("--device", "mi300x", "--regular", "none", "--dry-run", code=DEVICE)
        self.assertNotIn("\x1b", outcome.err + outcome.out)
        self.assertIn("dep?[2Jwi", outcome.err)

    def test_arguments(self):
        out = ["-o", str(self.out)]
        self.assert_one_complaint(self.rewrite("--device", "h200", code=USAGE), "-o")
        self.assert_one_complaint(self.rewrite("-o", str(self.model), code=USAGE), "never modified")
        self.assert_one_complaint(self.rewrite(*out, "--device", "gpu", code=USAGE), "gpu", "h200")
        self.assert_one_complaint(self.rewrite(*out, "--device", "host:9", code=USAGE), "host:9")
        self.assert_one_complaint(self.rewrite(*out, "--device", "none.json", code=ENVIRONMENT), "none.json")
        self.assert_one_complaint(self.rewrite(*out, "--regular", "no-such-file", "--device", "h200", code=ENVIRONMENT),
                                  "no-such-file")
        self.assert_one_complaint(self.rewrite(*out, "--batch", "0", code=USAGE), "--help")
        self.assert_one_complaint(self.sluice("rewrite", "none.onnx", *out, "--device", "h200", code=ENVIRONMENT), "none.onnx")
        nowhere = str(self.folder / "none" / "out.onnx")
        self.assertIn(nowhere, self.rewrite("-o", nowhere, "--device", "h200", code=ENVIRONMENT).err)
        pipe = self.folder / "pipe.onnx"
        os.mkfifo(pipe)
        self.assertIn("not a regular file", self.rewrite("-o", str(pipe), "--device", "h200", code=ENVIRONMENT).err)
        self.assertTrue(pipe.is_fifo(), "a device or a pipe is never replaced")

    def test_broken_models_give_one_error_and_no_file(self):
        good = self.before
        for content, part in ((b"", "not an ONNX model"), (b"hello", "not an ONNX model"), (good[:-30], "cut short"),
                              (good.replace(b"w1", b"w3", 1), "w1"), (good.replace(b"Relu", b"Conv"), "inputs")):
            with self.subTest(part=part):
                self.before = content
                self.model.write_bytes(content)
                outcome = self.rewrite("-o", str(self.out), "--device", "h200", code=USAGE)
                self.assertEqual(len(outcome.err.splitlines()), 1, str(outcome))
                self.assertIn(str(self.model), outcome.err)
                self.assertFalse(self.out.exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
