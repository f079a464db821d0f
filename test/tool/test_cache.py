"""`sluice cache`: list, verify, prune, clear, path."""

import json
import shutil
import unittest

from program import DEPTHWISE, ENVIRONMENT, GROUPED, ProgramTest


class Cache(ProgramTest):
    def cache_json(self, *arguments, **more):
        return self.sluice("cache", *arguments, "--json", **more).record

    def entries(self):
        return {store["name"]: store["entries"] for store in self.cache_json("ls")["stores"]}

    def test_life_of_a_cache(self):
        self.assertEqual(self.entries(), {"binaries": [], "decisions": []})
        self.run_host(DEPTHWISE, iters=0)
        filled = self.entries()
        self.assertTrue(filled["binaries"] and filled["decisions"])
        for entry in filled["binaries"] + filled["decisions"]:
            self.assertTrue(entry["valid"], entry)
            self.assertIsInstance(entry["meta"], dict)
        self.assertEqual(self.cache_json("verify")["damaged"], 0)
        text = self.sluice("cache", "ls").out
        self.assertIn("binaries", text)
        self.assertIn("0 damaged", text)

        self.assertEqual(set(self.cache_json("prune", "--max-mb", "1000")["freed"].values()), {0})
        self.assertEqual(self.entries(), filled)
        self.assertGreater(self.cache_json("prune", "--max-mb", "0")["freed"]["binaries"], 0)
        self.assertEqual(self.entries(), {"binaries": [], "decisions": []})

        self.run_host(DEPTHWISE, iters=0)
        self.sluice("cache", "clear")
        self.assertEqual(self.entries(), {"binaries": [], "decisions": []})
        self.assertGreater(self.run_host(DEPTHWISE, iters=0).record["counters"]["compiles"], 0)

    def test_clear_leaves_strangers_alone(self):
        self.run_host(DEPTHWISE, iters=0)
        stranger = self.cache / "binaries" / "notes.txt"
        stranger.write_text("mine")
        self.sluice("cache", "clear")
        self.assertEqual(stranger.read_text(), "mine")

    def test_verify_finds_damage(self):
        self.run_host(GROUPED, iters=0)
        victim = next(path for path in (self.cache / "binaries").rglob("*") if path.is_file())
        data = bytearray(victim.read_bytes())
        data[-1] ^= 1
        victim.write_bytes(data)
        outcome = self.sluice("cache", "verify", code=ENVIRONMENT)
        self.assertIn("1 damaged", outcome.out)
        self.assertIn("damaged: ", outcome.out)
        self.assertIn("sluice: 1 damaged", outcome.err)
        self.assertEqual(self.sluice("cache", "ls", "--json").record["damaged"], 1)

    def test_verify_says_when_it_could_not_look(self):
        def linked(store):
            store.rename(self.folder / "elsewhere")
            store.symlink_to(self.folder / "elsewhere")

        def a_file(store):
            shutil.rmtree(store)
            store.write_text("")

        for spoil, said in ((linked, "symbolic link"), (lambda store: store.chmod(0o777), "0700 would be right"),
                            (a_file, "Not a directory")):
            with self.subTest(said):
                shutil.rmtree(self.cache, ignore_errors=True)
                self.run_host(DEPTHWISE, iters=0)
                spoil(self.cache / "binaries")
                outcome = self.sluice("cache", "verify", code=ENVIRONMENT)
                self.assertIn(said, outcome.err)
                self.assertIn("1 of 2 stores not looked at", outcome.out)
                report = json.loads(self.sluice("cache", "verify", "--json", code=ENVIRONMENT).out)
                self.assertEqual([store["problem"] is None for store in report["stores"]], [False, True])

    def test_verify_finds_what_is_never_read(self):
        self.run_host(DEPTHWISE, iters=0)
        folder = next(path for path in (self.cache / "binaries").iterdir() if len(path.name) == 2)
        folder.chmod(0o777)
        self.assertIn("0700 would be right", self.sluice("cache", "verify", code=ENVIRONMENT).out)
        folder.chmod(0o700)
        entry = next(path for path in folder.iterdir())
        entry.chmod(0o666)
        self.assertIn("0600 would be right", self.sluice("cache", "verify", code=ENVIRONMENT).out)

    def test_path(self):
        self.assertEqual(self.sluice("cache", "path").out.strip(), str(self.cache))
        self.assertEqual(self.sluice("cache", "path", "--cache-dir", "/elsewhere").out.strip(), "/elsewhere")
        self.assert_one_complaint(self.sluice("cache", "ls", SLUICE_CACHE_DIR="off", code=ENVIRONMENT), "SLUICE_CACHE_DIR")


if __name__ == "__main__":
    unittest.main(verbosity=2)
