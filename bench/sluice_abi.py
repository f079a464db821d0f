"""The C ABI of Sluice from Python: ctypes only, no build step. Mirrors include/sluice/sluice.h, version 0.1."""
import ctypes as c
import json

OK, KEPT = 0, 1
DTYPE = {"f32": 0, "f16": 1, "bf16": 2}
LAYOUT = {"nchw": 0, "nhwc": 1}
WEIGHT_LAYOUT = {"oihw": 0, "ohwi": 1}


class Options(c.Structure):
    _fields_ = [("size", c.c_size_t), ("device", c.c_char_p), ("policy", c.c_int32), ("cache_dir", c.c_char_p),
                ("routing_table", c.c_char_p), ("decision_table", c.c_char_p), ("force_take", c.c_int32),
                ("tune_budget_ms", c.c_double), ("tune_scratch_bytes", c.c_uint64), ("tune_threads", c.c_int32),
                ("log", c.c_void_p), ("log_user", c.c_void_p), ("log_level", c.c_int32)]


class Tensor(c.Structure):
    _fields_ = [("data", c.c_void_p), ("dtype", c.c_int32), ("ndim", c.c_int32), ("dims", c.POINTER(c.c_int64)),
                ("strides", c.POINTER(c.c_int64))]


class Conv2dArgs(c.Structure):
    _fields_ = [("size", c.c_size_t), ("x", Tensor), ("w", Tensor), ("y", Tensor), ("bias", Tensor), ("z", Tensor),
                ("layout", c.c_int32), ("weight_layout", c.c_int32), ("groups", c.c_int64), ("stride", c.c_int64 * 2),
                ("pad", c.c_int64 * 4), ("dilation", c.c_int64 * 2), ("activation", c.c_int32), ("alpha", c.c_float),
                ("beta", c.c_float), ("regular", c.c_int32)]


class Counters(c.Structure):
    _fields_ = [("size", c.c_size_t)] + [(name, c.c_uint64) for name in (
        "compiles", "binary_hits", "decision_hits", "tunings", "launches", "kept", "fallbacks", "plan_hits", "plan_misses")]


class Error(RuntimeError):
    """A call that is neither OK nor KEPT; carries the status and the library's message."""

    def __init__(self, status, message):
        super().__init__(f"{message} (status {status})")
        self.status = status


def _tensor(pointer, dtype, dims, keep):
    array = (c.c_int64 * len(dims))(*dims)
    keep.append(array)
    return Tensor(pointer, DTYPE[dtype], len(dims), array, None)


class Plan:
    """A prepared call. Keep the Context alive while it is used."""

    def __init__(self, library, handle):
        self._library, self._handle = library, handle

    def run(self, x, w, y, stream, bias=None, z=None):
        """Pointers and a stream as integers."""
        status = self._library.sluice_plan_run(self._handle, x, w, bias, z, y, stream)
        if status != OK:
            raise Error(status, self._library.sluice_last_error().decode())

    def __del__(self):
        if self._handle:
            self._library.sluice_plan_destroy(self._handle)
            self._handle = None


class Context:
    def __init__(self, path, device="cuda:0", cache_dir=None, force=False, policy=-1, tune_budget_ms=0.0, routing_table=None):
        self.library = library = c.CDLL(path)
        library.sluice_last_error.restype = c.c_char_p
        library.sluice_version_string.restype = c.c_char_p
        library.sluice_context_create.argtypes = [c.POINTER(Options), c.POINTER(c.c_void_p)]
        library.sluice_context_destroy.argtypes = [c.c_void_p]
        library.sluice_prepare.argtypes = [c.c_void_p, c.POINTER(Conv2dArgs), c.c_void_p, c.POINTER(c.c_void_p)]
        library.sluice_plan_run.argtypes = [c.c_void_p] * 7
        library.sluice_plan_destroy.argtypes = [c.c_void_p]
        library.sluice_explain.argtypes = [c.c_void_p, c.POINTER(Conv2dArgs), c.c_int32, c.POINTER(c.c_void_p)]
        library.sluice_string_free.argtypes = [c.c_void_p]
        library.sluice_get_counters.argtypes = [c.c_void_p, c.POINTER(Counters)]
        encode = lambda text: None if text is None else str(text).encode()
        options = Options(c.sizeof(Options), encode(device), policy, encode(cache_dir), encode(routing_table), None, int(force),
                          tune_budget_ms, 0, 0, None, None, 2)
        self.handle = c.c_void_p()
        self._check(library.sluice_context_create(c.byref(options), c.byref(self.handle)))

    def _check(self, status):
        if status not in (OK, KEPT):
            raise Error(status, self.library.sluice_last_error().decode())
        return status

    def args(self, *, x, w, y, dtype, layout, n, c_, h, w_, k, groups, kernel, out, stride, pad, dilation, weight_layout="oihw",
             regular=True, bias=None):
        """(Conv2dArgs, things to keep alive). Pointers as integers or None; sizes in logical order; pad is (top, left)."""
        keep = []
        args = Conv2dArgs()
        args.size = c.sizeof(Conv2dArgs)
        args.x = _tensor(x, dtype, (n, c_, h, w_), keep)
        args.w = _tensor(w, dtype, (k, c_ // groups, *kernel), keep)
        args.y = _tensor(y, dtype, (n, k, *out), keep)
        if bias is not None:
            args.bias = _tensor(bias, dtype, (k,), keep)
        args.layout, args.weight_layout = LAYOUT[layout], WEIGHT_LAYOUT[weight_layout]
        args.groups = groups
        args.stride, args.dilation = (c.c_int64 * 2)(*stride), (c.c_int64 * 2)(*dilation)
        args.pad = (c.c_int64 * 4)(pad[0], pad[1], pad[0], pad[1])
        args.regular = int(regular)
        return args, keep

    def prepare(self, args, stream=None):
        """A Plan, or None where the call is kept."""
        plan = c.c_void_p()
        status = self._check(self.library.sluice_prepare(self.handle, c.byref(args), stream, c.byref(plan)))
        return Plan(self.library, plan) if status == OK else None

    def explain(self, args, dry=True):
        text = c.c_void_p()
        self._check(self.library.sluice_explain(self.handle, c.byref(args), int(dry), c.byref(text)))
        try:
            return json.loads(c.cast(text, c.c_char_p).value.decode())
        finally:
            self.library.sluice_string_free(text)

    def counters(self):
        counters = Counters(c.sizeof(Counters))
        self._check(self.library.sluice_get_counters(self.handle, c.byref(counters)))
        return counters

    def close(self):
        if self.handle:
            self.library.sluice_context_destroy(self.handle)
            self.handle = None
