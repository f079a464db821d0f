"""The structures of five networks as ONNX models, weights from a seed.

Written from the published architectures as PyTorch exports them for inference: batch normalisation folded into the
convolution before it (so convolutions have a bias), opset 17, NCHW. No torch is needed, and no weights are shipped.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Builder:
    """Appends nodes; every method returns the name of its result."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.initialisers, self.count = [], [], 0

    def node(self, op, inputs, outputs=1, **attributes):
        self.count += 1
        names = [f"t{self.count}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, name=f"{op}_{self.count}", **attributes))
        return names[0] if outputs == 1 else names

    def tensor(self, array):
        name = f"w{len(self.initialisers)}"
        self.initialisers.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def weights(self, *shape, fan_in):
        """Variance 2 / fan_in keeps activations of the order of one through a deep network."""
        return self.tensor(self.random.standard_normal(shape, np.float32) * np.float32((2.0 / fan_in) ** 0.5))

    def conv(self, x, c, k, r, stride=1, groups=1, pad=None, act=None):
        pad = (r - 1) // 2 if pad is None else pad
        w = self.weights(k, c // groups, r, r, fan_in=c // groups * r * r)
        b = self.tensor(self.random.standard_normal(k, np.float32) * np.float32(0.1))
        y = self.node("Conv", [x, w, b], kernel_shape=[r, r], strides=[stride, stride], pads=[pad] * 4, group=groups,
                      dilations=[1, 1])
        return self.act(y, act)

    def act(self, y, act):
        if act == "relu":
            return self.node("Relu", [y])
        if act == "relu6":
            return self.node("Clip", [y, self.tensor(np.float32(0)), self.tensor(np.float32(6))])
        if act == "silu":
            return self.node("Mul", [y, self.node("Sigmoid", [y])])
        return y

    def gelu(self, x):
        """As opset 17 spells it: x / 2 * (1 + erf(x / sqrt 2))."""
        erf = self.node("Erf", [self.node("Div", [x, self.tensor(np.float32(2**0.5))])])
        one = self.node("Add", [erf, self.tensor(np.float32(1))])
        return self.node("Mul", [self.node("Mul", [x, one]), self.tensor(np.float32(0.5))])

    def squeeze_excite(self, x, c, inner, act):
        pooled = self.node("GlobalAveragePool", [x])
        gate = self.node("Sigmoid", [self.conv(self.conv(pooled, c, inner, 1, act=act), inner, c, 1)])
        return self.node("Mul", [x, gate])

    def head(self, x, c, classes):
        x = self.node("Flatten", [self.node("GlobalAveragePool", [x])], axis=1)
        return self.node("Gemm", [x, self.weights(classes, c, fan_in=c), self.tensor(np.zeros(classes, np.float32))], transB=1)

    def layer_norm(self, x, c):
        one, zero = self.tensor(np.ones(c, np.float32)), self.tensor(np.zeros(c, np.float32))
        return self.node("LayerNormalization", [x, one, zero], axis=-1, epsilon=1e-6)

    def model(self, name, output, shape, classes):
        graph = helper.make_graph(
            self.nodes + [helper.make_node("Identity", [output], ["logits"], name="logits")], name,
            [helper.make_tensor_value_info("image", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [shape[0], classes])], self.initialisers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8,
                                 producer_name="sluice networks")


def mobilenet_v2(b, x, classes):
    x, c = b.conv(x, 3, 32, 3, 2, act="relu6"), 32
    for t, k, n, s in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for i in range(n):
            y, inner, stride = x, c * t, s if i == 0 else 1
            if t != 1:
                y = b.conv(y, c, inner, 1, act="relu6")
            y = b.conv(b.conv(y, inner, inner, 3, stride, inner, act="relu6"), inner, k, 1)
            x, c = (b.node("Add", [x, y]) if stride == 1 and c == k else y), k
    return b.head(b.conv(x, c, 1280, 1, act="relu6"), 1280, classes)


def efficientnet_b0(b, x, classes):
    x, c = b.conv(x, 3, 32, 3, 2, act="silu"), 32
    for t, k, n, s, r in ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5),
                          (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)):
        for i in range(n):
            y, inner, stride = x, c * t, s if i == 0 else 1
            if t != 1:
                y = b.conv(y, c, inner, 1, act="silu")
            y = b.conv(y, inner, inner, r, stride, inner, act="silu")
            y = b.conv(b.squeeze_excite(y, inner, max(1, c // 4), "silu"), inner, k, 1)
            x, c = (b.node("Add", [x, y]) if stride == 1 and c == k else y), k
    return b.head(b.conv(x, c, 1280, 1, act="silu"), 1280, classes)


def mixed(b, x, c, kernels, stride, act):
    """Channels split over several kernel sizes; the first part takes the remainder."""
    part = c // len(kernels)
    sizes = [c - part * (len(kernels) - 1)] + [part] * (len(kernels) - 1)
    if len(kernels) == 1:
        return b.conv(x, c, c, kernels[0], stride, c, act=act)
    pieces = b.node("Split", [x, b.tensor(np.array(sizes, np.int64))], outputs=len(sizes), axis=1)
    done = [b.conv(p, s, s, r, stride, s) for p, s, r in zip(pieces, sizes, kernels)]
    return b.act(b.node("Concat", done, axis=1), act)


def mixnet_s(b, x, classes):
    x, c = b.conv(x, 3, 16, 3, 2, act="relu"), 16
    blocks = ((1, 16, 1, (3,), 0, "relu"), (6, 24, 2, (3,), 0, "relu"), (3, 24, 1, (3,), 0, "relu"),
              (6, 40, 2, (3, 5, 7), 2, "silu"), *[(6, 40, 1, (3, 5), 2, "silu")] * 3,
              (6, 80, 2, (3, 5, 7), 4, "silu"), *[(6, 80, 1, (3, 5), 4, "silu")] * 2,
              (6, 120, 1, (3, 5, 7), 2, "silu"), *[(3, 120, 1, (3, 5, 7, 9), 2, "silu")] * 2,
              (6, 200, 2, (3, 5, 7, 9, 11), 2, "silu"), *[(6, 200, 1, (3, 5, 7, 9), 2, "silu")] * 2)
    for t, k, stride, kernels, squeeze, act in blocks:
        y, inner = x, c * t
        if t != 1:
            y = b.conv(y, c, inner, 1, act=act)
        y = mixed(b, y, inner, kernels, stride, act)
        if squeeze:
            y = b.squeeze_excite(y, inner, c // squeeze, act)
        y = b.conv(y, inner, k, 1)
        x, c = (b.node("Add", [x, y]) if stride == 1 and c == k else y), k
    return b.head(b.conv(x, c, 1536, 1, act="relu"), 1536, classes)


def convnext_tiny(b, x, classes):
    def channels_last(y, c):
        return b.layer_norm(b.node("Transpose", [y], perm=[0, 2, 3, 1]), c)

    def channels_first(y):
        return b.node("Transpose", [y], perm=[0, 3, 1, 2])

    c = 96
    x = channels_first(channels_last(b.conv(x, 3, c, 4, 4, pad=0), c))
    for stage, (k, depth) in enumerate(((96, 3), (192, 3), (384, 9), (768, 3))):
        if stage > 0:
            x = b.conv(channels_first(channels_last(x, c)), c, k, 2, 2, pad=0)
            c = k
        for _ in range(depth):
            y = channels_last(b.conv(x, c, c, 7, groups=c), c)
            y = b.gelu(b.node("Add", [b.node("MatMul", [y, b.weights(c, 4 * c, fan_in=c)]), b.tensor(np.zeros(4 * c, np.float32))]))
            y = b.node("MatMul", [y, b.weights(4 * c, c, fan_in=4 * c)])
            y = b.node("Mul", [y, b.tensor(np.full(c, 0.1, np.float32))])
            x = b.node("Add", [x, channels_first(y)])
    return b.head(x, c, classes)


def resnext50_32x4d(b, x, classes):
    x = b.node("MaxPool", [b.conv(x, 3, 64, 7, 2, act="relu")], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    c = 64
    for width, depth, first in ((128, 3, 1), (256, 4, 2), (512, 6, 2), (1024, 3, 2)):
        for i in range(depth):
            stride = first if i == 0 else 1
            y = b.conv(x, c, width, 1, act="relu")
            y = b.conv(b.conv(y, width, width, 3, stride, 32, act="relu"), width, 2 * width, 1)
            short = x if c == 2 * width and stride == 1 else b.conv(x, c, 2 * width, 1, stride)
            x, c = b.node("Relu", [b.node("Add", [y, short])]), 2 * width
    return b.head(x, c, classes)


NETWORKS = {f.__name__: f for f in (mobilenet_v2, efficientnet_b0, convnext_tiny, mixnet_s, resnext50_32x4d)}


def make(name, size=64, batch=1, classes=10, seed=1) -> onnx.ModelProto:
    b = Builder(seed)
    return b.model(name, NETWORKS[name](b, "image", classes), [batch, 3, size, size], classes)


if __name__ == "__main__":
    import sys

    onnx.save(make(sys.argv[1]), sys.argv[2])
