// The subcommands. Each prints its report on stdout, complaints on stderr, and returns the exit code.
#pragma once

#include "tuner/options.hpp"

namespace sl::tool {

int devices_command(const Options&);
int run_command(const Options&);
int explain_command(const Options&);
int bench_command(const Options&);
int tune_command(const Options&);
int compile_command(const Options&);
int merge_command(const Options&);
int lint_command(const Options&);
int derive_command(const Options&);
int fit_command(const Options&);
/// Becomes the report's script; returns where it cannot.
int report_command(const Options&);
/// Becomes the program sluice-rewrite where a file is an ONNX model.
int suite_command(const Options&, char** argv);
/// Becomes the program sluice-rewrite, with the same arguments; returns where it cannot.
int rewrite_command(char** argv);
int cache_command(const Options&);
int env_command(const Options&);

}  // namespace sl::tool
