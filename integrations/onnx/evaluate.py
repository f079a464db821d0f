"""Runs a model that `sluice rewrite` made: ai.sluice::Conv2d through the C ABI, everything else by ONNX Runtime.

The graph is cut at the Sluice nodes: what lies between two of them is one ONNX Runtime session. A thin adapter, and an
example of what a runtime has to do with the node.
"""

import ctypes
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import sluice_abi  # noqa: E402

DOMAIN, VERSION = "ai.sluice", 1
ACTIVATIONS = ["none", "relu", "clip", "silu", "hard_swish", "gelu_erf", "gelu_tanh", "leaky_relu"]
DTYPES = {np.dtype(np.float32): "f32", np.dtype(np.float16): "f16"}
IMMEDIATE = 1


class HostMemory:
    """The host device computes where NumPy's arrays lie."""

    stream = None

    def put(self, array):
        return None if array is None else np.ascontiguousarray(array)

    def empty(self, shape, dtype):
        return np.full(shape, np.nan, dtype)

    def pointer(self, buffer):
        return None if buffer is None else buffer.ctypes.data

    def get(self, buffer):
        return buffer


class TorchMemory:
    """Copies to and from a CUDA device by torch."""

    def __init__(self, device):
        import torch

        self.torch, self.device = torch, torch.device(device)
        self.stream = torch.cuda.current_stream(self.device).cuda_stream

    def put(self, array):
        return None if array is None else self.torch.from_numpy(np.array(array)).to(self.device)

    def empty(self, shape, dtype):
        return self.put(np.full(shape, np.nan, dtype))

    def pointer(self, buffer):
        return None if buffer is None else buffer.data_ptr()

    def get(self, buffer):
        self.torch.cuda.synchronize(self.device)
        return buffer.cpu().numpy()


class SluiceNode:
    """One ai.sluice::Conv2d: reads its attributes, prepares a plan a shape, runs it."""

    def __init__(self, node, context, memory):
        self.node, self.context, self.memory, self.plans = node, context, memory, {}
        a = {x.name: helper.get_attribute_value(x) for x in node.attribute}
        if a["sluice_version"] != VERSION:
            raise ValueError(f"{node.name}: sluice_version is {a['sluice_version']}, this reads {VERSION}")
        self.problem = a["sluice_problem"].decode()
        self.groups = a.get("group", 1)
        self.stride, self.dilation = a.get("strides", [1, 1]), a.get("dilations", [1, 1])
        self.auto_pad = a.get("auto_pad", b"NOTSET").decode()
        self.pads = a.get("pads", [0, 0, 0, 0])
        self.activation = a["activation"].decode()
        self.alpha, self.beta = a["activation_alpha"], a["activation_beta"]
        self.device_calls = 0

    def padding(self, size, kernel):
        """top, left, bottom, right."""
        if self.auto_pad in ("NOTSET", ""):
            return tuple(self.pads)
        if self.auto_pad == "VALID":
            return 0, 0, 0, 0
        near, far = [], []
        for i in range(2):
            total = max(0, (-(-size[i] // self.stride[i]) - 1) * self.stride[i] + (kernel[i] - 1) * self.dilation[i] + 1 - size[i])
            small = total // 2
            near.append(small if self.auto_pad == "SAME_UPPER" else total - small)
            far.append(total - near[-1])
        return *near, *far

    def __call__(self, x, w, bias=None):
        (n, c, *size), (k, _, *kernel) = x.shape, w.shape
        pad = self.padding(size, kernel)
        out = [(size[i] + pad[i] + pad[i + 2] - (kernel[i] - 1) * self.dilation[i] - 1) // self.stride[i] + 1 for i in range(2)]
        pointer, shape, dtype = self.memory.pointer, x.shape, x.dtype
        x, w, bias = self.memory.put(x), self.memory.put(w), self.memory.put(bias)
        y = self.memory.empty((n, k, *out), dtype)
        if shape not in self.plans:
            args, keep = self.context.args(x=pointer(x), w=pointer(w), y=pointer(y), dtype=DTYPES[dtype], layout="nchw", n=n, c_=c,
                                           h=size[0], w_=size[1], k=k, groups=self.groups, kernel=tuple(kernel), out=tuple(out),
                                           stride=self.stride, pad=pad[:2], dilation=self.dilation, regular=False,
                                           bias=pointer(bias))
            args.pad = (ctypes.c_int64 * 4)(*pad)
            args.activation, args.alpha, args.beta = ACTIVATIONS.index(self.activation), self.alpha, self.beta
            self.plans[shape] = self.context.prepare(args), keep
        self.plans[shape][0].run(pointer(x), pointer(w), pointer(y), self.memory.stream, bias=pointer(bias))
        self.device_calls += 1
        return self.memory.get(y)


class Rewritten:
    """A rewritten model. `observe(sluice_node, inputs, output)` is called after each Sluice node."""

    def __init__(self, model, context, memory=None):
        memory = memory or HostMemory()
        self.model, self.steps = model, []
        graph = model.graph
        self.initialisers = {t.name: t for t in graph.initializer}
        self.constants = {node.output[0]: node for node in graph.node if node.op_type == "Constant"}
        level, layers = {}, {}
        for node in graph.node:  # a Sluice node opens the next level; the nodes of one level are one session
            if node.op_type == "Constant":
                continue  # goes into each session that reads it
            here = max((level.get(i, 0) for i in node.input), default=0)
            ours = node.domain == DOMAIN
            if ours:
                self.steps.append((here, 1, SluiceNode(node, context, memory)))
            else:
                layers.setdefault(here, []).append(node)
            for output in node.output:
                level[output] = here + 1 if ours else here
        self.readers = {}
        for node in graph.node:
            for i in node.input:
                self.readers.setdefault(i, []).append(node)
        for at, nodes in layers.items():
            self.steps.append((at, 0, self.session(nodes)))
        self.steps.sort(key=lambda step: step[:2])

    def session(self, nodes):
        read = dict.fromkeys(i for node in nodes for i in node.input)
        nodes = [self.constants[i] for i in read if i in self.constants] + nodes
        made = {o for node in nodes for o in node.output}
        reads = list(dict.fromkeys(i for node in nodes for i in node.input if i and i not in made))
        inputs = [i for i in reads if i not in self.initialisers]
        outside = {o.name for o in self.model.graph.output}
        mine = {id(node) for node in nodes}
        outputs = [o for o in made if o not in self.constants
                   and (o in outside or any(id(n) not in mine for n in self.readers.get(o, ())))]
        unknown = lambda name: helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)
        graph = helper.make_graph(nodes, "part", [unknown(i) for i in inputs], [unknown(o) for o in outputs],
                                  [self.initialisers[i] for i in reads if i in self.initialisers])
        part = helper.make_model(graph, opset_imports=[s for s in self.model.opset_import if s.domain != DOMAIN],
                                 ir_version=self.model.ir_version)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        return onnxruntime.InferenceSession(part.SerializeToString(), options, providers=["CPUExecutionProvider"]), inputs, outputs

    def run(self, feeds, observe=None):
        values = dict(feeds)

        def value(name):
            if name and name not in values:
                values[name] = onnx.numpy_helper.to_array(self.initialisers[name])
            return values[name] if name else None

        for _, ours, step in self.steps:
            if ours:
                inputs = [value(i) for i in step.node.input]
                values[step.node.output[0]] = step(*inputs)
                if observe:
                    observe(step, inputs, values[step.node.output[0]])
            else:
                session, inputs, outputs = step
                values.update(zip(outputs, session.run(outputs, {i: value(i) for i in inputs})))
        return [values[o.name] for o in self.model.graph.output]
