"""Rewrites five networks and compares: ONNX Runtime's output of the original with the rewritten model's, whose Sluice
nodes run through the C ABI; and every Sluice node's result with the double-precision convolution, within its rounding bound
(docs/numerics.md).

    check_networks.py --program build/release/sluice --library build/release/libsluice.so [--device host]

Where the device is, libonnx need not be. Rewrite here, run there:

    check_networks.py --program build/release/sluice --prepare build/networks
    check_networks.py --rewritten build/networks --library build/release/libsluice.so --device cuda:0

Exit code 1 where an output is beyond its bound, or a network has no node that was replaced.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime

import evaluate
import networks

U = 2.0**-24
TRANSCENDENTAL = {"silu", "gelu_erf", "gelu_tanh"}
LIPSCHITZ = {"silu": 1.1, "gelu_erf": 1.13, "gelu_tanh": 1.13, "hard_swish": 1.5}
# Takes what Sluice is made for, and leaves the dense convolutions: the host device is no GPU.
TABLE = {"schema": 1, "device": "any", "rules": [{"name": "groups", "route": "take", "when": {"groups": {"min": 2}}}]}


def convolve(x, w, groups, stride, dilation, pad):
    """Grouped convolution in double: tap by tap."""
    (n, c, h, width), (k, cg, r, s) = x.shape, w.shape
    x = np.pad(x, ((0, 0), (0, 0), (pad[0], pad[2]), (pad[1], pad[3]))).reshape(n, groups, cg, h + pad[0] + pad[2], -1)
    w = w.reshape(groups, k // groups, cg, r, s)
    p = (x.shape[3] - (r - 1) * dilation[0] - 1) // stride[0] + 1
    q = (x.shape[4] - (s - 1) * dilation[1] - 1) // stride[1] + 1
    y = np.zeros((n, groups, k // groups, p, q))
    for i in range(r):
        for j in range(s):
            top, left = i * dilation[0], j * dilation[1]
            window = x[:, :, :, top:top + (p - 1) * stride[0] + 1:stride[0], left:left + (q - 1) * stride[1] + 1:stride[1]]
            y += np.einsum("ngchw,gkc->ngkhw", window, w[:, :, :, i, j], optimize=True)
    return y.reshape(n, k, p, q)


def activate(a, node):
    sigmoid = lambda v: np.where(v >= 0, 1 / (1 + np.exp(-np.abs(v))), np.exp(-np.abs(v)) / (1 + np.exp(-np.abs(v))))
    return {"none": lambda: a, "relu": lambda: np.maximum(a, 0), "clip": lambda: np.clip(a, node.alpha, node.beta),
            "silu": lambda: a * sigmoid(a), "hard_swish": lambda: a * np.clip(a / 6 + 0.5, 0, 1),
            "leaky_relu": lambda: np.where(a >= 0, a, a * node.alpha)}[node.activation]()


def error_over_bound(node, inputs, y):
    x, w, *rest = (np.asarray(v, np.float64) for v in inputs)
    bias = rest[0].reshape(1, -1, 1, 1) if rest else 0.0
    pad = node.padding(x.shape[2:], w.shape[2:])
    how = (node.groups, node.stride, node.dilation, pad)
    a = convolve(x, w, *how) + bias
    taps = w[0].size
    error = (taps + 3) * U * (convolve(np.abs(x), np.abs(w), *how) + np.abs(bias))
    want = activate(a, node)
    allowed = U * np.abs(want) + (1 + U) * LIPSCHITZ.get(node.activation, 1.0) * error + 2.0**-149 * (1 + taps)
    if node.activation in TRANSCENDENTAL:
        allowed += (1 + U) * 4 * U * (np.abs(a) + np.abs(want))
    return np.inf if np.isnan(y).any() else float(np.max(np.abs(y - want) / allowed))


def prepare(name, folder, arguments):
    """Leaves NAME.onnx, the rewritten structure, and NAME.json, the report, in the folder."""
    original, table = folder / f".{name}.original.onnx", folder / ".table.json"
    shutil.copyfile(networks.FOLDER / f"{name}.onnx", original)
    table.write_text(json.dumps(TABLE))
    made = subprocess.run([arguments.program, "rewrite", original, "-o", folder / f"{name}.onnx", "--device", arguments.target,
                           "--routing-table", table, "--json"], capture_output=True, text=True)
    original.unlink()
    table.unlink()
    if made.returncode != 0:
        raise SystemExit(f"{name}: sluice rewrite failed: {made.stderr.strip()}")
    (folder / f"{name}.json").write_text(made.stdout)


def check(name, folder, context, memory):
    original = networks.make(name)
    report = json.loads((folder / f"{name}.json").read_text())
    shape = [d.dim_value for d in original.graph.input[0].type.tensor_type.shape.dim]
    image = np.random.default_rng(7).standard_normal(shape, np.float32)
    session = onnxruntime.InferenceSession(original.SerializeToString(), providers=["CPUExecutionProvider"])
    want = session.run(None, {"image": image})[0]
    worst = [0.0]
    rewritten = networks.fill(onnx.load(folder / f"{name}.onnx", load_external_data=False))
    model = evaluate.Rewritten(rewritten, context, memory)
    got = model.run({"image": image}, lambda node, inputs, y: worst.append(error_over_bound(node, inputs, y)))[0]
    ours = [step for _, mine, step in model.steps if mine]
    counts = {**report["verdicts"], "taken": report["actions"]["take"], "folded": sum(n["absorbed"] for n in report["nodes"])}
    row = {"network": name, "nodes": report["graph_nodes"], **counts, "run": sum(node.device_calls for node in ours),
           "error_over_bound": max(worst),
           "output_difference": float(np.max(np.abs(got - want)) / np.max(np.abs(want)))}
    # Two right evaluations in fp32 of networks this deep differ by rounding alone; 1e-4 of the largest output is far more.
    fine = row["taken"] > 0 and row["run"] == row["taken"] and row["error_over_bound"] <= 1 and row["output_difference"] <= 1e-4
    return row, fine


def run(names, folder, arguments):
    context = evaluate.sluice_abi.Context(arguments.library, arguments.device, arguments.cache or "off", force=True,
                                          policy=evaluate.IMMEDIATE)
    memory = evaluate.TorchMemory(arguments.device) if arguments.device.startswith("cuda") else evaluate.HostMemory()
    failed = False
    for name in names:
        start = time.monotonic()
        row, fine = check(name, folder, context, memory)
        print(json.dumps({"device": arguments.device, **row, "seconds": round(time.monotonic() - start, 1), "fine": fine}), flush=True)
        failed = failed or not fine
    context.close()
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", help="the sluice program, which rewrites")
    parser.add_argument("--library", help="libsluice.so, which runs the rewritten nodes")
    parser.add_argument("--prepare", type=pathlib.Path, metavar="DIR", help="rewrite into this folder, and run nothing")
    parser.add_argument("--rewritten", type=pathlib.Path, metavar="DIR", help="run what --prepare left in this folder")
    parser.add_argument("--target", default="h200", help="what the models are prepared for (default h200)")
    parser.add_argument("--device", default="host", help="what runs their Sluice nodes: host, or cuda:N with torch (default host)")
    parser.add_argument("--cache", help="cache directory (default: none)")
    parser.add_argument("networks", nargs="*", default=[], help=", ".join(networks.NETWORKS))
    arguments = parser.parse_args()
    names = arguments.networks or networks.NETWORKS
    if arguments.program is None and arguments.rewritten is None:
        parser.error("--program is missing (or --rewritten)")
    if arguments.library is None and arguments.prepare is None:
        parser.error("--library is missing (or --prepare)")
    if unknown := set(names) - set(networks.NETWORKS):
        parser.error(f"no such network: {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory(prefix="sluice-networks-") as temporary:
        folder = arguments.rewritten or arguments.prepare or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if arguments.rewritten is None:
            for name in names:
                prepare(name, folder, arguments)
        return 0 if arguments.prepare else run(names, folder, arguments)


if __name__ == "__main__":
    sys.exit(main())
