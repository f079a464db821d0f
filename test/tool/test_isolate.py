"""`sluice tune --isolate`: candidates that crash, hang or lose the device; and what may not be tried without it."""

import json
import os
import pathlib
import signal
import subprocess
import time
import unittest

from program import DEPTHWISE, DEVICE, DONE, ENVIRONMENT, PROGRAM, ProgramTest, USAGE

FAKE_CUDA = os.environ["FAKE_CUDA_PATH"]
CALLS = [f"{DEPTHWISE} dt=f32 tag=nchw", f"{DEPTHWISE.replace('mb1', 'mb2')} dt=f32 tag=nchw"]
OTHERS = [f"{DEPTHWISE.replace('g8', f'g{c}').replace('c8', f'c{c}')} dt=f32 tag=nchw" for c in (16, 24)]
CULPRIT, GOOD = "dw_direct", "dw_flat"

# A compiler that puts a fault in place of one schedule's kernels, or one that does not end with them.
COMPILER = """#!/bin/sh
for unit; do :; done
case $unit in *.cpp)
  if grep -q 'sluice_{schedule}_' "$unit"; then
    {compile}
    sed -i 's/^SL_KERNEL_ENTRY(\\(sluice_{schedule}_[0-9a-f]*\\), [a-z0-9_]*,/SL_KERNEL_ENTRY(\\1, fault,/' "$unit"
    sed -i '0,/^struct/s//namespace sl {{ template <class Cfg> void fault(const SlParams\\&) {{ {fault} }} }}\\nstruct/' "$unit"
  fi
esac
exec c++ "$@"
"""


def alive(pid):
    status = pathlib.Path(f"/proc/{pid}/status")
    try:
        return "\nState:\tZ" not in status.read_text()
    except OSError:
        return False


def children(pid):
    try:
        return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


class Isolated(ProgramTest):
    def setUp(self):
        super().setUp()
        self.suite = self.folder / "suite.json"
        self.out = self.folder / "table.json"
        self.calls(CALLS)

    def calls(self, calls):
        self.suite.write_text(json.dumps(calls))

    def only(self, *schedules):
        """Variables that leave only these schedules: compiling is what takes the time here."""
        if not hasattr(self, "known"):
            self.known = [row["schedule"] for row in self.sluice("env", "--json").record["schedules"]]
        return {"SLUICE_DISABLE_SCHEDULES": ",".join(name for name in self.known if name not in schedules)}

    def faulty(self, fault, compile=":", schedule=CULPRIT):
        path = self.folder / "c++"
        path.write_text(COMPILER.format(schedule=schedule, fault=fault, compile=compile))
        path.chmod(0o755)
        return {"SLUICE_HOST_CXX": str(path)}

    def compile(self, **environment):
        """So that no compiler is taken for a child that hangs, however busy the machine."""
        self.sluice("compile", "--suite", str(self.suite), "--device", "host", **environment)

    def words(self, *extra, device="host"):
        return ("tune", "--suite", str(self.suite), "--out", str(self.out), "--device", device, "--tune-ms", "30000", *extra)

    def tune(self, *extra, code=DONE, device="host", **environment):
        return self.sluice(*self.words(*extra, "--isolate", "--json", device=device), code=code, **environment)

    def rows(self):
        return {row["problem"]: row for row in json.loads(self.out.read_text())["decisions"]}

    def assert_only_culprit_failed(self, outcome, beginning):
        rows = self.rows()
        self.assertEqual(set(rows), set(json.loads(self.suite.read_text())), str(outcome))
        blamed = 0
        for problem, row in rows.items():
            self.assertEqual(row["schedule"], GOOD, problem)
            outcomes = {name: [c["outcome"] for c in row["candidates"] if c["schedule"] == name] for name in (GOOD, CULPRIT)}
            self.assertIn("timed", outcomes[GOOD], problem)
            for text in outcomes[CULPRIT]:
                self.assertTrue(text.startswith((beginning, "skipped: the schedule took ")), text)
                blamed += text.startswith(beginning)
        self.assertGreaterEqual(blamed, 1)
        self.assertEqual(outcome.record["crashed"], blamed, str(outcome))
        self.assertEqual(len([line for line in outcome.warnings if CULPRIT in line and "going on without it" in line]), blamed)


class HostFaults(Isolated):
    def test_without_a_fault_the_table_is_the_one_of_a_process_that_tunes_itself(self):
        only = self.only(GOOD, CULPRIT)
        tally = self.tune(**only).record
        self.assertEqual((tally["tuned"], tally["crashed"], tally["failed"], tally["decisions"]), (2, 0, 0, 2))
        mine = self.rows()
        self.assertEqual(self.sluice(*self.words("--json"), **only).record["already_there"], 2, "every row applies here, too")
        self.out.unlink()
        self.sluice(*self.words(), **only)
        measured = lambda c: "measured" if c["outcome"] in ("timed", "slow") else c["outcome"]
        key = lambda row: (row["candidate_set"], [(c["schedule"], c["config"], measured(c)) for c in row["candidates"]])
        self.assertEqual({p: key(row) for p, row in self.rows().items()}, {p: key(row) for p, row in mine.items()})
        self.assertEqual(sorted(os.listdir(self.folder)), ["cache", "suite.json", "table.json"])

    def test_a_kernel_that_aborts(self):
        environment = {**self.only(GOOD, CULPRIT), **self.faulty("__builtin_trap();")}
        outcome = self.tune(**environment)
        self.assert_only_culprit_failed(outcome, "crashed: in check: signal ")
        self.assertEqual((outcome.record["tuned"], outcome.record["failed"]), (2, 0))
        self.sluice("lint", str(self.out))
        again = self.tune(**environment)
        self.assertEqual((again.record["already_there"], again.record["crashed"], again.err), (2, 0, ""), "the row stands")

    def test_a_kernel_that_does_not_end(self):
        environment = {**self.only(GOOD, CULPRIT), **self.faulty("for (volatile int i = 0;; i = i) {}")}
        self.calls(CALLS[:1])
        self.compile(**environment)
        outcome = self.tune("--patience", "5", **environment)
        self.assert_only_culprit_failed(outcome, "timed out: in check: nothing for 5.00 s")

    def test_a_compiler_that_does_not_end_names_its_kernel(self):
        compiler = self.faulty("", compile="sleep 20")
        self.calls(CALLS[:1])
        self.compile(**self.only(GOOD), **compiler)
        outcome = self.tune("--patience", "5", **self.only(GOOD, CULPRIT), **compiler)
        self.assert_only_culprit_failed(outcome, "timed out: in compile: nothing for 5.00 s")

    def test_a_kernel_that_ends_the_process_quietly(self):
        environment = {**self.only(GOOD, CULPRIT), **self.faulty("__builtin__exit(0);")}
        self.calls(CALLS[:1])
        self.assert_only_culprit_failed(self.tune(**environment), "crashed: in check: exit code 0")

    def test_a_schedule_is_given_up_and_the_run_ends(self):
        self.calls(CALLS + OTHERS)
        outcome = self.tune(**self.only(GOOD, CULPRIT), **self.faulty("__builtin_trap();"))
        self.assert_only_culprit_failed(outcome, "crashed: in check: signal ")
        # Two children in each call, until it is three calls; the fourth does not try.
        self.assertEqual(outcome.record["crashed"], 5, str(outcome))
        last = {c["outcome"] for c in self.rows()[OTHERS[-1]]["candidates"] if c["schedule"] == CULPRIT}
        self.assertEqual(last, {"skipped: the schedule took children with it in 3 calls"})

    def test_a_call_without_a_winner_fails_alone(self):
        wide = f"{DEPTHWISE} dt=f32 tag=nhwc"
        self.calls([wide, CALLS[0]])
        outcome = self.tune(**self.only(CULPRIT), **self.faulty("__builtin_trap();"), code=DEVICE)
        self.assertEqual((outcome.record["tuned"], outcome.record["failed"]), (0, 2), str(outcome))
        for call in (wide, CALLS[0]):
            self.assertTrue(any(call in line and "crashed: in check: signal" in line for line in outcome.warnings), str(outcome))

    def test_jobs(self):
        self.calls(CALLS + OTHERS)
        outcome = self.tune("--jobs", "2", **self.only(GOOD, CULPRIT), **self.faulty("__builtin_trap();"))
        self.assert_only_culprit_failed(outcome, "crashed: in check: signal ")
        self.assertEqual(outcome.record["tuned"], 4)

    def test_nobody_goes_on_without_the_parent(self):
        environment = self.environment(**self.only(GOOD, CULPRIT), **self.faulty("for (volatile int i = 0;; i = i) {}"))
        for extra, way in ((("--jobs", "2"), signal.SIGKILL), ((), signal.SIGTERM), ((), signal.SIGINT)):
            with self.subTest(f"{extra} {way}"):
                process = subprocess.Popen([PROGRAM, *self.words(*extra, "--isolate")], env=environment, stdout=subprocess.DEVNULL)
                wanted = 4 if extra else 1  # each job and its child
                found, deadline = [], time.time() + 60
                while time.time() < deadline and len(found) < wanted:
                    first = children(process.pid)
                    found = first + [pid for child in first for pid in children(child)] if extra else first
                    time.sleep(0.05)
                self.assertGreaterEqual(len(found), wanted)
                process.send_signal(way)
                process.wait()
                deadline = time.time() + 20
                while time.time() < deadline and any(map(alive, found)):
                    time.sleep(0.05)
                self.assertEqual([pid for pid in found if alive(pid)], [])

    def test_what_is_wrong_with_the_input_is_said_once(self):
        self.out.write_text("{}")
        self.assert_one_complaint(self.tune(code=USAGE), str(self.out))
        self.out.unlink()
        self.assert_one_complaint(self.tune(device="cuda:0", code=ENVIRONMENT, SLUICE_LIBCUDA="/nowhere/libcuda.so"),
                                  "/nowhere/libcuda.so")
        self.assertIn("--worker", self.sluice(*self.words("--worker"), code=USAGE).err)


class OnFakeCuda(Isolated):
    """The CUDA device over a driver that computes on the CPU; kernels are compiled by the real NVRTC."""

    def setUp(self):
        super().setUp()
        if not self.sluice("env", "--json").record["nvrtc"]["available"]:
            self.skipTest("no NVRTC")
        self.calls(CALLS[:1])
        self.cuda = {"SLUICE_LIBCUDA": FAKE_CUDA, "FAKE_CUDA_COMPUTES": "1", **self.only(GOOD, CULPRIT)}

    def tune(self, *extra, **others):
        return super().tune(*extra, device="cuda:0", **self.cuda, **others)

    def run_cuda(self, *extra, **environment):
        return self.sluice("run", *CALLS[0].split(), "--force", "--device", "cuda:0", "--iters", "0", "--json", *extra,
                           **self.cuda, **environment)

    def without_culprit(self):
        """The shipped list, but for one schedule."""
        shipped = json.loads((pathlib.Path(__file__).parents[2] / "configs" / "sanitized.json").read_text())
        mine = [{"schedule": row["schedule"], "digest": row["digest"]} for row in self.sluice("env", "--json").record["schedules"]
                if row["schedule"] != CULPRIT]
        run = dict(shipped["runs"][0], passed=mine)
        path = self.folder / "sanitized.json"
        path.write_text(json.dumps(dict(shipped, runs=[run])))
        return str(path)

    def digest(self):
        return next(row["digest"] for row in self.sluice("env", "--json").record["schedules"] if row["schedule"] == CULPRIT)

    def test_a_lost_device_is_the_candidates_whose_work_it_was(self):
        self.sluice("compile", "--suite", str(self.suite), "--device", "cuda:0", **self.cuda)
        for how, says in (("sticky", "crashed: in check: "), ("abort", "crashed: in check: signal 6"), ("hang", "timed out: in check: ")):
            with self.subTest(how):
                self.out.unlink(missing_ok=True)
                outcome = self.tune("--patience", "5", FAKE_CUDA_FAULT=f"{CULPRIT}={how}")
                self.assert_only_culprit_failed(outcome, says)
                self.assertEqual("CUDA_ERROR_ILLEGAL_ADDRESS" in outcome.err, how == "sticky", str(outcome))

    def test_without_isolation_the_call_is_lost(self):
        outcome = self.sluice(*self.words("--json", "--untested", device="cuda:0"), **self.cuda, FAKE_CUDA_FAULT=f"{CULPRIT}=sticky",
                              code=None)
        self.assertNotEqual(outcome.code, DONE)

    def test_what_has_not_passed_is_not_tried_in_a_process(self):
        listed = self.without_culprit()
        record = self.run_cuda(SLUICE_SANITIZED=listed, FAKE_CUDA_FAULT=f"{CULPRIT}=abort").record
        self.assertEqual({c["schedule"] for c in record["candidates"]}, {GOOD})
        reason = next(r["reason"] for r in record["refusals"] if r["schedule"] == CULPRIT)
        for part in (self.digest(), listed, "sluice tune --isolate"):
            self.assertIn(part, reason)
        self.assertEqual(record["schedule"], GOOD)
        explained = self.sluice("explain", *CALLS[0].split(), "--device", "h200", "--force", "--json", SLUICE_SANITIZED=listed).record
        self.assertIn(reason, [r["reason"] for r in explained["refusals"]])
        for policy in ("immediate", "background"):
            self.assertEqual(self.run_cuda("--policy", policy, "--cache-dir", "off", SLUICE_SANITIZED=listed).record["schedule"], GOOD)
        plain = self.sluice(*self.words("--json", device="cuda:0"), **self.cuda, SLUICE_SANITIZED=listed)
        self.assertTrue(any(CULPRIT in line and "--isolate" in line for line in plain.warnings), str(plain))

    def test_developers_may_try_it(self):
        record = self.run_cuda("--untested", SLUICE_SANITIZED=self.without_culprit()).record
        self.assertEqual({c["schedule"] for c in record["candidates"]}, {GOOD, CULPRIT})

    def test_what_was_tuned_in_a_child_is_used_without_one(self):
        self.cuda.update(self.only(CULPRIT))
        listed = {"SLUICE_SANITIZED": self.without_culprit()}
        kept = self.run_cuda(**listed).record  # nothing that may be tried
        self.assertEqual((kept["route"], kept["schedule"]), ("keep", None))
        for part in (self.digest(), "sluice tune --isolate"):
            self.assertIn(part, kept["reason"])
        required = self.run_cuda("--regular", "no", code=DEVICE, **listed)
        self.assertIn(self.digest(), required.err)
        self.tune("--cache-dir", "off", **listed)
        self.assertEqual(self.rows()[CALLS[0]]["schedule"], CULPRIT)
        record = self.run_cuda("--decision-table", str(self.out), **listed).record
        self.assertEqual((record["route"], record["schedule"], record["origin"], record["match"]), ("take", CULPRIT, "shipped", "exact"))
        pinned = self.run_cuda("--policy", "pinned", "--decision-table", str(self.out), **listed).record
        self.assertEqual(pinned["schedule"], CULPRIT)
        # A table that says so without a time is no proof.
        table = json.loads(self.out.read_text())
        for candidate in table["decisions"][0]["candidates"]:
            candidate["outcome"] = "untimed"
        self.out.write_text(json.dumps(table))
        self.assertEqual(self.run_cuda("--decision-table", str(self.out), **listed).record["route"], "keep")


if __name__ == "__main__":
    unittest.main()
