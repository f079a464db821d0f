"""`sluice tune` and `sluice merge` on the host device: tables, shards, resuming, what is not mixed."""

import copy
import json
import os
import pathlib
import signal
import subprocess
import time
import unittest

from program import DEPTHWISE, ENVIRONMENT, GROUPED, PROGRAM, ProgramTest, USAGE

CALLS = [f"{DEPTHWISE} dt=f16 tag=nhwc", f"{DEPTHWISE} dt=f32 tag=nchw", f"{GROUPED} dt=f32 tag=nchw", f"{GROUPED} dt=bf16 tag=nhwc"]


class Tables(ProgramTest):
    def setUp(self):
        super().setUp()
        self.suite = self.folder / "suite.json"
        self.suite.write_text(json.dumps(CALLS))
        self.out = self.folder / "table.json"

    def words(self, *extra, out=None):
        return ("tune", "--suite", str(self.suite), "--out", str(out or self.out), "--device", "host", "--tune-ms", "30000", *extra)

    def tune(self, *extra, out=None, code=0):
        return self.sluice(*self.words(*extra, out=out), code=code)

    def merge(self, *tables, out=None, code=0, extra=()):
        return self.sluice("merge", *map(str, tables), "--out", str(out or self.out), *extra, code=code)

    def table(self, path=None):
        return json.loads((path or self.out).read_text())


class Tune(Tables):
    def test_a_table_serves_policy_pinned_and_has_every_time(self):
        tally = self.tune("--json").record
        self.assertEqual((tally["tuned"], tally["failed"], tally["decisions"]), (4, 0, 4))
        table = self.table()
        self.assertEqual(table["device"]["name"], "host")
        self.assertEqual({row["problem"] for row in table["decisions"]}, set(CALLS))
        for row in table["decisions"]:
            self.assertTrue(row["schedule"] and row["schedule_digest"] and row["candidate_set"])
            self.assertTrue(any(c["outcome"] == "timed" and c["median_us"] > 0 for c in row["candidates"]), row)
        record = self.run_host(*CALLS[0].split(), "--policy", "pinned", "--decision-table", str(self.out)).record
        self.assertEqual(record["counters"]["tunings"], 0)
        chosen = next(row for row in table["decisions"] if row["problem"] == CALLS[0])
        self.assertEqual((record["schedule"], record["config"]), (chosen["schedule"], chosen["config"]))

    def test_rows_that_still_apply_stay(self):
        self.tune()
        before = self.table()
        tally = self.tune("--json").record
        self.assertEqual((tally["tuned"], tally["already_there"]), (0, 4))
        self.assertEqual(self.table(), before)
        stale = copy.deepcopy(before)
        stale["decisions"][0]["schedule_digest"] = "0" * len(stale["decisions"][0]["schedule_digest"])
        self.out.write_text(json.dumps(stale))
        tally = self.tune("--json").record
        self.assertEqual((tally["tuned"], tally["already_there"]), (1, 3), "a winner of another build is tuned again")

    def test_only_missing_takes_the_store(self):
        self.tune("--json")
        other = self.folder / "other.json"
        tally = self.tune("--json", "--only-missing", out=other).record
        self.assertEqual(tally["decisions"], 4)
        key = lambda table: {row["problem"]: (row["schedule"], row["config"]) for row in table["decisions"]}
        self.assertEqual(key(self.table(other)), key(self.table()))

    def test_what_no_schedule_can_run_is_counted_not_hidden(self):
        self.suite.write_text(json.dumps([CALLS[0], "g1mb1ic1ih1iw600000000oc1oh1ow600000000kh1kw1 dt=f16 tag=nchw"]))
        tally = self.tune("--json").record
        self.assertEqual((tally["tuned"], tally["cannot"], tally["failed"]), (1, 1, 0))

    def test_killed_and_resumed(self):
        process = subprocess.Popen([PROGRAM, *self.words()], env=self.environment(), stdout=subprocess.DEVNULL)
        part = self.folder / "table.json.part"
        deadline = time.time() + 60
        while time.time() < deadline and process.poll() is None:
            if part.exists() and len(part.read_text().splitlines()) >= 2:
                break
            time.sleep(0.01)
        process.kill()
        process.wait()
        self.assertFalse(self.out.exists())
        kept = len([line for line in part.read_text().splitlines()[1:] if line.endswith("}")])
        self.assertGreaterEqual(kept, 1)
        tally = self.tune("--json").record
        self.assertGreaterEqual(tally["already_there"], kept)
        self.assertEqual({row["problem"] for row in self.table()["decisions"]}, set(CALLS))

    def test_jobs(self):
        tally = self.tune("--json", "--jobs", "2").record
        self.assertEqual(tally["decisions"], 4)
        self.assertEqual({row["problem"] for row in self.table()["decisions"]}, set(CALLS))
        self.assertEqual(sorted(os.listdir(self.folder)), ["cache", "suite.json", "table.json"])

    def test_jobs_end_with_the_process_that_started_them(self):
        process = subprocess.Popen([PROGRAM, *self.words(), "--jobs", "2"], env=self.environment(), stdout=subprocess.DEVNULL)
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
        parts = [self.folder / f"table.json.job{job}.part" for job in (0, 1)]
        deadline = time.time() + 60
        while time.time() < deadline and process.poll() is None and not all(part.exists() for part in parts):
            time.sleep(0.01)
        jobs = [int(pid) for pid in children.read_text().split()]
        self.assertEqual(len(jobs), 2)
        for job in jobs:
            os.kill(job, signal.SIGSTOP)  # so that none ends by itself
        process.kill()
        process.wait()

        def alive(job):
            status = pathlib.Path(f"/proc/{job}/status")
            return status.exists() and "\nState:\tZ" not in status.read_text()

        deadline = time.time() + 10
        while time.time() < deadline and any(map(alive, jobs)):
            time.sleep(0.01)
        left = [job for job in jobs if alive(job)]
        for job in left:
            os.kill(job, signal.SIGKILL)
        self.assertEqual(left, [], "a job goes on alone")
        self.assertFalse(self.out.exists())
        self.assertEqual(self.tune("--json", "--jobs", "2").record["decisions"], 4)

    def test_jobs_do_not_tune_again_what_still_applies(self):
        self.tune()
        other = f"{DEPTHWISE.replace('mb1', 'mb3')} dt=f32 tag=nhwc"
        table = self.table()
        other_row = dict(table["decisions"][0], problem=other)  # of no call of the suite: stays
        table["decisions"][1]["schedule_digest"] = "0" * 32  # of another build: tuned again
        table["decisions"].append(other_row)
        self.out.write_text(json.dumps(table))
        outcome = self.tune("--json", "--jobs", "2")
        tally = outcome.record
        self.assertEqual((tally["tuned"], tally["already_there"], tally["decisions"]), (1, 3, 5), str(outcome))
        self.assertEqual(outcome.err, "", "a job's report is no message")
        rows = {row["problem"]: row for row in self.table()["decisions"]}
        self.assertEqual(rows[other], other_row)
        self.assertEqual(rows[table["decisions"][0]["problem"]], table["decisions"][0])
        self.assertNotIn("0" * 32, [row["schedule_digest"] for row in rows.values()])

    def test_bad_input(self):
        for text in ("2", "0/2", "3/2", "1/2x", "a/b"):
            self.assertIn("must be I/N", self.tune("--shard", text, code=USAGE).err)
        self.out.write_text('{"rows": []}')
        self.assertIn("not a file of `sluice tune`", self.tune(code=USAGE).err)
        self.assertEqual(self.out.read_text(), '{"rows": []}')


class Compile(Tables):
    def compile(self, *extra, code=0):
        return self.sluice("compile", "--suite", str(self.suite), *extra, code=code)

    def test_what_is_compiled_ahead_is_not_compiled_again(self):
        first = self.compile("--device", "host", "--json").record
        self.assertEqual((first["calls"], first["failed"], first["left"]), (4, 0, 0))
        self.assertEqual(first["compiled"], first["kernels"])
        again = self.compile("--device", "host", "--json").record
        self.assertEqual((again["compiled"], again["already_there"]), (0, first["kernels"]))
        self.assertEqual(self.run_host(*CALLS[0].split()).record["counters"]["compiles"], 0)

    def test_bad_input(self):
        self.assertIn("no cache", self.compile("--device", "host", "--cache-dir", "off", code=ENVIRONMENT).err)
        self.compile("--device", "nonsense", code=USAGE)


class Merge(Tables):
    def shards(self):
        parts = [self.folder / f"part{i}.json" for i in (1, 2)]
        for i, part in enumerate(parts):
            self.tune("--shard", f"{i + 1}/2", out=part)
        return parts

    def test_shards_are_the_whole(self):
        parts = self.shards()
        self.assertEqual([len(self.table(part)["decisions"]) for part in parts], [2, 2])
        merged = self.merge(*parts, extra=("--json",)).record
        self.assertEqual((merged["tables"], merged["decisions"], merged["duplicates"]), (2, 4, 0))
        first = self.out.read_bytes()
        self.merge(*reversed(parts))
        self.assertEqual(self.out.read_bytes(), first, "the order of the tables does not matter")
        self.assertEqual(self.merge(self.out, parts[0], extra=("--json",)).record["duplicates"], 2)
        self.assertEqual(self.out.read_bytes(), first)

    def test_what_does_not_belong_together_is_refused(self):
        parts = self.shards()
        good = self.table(parts[1])
        other = self.table(parts[0])["decisions"][0]
        changes = {
            "device": lambda table: table["device"].update(name="another") or [row.update(device="another") for row in table["decisions"]],
            "driver": lambda table: table["decisions"][0].update(driver="1.2"),
            # Which schedule wins a call is the machine's to say, so it is given one that the other part has.
            "the build of schedule": lambda table: table["decisions"][0].update(schedule=other["schedule"], schedule_digest="f" * 32),
        }
        self.out.write_text("before")
        for what, change in changes.items():
            with self.subTest(what):
                table = copy.deepcopy(good)
                change(table)
                parts[1].write_text(json.dumps(table))
                error = self.merge(*parts, code=USAGE).err
                self.assertIn(what, error)
                self.assertIn(str(parts[1]), error)
                self.assertEqual(self.out.read_text(), "before")
        for text in ("", "{", '{"schema": 1}', '{"schema": 99, "device": {}, "decisions": []}', json.dumps(good)[:-40]):
            parts[1].write_text(text)
            self.assertIn(str(parts[1]), self.merge(*parts, code=USAGE).err)
            self.assertEqual(self.out.read_text(), "before")

    def test_ten_thousand_decisions_of_64_shards(self):
        self.suite.write_text(json.dumps(CALLS[:1]))
        self.tune()
        table = self.table()
        row = table["decisions"][0]
        row["candidates"] = row["candidates"][:1]  # reading them all is most of the time, and no other row's are different
        parts = []
        for shard in range(64):
            rows = [dict(row, problem=CALLS[0].replace("mb1", f"mb{1 + i}")) for i in range(shard, 10000, 64)]
            parts.append(self.folder / f"s{shard}.json")
            parts[-1].write_text(json.dumps(dict(table, decisions=rows)))
        merged = self.merge(*parts, extra=("--json",)).record
        self.assertEqual((merged["tables"], merged["decisions"], merged["duplicates"]), (64, 10000, 0))
        self.assertEqual(len({decision["problem"] for decision in self.table()["decisions"]}), 10000)


if __name__ == "__main__":
    unittest.main()
