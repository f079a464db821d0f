"""Exports the five networks from timm and keeps their structure: `structures/*.onnx`, which networks.py fills with weights.

    pip install torch timm onnx
    export.py [--size 64] [--out integrations/onnx/structures] [network ...]

Opset 17, PyTorch's TorchScript exporter, inference: batch normalisation is folded into the convolution before it. Weights
are cut out: such a tensor keeps its name, shape and type, says that its data is elsewhere, and holds the mean and the
standard deviation of what shall stand for it as its doc_string. Everything else is as exported: scalars, integers and
constants keep their data.
"""

import argparse
import io
import pathlib

import numpy as np
import onnx
import timm
import torch

# By this repository's names; timm's differ for one.
MODELS = {"mobilenet_v2": "mobilenetv2_100", "efficientnet_b0": "efficientnet_b0", "convnext_tiny": "convnext_tiny",
          "mixnet_s": "mixnet_s", "resnext50_32x4d": "resnext50_32x4d"}


def exported(timm_name, size):
    torch.manual_seed(0)
    network = timm.create_model(timm_name, pretrained=False, exportable=True).eval()
    # As initialised, many biases are equal, and the exporter would let layers share one: a trained network's do not.
    with torch.no_grad():
        for tensor in network.state_dict().values():
            if tensor.is_floating_point():
                tensor.uniform_(0.5, 1.5)
    file = io.BytesIO()
    torch.onnx.export(network, (torch.zeros(1, 3, size, size),), file, opset_version=17, dynamo=False, input_names=["image"],
                      output_names=["logits"], do_constant_folding=True)
    return onnx.load_from_string(file.getvalue())


def distribution(tensor, readers):
    """Mean and deviation that keep values of the order of one through a deep network."""
    node, at = readers[tensor.name][0]
    if node.op_type == "Conv" and at == 1:
        return 0.0, (2 / np.prod(tensor.dims[1:])) ** 0.5
    if node.op_type in ("MatMul", "Gemm") and at == 1:
        transposed = any(a.name == "transB" and a.i for a in node.attribute)
        return 0.0, tensor.dims[1 if transposed else 0] ** -0.5
    if node.op_type == "Mul" or (node.op_type, at) in (("LayerNormalization", 1), ("BatchNormalization", 1),
                                                       ("BatchNormalization", 4)):
        return 1.0, 0.1
    return 0.0, 0.1


def strip(model):
    readers = {}
    for node in model.graph.node:
        for at, name in enumerate(node.input):
            readers.setdefault(name, []).append((node, at))
    for tensor in model.graph.initializer:
        if tensor.data_type != onnx.TensorProto.FLOAT or len(tensor.dims) == 0:
            continue
        mean, deviation = distribution(tensor, readers)
        tensor.ClearField("raw_data")
        tensor.ClearField("float_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="seed")
        tensor.doc_string = f"{mean:.6g} {deviation:.6g}"
    for node in model.graph.node:  # where in Python's source the node comes from
        node.ClearField("doc_string")
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=64, help="rows and columns of the image (default 64)")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "structures")
    parser.add_argument("networks", nargs="*", default=[], help=", ".join(MODELS))
    arguments = parser.parse_args()
    arguments.out.mkdir(exist_ok=True)
    for name in arguments.networks or MODELS:
        model = strip(exported(MODELS[name], arguments.size))
        model.graph.name = name
        model.graph.doc_string = f"timm {timm.__version__} {MODELS[name]}, torch {torch.__version__}"
        path = arguments.out / f"{name}.onnx"
        temporary = path.with_suffix(".partial")
        temporary.write_bytes(model.SerializeToString(deterministic=True))
        temporary.replace(path)
        print(f"{path}: {len(model.graph.node)} nodes, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
