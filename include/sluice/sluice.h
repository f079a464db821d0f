/* Sluice C ABI: depthwise and few-channel grouped convolutions for inference runtimes.
 *
 * Everything is thread-safe unless it says otherwise. No function throws, aborts or writes to stderr. Structs that may
 * grow carry their size first: set `size = sizeof(struct)` (the SLUICE_*_INIT macros do), and fields a caller does not
 * know keep their defaults. Tensors are the caller's: plain device pointers with dtype, dims and strides in elements;
 * Sluice writes the result and nothing else.
 */
#ifndef SLUICE_H
#define SLUICE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define SLUICE_API
#else
#define SLUICE_API __attribute__((visibility("default")))
#endif

#define SLUICE_VERSION_MAJOR 0
#define SLUICE_VERSION_MINOR 1
#define SLUICE_VERSION_PATCH 0

typedef enum sluice_status {
  SLUICE_OK = 0,
  SLUICE_KEPT = 1,         /* not an error: run your own convolution; sluice_last_error() gives the reason */
  SLUICE_NOT_PREPARED = 2, /* the stream is capturing and this call was never prepared; the capture is still valid */
  SLUICE_INVALID = 3,      /* bad argument; the message names the field, the value and what would be right */
  SLUICE_UNSUPPORTED = 4,  /* REQUIRED call that no schedule can serve; the message names the call's signature */
  SLUICE_OUT_OF_MEMORY = 5,
  SLUICE_DEVICE_ERROR = 6,
  SLUICE_COMPILE_ERROR = 7,
  SLUICE_WRONG_RESULT = 8,
  SLUICE_ENVIRONMENT = 9,
  SLUICE_NOT_FOUND = 10,
  SLUICE_PINNED_MISS = 11,
  SLUICE_INTERNAL = 12
} sluice_status;

typedef enum sluice_dtype { SLUICE_F32 = 0, SLUICE_F16 = 1, SLUICE_BF16 = 2 } sluice_dtype;
typedef enum sluice_layout { SLUICE_NCHW = 0, SLUICE_NHWC = 1 } sluice_layout;
typedef enum sluice_weight_layout { SLUICE_OIHW = 0, SLUICE_OHWI = 1 } sluice_weight_layout;
typedef enum sluice_activation {
  SLUICE_ACT_NONE = 0,
  SLUICE_ACT_RELU = 1,
  SLUICE_ACT_CLIP = 2,
  SLUICE_ACT_SILU = 3,
  SLUICE_ACT_HARD_SWISH = 4,
  SLUICE_ACT_GELU_ERF = 5,
  SLUICE_ACT_GELU_TANH = 6,
  SLUICE_ACT_LEAKY_RELU = 7
} sluice_activation;
typedef enum sluice_policy {
  SLUICE_FIRST_USE = 0,  /* tune on the first call of a shape (default) */
  SLUICE_IMMEDIATE = 1,  /* table or heuristic, no timing */
  SLUICE_BACKGROUND = 2, /* the base kernel at once; tune on another thread and stream; swap atomically */
  SLUICE_PINNED = 3,     /* only decisions of the given table; a miss fails closed */
  SLUICE_OFF = 4         /* every call is kept (a REQUIRED one is UNSUPPORTED); SLUICE_DISABLE=1 does the same */
} sluice_policy;
typedef enum sluice_log_level {
  SLUICE_DEBUG = 0,
  SLUICE_INFO = 1,
  SLUICE_WARNING = 2,
  SLUICE_ERROR = 3
} sluice_log_level;

/* How well a stored decision must match under SLUICE_PINNED. */
typedef enum sluice_match {
  SLUICE_MATCH_EXACT = 0,
  SLUICE_MATCH_OTHER_DRIVER = 1,    /* or made with another driver version */
  SLUICE_MATCH_OTHER_CANDIDATES = 2 /* or chosen from another set of candidates */
} sluice_match;

typedef struct sluice_context sluice_context;
typedef struct sluice_plan sluice_plan;

/* Called from any thread, tuning threads included; must not call back into Sluice. */
typedef void (*sluice_log_callback)(sluice_log_level level, const char* message, void* user);

typedef struct sluice_options {
  size_t size;
  /* "cuda", "cuda:1", "host", "host:80" (the host emulating capability 8.0); NULL = "cuda:0". Never picked by itself: a
   * missing device is an error. */
  const char* device;
  int32_t policy;            /* sluice_policy, or -1: SLUICE_POLICY from the environment, else first use */
  const char* cache_dir;     /* NULL: SLUICE_CACHE_DIR, else the user's cache directory; "off" = no store */
  const char* routing_table; /* file or folder; NULL: SLUICE_ROUTING_TABLE, else shipped */
  /* File of tuned decisions: all that SLUICE_PINNED takes; other policies read it after the user's own decision store.
   * NULL: SLUICE_DECISION_TABLE. */
  const char* decision_table;
  int32_t force_take;          /* 1: take calls that routing would keep */
  double tune_budget_ms;       /* 0: default */
  uint64_t tune_scratch_bytes; /* 0: default */
  int32_t tune_threads;        /* 0: default */
  sluice_log_callback log;     /* NULL: silent */
  void* log_user;
  int32_t log_level;      /* least level passed on; default SLUICE_WARNING */
  int32_t pinned_accepts; /* sluice_match; the weakest match that SLUICE_PINNED takes */
  /* File that each new call is appended to, taken, kept or failed: a suite for `sluice tune`. NULL: SLUICE_RECORD; "" =
   * none. A file that cannot be written is a warning. */
  const char* record;
  /* Model that picks for SLUICE_IMMEDIATE: file or folder; NULL: SLUICE_HEURISTIC, else shipped, else the schedules'
   * own order. */
  const char* heuristic;
} sluice_options;
#define SLUICE_OPTIONS_INIT                                                                                           \
  {                                                                                                                   \
    sizeof(sluice_options), NULL, -1, NULL, NULL, NULL, 0, 0.0, 0, 0, NULL, NULL, SLUICE_WARNING, SLUICE_MATCH_EXACT, \
        NULL, NULL                                                                                                    \
  }

/* A tensor view. dims and strides in logical order (n, c, h, w) or (k, c/groups, r, s), whatever the layout; strides in
 * elements. ndim is 4, or 3 for conv1d (n, c, w), or 1 for a bias. strides NULL = packed in the stated layout. Not
 * owned. */
typedef struct sluice_tensor {
  void* data;
  int32_t dtype;
  int32_t ndim;
  const int64_t* dims;
  const int64_t* strides;
} sluice_tensor;

/* One call. */
typedef struct sluice_conv2d_args {
  size_t size;
  sluice_tensor x, w, y;
  sluice_tensor bias; /* data NULL and ndim 0 = none; dtype x's or F32; [k] */
  sluice_tensor
      z; /* residual of y's shape, dtype and layout, added before the activation; may be y itself; none as for bias */
  int32_t layout; /* sluice_layout of x, y, z: stated, never guessed from strides */
  int32_t weight_layout;
  int64_t groups;
  int64_t stride[2];   /* h, w; for ndim 3 only [1] counts */
  int64_t pad[4];      /* top, left, bottom, right; bottom and right must agree with y's dims (up to stride slack) */
  int64_t dilation[2]; /* 1 = dense */
  int32_t activation;
  float alpha, beta; /* clip: the bounds, either may be infinite; leaky_relu: alpha is the slope below 0 */
  int32_t regular;   /* 1: your own convolution can run this call (OPTIONAL); 0: it cannot (REQUIRED) */
} sluice_conv2d_args;
#define SLUICE_TENSOR_NONE \
  { NULL, SLUICE_F32, 0, NULL, NULL }
#define SLUICE_CONV2D_ARGS_INIT                                                                                       \
  {                                                                                                                   \
    sizeof(sluice_conv2d_args), SLUICE_TENSOR_NONE, SLUICE_TENSOR_NONE, SLUICE_TENSOR_NONE, SLUICE_TENSOR_NONE,       \
        SLUICE_TENSOR_NONE, SLUICE_NCHW, SLUICE_OIHW, 1, {1, 1}, {0, 0, 0, 0}, {1, 1}, SLUICE_ACT_NONE, 0.0f, 0.0f, 1 \
  }

typedef struct sluice_counters {
  size_t size;
  uint64_t compiles, binary_hits, decision_hits, tunings, launches, kept, fallbacks, plan_hits, plan_misses;
} sluice_counters;
#define SLUICE_COUNTERS_INIT \
  { sizeof(sluice_counters), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Run-time version, 10000 * major + 100 * minor + patch, and as text ("0.1.0"). */
SLUICE_API int32_t sluice_version(void);
SLUICE_API const char* sluice_version_string(void);

/* This thread's last non-OK outcome (kept included), as text; never NULL; valid until this thread's next call. A kept
 * call that was known already gives a fixed text (no call on that path allocates); sluice_explain has its reason. */
SLUICE_API const char* sluice_last_error(void);
SLUICE_API const char* sluice_status_name(sluice_status status);

/* options NULL = defaults. *context is NULL on failure. */
SLUICE_API sluice_status sluice_context_create(const sluice_options* options, sluice_context** context);
/* Joins background tuning. No call of this context may be under way and no plan of it may be run after. NULL is
 * allowed. A forked child must not use its parent's context; destroying it there frees nothing and touches no device.
 */
SLUICE_API void sluice_context_destroy(sluice_context* context);

/* Look up and run, asynchronously on `stream` (a CUstream / cudaStream_t of the context's device; NULL = legacy default
 * stream). OK: y will hold the result. KEPT: nothing was launched. The first call of a shape may compile and tune, by
 * policy. While `stream` captures: a known call launches, an unknown one is NOT_PREPARED. */
SLUICE_API sluice_status sluice_conv2d(sluice_context* context, const sluice_conv2d_args* args, void* stream);

/* Decide (compile, tune) without running. Tensor data may be NULL except for alignment: NULL data counts as 16-byte
 * aligned. *plan is non-NULL for OK only. Under SLUICE_BACKGROUND the plan holds the base kernel until prepared again.
 */
SLUICE_API sluice_status sluice_prepare(sluice_context* context, const sluice_conv2d_args* args, void* stream,
                                        sluice_plan** plan);
/* Run a prepared plan: no look-up. Pointers must have at least the alignment the plan was prepared for; bias and z NULL
 * where the plan has none. */
SLUICE_API sluice_status sluice_plan_run(const sluice_plan* plan, const void* x, const void* w, const void* bias,
                                         const void* z, void* y, void* stream);
SLUICE_API void sluice_plan_destroy(sluice_plan* plan);

/* The decision record of a call as JSON (free with sluice_string_free). dry = 1: neither compiles nor tunes. */
SLUICE_API sluice_status sluice_explain(sluice_context* context, const sluice_conv2d_args* args, int32_t dry,
                                        char** json);
/* The same from a benchdnn descriptor with optional key=value tokens ("g144mb32ic144ih56oc144oh56kh3ph1 dt=f16
 * tag=nhwc"); regular=no explains it as a REQUIRED call. */
SLUICE_API sluice_status sluice_explain_text(sluice_context* context, const char* problem, int32_t dry, char** json);
SLUICE_API void sluice_string_free(char* string);

SLUICE_API sluice_status sluice_get_counters(const sluice_context* context, sluice_counters* counters);
/* Waits for background tunings. */
SLUICE_API sluice_status sluice_wait_idle(sluice_context* context);
/* Whether code of a minimum capability (10 * major + minor) runs on the context's device. */
SLUICE_API int32_t sluice_device_supports(const sluice_context* context, int32_t min_capability);

/* ---- Planned replacement in a graph: docs/graph.md is the manual ----
 *
 * The caller's graph is reached through callbacks. Nodes and values are numbers of the caller's choosing that stay
 * valid while what they name is in the graph, and after an undo brought it back. Every callback gets the `user` of its
 * struct, runs on the calling thread before sluice_graph_replace() returns, and answers SLUICE_OK or why it failed,
 * through sluice_graph_error() where there is more to say than a code. */
typedef uint64_t sluice_node;
typedef uint64_t sluice_value;
#define SLUICE_NO_VALUE UINT64_MAX /* an optional input or output that is left out */

/* One place that reads a value: operand `index` of `user`, or output `index` of the graph. */
typedef struct sluice_use {
  int32_t graph_output; /* 1: output `index` of the graph; `user` does not count */
  sluice_node user;
  uint64_t index;
} sluice_use;

typedef enum sluice_attribute_kind {
  SLUICE_ATTRIBUTE_INTEGER = 0,
  SLUICE_ATTRIBUTE_REAL = 1,
  SLUICE_ATTRIBUTE_TEXT = 2,
  SLUICE_ATTRIBUTE_INTEGERS = 3,
  SLUICE_ATTRIBUTE_REALS = 4
} sluice_attribute_kind;
typedef struct sluice_attribute {
  const char* name;
  int32_t kind; /* sluice_attribute_kind: which of the fields counts */
  int64_t integer;
  double real;
  const char* text;
  const int64_t* integers;
  const double* reals;
  size_t count; /* of integers or reals */
} sluice_attribute;

/* A node to insert. Its output i takes the place of the existing value replaces[i]. Not owned; to a callback valid
 * during the call, from a callback until the next one. */
typedef struct sluice_new_node {
  size_t size;
  const char* op;
  const char* name;
  const sluice_value* inputs;
  size_t input_count;
  const sluice_value* replaces;
  size_t replace_count;
  const sluice_attribute* attributes;
  size_t attribute_count;
} sluice_new_node;
#define SLUICE_NEW_NODE_INIT \
  { sizeof(sluice_new_node), NULL, NULL, NULL, 0, NULL, 0, NULL, 0 }

/* Lists that a callback fills, and one node's plan that a planner fills. Valid during the callback. */
typedef struct sluice_id_list sluice_id_list;
typedef struct sluice_use_list sluice_use_list;
typedef struct sluice_node_plan sluice_node_plan;
SLUICE_API sluice_status sluice_id_list_add(sluice_id_list* list, uint64_t id);
SLUICE_API sluice_status sluice_use_list_add(sluice_use_list* list, const sluice_use* use);

/* Keeps `message` for the failing callback of this thread and returns `status`. */
SLUICE_API sluice_status sluice_graph_error(sluice_status status, const char* message);

/* A graph. All callbacks are required but `name` and `commit`. Every edit is all or nothing: one that fails has changed
 * nothing. Undos come in the reverse order of the edits, restore everything exactly, order of nodes and uses included,
 * and must not need memory. */
typedef struct sluice_graph_editor {
  size_t size;
  void* user;
  /* looking */
  sluice_status (*nodes)(void* user, sluice_id_list* out); /* in order, those of nested graphs included */
  const char* (*op)(void* user, sluice_node node);         /* valid until the next call; NULL: there is no such node */
  /* NULL: it has none; or it failed, where sluice_graph_error() was called */
  const char* (*name)(void* user, sluice_node node);
  sluice_status (*inputs)(void* user, sluice_node node, sluice_id_list* out);
  sluice_status (*outputs)(void* user, sluice_node node, sluice_id_list* out);
  sluice_status (*uses)(void* user, sluice_value value, sluice_use_list* out); /* in order, graph outputs included */
  /* editing */
  sluice_status (*insert)(void* user, sluice_node before, const sluice_new_node* node, sluice_node* inserted);
  /* *place is kept for undo_rewire(): where in from's uses the use stood, in the editor's own terms */
  sluice_status (*rewire)(void* user, const sluice_use* use, sluice_value from, sluice_value to, uint64_t* place);
  sluice_status (*erase)(void* user, sluice_node node); /* remembers it; fails where an output has a use */
  sluice_status (*undo_insert)(void* user, sluice_node node);
  sluice_status (*undo_rewire)(void* user, const sluice_use* use, sluice_value from, sluice_value to, uint64_t place);
  sluice_status (*undo_erase)(void* user, sluice_node node);
  sluice_status (*commit)(void* user); /* what was erased may be dropped; failing undoes everything */
} sluice_graph_editor;
#define SLUICE_GRAPH_EDITOR_INIT \
  { sizeof(sluice_graph_editor), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL }

/* Who classifies the nodes of one op, from the untouched graph, and says what takes their place. */
typedef struct sluice_planner {
  size_t size;
  void* user;
  const char* op; /* as the editor spells it */
  int32_t
      min_capability; /* of the kernels, 10 * major + minor: not servable where the target lacks it; 0 = not asked */
  /* Fills `plan` by sluice_node_plan_conv2d() or sluice_node_plan_set(). */
  sluice_status (*plan)(void* user, sluice_node node, sluice_node_plan* plan);
  /* NULL: an "ai.sluice::Conv2d" with the node's name and inputs and the attributes "version" and "problem". `node`
   * starts as that. */
  sluice_status (*lower)(void* user, sluice_node old, const sluice_node_plan* plan, sluice_new_node* node);
} sluice_planner;
#define SLUICE_PLANNER_INIT \
  { sizeof(sluice_planner), NULL, NULL, 0, NULL, NULL }

/* The node is this convolution (data NULL: 16-byte aligned; `regular` is not read), and preflight and routing say the
 * rest. `absorbs`: further nodes that this reading stands for, such as an activation that args holds, in order. Called
 * again, it adds another reading; the first that routing takes counts. */
SLUICE_API sluice_status sluice_node_plan_conv2d(sluice_node_plan* plan, const sluice_conv2d_args* args,
                                                 const sluice_node* absorbs, size_t absorb_count);
/* Anything else: signature names op, shapes, dtypes, layout and attributes in messages. servable: a kernel can serve it
 * on the target. take: it is faster. speedup over the regular lowering, 0 = not known. */
SLUICE_API sluice_status sluice_node_plan_set(sluice_node_plan* plan, const char* signature, int32_t servable,
                                              int32_t take, const char* reason, double speedup,
                                              const sluice_node* absorbs, size_t absorb_count);

typedef struct sluice_replace_options {
  size_t size;
  /* The device that the graph is prepared for, which need not be here: a described one ("h200"; `sluice devices` lists
   * them), "host", "host:80", or a description's file ("gpu.json"). NULL: the device of `context`. */
  const char* device;
  const sluice_context* context; /* may be NULL where `device` is given */
  const char* routing_table;     /* file or folder; NULL: SLUICE_ROUTING_TABLE, else shipped */
  int32_t force_take;            /* 1: take what routing would keep */
  int32_t dry_run;               /* 1: plan and report only */
  const sluice_planner* const* planners;
  size_t planner_count;
  /* Whether the caller's own lowering can compile the node: 1 it can, 0 it cannot (REQUIRED), -1 failed. NULL: always.
   */
  int32_t (*regular)(void* user, sluice_node node, const char* signature);
  void* regular_user;
  sluice_log_callback log; /* warnings; NULL: silent. They are in the report as well */
  void* log_user;
} sluice_replace_options;
#define SLUICE_REPLACE_OPTIONS_INIT \
  { sizeof(sluice_replace_options), NULL, NULL, NULL, 0, 0, NULL, 0, NULL, NULL, NULL, NULL }

/* Classifies every node whose op has a planner, then replaces the chosen ones, all or nothing. OK: done (a failing
 * OPTIONAL node was undone and is a warning). UNSUPPORTED: REQUIRED nodes that no kernel can serve, named by the
 * message; nothing was edited. Others: a step failed and every edit was undone, except SLUICE_INTERNAL with "damaged"
 * in the message, where an undo failed. *report: JSON, also after an error where there is one; free with
 * sluice_string_free(); report may be NULL. */
SLUICE_API sluice_status sluice_graph_replace(const sluice_graph_editor* editor, const sluice_replace_options* options,
                                              char** report);

#ifdef __cplusplus
}
#endif
#endif
