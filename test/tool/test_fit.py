"""`sluice fit`: tuned on the host device, learned from, picked by: one kernel compiled, nothing timed."""

import copy
import json
import unittest

from program import ProgramTest, USAGE


def depthwise(channels, size, kernel, dt="f32", tag="nhwc"):
    return f"g{channels}mb1ic{channels}ih{size}oc{channels}oh{size}kh{kernel}ph{kernel // 2} dt={dt} tag={tag}"


CALLS = [depthwise(c, h, k) for c, h, k in ((8, 14, 3), (16, 7, 3), (16, 14, 5), (32, 10, 3), (24, 8, 3), (32, 7, 5), (8, 20, 3), (48, 6, 3))]
UNSEEN = depthwise(24, 12, 3)


class Fit(ProgramTest):
    tuned = None  # the table of CALLS, tuned once

    def setUp(self):
        super().setUp()
        self.out = self.folder / "model.json"
        self.table = self.folder / "table.json"

    def fit(self, *words, code=0):
        return self.sluice("fit", *map(str, words), "--out", str(self.out), code=code)

    def tune(self, calls=CALLS, out=None, *extra, **environment):
        suite = self.folder / "calls.json"
        suite.write_text(json.dumps(calls))
        return self.sluice("tune", "--suite", str(suite), "--out", str(out or self.table), "--device", "host", "--tune-ms", "60000",
                           "--json", *extra, **environment).record

    def a_table(self):
        if Fit.tuned is None:
            self.tune()
            Fit.tuned = self.table.read_text()
        return json.loads(Fit.tuned)

    def taught(self, table, best):
        """The table with times that make `best(candidate)` the fastest: what the host measured says nothing in a test."""
        for row in table["decisions"]:
            place = {}
            for candidate in row["candidates"]:
                rank = place[candidate["schedule"]] = place.get(candidate["schedule"], -1) + 1
                candidate.update(outcome="timed", median_us=10.0 if best(candidate, rank) else 20.0 + rank)
        return table


class Pipeline(Fit):
    def test_tuned_learned_from_and_picked_by(self):
        # Two shards and one of them resumed, then joined: what a fleet makes.
        parts = [self.folder / f"part{i}.json" for i in (1, 2)]
        for i, part in enumerate(parts):
            self.tune(CALLS, part, "--shard", f"{i + 1}/2")
        self.assertEqual(self.tune(CALLS, parts[0], "--shard", "1/2")["already_there"], len(CALLS) // 2)
        self.sluice("merge", *map(str, parts), "--out", str(self.table))
        table = json.loads(self.table.read_text())
        for row in table["decisions"]:
            self.assertTrue(all(c["median_us"] > 0 for c in row["candidates"] if c["outcome"] in ("timed", "slow")), row)
            self.assertTrue(all(c["schedule"] and c["config"] for c in row["candidates"]), row)

        # The real times may or may not beat the schedules' own order on so few calls; they are read in any case.
        real = self.sluice("fit", str(self.table), "--out", str(self.folder / "real.json"), "--json", code=None)
        self.assertIn(real.code, (0, USAGE), str(real))
        if real.code == USAGE:
            self.assertIn(f"learned from {len(CALLS)} calls", real.err)

        # Times that make dw_direct's second choice the best everywhere: no other order has it first.
        self.table.write_text(json.dumps(self.taught(table, lambda c, rank: c["schedule"] == "dw_direct" and rank == 1)))
        report = self.fit(self.table, "--json").record
        self.assertEqual((report["predicts"], report["calls"], report["incomplete"], report["left_out_by"]), ("time", len(CALLS), 0, "shapes"))
        self.assertEqual(report["left_out"]["calls"], len(CALLS))
        self.assertEqual(report["left_out"]["time_over_best"], 1)
        self.assertGreater(report["left_out"]["default_time_over_best"], 1.5)
        first = self.out.read_bytes()
        self.fit(self.table)
        self.assertEqual(self.out.read_bytes(), first, "the same input gives the same model")
        model = json.loads(first)
        self.assertEqual(model["device"], {"name": "host", "capability": 90})
        self.assertEqual(model["evidence"]["calls"], len(CALLS))
        lint = self.sluice("lint", str(self.out), "--json").record["files"][0]
        self.assertFalse(any(finding["error"] for finding in lint["findings"]), lint)

        # Policy immediate picks by it, and compiles that one kernel.
        words = UNSEEN.split()
        dry = self.sluice("explain", *words, "--device", "host", "--policy", "immediate", "--heuristic", str(self.out), "--json").record
        direct = [c for c in dry["candidates"] if c["schedule"] == "dw_direct"]
        self.assertEqual((dry["schedule"], dry["config"]), ("dw_direct", direct[1]["config"]))
        self.assertEqual((dry["heuristic"], dry["origin"]), (str(self.out), "heuristic"))
        self.assertEqual(direct[1]["predicted"], min(c["predicted"] for c in dry["candidates"] if c["predicted"]))
        self.assertEqual(set(dry["counters"].values()), {0})
        default = self.sluice("explain", *words, "--device", "host", "--policy", "immediate", "--json").record
        self.assertIsNone(default["heuristic"])
        self.assertEqual((default["schedule"], default["config"]), (dry["candidates"][0]["schedule"], dry["candidates"][0]["config"]))
        self.assertNotEqual((default["schedule"], default["config"]), (dry["schedule"], dry["config"]))
        empty = str(self.folder / "empty")  # tuning has filled the other cache, with kernels that serve any size
        ran = self.run_host(*words, "--policy", "immediate", SLUICE_HEURISTIC=str(self.out), SLUICE_CACHE_DIR=empty).record
        self.assertEqual((ran["schedule"], ran["config"], ran["heuristic"]), (dry["schedule"], dry["config"], str(self.out)))
        self.assertEqual((ran["counters"]["compiles"], ran["counters"]["tunings"], ran["outputs_wrong"]), (1, 0, 0))
        self.assertEqual({c["outcome"] for c in ran["candidates"]}, {"untimed"})
        text = self.sluice("explain", *words, "--device", "host", "--policy", "immediate", "--heuristic", str(self.out)).out
        self.assertIn(str(self.out), text)
        self.assertIn("predicted", text)
        found = self.sluice("env", "--json", SLUICE_HEURISTIC=str(self.out)).record["heuristics"]
        self.assertEqual(found[-1]["heuristic"], str(self.out))

        # A table that is tuned with it holds what it would have said, beside what was measured.
        beside = self.folder / "beside.json"
        self.tune([UNSEEN], beside, SLUICE_HEURISTIC=str(self.out))
        row = json.loads(beside.read_text())["decisions"][0]
        said = {(c["schedule"], c["config"]): c["predicted"] for c in row["candidates"] if "predicted" in c}
        self.assertEqual(min(said, key=said.get), (dry["schedule"], dry["config"]))
        self.assertTrue(any(c["median_us"] > 0 for c in row["candidates"]))
        # And one that takes over what was tuned without it.
        tables = [self.folder / "without.json", self.folder / "later.json"]
        self.tune([UNSEEN], tables[0])
        self.tune([UNSEEN], tables[1], "--only-missing", SLUICE_HEURISTIC=str(self.out))
        without, later = (json.loads(path.read_text())["decisions"][0]["candidates"] for path in tables)
        self.assertEqual([c["median_us"] for c in later], [c["median_us"] for c in without])
        self.assertFalse(any("predicted" in c for c in without))
        self.assertEqual({(c["schedule"], c["config"]): c["predicted"] for c in later if "predicted" in c}, said)

        # Another device has no use for it.
        wrong = self.sluice("explain", *words, "--device", "h200", "--heuristic", str(self.out), code=USAGE)
        self.assert_one_complaint(wrong, str(self.out), "host (capability 90)", "NVIDIA H200")

    def test_whole_networks_are_left_out(self):
        table = self.taught(self.a_table(), lambda c, rank: c["schedule"] == "dw_flat")
        self.table.write_text(json.dumps(table))
        suite = self.folder / "networks.json"
        entry = lambda c, h, k, *networks: {"c": c, "h": h, "w": h, "k": c, "groups": c, "kh": k, "kw": k, "stride": [1, 1],
                                            "pad": [k // 2, k // 2], "dil": [1, 1], "networks": networks}
        suite.write_text(json.dumps([entry(8, 14, 3, "a"), entry(16, 7, 3, "a", "b"), entry(16, 14, 5, "b"), entry(999, 14, 5, "c")]))
        report = self.fit(self.table, "--suite", suite, "--json").record
        self.assertEqual((report["left_out_by"], report["groups"], report["left_out"]["calls"]), ("networks", 2, 4))
        suite.write_text(json.dumps([entry(999, 14, 5, "c")]))
        self.assertIn("no suite names a network", self.fit(self.table, "--suite", suite, code=USAGE).err)
        suite.write_text(json.dumps([UNSEEN]))
        self.assertIn("no suite names a network", self.fit(self.table, "--suite", suite, code=USAGE).err)

    def test_what_cannot_be_learned_from_is_named_and_the_model_stays(self):
        table = self.taught(self.a_table(), lambda c, rank: c["schedule"] == "dw_flat")
        other = self.folder / "other.json"
        self.out.write_text("before")

        def refused(change, *says, tables=None):
            bad = copy.deepcopy(table)
            text = change(bad)
            other.write_text(text if isinstance(text, str) else json.dumps(bad))
            outcome = self.fit(*(tables or (other,)), code=USAGE)
            for part in says:
                self.assertIn(part, outcome.err)
            self.assertEqual(self.out.read_text(), "before")

        self.table.write_text(json.dumps(table))
        both = (self.table, other)
        refused(lambda t: "", "other.json", "not JSON")
        refused(lambda t: json.dumps(t)[:-60], "other.json", "not JSON")
        refused(lambda t: t.update(decisions=[]), "no tuned call to learn from")
        refused(lambda t: t.update(schema=99), "this library reads 1")
        refused(lambda t: "{}", "other.json")
        refused(lambda t: t["device"].update(sm_count=3), "other.json: device is", "not of one tuning", tables=both)
        refused(lambda t: t["decisions"][-1].update(driver="2"), "driver is 2", "not of one tuning")
        refused(lambda t: t["decisions"][0].update(candidate_set="0" * 32), "tuned with other candidates", table["decisions"][0]["problem"])
        refused(lambda t: [c.update(outcome="skipped: budget") for row in t["decisions"] for c in row["candidates"][:1]],
                f"of {len(CALLS)} calls not every candidate was timed", "--tune-ms")
        refused(lambda t: t.update(decisions=t["decisions"][:1]), "one shape only")
        refused(lambda t: [row["candidates"][0].update(median_us=1) for row in t["decisions"]], "schedules' own order")
        rows = json.dumps({"gpu": "NVIDIA H200", "capability": 90, "driver": "1", "commit": "a"})
        refused(lambda t: rows, "winners only", "every candidate's time", tables=both)

    def test_rows_without_every_time_are_counted(self):
        table = self.taught(self.a_table(), lambda c, rank: c["schedule"] == "dw_flat")
        table["decisions"][0]["candidates"][0]["outcome"] = "skipped: budget"
        self.table.write_text(json.dumps(table))
        other = self.folder / "again.json"
        other.write_text(json.dumps(dict(table, decisions=table["decisions"][1:3])))
        report = self.fit(self.table, other, "--json").record
        self.assertEqual((report["calls"], report["incomplete"], report["duplicates"]), (len(CALLS) - 1, 1, 2))
        # Of two measurements with one budget the same stands, whatever the order.
        moved = copy.deepcopy(table)
        for row in moved["decisions"][1:3]:
            for candidate in row["candidates"]:
                candidate["median_us"] *= 2 if candidate["schedule"] == "dw_flat" else 1
        other.write_text(json.dumps(moved))
        models = []
        for tables in ((self.table, other), (other, self.table)):
            self.fit(*tables)
            models.append(self.out.read_bytes())
        self.assertEqual(*models)


class Winners(Fit):
    """Rows that say who won and nothing of the others: schedules can be learned, times cannot."""

    def rows(self, commit="abc", gpu="NVIDIA H200", winner=lambda size: "dw_flat" if size <= 14 else "dw_row8", shape=lambda c, h: depthwise(c, h, 3)):
        lines = [{"gpu": gpu, "capability": 90, "driver": "580.1", "commit": commit}]
        for channels in (32, 64, 96, 144):
            for size in (7, 10, 14, 28, 40, 56):
                lines.append({"signature": shape(channels, size), "schedule": winner(size), "config": "vec=1,cols=1,threads=128", "time_us": 3})
        path = self.folder / f"rows{len(list(self.folder.iterdir()))}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return path

    def test_schedules_are_learned(self):
        report = self.fit(self.rows(), "--json").record
        self.assertEqual((report["predicts"], report["calls"]), ("winner", 24))
        self.assertEqual(report["left_out"]["winner_missed"], 0)
        self.assertGreater(report["left_out"]["default_winner_missed"], 0.4)
        self.assertTrue(all("config" not in schedule for schedule in json.loads(self.out.read_text())["schedules"]))
        for size, schedule in ((8, "dw_flat"), (48, "dw_row8")):
            record = self.sluice("explain", *depthwise(80, size, 3).split(), "--device", "h200", "--force", "--heuristic", str(self.out), "--json").record
            self.assertEqual(record["schedule"], schedule)
            self.assertEqual(record["config"], next(c["config"] for c in record["candidates"] if c["schedule"] == schedule))

    def test_results_of_bench_are_rows_too(self):
        lines = [json.loads(line) for line in self.rows().read_text().splitlines()]
        path = self.folder / "kernels.json"
        path.write_text(json.dumps(dict(lines[0], driver="580.1 (CUDA 13.0)", rows=lines[1:])))
        report = self.fit(path, self.rows(), "--json").record
        self.assertEqual((report["calls"], report["duplicates"]), (24, 24))

    def test_what_does_not_belong_together_is_refused(self):
        good = self.rows()
        for other, says in ((self.rows(commit="def"), "commit is def"), (self.rows(gpu="NVIDIA Z900"), "gpu is NVIDIA Z900")):
            self.assertIn(says, self.fit(good, other, code=USAGE).err)
        self.assertIn("has no description", self.fit(self.rows(gpu="NVIDIA Z900"), code=USAGE).err)
        self.assertIn("no candidate of this build", self.fit(self.rows(winner=lambda size: "dw_gone"), code=USAGE).err)
        self.assertIn(":2: signature", self.fit(self.rows(shape=lambda c, h: "x"), code=USAGE).err)
        cut = self.folder / "cut.jsonl"
        cut.write_text(good.read_text()[:-30])
        self.assertIn("cut.jsonl:25:", self.fit(cut, code=USAGE).err)


if __name__ == "__main__":
    unittest.main()
