#!/usr/bin/env python3
"""Times Sluice beside what people use today, in one process, by one protocol, and writes a row a call as JSON lines.

    bench/compare_torch.py --library build/release/libsluice.so --suite configs/suites/peers.json --out rows.jsonl

Contenders: PyTorch eager, cuDNN with every engine tried (aten.cudnn_convolution, benchmark limit 0), PyTorch's own depthwise
kernel, Sluice's tuned winner, and a device copy of the same bytes. The rivals run without bias, accumulating in fp32, TF32 off;
with --bias Sluice adds one all the same, so that a win with bias is one against a rival that does less.

Protocol: CUDA-graph replays that rotate over enough buffer sets to leave L2 (at least 4 x 60 MB, at most 64 sets); contenders
interleaved; median of the replays. Sluice's output is checked against a float64 convolution first, on poisoned memory.
Resumable: rows already in --out are skipped. --budget bounds the time in seconds. Needs torch and a GPU.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import sluice_abi  # noqa: E402

L2_BYTES = 60e6
ACCURATE = {"f32": 1e-5, "f16": 1e-3, "bf16": 8e-3}  # relative L2 against float64; the output's rounding alone is 2e-4 and 1.7e-3
NAMES = {"fp16": "f16", "fp32": "f32", "f16": "f16", "f32": "f32", "bf16": "bf16"}


def driver_version():
    """As nvidia-smi says; empty where it is not there."""
    try:
        return subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], capture_output=True, text=True,
                              check=True).stdout.split()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return ""


def expand(suite, batches, dtypes, layouts, seed, bias):
    """Bias and activation of an entry do not count: the rivals run the bare convolution. Nor do they pad unevenly."""
    calls = {}
    even = [item for item in suite if isinstance(item, dict) and "out" not in item]
    if len(even) < len(suite):
        print(f"{len(suite) - len(even)} of {len(suite)} entries are descriptors or pad unevenly: left out", file=sys.stderr)
    for item in even:
        for n in batches or item.get("N", [1, 32]):
            for dtype in dtypes or item.get("dt", ["f16", "f32"]):
                for layout in layouts or item.get("tag", ["nchw", "nhwc"]):
                    call = {key: item[key] for key in ("c", "h", "w", "k", "groups", "kh", "kw", "stride", "pad", "dil")}
                    call = dict(call, n=n, dtype=NAMES[dtype], layout=layout, bias=bias)
                    calls.setdefault(identity(call), call)
    calls = list(calls.values())
    random.Random(seed).shuffle(calls)
    return calls


def identity(call):
    return json.dumps({key: call[key] for key in ("n", "c", "h", "w", "k", "groups", "kh", "kw", "stride", "pad", "dil", "dtype", "layout")}
                      | {"bias": call.get("bias", 0)}, sort_keys=True)


class Bench:
    def __init__(self, torch, context):
        self.torch, self.context = torch, context

    def graphs(self, contenders, sets):
        """{name: median microseconds a call}; contenders are {name: callable(set)}, replayed in turn."""
        torch = self.torch
        stream = torch.cuda.Stream()
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        ready, failed = {}, {}
        torch.cuda.synchronize()  # the buffers were filled on another stream
        with torch.cuda.stream(stream):
            for name, call in contenders.items():
                try:
                    for i in range(min(sets, 3)):
                        call(i)
                    torch.cuda.synchronize()
                    start.record(stream)
                    call(0)
                    call(0)
                    stop.record(stream)
                    torch.cuda.synchronize()
                    once = max(start.elapsed_time(stop) / 2, 2e-3)  # ms
                    calls = max(sets, min(200, int(1.0 / once)))
                    calls = (calls + sets - 1) // sets * sets if once <= 20 else 1
                    graph = torch.cuda.CUDAGraph()
                    with torch.cuda.graph(graph, stream=stream):
                        for i in range(calls):
                            call(i % sets)
                    graph.replay()
                    torch.cuda.synchronize()
                    ready[name] = (graph, calls, [])
                except Exception as error:  # a contender that cannot run is data, not a failure of the run
                    failed[name] = repr(error)[:160]
                    torch.cuda.synchronize()
            for _ in range(7):
                for graph, calls, samples in ready.values():
                    start.record(stream)
                    graph.replay()
                    stop.record(stream)
                    torch.cuda.synchronize()
                    samples.append(start.elapsed_time(stop) * 1e3 / calls)
        return {name: statistics.median(samples) for name, (_, _, samples) in ready.items()}, failed

    def row(self, call):
        torch = self.torch
        dtype = {"f16": torch.float16, "f32": torch.float32, "bf16": torch.bfloat16}[call["dtype"]]
        format_ = torch.channels_last if call["layout"] == "nhwc" else torch.contiguous_format
        n, c, h, w, k, g = (call[key] for key in ("n", "c", "h", "w", "k", "groups"))
        stride, pad, dil, kernel = call["stride"], call["pad"], call["dil"], (call["kh"], call["kw"])
        x = torch.rand(n, c, h, w, device="cuda").mul_(2).sub_(1).to(dtype).contiguous(memory_format=format_)
        weight = torch.rand(k, c // g, *kernel, device="cuda").mul_(2).sub_(1).to(dtype)
        weight_peer = weight.contiguous(memory_format=format_)
        bias = torch.rand(k, device="cuda").mul_(2).sub_(1).to(dtype) if call["bias"] else None
        bias_pointer = None if bias is None else bias.data_ptr()
        conv = torch.nn.functional.conv2d
        want = conv(x, weight_peer, None, stride, pad, dil, g)
        y = torch.full_like(want, float("nan"))
        per = (x.numel() + y.numel()) * x.element_size()
        sets = max(1, min(64, int(4 * L2_BYTES / per) + 1)) if per < 4 * L2_BYTES else 1
        xs, ys = [x] + [x.clone() for _ in range(sets - 1)], [y] + [torch.empty_like(y) for _ in range(sets - 1)]
        result = dict(call, bytes=per, sets=sets)

        args, keep = self.context.args(x=x.data_ptr(), w=weight.data_ptr(), y=y.data_ptr(), dtype=call["dtype"], layout=call["layout"], n=n,
                                       c_=c, h=h, w_=w, k=k, groups=g, kernel=kernel, out=tuple(y.shape[2:]), stride=stride, pad=pad,
                                       dilation=dil, bias=bias_pointer)
        contenders = {}
        try:
            compiled, started = self.context.counters().compiles, time.perf_counter()
            plan = self.context.prepare(args)
            result["prepare_ms"] = (time.perf_counter() - started) * 1e3
            result["compiles"] = self.context.counters().compiles - compiled
            record = self.context.explain(args)
            result.update(signature=record["problem"], schedule=record.get("schedule"), config=record.get("config"))
            if plan is None:
                result["error"] = "kept"
            else:
                stream = torch.cuda.current_stream()
                plan.run(x.data_ptr(), weight.data_ptr(), y.data_ptr(), stream.cuda_stream, bias_pointer)
                stream.synchronize()
                part = slice(0, 4)  # images: a float64 convolution of a whole batch takes longer than everything else
                exact = conv(x[part].double(), weight.double(), None if bias is None else bias.double(), stride, pad, dil, g)
                result["relative_l2"] = ((y[part].double() - exact).norm() / exact.norm()).item()
                del exact
                contenders["sluice"] = lambda i: plan.run(xs[i].data_ptr(), weight.data_ptr(), ys[i].data_ptr(),
                                                          torch.cuda.current_stream().cuda_stream, bias_pointer)
        except sluice_abi.Error as error:
            result["error"] = str(error)[:300]
        contenders["eager"] = lambda i: conv(xs[i], weight_peer, None, stride, pad, dil, g)
        contenders["cudnn"] = lambda i: torch.ops.aten.cudnn_convolution(xs[i], weight_peer, pad, stride, dil, g, True, False, False)
        if c == g:
            contenders["native"] = lambda i: torch.ops.aten._conv_depthwise2d(xs[i], weight_peer, list(kernel), None, stride, pad, dil)
        half = per // 2 // 4
        source = [torch.empty(half, device="cuda") for _ in range(sets)]
        target = [torch.empty(half, device="cuda") for _ in range(sets)]
        contenders["copy"] = lambda i: target[i].copy_(source[i])
        times, failed = self.graphs(contenders, sets)
        if failed:
            result["failed"] = failed
        result["copy_us"] = times.pop("copy")
        if "sluice" in times:
            result["time_us"] = times.pop("sluice")
            if not result["relative_l2"] < ACCURATE[call["dtype"]]:  # NaN is not
                result["error"] = f"relative L2 error {result['relative_l2']:.2g}"
        result["rivals"] = times
        del keep
        return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True)
    parser.add_argument("--suite", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--cache-dir", default="off")
    parser.add_argument("--budget", type=float, default=1e9, help="seconds")
    parser.add_argument("--tune-ms", type=float, default=1000)
    parser.add_argument("--batches", type=lambda text: [int(part) for part in text.split(",")])
    parser.add_argument("--dtypes", type=lambda text: text.split(","))
    parser.add_argument("--layouts", type=lambda text: text.split(","), help="default: as the suite says, else both")
    parser.add_argument("--bias", action="store_true", help="Sluice adds a bias; the rivals still do not")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--limit", type=int, default=0, help="at most this many calls (0 = all)")
    parser.add_argument("--commit", default="")
    options = parser.parse_args()

    warnings.filterwarnings("ignore")
    import torch
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark, torch.backends.cudnn.benchmark_limit = True, 0
    torch.zeros(1, device="cuda")
    context = sluice_abi.Context(options.library, force=True, cache_dir=options.cache_dir, tune_budget_ms=options.tune_ms)
    bench = Bench(torch, context)

    with open(options.suite) as file:
        calls = expand(json.load(file), options.batches, options.dtypes, options.layouts, options.seed, int(options.bias))
    done = set()
    if os.path.exists(options.out):
        with open(options.out) as file:
            done = {identity(row) for row in map(json.loads, file) if "n" in row}
    calls = [call for call in calls if identity(call) not in done]
    if options.limit:
        calls = calls[:options.limit]
    started = time.time()
    with open(options.out, "a") as file:
        if not done:
            major, minor = torch.cuda.get_device_capability()
            header = {"gpu": torch.cuda.get_device_name(), "capability": 10 * major + minor, "driver": driver_version(), "torch": torch.__version__, "cudnn": torch.backends.cudnn.version(),
                      "sluice": context.library.sluice_version_string().decode(), "commit": options.commit}
            file.write(json.dumps(header) + "\n")
        for count, call in enumerate(calls):
            if time.time() - started > options.budget:
                print(f"budget: stopped after {count} of {len(calls)}")
                break
            try:
                row = bench.row(call)
            except Exception as error:
                row = dict(call, error=repr(error)[:300])
            file.write(json.dumps(row) + "\n")
            file.flush()
            try:
                torch.cuda.synchronize()
            except RuntimeError as error:  # a fault: this process can do nothing more; the next one goes on from here
                print(f"device lost at {identity(call)}: {error}", file=sys.stderr)
                sys.exit(3)
            us = {"sluice": row.get("time_us", 0), "copy": row.get("copy_us", 0), **row.get("rivals", {})}
            speedup = min(row["rivals"].values()) / row["time_us"] if row.get("rivals") and row.get("time_us") else 0
            print(f"{count + 1}/{len(calls)} n{call['n']} c{call['c']} {call['h']}x{call['w']} k{call['k']} g{call['groups']} "
                  f"{call['kh']}x{call['kw']} s{call['stride'][0]} {call['dtype']} {call['layout']}: "
                  + " ".join(f"{name} {value:.1f}" for name, value in us.items())
                  + f" | {row.get('schedule')} {row.get('config')} x{speedup:.2f} /copy {us['sluice'] / max(us['copy'], 1e-9):.2f}"
                  + (f" ERROR {row['error']}" if "error" in row else ""), flush=True)
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
