"""Help, colour, progress, devices and the support report."""

import os
import pty
import subprocess
import unittest

from program import DENSE, DEPTHWISE, ENVIRONMENT, PROGRAM, ProgramTest

ESCAPE = "\033["


class Help(ProgramTest):
    def test_help_teaches(self):
        text = self.sluice("--help").out
        for part in ("Examples:", "Exit codes", "benchdnn", "run", "explain", "cache", "env", "devices"):
            self.assertIn(part, text)
        for command in (("run",), ("explain",), ("cache",), ("cache", "ls"), ("env",), ("devices",)):
            with self.subTest(command=command):
                self.assertIn("--help", self.sluice(*command, "--help").out)

    def test_version(self):
        self.assertRegex(self.sluice("--version").out, r"^sluice \d+\.\d+\.\d+$")


class Terminal(ProgramTest):
    def on_terminal(self, stream, *arguments, **environment):
        """What the program writes where `stream` (stdout or stderr) is a terminal."""
        leader, follower = pty.openpty()
        streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, stream: follower}
        process = subprocess.Popen([PROGRAM, *arguments], env=self.environment(**environment),
                                   stdin=subprocess.DEVNULL, **streams)
        os.close(follower)
        text = b""
        try:
            while chunk := os.read(leader, 65536):
                text += chunk
        except OSError:  # the other side is closed
            pass
        os.close(leader)
        self.assertEqual(process.wait(timeout=300), 0)
        return text.decode()

    def test_colour_only_on_a_terminal_that_wants_it(self):
        arguments = ("explain", DENSE, "--device", "h200")
        self.assertIn(ESCAPE, self.on_terminal("stdout", *arguments, TERM="xterm"))
        self.assertNotIn(ESCAPE, self.on_terminal("stdout", *arguments, TERM="xterm", NO_COLOR="1"))
        self.assertNotIn(ESCAPE, self.on_terminal("stdout", *arguments, TERM="dumb"))
        self.assertNotIn(ESCAPE, self.sluice(*arguments, TERM="xterm").out)

    def test_progress_only_on_a_terminal(self):
        arguments = ("run", DEPTHWISE, "--device", "host", "--iters", "0")
        self.assertIn("deciding", self.on_terminal("stderr", *arguments))
        self.assertEqual(self.sluice(*arguments).err, "")


class Reports(ProgramTest):
    def test_a_full_disk_is_not_success(self):
        for arguments in (("env",), ("env", "--json"), ("devices",), ("--help",), ("explain", DENSE, "--device", "h200")):
            with self.subTest(arguments=arguments), open("/dev/full", "w") as full:
                process = subprocess.run([PROGRAM, *arguments], env=self.environment(), stdout=full,
                                         stderr=subprocess.PIPE, text=True, timeout=300, stdin=subprocess.DEVNULL)
                self.assertEqual(process.returncode, ENVIRONMENT, process.stderr)
                self.assertIn("cannot write to stdout", process.stderr)

    def test_devices(self):
        report = self.sluice("devices", "--json").record
        self.assertIn("host", [d["device"] for d in report["devices"]])
        self.assertEqual({"a100", "h100", "h200", "rtx4090", "rtx5090", "b200", "mi300x"},
                         {d["device"] for d in report["described"]})
        text = self.sluice("devices").out
        for part in ("host", "h200", "mi300x"):
            self.assertIn(part, text)

    def test_env(self):
        report = self.sluice("env", "--json", SLUICE_POLICY="immediate", SLUICE_POLCY="typo").record
        self.assertTrue(report["host_compiler"]["available"])
        self.assertTrue(report["host_compiler"]["version"])
        self.assertIn("path", report["nvrtc"])
        self.assertEqual(report["cache"]["root"], str(self.cache))
        self.assertTrue(report["cache"]["binaries"]["writable"])
        values = {v["name"]: v["value"] for v in report["variables"]}
        self.assertEqual(values["SLUICE_POLICY"], "immediate")
        self.assertIn({"name": "SLUICE_POLCY", "value": "typo"}, report["unknown_variables"])
        text = self.sluice("env", SLUICE_POLICY="immediate").out
        for part in ("driver", "NVRTC", "host c++", "SLUICE_CACHE_DIR", "immediate", str(self.cache)):
            self.assertIn(part, text)

    def test_env_reports_what_is_missing(self):
        blocker = self.folder / "file"
        blocker.write_text("")
        report = self.sluice("env", "--json", SLUICE_CACHE_DIR=str(blocker / "x"), SLUICE_HOST_CXX="/no/compiler",
                             SLUICE_NVRTC="/no/nvrtc", SLUICE_LIBCUDA="/no/libcuda").record
        self.assertFalse(report["cache"]["binaries"]["writable"])
        self.assertFalse(report["host_compiler"]["available"])
        self.assertIn("/no/libcuda", report["cuda"]["problem"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
