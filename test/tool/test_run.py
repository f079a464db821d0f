"""`sluice run` on the host device: results, caches, policies, and every kind of bad input."""

import json
import unittest

from program import DEPTHWISE, DEVICE, ENVIRONMENT, GROUPED, ProgramTest, USAGE

KEYS = ["problem", "dtype", "tag", "device", "verdict", "route", "rule", "schedule", "config", "candidates", "refusals",
        "error_over_bound", "time_us", "copy_us", "counters"]
COUNTERS = ["compiles", "binary_hits", "decision_hits", "tunings", "launches"]


class Results(ProgramTest):
    def check(self, record):
        self.assertLess(record["error_over_bound"], 1)
        self.assertEqual(record["outputs_wrong"], 0)
        self.assertEqual(record["outputs_checked"], record["outputs"])
        self.assertGreater(record["time_us"], 0)
        self.assertGreater(record["copy_us"], 0)

    def test_types_layouts_and_kinds(self):
        for problem, dtype, tag, extra in ((DEPTHWISE, "f16", "nhwc", ()),
                                           (GROUPED, "f32", "nchw", ("--bias", "f32", "--act", "relu")),
                                           (DEPTHWISE, "bf16", "nchw", ("--act", "clip", "--alpha", "-0.25", "--beta",
                                                                        "0.5", "--residual"))):
            with self.subTest(problem=problem, dtype=dtype, tag=tag):
                record = self.run_host(problem, "--dt", dtype, "--tag", tag, *extra).record
                self.check(record)
                self.assertEqual((record["dtype"], record["tag"], record["route"]), (dtype, tag, "take"))

    def test_exact_integers(self):
        self.check(self.run_host(DEPTHWISE, "--dt", "f32", "--integers").record)

    def test_keys_are_stable(self):
        taken = self.run_host(DEPTHWISE).record
        kept = self.run_host(DEPTHWISE, "--routing-table", self.routing_table()).record
        for record in (taken, kept):
            for key in KEYS:
                self.assertIn(key, record)
            self.assertEqual([k for k in record if k in KEYS], KEYS)
            self.assertEqual(list(record["counters"]), COUNTERS)
        self.assertEqual(list(taken), list(kept))
        for key in ("schedule", "config", "outcome", "median_us", "registers", "error_over_bound"):
            self.assertIn(key, taken["candidates"][0])
        for refusal in taken["refusals"]:
            self.assertTrue(refusal["schedule"] and refusal["reason"])

    def test_empty_batch(self):
        record = self.run_host(DEPTHWISE.replace("mb1", "mb0")).record
        self.assertEqual((record["outputs"], record["counters"]["launches"]), (0, 0))

    def test_seeded_thread_order_gives_the_same_result(self):
        for seed in ("1", "2"):
            self.check(self.run_host(GROUPED, "--dt", "f16", "--tag", "nhwc", SLUICE_HOST_SEED=seed).record)


class Caches(ProgramTest):
    def test_second_process_hits_both_stores(self):
        first = self.run_host(DEPTHWISE, "--dt", "f16", "--tag", "nhwc").record["counters"]
        self.assertGreater(first["compiles"], 0)
        self.assertEqual(first["tunings"], 1)
        second = self.run_host(DEPTHWISE, "--dt", "f16", "--tag", "nhwc").record
        counters = second["counters"]
        self.assertEqual((counters["compiles"], counters["tunings"]), (0, 0), counters)
        self.assertEqual((counters["binary_hits"], counters["decision_hits"]), (1, 1), counters)
        self.assertEqual(second["match"], "exact")

    def test_another_batch_size_compiles_nothing_new(self):
        time = {"SLUICE_TUNE_BUDGET_MS": "100000"}  # every candidate of the first shape, however slow the machine
        self.run_host(DEPTHWISE, **time)
        counters = self.run_host(DEPTHWISE.replace("mb1", "mb2"), **time).record["counters"]
        self.assertEqual(counters["compiles"], 0, counters)

    def test_truncated_binary_is_compiled_again_with_one_warning(self):
        self.run_host(DEPTHWISE)
        entries = [path for path in (self.cache / "binaries").rglob("*") if path.is_file()]
        self.assertTrue(entries)
        for path in entries:
            path.write_bytes(path.read_bytes()[:100])
        outcome = self.run_host(DEPTHWISE)
        self.assertEqual(len(outcome.warnings), 1, str(outcome))
        self.assertGreater(outcome.record["counters"]["compiles"], 0)
        self.assertLess(outcome.record["error_over_bound"], 1)
        again = self.run_host(DEPTHWISE)
        self.assertEqual((again.record["counters"]["compiles"], again.warnings), (0, []), str(again))

    def test_cache_that_cannot_be_written_runs_uncached_with_one_warning(self):
        blocker = self.folder / "file"
        blocker.write_text("not a folder")
        unwritable = str(blocker / "cache")
        outcome = self.run_host(DEPTHWISE, SLUICE_CACHE_DIR=unwritable)
        self.assertGreater(outcome.record["counters"]["compiles"], 0)
        self.assertGreaterEqual(len(outcome.warnings), 1, str(outcome))
        self.assertEqual(len(outcome.warnings), len(set(outcome.warnings)), str(outcome))
        demanded = self.run_host(DEPTHWISE, "--require-cache", SLUICE_CACHE_DIR=unwritable, code=ENVIRONMENT)
        self.assert_one_complaint_at_the_end(demanded, unwritable)
        nowhere = self.run_host(DEPTHWISE, "--require-cache", SLUICE_CACHE_DIR="off", code=ENVIRONMENT)
        self.assert_one_complaint(nowhere, "cache")

    def assert_one_complaint_at_the_end(self, outcome, part):
        errors = [line for line in outcome.err.splitlines() if line not in outcome.warnings]
        self.assertEqual(len(errors), 1, str(outcome))
        self.assertIn(part, errors[0])


class Decisions(ProgramTest):
    def test_kept_is_done_and_says_why(self):
        table = self.routing_table()
        record = self.run_host(DEPTHWISE, "--routing-table", table).record
        self.assertEqual((record["route"], record["schedule"], record["time_us"]), ("keep", None, None))
        self.assertEqual((record["rule"], record["table"]), ("default: keep", table))
        self.assertEqual((record["counters"]["compiles"], record["counters"]["launches"]), (0, 0))
        text = self.sluice("run", DEPTHWISE, "--device", "host", "--routing-table", table).out
        self.assertIn("default: keep", text)
        self.assertIn("your own convolution should run this call", text)
        forced = self.run_host(DEPTHWISE, "--routing-table", table, "--force").record
        self.assertEqual((forced["route"], forced["outputs_wrong"]), ("take", 0))

    def test_what_no_schedule_can_is_kept_with_the_reasons(self):
        record = self.run_host(DEPTHWISE, "--emulate", "70").record
        self.assertEqual((record["verdict"], record["route"]), ("UNSUPPORTED", "keep"))
        for refusal in record["refusals"]:
            self.assertRegex(refusal["reason"], "needs [89]0")

    def test_required_calls(self):
        record = self.run_host(DEPTHWISE, "--regular", "no").record
        self.assertEqual((record["verdict"], record["route"]), ("REQUIRED", "take"))
        refused = self.run_host(DEPTHWISE, "--regular", "no", "--emulate", "70", code=DEVICE)
        self.assertEqual((refused.record["verdict"], refused.record["route"]), ("UNSUPPORTED", "reject"))
        self.assertTrue(refused.err.startswith("sluice: "))
        self.assertIn(DEPTHWISE, refused.err)

    def test_policies(self):
        record = self.run_host(DEPTHWISE, "--policy", "immediate").record
        self.assertEqual((record["counters"]["tunings"], record["counters"]["compiles"]), (0, 1))
        self.assertEqual(self.run_host(DEPTHWISE, "--policy", "off").record["route"], "keep")
        self.assertEqual(self.run_host(DEPTHWISE, "--policy", "background").record["counters"]["tunings"], 1)
        self.assertEqual(self.run_host(DEPTHWISE, SLUICE_DISABLE="1").record["route"], "keep")

    def test_pinned(self):
        self.assert_one_complaint(self.run_host(DEPTHWISE, "--policy", "pinned", code=USAGE), "--decision-table")
        self.assert_one_complaint(
            self.run_host(DEPTHWISE, "--policy", "pinned", "--decision-table", str(self.folder / "none"), code=ENVIRONMENT),
            "none")
        empty = self.folder / "empty.json"
        host = next(d for d in self.sluice("devices", "--json").record["devices"] if d.pop("device") == "host")
        empty.write_text(json.dumps({"schema": 1, "device": host, "decisions": []}))
        miss = self.run_host(DEPTHWISE, "--policy", "pinned", "--decision-table", str(empty), code=DEVICE)
        self.assertIn(DEPTHWISE, miss.err)

    def test_forced_schedule(self):
        record = self.run_host(DEPTHWISE, SLUICE_FORCE_SCHEDULE="dw_flat").record
        self.assertEqual({c["schedule"] for c in record["candidates"]}, {"dw_flat"})


class BadInput(ProgramTest):
    """One clear message and the documented exit code."""

    def test_problems(self):
        for problem, part in (("g8mb1ic8ih10oc8oh10kh3ph", "ph"), ("hello", "hello"),
                              ("g3mb1ic8ih10oc8oh10kh3ph1", "g"), ("g8mb1ic8ih10oc8oh8kh3ph1", "oh"),
                              ("g8mb1ic8ih10oc8oh10kh3ph1sh0", "sh"),
                              ("g8mb1ic8ih10oc8oh10kh3ph99999999999999999999", "ph"),
                              ("g8mb1ic8ih10oc8oh10kh3ph1 dt=f64", "dt"), (DEPTHWISE + " colour=red", "colour")):
            with self.subTest(problem=problem):
                outcome = self.sluice("run", problem, "--device", "host", code=USAGE)
                self.assert_one_complaint(outcome)

    def test_arguments(self):
        for arguments in ((), ("run",), ("fly",), ("run", DEPTHWISE, "--dt", "f64"), ("run", DEPTHWISE, "--iters", "-3"),
                          ("run", DEPTHWISE, "--colour"), ("cache",), ("run", DEPTHWISE, "--policy", "maybe")):
            with self.subTest(arguments=arguments):
                self.assert_one_complaint(self.sluice(*arguments, code=USAGE), "--help")

    def test_unknown_subcommands_are_named(self):
        for arguments, word, one in ((("fly",), "fly", "explain"), (("measure", DEPTHWISE), "measure", "run"),
                                     (("cache", "empty"), "empty", "clear")):
            with self.subTest(arguments=arguments):
                outcome = self.sluice(*arguments, code=USAGE)
                self.assert_one_complaint(outcome, f"no subcommand '{word}'; one of ", one, "--help")

    def test_a_token_and_a_flag_must_not_say_it_twice(self):
        outcome = self.sluice("run", DEPTHWISE + " dt=f32", "--dt", "f16", "--device", "host", code=USAGE)
        self.assert_one_complaint(outcome, "`dt` is given twice")

    def test_devices_that_do_not_exist(self):
        self.assert_one_complaint(self.sluice("run", DEPTHWISE, "--device", "gpu", code=USAGE), "gpu", "cuda")
        self.assert_one_complaint(self.sluice("run", DEPTHWISE, "--device", "cuda:x", code=USAGE), "cuda:x")
        no_driver = self.sluice("devices", "--json").record["gpu_problem"]
        outcome = self.sluice("run", DEPTHWISE, "--device", "cuda:99", code=ENVIRONMENT if no_driver else DEVICE)
        self.assert_one_complaint(outcome)

    def test_environment_variables(self):
        self.assert_one_complaint(self.run_host(DEPTHWISE, SLUICE_TUNE_BUDGET_MS="soon", code=USAGE),
                                  "SLUICE_TUNE_BUDGET_MS", "soon")
        self.assert_one_complaint(self.run_host(DEPTHWISE, SLUICE_POLICY="maybe", code=USAGE), "SLUICE_POLICY", "maybe")

    def test_no_compiler(self):
        missing = str(self.folder / "no-such-compiler")
        for regular in ("yes", "no"):
            outcome = self.run_host(DEPTHWISE, "--regular", regular, SLUICE_HOST_CXX=missing, code=ENVIRONMENT)
            self.assertEqual(len(outcome.err.splitlines()), 1, str(outcome))
            self.assertIn(missing, outcome.err)

    def test_a_compiler_that_fails(self):
        compiler = self.folder / "c++"
        compiler.write_text('#!/bin/sh\ncase "$*" in *--version*) echo "fake 1.0"; exit 0;; esac\n'
                            'echo "first complaint" >&2; echo "second complaint" >&2; exit 1\n')
        compiler.chmod(0o755)
        for regular in ("yes", "no"):
            with self.subTest(regular=regular):
                outcome = self.run_host(DEPTHWISE, "--policy", "immediate", "--regular", regular,
                                        SLUICE_HOST_CXX=str(compiler), code=ENVIRONMENT)
                errors = [line for line in outcome.err.splitlines() if not line.startswith("sluice: warning: ")]
                first = [line for line in errors if line.startswith("sluice: ")]
                self.assertEqual(len(first), 1, str(outcome))
                self.assertIn("failed", first[0])
                self.assertEqual("REQUIRED" in first[0], regular == "no", str(outcome))
                self.assertTrue(all(line.startswith("    ") for line in errors if line not in first), str(outcome))
                self.assertIn("second complaint", outcome.err)

    def test_routing_tables(self):
        def table(device, minimum):
            return self.routing_table(device, [{"name": "all", "route": "keep", "when": {"r": {"min": minimum}}}])

        kept = self.run_host(DEPTHWISE, "--routing-table", table("any", 1)).record
        self.assertEqual((kept["route"], kept["rule"]), ("keep", "all"))
        nan = table("any", float("nan"))  # Python writes NaN, which JSON does not know
        self.assert_one_complaint(self.run_host(DEPTHWISE, "--routing-table", nan, code=USAGE), nan)
        other = table({"name": "NVIDIA H100", "capability": 90}, 1)
        self.assert_one_complaint(self.run_host(DEPTHWISE, "--routing-table", other, code=USAGE), other, "NVIDIA H100")
        none = str(self.folder / "none.json")
        self.assert_one_complaint(self.run_host(DEPTHWISE, "--routing-table", none, code=ENVIRONMENT), none)


if __name__ == "__main__":
    unittest.main(verbosity=2)
