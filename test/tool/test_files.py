"""What stands where a file is to be written, and what a file that goes on being written holds."""

import fcntl
import json
import os
import stat
import subprocess
import time
import unittest

from program import DEPTHWISE, ENVIRONMENT, PROGRAM, ProgramTest, USAGE

CALL = f"{DEPTHWISE} dt=f16 tag=nhwc"
NESTED = "[" * 200000 + "]" * 200000


class Files(ProgramTest):
    def setUp(self):
        super().setUp()
        self.suite = self.folder / "suite.json"
        self.suite.write_text(json.dumps([CALL]))
        self.out = self.folder / "out.json"
        self.part = self.folder / "out.json.part"

    def write_suite(self, out, *extra, code=0):
        return self.sluice("suite", str(self.suite), "--out", str(out), *extra, code=code)

    def tune(self, *extra, out=None, code=0, **environment):
        return self.sluice("tune", "--suite", str(self.suite), "--device", "host", "--tune-ms", "30000", "--out", str(out or self.out), *extra,
                           code=code, **environment)

    def bench(self, *extra, code=0):
        return self.sluice("bench", "--suite", str(self.suite), "--device", "host", "--iters", "2", "--out", str(self.out), *extra, code=code)


class Outputs(Files):
    def test_only_a_regular_file_is_replaced(self):
        pipe, folder = self.folder / "pipe", self.folder / "folder"
        os.mkfifo(pipe)
        folder.mkdir()
        for out, why in ((pipe, "not a regular file"), (folder, "is a directory")):
            for run in (lambda: self.write_suite(out, code=ENVIRONMENT), lambda: self.tune(out=out, code=ENVIRONMENT)):
                outcome = run()
                self.assert_one_complaint(outcome, str(out), why)
        self.assertTrue(stat.S_ISFIFO(pipe.lstat().st_mode))
        self.assertEqual(sorted(os.listdir(self.folder)), ["folder", "pipe", "suite.json"])

    def test_a_symbolic_link_stays_one(self):
        target, link = self.folder / "target.json", self.folder / "link.json"
        target.write_text("before")
        link.symlink_to(target)
        self.write_suite(link)
        self.assertTrue(link.is_symlink())
        self.assertEqual(json.loads(target.read_text())[0]["c"], 8)

    def test_a_name_that_is_no_utf8(self):
        out = os.fsdecode(bytes(self.folder) + b"/\xff.json")
        record = self.tune("--json", out=out).record
        self.assertEqual(record["decisions"], 1)
        self.assertTrue(os.path.exists(out))
        self.sluice("merge", out, "--out", out, "--json")

    def test_an_empty_name(self):
        for words in (("suite", str(self.suite)), ("tune", "--suite", str(self.suite)), ("merge", str(self.suite))):
            self.assert_one_complaint(self.sluice(*words, "--out", "", code=USAGE), "--out", "file's name")


class Growing(Files):
    def test_what_a_kill_left_of_a_header_is_no_obstacle(self):
        self.tune()
        before = {row["problem"] for row in json.loads(self.out.read_text())["decisions"]}
        self.out.unlink()
        for text in ("", '{"schema":1,"dev'):
            with self.subTest(text):
                self.part.write_text(text)
                self.tune()
                self.assertEqual({row["problem"] for row in json.loads(self.out.read_text())["decisions"]}, before)
                self.assertFalse(self.part.exists())
                self.out.unlink()

    def test_rows_behind_an_empty_part_file_are_found_again(self):
        calls = [CALL.replace("mb1", f"mb{1 << n}") for n in range(6)]
        self.suite.write_text(json.dumps(calls))
        self.part.write_text("")
        words = ("tune", "--suite", str(self.suite), "--device", "host", "--tune-ms", "30000", "--out", str(self.out))
        process = subprocess.Popen([PROGRAM, *words], env=self.environment(), stdout=subprocess.DEVNULL)
        while process.poll() is None and not (self.part.exists() and self.part.read_text().endswith("}\n")):
            time.sleep(0.002)
        process.kill()
        process.wait()
        tally = self.tune("--json").record
        self.assertGreaterEqual(tally["already_there"], 1)
        self.assertEqual(tally["decisions"], len(calls))

    def test_one_process_at_a_time(self):
        for run in (self.tune, self.bench):
            with open(self.part, "w") as held:
                held.write("{}\n")
                held.flush()
                fcntl.flock(held, fcntl.LOCK_EX)
                self.assert_one_complaint(run(code=ENVIRONMENT), str(self.part), "another process")
                self.assertEqual(self.part.read_text(), "{}\n")
                self.assertFalse(self.out.exists())
            self.part.unlink()
            run()
            self.assertFalse(self.part.exists())
            self.out.unlink()

    def test_a_table_that_is_not_as_it_should_be_is_left_alone(self):
        self.tune()
        good = json.loads(self.out.read_text())
        row = good["decisions"][0]
        texts = {
            "schema is 99": json.dumps(dict(good, schema=99)),
            "budget_ms": json.dumps(dict(good, decisions=[dict(row, budget_ms="x")])),
            "candidates": json.dumps(dict(good, decisions=[dict(row, candidates=5)])),
            "unknown key": json.dumps(dict(good, more=1)),
            "nested deeper": json.dumps(dict(good, decisions=[dict(row, more="@")])).replace('"@"', NESTED),
            "occurs twice": json.dumps(good).replace('"schema"', '"schema": 1, "schema"', 1),
        }
        for what, text in texts.items():
            with self.subTest(what):
                self.out.write_text(text)
                self.assert_one_complaint(self.tune(code=USAGE), str(self.out), what, "remove the file")
                self.assertEqual(self.out.read_text(), text)

    def test_results_that_are_not_as_they_should_be_are_left_alone(self):
        self.bench()
        good = json.loads(self.out.read_text())
        row = good["rows"][0]
        changes = {"time_us": -1, "signature": "zz", "rivals": [1], "device_lost": "x"}
        texts = {key: json.dumps(dict(good, rows=[dict(row, **{key: value})])) for key, value in changes.items()}
        texts["nested deeper"] = json.dumps(dict(good, rows=[dict(row, more="@")])).replace('"@"', NESTED)
        for what, text in texts.items():
            with self.subTest(what):
                self.out.write_text(text)
                self.assert_one_complaint(self.bench(code=USAGE), str(self.out), what)
                self.assertEqual(self.out.read_text(), text)


class Inputs(Files):
    def test_what_never_ends_is_no_table(self):
        for words in (("merge", "/dev/zero"), ("derive", "/dev/zero"), ("lint", "/dev/zero")):
            extra = () if words[0] == "lint" else ("--out", str(self.out))
            outcome = self.sluice(*words, *extra, code=ENVIRONMENT)
            self.assertIn("/dev/zero: is not a regular file", outcome.err)
            self.assertFalse(self.out.exists())

    def test_a_suite_without_a_call(self):
        for text in ("", "[]", "# nothing\n"):
            self.suite.write_text(text)
            self.assert_one_complaint(self.tune(code=USAGE), str(self.suite), "holds no call")
            self.assertFalse(self.out.exists())

    def test_numbers_that_are_none(self):
        for words in (("--budget", "nan"), ("--tune-ms", "nan"), ("--seed", "-1"), ("--seed", "9" * 30), ("--seed", "x")):
            self.assert_one_complaint(self.tune(*words, code=USAGE), words[0], words[1])

    def test_schedules_that_do_not_exist(self):
        for variable in ("SLUICE_FORCE_SCHEDULE", "SLUICE_DISABLE_SCHEDULES"):
            self.assert_one_complaint(self.tune(code=USAGE, **{variable: "dw_flt"}), variable, "dw_flt", "dw_flat")


if __name__ == "__main__":
    unittest.main()
