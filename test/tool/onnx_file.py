"""Writes small ONNX files without the onnx package: protobuf's wire format is all it takes."""

import struct

FLOAT, FLOAT16, DOUBLE = 1, 10, 11


def varint(value):
    out = bytearray()
    while True:
        out.append((value & 0x7F) | (0x80 if value > 0x7F else 0))
        value >>= 7
        if value == 0:
            return bytes(out)


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value & (2**64 - 1))
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def attribute(name, value):
    if isinstance(value, list):
        return field(1, name) + b"".join(field(8, v) for v in value) + field(20, 7)
    return field(1, name) + field(3, value) + field(20, 2)


def node(op, inputs, outputs, name="", **attributes):
    return (b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs) + field(3, name) +
            field(4, op) + b"".join(field(5, attribute(k, v)) for k, v in attributes.items()))


def value(name, element, dims):
    shape = b"".join(field(1, field(2, d) if isinstance(d, str) else field(1, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, element) + field(2, shape)))


def ones(name, dims):
    count = 1
    for d in dims:
        count *= d
    return (b"".join(field(1, d) for d in dims) + field(2, FLOAT) + field(8, name) +
            field(9, struct.pack("<f", 1.0) * count))


def model(nodes, inputs, outputs, initialisers=()):
    graph = (b"".join(field(1, n) for n in nodes) + field(2, "graph") + b"".join(field(5, t) for t in initialisers) +
             b"".join(field(11, v) for v in inputs) + b"".join(field(12, v) for v in outputs))
    return field(1, 8) + field(2, "a test") + field(7, graph) + field(8, field(1, "") + field(2, 17))


def network(batch=1, channels=144, element=FLOAT):
    """A depthwise 3x3 with Relu, then a dense 1x1."""
    c = channels
    dims = [batch, c, 56, 56]
    return model(
        [node("Conv", ["x", "w1"], ["y"], "depthwise", group=c, pads=[1, 1, 1, 1]), node("Relu", ["y"], ["r"], "act"),
         node("Conv", ["r", "w2"], ["z"], "dense")],
        [value("x", element, dims)], [value("z", element, dims)], [ones("w1", [c, 1, 3, 3]), ones("w2", [c, c, 1, 1])])
