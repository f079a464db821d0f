"""Runs the program under test in an environment of its own."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

PROGRAM = os.environ["SLUICE_PROGRAM"]
DEPTHWISE = "g8mb1ic8ih10iw12oc8oh10ow12kh3kw3ph1pw1"
GROUPED = "g4mb1ic16ih9iw8oc16oh9ow8kh3kw3ph1pw1"
DENSE = "mb1ic64ih8oc64oh8kh3ph1"  # legal, and no table takes it
DONE, USAGE, DEVICE, WRONG, ENVIRONMENT = 0, 2, 3, 4, 5


class Outcome:
    def __init__(self, process):
        self.code = process.returncode
        self.out = process.stdout
        self.err = process.stderr
        self.what = " ".join(process.args)

    @property
    def record(self):
        return json.loads(self.out)

    @property
    def warnings(self):
        return [line for line in self.err.splitlines() if line.startswith("sluice: warning: ")]

    def __str__(self):
        return f"{self.what}\nexit {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


class ProgramTest(unittest.TestCase):
    """Each test has a cache directory that does not exist yet."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="sluice-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.cache = self.folder / "cache"

    def environment(self, **extra):
        # The build names a quick compiler for the host device's kernels.
        kept = {k: v for k, v in os.environ.items()
                if k == "SLUICE_HOST_CXX" or not k.startswith("SLUICE_") and k not in ("NO_COLOR", "TERM")}
        # Which kernels have passed the sanitizers changes with every kernel: no test rests on it that does not say so.
        return {**kept, "SLUICE_CACHE_DIR": str(self.cache), "SLUICE_SANITIZED": "all", **extra}

    def sluice(self, *arguments, code=DONE, **environment):
        process = subprocess.run([PROGRAM, *arguments], env=self.environment(**environment), capture_output=True,
                                 text=True, timeout=300, stdin=subprocess.DEVNULL)
        outcome = Outcome(process)
        if code is not None:
            self.assertEqual(outcome.code, code, str(outcome))
        return outcome

    def run_host(self, problem, *arguments, code=DONE, iters=2, **environment):
        """`sluice run` on the host device with few timed replays, as JSON."""
        return self.sluice("run", problem, "--device", "host", "--iters", str(iters), "--json", *arguments, code=code,
                           **environment)

    def routing_table(self, device="any", rules=()):
        """A table in a file; without rules it keeps every call."""
        path = self.folder / "table.json"
        path.write_text(json.dumps({"schema": 1, "device": device, "rules": list(rules)}))
        return str(path)

    def assert_one_complaint(self, outcome, *parts):
        """One line on stderr, from the program, that names what is wrong; nothing on stdout."""
        lines = outcome.err.splitlines()
        self.assertEqual(len(lines), 1, str(outcome))
        self.assertTrue(lines[0].startswith("sluice: "), str(outcome))
        for part in parts:
            self.assertIn(part, lines[0])
