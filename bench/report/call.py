"""A convolution call as result files spell it, and what a routing rule may ask about it (docs/routing.md)."""
import dataclasses
import functools
import re

DTYPES, LAYOUTS = ("f32", "f16", "bf16"), ("nchw", "nhwc")
BYTES = {"f32": 4, "f16": 2, "bf16": 2}
TOKEN = re.compile(r"(mb|ic|ih|iw|oc|oh|ow|kh|kw|sh|sw|ph|pw|dh|dw|g)(\d{1,15})_?")
ATTRIBUTES = {"dt": DTYPES, "tag": LAYOUTS, "wtag": ("oihw", "ohwi"), "bias": ("none", "same", "f32"), "z": ("0", "1"),
              "align": ("2", "4", "8", "16"), "act": None, "alpha": None, "beta": None}


class Bad(Exception):
    """Input that is not what it should be; the message names the place, the value and what would be right."""


@dataclasses.dataclass(frozen=True)
class Call:
    """Sizes as in docs/routing.md: n c h w k groups, kernel r x s, output p x q; dilation 1 = dense."""
    n: int
    c: int
    h: int
    w: int
    k: int
    groups: int
    r: int
    s: int
    p: int
    q: int
    stride: tuple
    dilation: tuple
    dtype: str
    layout: str
    weight_layout: str = "oihw"
    bias: str = "none"
    activation: str = "none"
    residual: bool = False
    align: int = 16
    extra: tuple = ()  # what tells two calls apart and no chart asks for: padding, alpha, beta

    @property
    def cpg(self):
        return self.c // self.groups

    @property
    def multiplier(self):
        return self.k // self.groups

    @property
    def outputs(self):
        return self.n * self.k * self.p * self.q

    @property
    def family(self):
        """Depthwise, multiplier (one input channel a group, several outputs) or grouped."""
        return "grouped" if self.cpg > 1 else "multiplier" if self.multiplier > 1 else "depthwise"

    @property
    def kind(self):
        return f"{self.family} {self.r}x{self.s}"

    @property
    def kind_by_channels(self):
        """As `kind`, but what is not depthwise is told apart by its channels a group or its multiplier."""
        return {"depthwise": self.kind, "multiplier": f"multiplier {self.multiplier}"}.get(self.family, f"{self.cpg} channels a group")

    @functools.cached_property
    def features(self):
        """{feature of a routing rule: value}; numbers and names."""
        x, w = self.n * self.c * self.h * self.w, self.k * self.cpg * self.r * self.s
        bias_bytes = 0 if self.bias == "none" else 4 if self.bias == "f32" else BYTES[self.dtype]
        halo = ((self.dilation[0] * (self.r - 1) + 2) * self.w + self.dilation[1] * (self.s - 1) + 1) * (self.c if self.layout == "nhwc" else 1)
        limit = 2 ** 31 - 1 - 2 ** 16  # as ConvProblem::needs_64bit_offsets
        return {
            "cpg": self.cpg, "multiplier": self.multiplier, "depthwise": int(self.groups == self.c), "groups": self.groups,
            "kernel_area": self.r * self.s, "r": self.r, "s": self.s, "stride": max(self.stride), "dilation": max(self.dilation),
            "n": self.n, "c": self.c, "k": self.k, "h": self.h, "w": self.w, "p": self.p, "q": self.q, "plane": self.p * self.q,
            "outputs": self.outputs, "macs": self.outputs * self.cpg * self.r * self.s,
            "bytes": (x + w + self.outputs * (2 if self.residual else 1)) * BYTES[self.dtype] + self.k * bias_bytes,
            "align": self.align, "bias": int(self.bias != "none"), "residual": int(self.residual),
            "wide_offsets": int(halo > limit or x > limit - halo or self.outputs > limit or w > limit),
            "dtype": self.dtype, "layout": self.layout, "weight_layout": self.weight_layout, "activation": self.activation}


def _axis(field, suffix):
    """(input, kernel, output, stride, padding, dilation) of rows or columns, read as benchdnn reads them."""
    size, taps, out = field.get("i" + suffix, 0), field.get("k" + suffix, 0), field.get("o" + suffix, 0)
    stride, pad, dilation = field.get("s" + suffix, 1), field.get("p" + suffix), field.get("d" + suffix, 0) + 1
    if size < 1 or taps < 1 or stride < 1:
        raise Bad(f"i{suffix}, k{suffix} and s{suffix} must be at least 1")
    reach = dilation * (taps - 1) + 1
    if out == 0:
        out = (size + 2 * (pad or 0) - reach) // stride + 1
    elif pad is None:
        pad = max(0, (out - 1) * stride + reach - size) // 2
    return size, taps, out, stride, pad or 0, dilation


def parse(text):
    """The call that a descriptor with its attributes spells: `g8mb1ic8ih10oc8oh10kh3ph1 dt=f16 tag=nhwc bias=same`."""
    words = text.split() if isinstance(text, str) else []
    if not words:
        raise Bad(f"{text!r} is not a problem; such as 'g8mb1ic8ih10oc8oh10kh3ph1 dt=f16 tag=nhwc' would be right")
    tokens, end = {}, 0
    while (match := TOKEN.match(words[0], end)) and match.group(1) not in tokens:
        tokens[match.group(1)], end = int(match.group(2)), match.end()
    if end != len(words[0]):
        raise Bad(f"{text!r} is not a problem: {words[0][end:end + 20]!r} is not understood")
    attributes = {}
    for word in words[1:]:
        key, equals, value = word.partition("=")
        if key not in ATTRIBUTES or not equals or (ATTRIBUTES[key] and value not in ATTRIBUTES[key]):
            raise Bad(f"{text!r} is not a problem: {word!r} is not understood")
        attributes[key] = value
    try:
        lines = any("h" == name[-1] for name in tokens), any("w" == name[-1] for name in tokens)
        point = (1, 1, 1, 1, 0, 1)
        rows = _axis(tokens, "h") if lines[0] else point
        columns = _axis(tokens, "w") if lines[1] or not lines[0] else rows
    except Bad as error:
        raise Bad(f"{text!r} is not a problem: {error}") from None
    return _call(tokens.get("mb", 2), tokens.get("ic", 0), tokens.get("oc", 0), tokens.get("g", 1), rows, columns, attributes, repr(text))


def of_fields(row):
    """The call of a row of bench/compare_torch.py that failed before it had a signature."""
    def size(key, at=None, low=1):
        value = row.get(key)
        value = value[at] if at is not None and isinstance(value, list) and len(value) == 2 else value
        if type(value) is not int or value < low:
            raise Bad(f"{key} = {value!r}: a whole number from {low} would be right")
        return value

    field = {}
    for at, axis in enumerate("hw"):
        field.update({"i" + axis: size(axis), "k" + axis: size("k" + axis), "s" + axis: size("stride", at), "p" + axis: size("pad", at, 0),
                      "d" + axis: size("dil", at) - 1})
    attributes = {"dt": row.get("dtype"), "tag": row.get("layout"), "bias": "same" if row.get("bias") else "none"}
    for key in ("dt", "tag"):
        if attributes[key] not in ATTRIBUTES[key]:
            raise Bad(f"{'dtype' if key == 'dt' else 'layout'} = {attributes[key]!r}: one of {', '.join(ATTRIBUTES[key])} would be right")
    n, c, k, groups = (size(key) for key in ("n", "c", "k", "groups"))
    call = _call(n, c, k, groups, _axis(field, "h"), _axis(field, "w"), attributes, "the row")
    text = f"g{groups}mb{n}ic{c}" + "".join(f"i{a}{field['i' + a]}" for a in "hw") + f"oc{k}oh{call.p}ow{call.q}"
    text += "".join(f"{key}{a}{field[key + a]}" for key in "kspd" for a in "hw")
    return call, f"{text} dt={call.dtype} tag={call.layout}" + (" bias=same" if call.bias == "same" else "")


def _call(n, c, k, groups, rows, columns, attributes, where):
    sizes = {"batch": n, "input channels": c, "output channels": k, "groups": groups, "output rows": rows[2], "output columns": columns[2]}
    for name, value in sizes.items():
        if value < 1:
            raise Bad(f"{where} is not a problem: {name} = {value}; at least 1 would be right")
    if c % groups or k % groups:
        raise Bad(f"{where} is not a problem: {groups} groups do not divide {c} and {k} channels")
    extra = (rows[4], columns[4], attributes.get("alpha"), attributes.get("beta"))
    dtype, bias = attributes.get("dt", "f32"), attributes.get("bias", "none")
    return Call(n, c, rows[0], columns[0], k, groups, rows[1], columns[1], rows[2], columns[2], (rows[3], columns[3]),
                (rows[5] if rows[1] > 1 else 1, columns[5] if columns[1] > 1 else 1), dtype, attributes.get("tag", "nchw"),
                attributes.get("wtag", "oihw"), "same" if dtype == "f32" and bias == "f32" else bias, attributes.get("act", "none"),
                attributes.get("z") == "1", int(attributes.get("align", 16)), extra)
