"""`sluice explain`, for devices that are here and devices that are only described."""

import unittest

from program import DENSE, DEPTHWISE, DEVICE, ProgramTest, USAGE


class Explain(ProgramTest):
    def explain(self, problem, device, *arguments, **more):
        return self.sluice("explain", problem, "--dt", "f16", "--tag", "nhwc", "--device", device, "--json", *arguments,
                           **more)

    def test_described_gpus(self):
        for device in ("a100", "h100", "h200", "rtx4090", "rtx5090", "b200"):
            with self.subTest(device=device):
                record = self.explain(DEPTHWISE, device, "--force").record
                self.assertEqual((record["verdict"], record["route"]), ("OPTIONAL", "take"))
                self.assertTrue(record["searched"])
                self.assertTrue(record["schedule"])
                self.assertTrue(record["candidates"])
                self.assertEqual({c["outcome"] for c in record["candidates"]}, {"untimed"})

    def test_rocm_is_unsupported(self):
        record = self.explain(DEPTHWISE, "mi300x").record
        self.assertEqual((record["verdict"], record["route"]), ("UNSUPPORTED", "keep"))
        self.assertTrue(record["reason"])
        refused = self.explain(DEPTHWISE, "mi300x", "--regular", "no", code=DEVICE)
        self.assertEqual(refused.record["route"], "reject")
        self.assertIn(DEPTHWISE, refused.err)

    def test_kept_names_its_rule_or_reason(self):
        record = self.explain(DENSE, "h200").record
        self.assertEqual(record["route"], "keep")
        self.assertTrue(record["rule"] or record["reason"])
        self.assertTrue(record["refusals"])

    def test_required(self):
        record = self.explain(DEPTHWISE, "h200", "--regular", "no").record
        self.assertEqual((record["verdict"], record["route"]), ("REQUIRED", "take"))

    def test_is_dry(self):
        record = self.explain(DEPTHWISE, "host").record
        self.assertEqual(record["route"], "take")
        self.assertEqual(set(record["counters"].values()), {0})
        self.assertFalse(self.cache.exists())

    def test_shows_what_run_decided(self):
        ran = self.run_host(DEPTHWISE, "--dt", "f16", "--tag", "nhwc").record
        record = self.explain(DEPTHWISE, "host").record
        self.assertEqual((record["schedule"], record["config"]), (ran["schedule"], ran["config"]))
        self.assertEqual(record["origin"], "store")

    def test_search_path_is_printed(self):
        text = self.sluice("explain", DEPTHWISE, "--device", "h200").out
        for place in self.explain(DEPTHWISE, "h200").record["searched"]:
            self.assertIn(place, text)

    def test_unknown_device(self):
        self.assert_one_complaint(self.explain(DEPTHWISE, "h9000", code=USAGE), "h9000", "h200")


if __name__ == "__main__":
    unittest.main(verbosity=2)
