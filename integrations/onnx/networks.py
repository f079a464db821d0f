"""MobileNetV2, EfficientNet-B0, ConvNeXt-Tiny, MixNet-S and ResNeXt-50 32x4d as timm exports them, weights from a seed.

`structures/` holds the exported graphs without their weights (export.py made them). No torch is needed here.
"""

import pathlib
import zlib

import numpy as np
import onnx

FOLDER = pathlib.Path(__file__).resolve().parent / "structures"
NETWORKS = ("mobilenet_v2", "efficientnet_b0", "convnext_tiny", "mixnet_s", "resnext50_32x4d")


def fill(model, seed=1):
    """Gives every tensor whose weights were cut out its numbers: they depend on the seed and the tensor's name alone, so that
    a model and its rewritten form have the same."""
    for tensor in model.graph.initializer:
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        mean, deviation = (np.float32(text) for text in tensor.doc_string.split())
        random = np.random.default_rng([seed, zlib.crc32(tensor.name.encode())])
        values = mean + deviation * random.standard_normal(tuple(tensor.dims), np.float32)
        tensor.ClearField("external_data")
        tensor.data_location = onnx.TensorProto.DEFAULT
        tensor.raw_data = values.astype("<f4").tobytes()
    return model


def structure(name) -> onnx.ModelProto:
    return onnx.load(FOLDER / f"{name}.onnx", load_external_data=False)


def make(name, seed=1) -> onnx.ModelProto:
    return fill(structure(name), seed)


if __name__ == "__main__":
    import sys

    onnx.save(make(sys.argv[1]), sys.argv[2])
