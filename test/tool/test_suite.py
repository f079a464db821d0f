"""`sluice suite`: models, recordings, benchdnn's files and suites in, one suite out; or a grid that is drawn."""

import json
import pathlib
import shutil
import subprocess
import unittest

import onnx_file
from program import DENSE, DEPTHWISE, ENVIRONMENT, GROUPED, PROGRAM, USAGE, ProgramTest

GRID = pathlib.Path(__file__).parents[2] / "configs" / "suites" / "grid.json"
ONNX = (pathlib.Path(PROGRAM).parent / "sluice-rewrite").exists()
OBJECT = {"c": 8, "h": 7, "w": 9, "k": 8, "groups": 8, "kh": 3, "kw": 3, "stride": [1, 1], "pad": [1, 1], "dil": [1, 1]}


class SuiteTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.out = self.folder / "suite.json"

    def file(self, name, text):
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    def suite(self, *arguments, code=0, **environment):
        return self.sluice("suite", *map(str, arguments), "--out", str(self.out), "--json", code=code, **environment)

    def made(self, *arguments):
        """What was written, and the summary."""
        record = self.suite(*arguments).record
        calls = json.loads(self.out.read_text())
        self.assertEqual(record["calls"], len(calls))
        self.assertEqual(record["occurrences"], sum(call.get("count", 1) for call in calls))
        return calls, record

    def refuse(self, *parts, code=USAGE):
        """Takes what suite() takes behind what the one complaint must say; nothing is written."""
        def check(*arguments):
            self.out.unlink(missing_ok=True)
            self.assert_one_complaint(self.suite(*arguments, code=code), *parts)
            self.assertEqual([p.name for p in self.folder.iterdir() if p.name.startswith("suite.json")], [])
        return check


class Files(SuiteTest):
    def test_a_recording_reads_back_as_the_same_problems(self):
        lines = [f"{DEPTHWISE} dt=f16 tag=nhwc wtag=ohwi bias=f32 act=clip alpha=-inf beta=6 align=2",
                 f"{GROUPED} dt=f32 tag=nchw bias=same act=leaky_relu alpha=0.1 z=1",
                 "g8mb7ic8ih11iw14oc8oh4ow14kh3kw3sh3sw1ph0pw1 dt=bf16 tag=nchw",
                 "g8mb1ic8iw30oc8ow14kw5sw2pw2 dt=f32 tag=nchw"]
        calls, record = self.made(self.file("calls.txt", "\n".join(lines) + "\n"))
        self.assertEqual((record["inputs"][0]["kind"], record["left_out"], record["networks"]), ("lines", {}, []))
        self.assertEqual(len(calls), 4)
        self.assertEqual(calls[0]["alpha"], "-inf")
        again = self.folder / "again.txt"
        # What the suite says is what was recorded: the program that reads it back records the same lines.
        for line in lines:
            self.sluice("run", *line.split(), "--device", "host", "--policy", "off", SLUICE_RECORD=str(again))
        recorded = again.read_text().splitlines()
        self.assertEqual(len(recorded), 4)
        joined, _ = self.made(again, self.file("copy.json", self.out.read_text()))
        self.assertEqual([call["count"] for call in joined], [2] * 4, "each is the other's")

    def test_repeats_are_counted_and_networks_kept(self):
        first = self.file("a.json", json.dumps([dict(OBJECT, N=[1, 2], dt="fp16", tag=["nhwc"], networks=["one"], count=3), f"{GROUPED} dt=f16 tag=nchw"]))
        second = self.file("b.json", json.dumps([dict(OBJECT, N=2, dt=["f16"], tag="nhwc", networks=["two", "one"])]))
        calls, record = self.made(first, second)
        self.assertEqual([(c["N"], c.get("count", 1), c.get("networks", [])) for c in calls],
                         [([1], 3, ["one"]), ([2], 4, ["one", "two"]), ([1], 1, [])])
        self.assertEqual(record["networks"], ["one", "two"])
        self.assertEqual([i["calls"] for i in record["inputs"]], [3, 1])
        before = self.out.read_text()
        again = self.file("again.json", before)
        self.made(again)
        self.assertEqual(self.out.read_text(), before, "a suite of a suite is the same suite")

    def test_what_is_asked_for_wins(self):
        calls, _ = self.made(self.file("a.txt", f"{DEPTHWISE} dt=f16 tag=nhwc\n"), "--batch", "4,8", "--dt", "bf16,f32", "--tag", "nchw")
        self.assertEqual([(c["N"], c["dt"], c["tag"]) for c in calls],
                         [([n], [d], ["nchw"]) for n in (4, 8) for d in ("bf16", "f32")])

    def test_what_is_left_open_is_made_in_every_combination(self):
        calls, _ = self.made(self.file("a.json", json.dumps([OBJECT, GROUPED])))
        self.assertEqual([(c["N"], c["dt"], c["tag"]) for c in calls], [([1], ["f16"], [t]) for t in ("nchw", "nhwc")] * 2)

    def test_pads_that_are_not_even_keep_their_output(self):
        calls, _ = self.made(self.file("a.txt", "g8mb1ic8ih112oc8oh56kh3sh2ph0 dt=f16 tag=nhwc"))
        self.assertEqual((calls[0]["pad"], calls[0]["out"]), ([0, 0], [56, 56]))
        again, record = self.made(self.file("a.json", self.out.read_text()), self.folder / "a.txt")
        self.assertEqual((len(again), again[0]["count"]), (1, 2))

    def test_dense_convolutions_are_left_out_unless_asked_for(self):
        path = self.file("a.txt", f"{DENSE} dt=f16 tag=nhwc\n{DEPTHWISE} dt=f16 tag=nhwc\nmb1ic8ih8oc8oh8kh3ph1 dt=f16 tag=nhwc\n")
        calls, record = self.made(path)
        self.assertEqual((len(calls), record["left_out"], record["inputs"][0]["left_out"]), (2, {"ungrouped": 1}, {"ungrouped": 1}))
        self.assertEqual(len(self.made(path, "--dense")[0]), 3)

    def test_the_summary_for_people(self):
        path = self.file("a.txt", f"{DENSE}\n{DEPTHWISE} dt=f16 tag=nhwc\n")
        outcome = self.sluice("suite", path, "--out", str(self.out))
        for part in ("a.txt", "left out 2 ungrouped", f"written {self.out}", "calls 1 of 1"):
            self.assertIn(part, " ".join(outcome.out.split()))

    def test_other_commands_read_what_it_writes(self):
        self.made(self.file("a.txt", f"{DEPTHWISE} dt=f16 tag=nhwc\n{GROUPED} dt=f32 tag=nchw bias=same\n"))
        table = self.folder / "table.json"
        self.sluice("tune", "--suite", str(self.out), "--out", str(table), "--device", "host", "--tune-ms", "30000")
        problems = {row["problem"] for row in json.loads(table.read_text())["decisions"]}
        self.assertEqual(problems, {f"{DEPTHWISE} dt=f16 tag=nhwc", f"{GROUPED} dt=f32 tag=nchw bias=same"})


class Benchdnn(SuiteTest):
    def lines(self, text, *arguments):
        return self.made(self.file("batch", text), *arguments)

    def test_flags_hold_for_what_follows(self):
        calls, record = self.lines(f"""# a comment
--conv --mode=P --alg=direct
--dt=f16,bf16:bf16:bf16 --stag=axb --dtag=axb
{DEPTHWISE}n"net:dw1"   # one
--mb=4,0 --dt=f32 --stag=abx --dtag=any
{GROUPED}
--reset --dt=f16 --stag=any --mb=2 {GROUPED}n"net:g"  --dir=FWD_B {DEPTHWISE}
""")
        self.assertEqual([(c["N"][0], c["dt"][0], c["tag"][0], c["groups"], c.get("bias"), c.get("networks")) for c in calls],
                         [(1, "f16", "nhwc", 8, None, ["net"]), (1, "bf16", "nhwc", 8, None, ["net"]), (4, "f32", "nchw", 4, None, None),
                          (2, "f16", "nchw", 4, None, ["net"]), (2, "f16", "nhwc", 4, None, ["net"]),
                          (2, "f16", "nchw", 8, "same", None), (2, "f16", "nhwc", 8, "same", None)])
        self.assertEqual(record["left_out"], {})

    def test_what_is_not_served_is_counted_by_reason(self):
        calls, record = self.lines(f"""--dt=f16
--stag=axb --dtag=abx
{DEPTHWISE}
--stag=aBx16b --dtag=any
{DEPTHWISE}
--stag=any --dt=u8:s8:f32
{DEPTHWISE}
--dt=f16,s8
{DEPTHWISE}
--dt=f16 --dir=BWD_D
{DEPTHWISE}
--dir=FWD_D --attr-post-ops=relu
{DEPTHWISE}
--attr-post-ops= --deconv
{DEPTHWISE}
--conv
g1ic16id4ih7iw7oc16od4oh7ow7kd3kh3kw3pd1ph1pw1
""")
        self.assertEqual(len(calls), 2)
        self.assertEqual(record["left_out"], {"source and destination of different layouts": 1, "--stag=aBx16b": 1, "--dt=u8:s8:f32": 1,
                                              "--dt=s8": 1, "--dir=BWD_D": 1, "--attr-post-ops=relu": 1, "driver --deconv": 1, "3-D": 1})
        self.assertIn("sluice suite", self.sluice("bench", "--suite", str(self.folder / "batch"), "--out", str(self.folder / "o"), code=USAGE).err)

    def test_files_that_are_included(self):
        (self.folder / "shapes").mkdir()
        self.file("shapes/inner", f"{GROUPED}\n--dt=f32\n")
        calls, _ = self.lines(f"--dt=bf16 --stag=axb\n--batch=shapes/inner\n{DEPTHWISE}\n")
        self.assertEqual([(c["dt"][0], c["groups"]) for c in calls], [("bf16", 4), ("f32", 8)], "as benchdnn: flags go in and come out")
        self.file("shapes/inner", f"{GROUPED}\nx\n")
        self.out.unlink()
        self.refuse("inner, line 2", "`x`")(self.folder / "batch")
        self.refuse("nowhere", code=ENVIRONMENT)(self.file("b", "--batch=nowhere"))
        self.refuse("10 files deep")(self.file("c", "--batch=c"))

    def test_wrong_lines_are_named(self):
        self.refuse("batch, line 3", "ic9")(self.file("batch", f"{DEPTHWISE}\n\ng8mb1ic9ih10oc8kh3\n"))
        self.refuse("batch, line 1", "--mb=x")(self.file("batch", "--mb=x"))
        self.refuse("batch, line 1", "99999999999999999999")(self.file("batch", "g1ic99999999999999999999ih8oc8kh3"))
        outcome = self.suite(self.file("batch", b"\x00\x1b\x07x\n"), code=USAGE)
        self.assertIn("batch, line 1", outcome.err)
        self.assertNotIn("\x1b", outcome.err)


class Broken(SuiteTest):
    def entry(self, **changes):
        entry = {**OBJECT, **changes}
        return self.file("a.json", json.dumps([OBJECT, {k: v for k, v in entry.items() if v is not None}], indent=1))

    def test_entries_are_named_with_line_and_field(self):
        for changes, parts in (({"c": None}, ("has no \"c\"",)), ({"c": 0}, ("$.c", "is 0")), ({"c": "8"}, ("$.c",)), ({"c": 2**63}, ("$.c",)),
                               ({"c": 1.5}, ("$.c",)), ({"groups": 3}, ("groups",)), ({"stride": [1]}, ("$.stride", "a pair")),
                               ({"stride": 1}, ("$.stride",)), ({"pad": [-1, 0]}, ("$.pad[0]", "is -1")), ({"dil": [1, "x"]}, ("$.dil[1]",)),
                               ({"N": [0]}, ("$.N[0]",)), ({"N": []}, ("$.N", "empty")), ({"N": "x"}, ("$.N",)), ({"N": [1 << 40]}, ("$.N[0]",)),
                               ({"dt": ["f8"]}, ("$.dt[0]", "use f32, f16 or bf16")), ({"tag": "nwhc"}, ("$.tag", "use nchw or nhwc")),
                               ({"out": [1, 7]}, ("entry 1",)), ({"kh": 99}, ("entry 1", "no output fits")), ({"act": "tanh"}, ("tanh",)),
                               ({"act": "relu", "alpha": 1}, ("alpha",)), ({"alpha": "x"}, ("$.alpha",)), ({"act": "relu z=1"}, ("$.act", "one word")),
                               ({"act": "clip", "alpha": 1e300}, ("$.alpha", "float")), ({"act": "clip", "alpha": "nan"}, ("alpha",)),
                               ({"align": 3}, ("align",)), ({"count": 0}, ("$.count",)), ({"networks": [1]}, ("$.networks[0]",)),
                               ({"c": 2**31 - 1, "groups": 2**31 - 1, "k": 2**31 - 1, "h": 2**30, "w": 2**30}, ("entry 1",))):
            with self.subTest(changes):
                self.refuse("a.json, entry 1, line ", *parts)(self.entry(**changes))
        line = 2 + len(json.dumps(OBJECT, indent=1).splitlines())
        self.refuse(f"entry 1, line {line}: ")(self.file("a.json", "[\n" + json.dumps(OBJECT, indent=1) + ",\n7]"))

    def test_what_is_no_suite(self):
        self.refuse("a.json", "not an array")(self.file("a.json", "{}"))
        self.refuse("a.json:1:", "not JSON")(self.file("a.json", "[1, 2"))
        self.refuse("a.json", "twice")(self.file("a.json", '[{"c": 1, "c": 2}]'))
        self.refuse("a.json", "nested deeper")(self.file("a.json", "[" * 5000 + "]" * 5000))
        self.refuse("entry 0, line 1", "descriptor or an object")(self.file("a.json", "[null]"))
        self.refuse("no call")(self.file("a.json", "[]"))
        self.refuse("no call")(self.file("a.txt", "# nothing\n\n"))
        self.refuse("no call is left: 1 ungrouped")(self.file("a.txt", f"{DENSE} dt=f16 tag=nchw\n"))
        self.refuse("no call is left: 1 no image")(self.file("a.txt", "g8mb0ic8ih8oc8kh3ph1 dt=f16 tag=nhwc"))
        self.refuse("is a directory", code=ENVIRONMENT)(self.file("a.txt", f"--batch={self.folder}"))

    def test_usage(self):
        path = self.file("a.txt", f"{DEPTHWISE} dt=f16 tag=nhwc\n")
        self.refuse("no file")()
        self.refuse("--colour")(path, "--colour")
        self.refuse("--dt f8")(path, "--dt", "f8")
        self.refuse("--tag x")(path, "--tag", "x")
        self.refuse("--batch")(path, "--batch", "0")
        self.refuse("--grid")(path, "--grid", "5")
        self.refuse("--grid")("--grid", "0")
        self.refuse("--grid")("--grid", "99999999999999999999")
        self.refuse("nowhere")(self.folder / "nowhere.txt")
        self.assertIn("--out", self.sluice("suite", path, code=USAGE).err)
        self.assertIn("one of the files", self.sluice("suite", path, "--out", path, code=USAGE).err)
        self.assertIn("model's name", self.sluice("suite", path, "--out", "x.onnx", code=USAGE).err)
        self.assertEqual(pathlib.Path(path).read_text(), f"{DEPTHWISE} dt=f16 tag=nhwc\n")
        self.assertIn("SLUICE_RECORD", self.sluice("suite", "--help").out)

    def test_an_output_that_cannot_be_written(self):
        path = self.file("a.txt", f"{DEPTHWISE} dt=f16 tag=nhwc\n")
        outcome = self.sluice("suite", path, "--out", str(self.folder / "no" / "suite.json"), code=ENVIRONMENT)
        self.assert_one_complaint(outcome, "no/suite.json")
        self.assert_one_complaint(self.sluice("suite", path, "--out", str(self.folder), code=ENVIRONMENT), str(self.folder))
        self.assertFalse(pathlib.Path(f"{self.folder}.next").exists(), "what cannot be put in place is taken away")
        self.assert_one_complaint(self.sluice("suite", "--grid", "9", "--out", "/nowhere/g.json", code=ENVIRONMENT), "/nowhere/g.json")


class DrawnGrid(SuiteTest):
    def test_the_shipped_file_is_what_the_generator_makes(self):
        record = self.suite("--grid", "400").record
        self.assertEqual(self.out.read_text(), GRID.read_text(), "sluice suite --grid 400 --out configs/suites/grid.json")
        self.assertEqual((record["calls"], record["pairs"]), (400, record["pairs_covered"]), "every pair is in a call")

    def test_calls_are_small_and_different(self):
        size = {"f32": 4, "f16": 2, "bf16": 2}
        calls = json.loads(GRID.read_text())
        self.assertEqual(len({json.dumps(call) for call in calls}), 400)
        for call in calls:
            window = [(k - 1) * d + 1 for k, d in zip((call["kh"], call["kw"]), call["dil"])]
            p, q = ((a + 2 * b - c) // d + 1 for a, b, c, d in zip((call["h"], call["w"]), call["pad"], window, call["stride"]))
            weights = call["k"] * call["c"] // call["groups"] * call["kh"] * call["kw"]
            elements = call["N"][0] * (call["c"] * call["h"] * call["w"] + call["k"] * p * q) + weights
            self.assertLessEqual(elements * size[call["dt"][0]], 512 << 20, call)

    def test_values_can_be_narrowed_and_seeds_differ(self):
        self.suite("--grid", "30", "--batch", "2", "--dt", "bf16", "--tag", "nhwc")
        calls = json.loads(self.out.read_text())
        self.assertEqual({(c["N"][0], c["dt"][0], c["tag"][0]) for c in calls}, {(2, "bf16", "nhwc")})
        first = self.out.read_text()
        self.suite("--grid", "30", "--batch", "2", "--dt", "bf16", "--tag", "nhwc", "--seed", "2")
        self.assertNotEqual(self.out.read_text(), first)
        self.refuse("512 MiB")("--grid", "30", "--batch", str(1 << 30))


@unittest.skipUnless(ONNX, "built without the ONNX component")
class Models(SuiteTest):
    def model(self, name="net.onnx", **how):
        return self.file(name, onnx_file.network(**how))

    def test_convolutions_with_bias_and_activation(self):
        calls, record = self.made(self.model())
        self.assertEqual(calls, [{"c": 144, "h": 56, "w": 56, "k": 144, "groups": 144, "kh": 3, "kw": 3, "stride": [1, 1], "pad": [1, 1],
                                  "dil": [1, 1], "N": [1], "dt": ["f32"], "tag": ["nchw"], "act": "relu", "networks": ["net"]}])
        self.assertEqual((record["inputs"][0]["kind"], record["left_out"], record["networks"]), ("onnx", {"no convolution": 1, "ungrouped": 1}, ["net"]))
        calls, _ = self.made(self.model(), "--dt", "f16,bf16", "--tag", "nhwc", "--batch", "8,32", "--dense")
        self.assertEqual(len(calls), 2 * 2 * 2)
        self.assertEqual({(c["N"][0], c["dt"][0], c["tag"][0]) for c in calls}, {(n, d, "nhwc") for n in (8, 32) for d in ("f16", "bf16")})

    def test_a_batch_that_is_not_fixed_needs_one(self):
        path = self.model(batch="N")
        self.refuse("no call is left", "2 the batch is not fixed", "--batch N")(path)
        calls, record = self.made(path, "--batch", "1,8")
        self.assertEqual([c["N"] for c in calls], [[1], [8]])
        self.assertEqual(record["left_out"], {"no convolution": 2, "ungrouped": 2})

    def test_models_join_with_other_files(self):
        calls, record = self.made(self.model("a.onnx"), self.model("b.onnx"), self.file("c.txt", f"{DEPTHWISE} dt=f16 tag=nhwc\n"))
        self.assertEqual((len(calls), calls[0]["count"], calls[0]["networks"]), (2, 2, ["a", "b"]))
        self.assertEqual([i["kind"] for i in record["inputs"]], ["onnx", "onnx", "lines"])

    def test_what_is_no_model(self):
        self.refuse("net.onnx", "not an ONNX model")(self.file("net.onnx", b"\x00\x01nonsense"))
        self.refuse("net.onnx")(self.file("net.onnx", b""))
        self.refuse("net.onnx")(self.file("net.onnx", onnx_file.network()[:-300]))
        broken = onnx_file.model([onnx_file.node("Conv", ["x", "w"], ["y"], "c\x1b[31m1", group=3)], [onnx_file.value("x", 1, [1, 8, 6, 6])],
                                 [onnx_file.value("y", 1, [1, 8, 6, 6])], [onnx_file.ones("w", [8, 1, 3, 3])])
        outcome = self.suite(self.file("net.onnx", broken), code=USAGE)
        self.assertIn("net.onnx", outcome.err)
        self.assertNotIn("\x1b", outcome.err)
        double = self.file("net.onnx", onnx_file.network(element=onnx_file.DOUBLE))
        self.refuse("2 only float, float16 and bfloat16")(double)

    def test_without_the_component_a_model_is_refused_and_nothing_else(self):
        alone = self.folder / "bin"
        alone.mkdir()
        shutil.copy(PROGRAM, alone / "sluice")

        def run(*arguments):
            return subprocess.run([str(alone / "sluice"), "suite", *arguments, "--out", str(self.out)], capture_output=True, text=True,
                                  env=self.environment())

        refused = run(self.model())
        self.assertEqual(refused.returncode, ENVIRONMENT)
        self.assertIn("sluice-rewrite", refused.stderr)
        self.assertIn("libonnx-dev", refused.stderr)
        self.assertEqual(run(self.file("a.txt", f"{DEPTHWISE} dt=f16 tag=nhwc\n")).returncode, 0)


if __name__ == "__main__":
    unittest.main()
