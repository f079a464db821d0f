#include "tuner/options.hpp"

#include <CLI/CLI.hpp>
#include <charconv>
#include <iostream>

#include "schedules/known.hpp"
#include "tuner/exit_code.hpp"
#include "tuner/print.hpp"

namespace sl::tool {
namespace {

constexpr const char* about =
    "Sluice: depthwise and few-channel grouped convolutions, compiled, tuned and cached at run time.";

constexpr const char* footer = R"(
A problem is a benchdnn convolution descriptor; what it leaves out follows (width = height, output and padding from
each other, dilation counted from 0):
  g144mb32ic144ih56oc144oh56kh3ph1     depthwise 3x3, 144 channels, batch 32
  g32mb1ic128ih56oc128oh56kh3ph1       grouped, 4 channels a group
  g64ic64ih1iw4096oc64oh1ow4094kh1kw3  conv1d is height 1

Examples:
  sluice run g144mb32ic144ih56oc144oh56kh3ph1 --dt f16 --tag nhwc --force
  sluice run g32mb1ic32ih112oc32oh112kh3ph1 --device host --json
  sluice explain g32mb1ic128ih56oc128oh56kh3ph1 --dt f16 --tag nhwc --device h200
  sluice bench --suite configs/suites/peers.json --out kernels.json
  sluice tune --suite configs/suites/networks.json --out table.json --shard 1/4
  sluice tune --suite configs/suites/small.json --out table.json --isolate
  sluice compile --suite configs/suites/networks.json --device h200
  sluice suite model.onnx --batch 1,8 --dt f16 --tag nhwc --out suite.json
  sluice merge part1.json part2.json --out table.json
  sluice derive bench/results/nvidia-h200/*.jsonl --out routing.json
  sluice fit table.json --out heuristic.json --suite configs/suites/networks.json
  sluice report bench/results/nvidia-h200/*.json* --out report.html
  sluice lint configs/routing/*.json
  sluice rewrite model.onnx -o out.onnx --device h200 --batch 32
  sluice cache verify
  sluice env                           what to attach to a bug report

Exit codes: 0 done (also when the call is kept: its own convolution should run it), 2 wrong usage or bad input,
3 the device cannot, 4 a result was wrong, 5 the environment (no driver, no compiler, no write access where it was
demanded, damaged cache).
Environment: SLUICE_* variables, listed by `sluice env`; NO_COLOR turns colour off.)";

/// CLI11 takes "nan" for a number inside of any range, and a negative seed for a large one.
CLI::Validator range(double least, double most) {
  CLI::Range plain(least, most);
  return CLI::Validator(
      [plain](std::string& text) {
        return text.find_first_of("nN") == std::string::npos ? plain(text) : "Value " + text + " not a finite number";
      },
      plain.get_description());
}

const CLI::Validator seed(
    [](std::string& text) -> std::string {
      std::uint64_t value = 0;
      const char* const end = text.data() + text.size();
      const auto [last, error] = std::from_chars(text.data(), end, value);
      if (error == std::errc() && last == end) return {};
      return "Value " + text + " not a whole number from 0 to 18446744073709551615";
    },
    "");

/// Where a file is written that `write_whole` or RowFile puts there.
void add_out(CLI::App& app, Options& o, const char* help, const char* type = "FILE") {
  app.add_option("--out", o.out, help)
      ->type_name(type)
      ->required()
      ->check(CLI::Validator([](std::string& text) { return text.empty() ? "a file's name is needed" : ""; }, ""));
}

void add_json(CLI::App& app, Options& o) { app.add_flag("--json", o.json, "Print one JSON object on stdout"); }

void add_files(CLI::App& app, Options& o) {
  app.add_option("--cache-dir", o.cache_dir, "Root of both stores, or 'off' (else SLUICE_CACHE_DIR)")
      ->type_name("DIR")
      ->group("Files");
  app.add_option("--routing-table", o.routing_table, "Routing table, or a folder of them (else SLUICE_ROUTING_TABLE)")
      ->type_name("PATH")
      ->group("Files");
}

void add_untested(CLI::App& app, Options& o) {
  app.add_flag("--untested", o.untested,
               "Try schedules on the GPU that have not passed the sanitizers; one that faults ends this process's work")
      ->group("Device");
}

void add_problem(CLI::App& app, Options& o) {
  app.add_option("DESC", o.problem, "benchdnn descriptor, then optional key=value tokens")->required();
  const auto choice = [&](const char* flag, std::string& to, const char* help, std::vector<std::string> values) {
    app.add_option(flag, to, help)->check(CLI::IsMember(std::move(values)))->group("Problem");
  };
  choice("--dt", o.dtype, "Data type (default f32)", {"f32", "f16", "bf16"});
  choice("--tag", o.tag, "Layout of x, y, z (default nchw)", {"nchw", "nhwc"});
  choice("--wtag", o.weight_tag, "Layout of w (default oihw)", {"oihw", "ohwi"});
  choice("--bias", o.bias, "Bias: none, of x's type, or f32 (default none)", {"none", "same", "f32"});
  choice("--act", o.activation, "Activation (default none)",
         {"none", "relu", "clip", "silu", "hard_swish", "gelu_erf", "gelu_tanh", "leaky_relu"});
  app.add_option("--alpha", o.alpha, "Lower bound of clip, slope of leaky_relu")->type_name("X")->group("Problem");
  app.add_option("--beta", o.beta, "Upper bound of clip")->type_name("X")->group("Problem");
  app.add_flag("--residual", o.residual, "Add a tensor z before the activation")->group("Problem");
  choice("--align", o.align, "Alignment of the tensors in bytes (default 16)", {"2", "4", "8", "16"});
  choice("--regular", o.regular, "Whether the caller's own convolution can take the call (default yes)", {"yes", "no"});
}

void add_device(CLI::App& app, Options& o, const char* help) {
  app.add_option("--device", o.device, help)->type_name("NAME")->group("Device");
  app.add_option("--emulate", o.emulate, "Capability that the host device emulates, 90 = 9.0")
      ->type_name("CAP")
      ->check(CLI::Range(50, 999))
      ->group("Device");
  app.add_flag("--force", o.force, "Take the call where routing would keep it")->group("Device");
  add_untested(app, o);
  app.add_option("--policy", o.policy, "How a winner is found (default first_use)")
      ->check(CLI::IsMember({"first_use", "immediate", "background", "pinned", "off"}))
      ->group("Device");
  app.add_option("--heuristic", o.heuristic,
                 "Model that picks for policy immediate, or a folder (else SLUICE_HEURISTIC)")
      ->type_name("PATH")
      ->group("Files");
  app.add_option("--decision-table", o.decision_table, "Decisions for policy pinned (else SLUICE_DECISION_TABLE)")
      ->type_name("FILE")
      ->group("Files");
}

/// Which combinations a suite's calls are made in.
void add_combinations(CLI::App& app, Options& o, const std::string& default_says) {
  app.add_option("--batch", o.batches, "Batch sizes (" + default_says + ", else 1)")
      ->type_name("N,...")
      ->delimiter(',')
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30))
      ->group("Calls");
  app.add_option("--dt", o.dtypes, "Data types (" + default_says + ", else f16)")
      ->type_name("T,...")
      ->delimiter(',')
      ->group("Calls");
  app.add_option("--tag", o.tags, "Layouts (" + default_says + ", else nchw,nhwc)")
      ->type_name("L,...")
      ->delimiter(',')
      ->group("Calls");
}

/// Which calls: what `bench` and `tune` share.
void add_suites(CLI::App& app, Options& o) {
  app.add_option("--suite", o.suites,
                 "Suites of calls: JSON, as configs/suites/ has them, or lines (`sluice suite --help`)")
      ->type_name("FILE")
      ->required()
      ->check(CLI::ExistingFile)
      ->group("Calls");
  add_combinations(app, o, "default: as the suite says");
  app.add_option("--sample", o.sample, "So many calls, drawn by --seed; 0 = all (default 0)")
      ->type_name("N")
      ->check(CLI::Range(0, 1 << 30))
      ->group("Calls");
  app.add_option("--shard", o.shard, "Part I of N of the calls, as 1/4")->type_name("I/N")->group("Calls");
  app.add_option("--seed", o.seed, "Seed of the sample and of the data (default 1)")
      ->type_name("N")
      ->check(seed)
      ->group("Calls");
  app.add_option("--budget", o.budget, "Stop after so many seconds; the same command goes on from there (0 = none)")
      ->type_name("S")
      ->check(range(0.0, 1e9));
  app.add_option("--device", o.device, "cuda, cuda:N or host (default: cuda:0 where there is a GPU, else host)")
      ->type_name("NAME")
      ->group("Device");
  add_untested(app, o);
  add_files(app, o);
}

void add_cudnn(CLI::App& app, Options& o) {
  app.add_option("--rivals", o.rivals, "cudnn, timed in the same rotation, or none (default: cudnn where it is found)")
      ->check(CLI::IsMember({"cudnn", "none"}))
      ->group("cuDNN");
  app.add_option("--cudnn-library", o.cudnn_library, "libcudnn.so.9, or its folder (default: searched for)")
      ->type_name("PATH")
      ->group("cuDNN");
  app.add_option("--cudnn-engines", o.cudnn_engines,
                 "Engines to try: what the heuristics name, or all (default heuristic)")
      ->check(CLI::IsMember({"heuristic", "all"}))
      ->group("cuDNN");
  app.add_option("--cudnn-sample", o.cudnn_sample,
                 "Try all engines for so many calls, spread over the list (default 0)")
      ->type_name("N")
      ->check(CLI::Range(0, 1 << 30))
      ->group("cuDNN");
  app.add_option("--cudnn-limit", o.cudnn_limit,
                 "Try so many of the engines that the heuristics name; 0 = all (default 0)")
      ->type_name("N")
      ->check(CLI::Range(0, 1 << 30))
      ->group("cuDNN");
  app.add_option("--cudnn-workspace-mb", o.cudnn_workspace_mb, "Workspace that an engine may want, MiB (default 1024)")
      ->type_name("MB")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 20))
      ->group("cuDNN");
}

void add_bench(CLI::App& app, Options& o) {
  add_suites(app, o);
  add_out(app, o, "Results, JSON; rows that are there already are not measured again");
  app.add_option("--iters", o.iterations, "Timed replays of each contender (default 30)")
      ->type_name("N")
      ->check(CLI::Range(1, 100000));
  app.add_flag("--warm", o.warm,
               "One buffer set, so that what fits stays in L2 (default: buffers that rotate out of it)");
  app.add_flag("--every-schedule", o.every_schedule,
               "Time every schedule in its best configuration, not the base alone");
  add_cudnn(app, o);
  app.add_option("--check", o.check, "Outputs to check, spread over y; 0 = all (default: about a second's worth)")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 60));
  app.add_option("--commit", o.commit, "What built this program, for the file's header")->type_name("TEXT");
}

void add_tune(CLI::App& app, Options& o) {
  add_suites(app, o);
  add_out(app, o, "Decision table, JSON; rows there that still apply are not tuned again");
  app.add_flag("--only-missing", o.only_missing, "Take what the decision store has instead of tuning it again");
  app.add_option("--tune-ms", o.tune_ms, "Budget of one call in milliseconds (default SLUICE_TUNE_BUDGET_MS)")
      ->type_name("MS")
      ->check(range(1.0, 1e9));
  app.add_option("--jobs", o.jobs, "Processes, one a GPU; 0 = every GPU (default 1)")
      ->type_name("N")
      ->check(CLI::Range(0, 1024));
  app.add_flag(
      "--isolate", o.isolate,
      "Tune in a child process, so that a candidate that crashes or hangs only fails; tries schedules that have "
      "not passed the sanitizers, too");
  app.add_option(
         "--patience", o.patience,
         "With --isolate: a child that says nothing for so long is ended, and its candidate failed (default 60)")
      ->type_name("S")
      ->check(range(0.1, 1e6));
  // Not for people: what `tune` tells the processes that it starts.
  app.add_flag("--worker", o.worker)->group("");
  app.add_option("--parent", o.parent)->group("");
}

void add_merge(CLI::App& app, Options& o) {
  app.add_option("TABLE", o.inputs, "Decision tables of one device, driver and build")
      ->required()
      ->check(CLI::ExistingFile);
  add_out(app, o, "The joined table");
}

void add_networks(CLI::App& app, Options& o) {
  app.add_option("--suite", o.suites, "Suites that name the networks of their calls: then whole networks are left out")
      ->type_name("FILE")
      ->check(CLI::ExistingFile);
}

void add_derive(CLI::App& app, Options& o) {
  app.add_option("ROWS", o.inputs, "Rows of `sluice bench` or bench/compare_torch.py: Sluice beside its rivals")
      ->required()
      ->check(CLI::ExistingFile);
  add_out(app, o, "The routing table, JSON");
  app.add_option("--margin", o.margin, "A call is taken where it was faster by so much (default 0.05)")
      ->type_name("X")
      ->check(range(0.0, 10.0));
  app.add_option("--noise", o.noise, "What counts as slower in the report (default 0.03)")
      ->type_name("X")
      ->check(range(0.0, 1.0));
  app.add_option("--min-cases", o.min_cases, "A rule rests on so many measured calls at least (default 2)")
      ->type_name("N")
      ->check(CLI::Range(1, 1000000));
  add_networks(app, o);
}

void add_report(CLI::App& app, Options& o) {
  app.add_option("FILE", o.inputs, "Results of `sluice bench`, bench/compare_torch.py, `sluice tune`, sluice_overhead")
      ->required()
      ->check(CLI::ExistingFile);
  add_out(app, o, "The page (.html), or a folder for the page and its pictures", "PATH");
  app.add_option("--routing-table", o.routing_table,
                 "Routing table, or a folder of them, to draw (else SLUICE_ROUTING_TABLE, else the device's)")
      ->type_name("PATH");
}

void add_fit(CLI::App& app, Options& o) {
  app.add_option("TABLE", o.inputs,
                 "Decision tables of `sluice tune`; or, for winners alone, rows of `sluice bench` and "
                 "of bench/compare_torch.py")
      ->required()
      ->check(CLI::ExistingFile);
  add_out(app, o, "The heuristic, JSON");
  add_networks(app, o);
}

void add_lint(CLI::App& app, Options& o) {
  app.add_option("TABLE", o.inputs, "Routing tables, decision tables and heuristics")
      ->required()
      ->check(CLI::ExistingFile);
  app.add_flag("--compile", o.compile, "Compile every winner of a decision table for the table's device");
}

constexpr const char* suite_footer = R"(
A suite is a list of calls, for `sluice tune`, `bench` and `compile` (--suite). FILE may be
  *.onnx   a model: its Conv nodes, with bias and the activation behind them. It says nothing of the layout (nchw is
           taken) and often names f32 where f16 is run: --tag nhwc --dt f16. A model whose batch is not fixed needs --batch
  lines    a recording (SLUICE_RECORD=FILE), or a batch file of benchdnn's conv driver: --dt, --stag, --dtag, --mb, --dir,
           --batch and --reset hold for the descriptors that follow
  JSON     a suite that is there already
Calls that occur several times are one entry with a count; networks keep their names (a model's is its file's). What Sluice
is not for is left out and counted by reason: no convolution, 3-D, int8, and ungrouped convolutions of more than 8 channels.

  sluice suite resnext50.onnx mobilenet.onnx --batch 1,8,32 --dt f16 --tag nhwc --out networks.json
  sluice suite calls.txt --out calls.json                    what a program was recorded to call
  sluice suite a.json b.json --tag nchw,nhwc --out all.json  joined, in both layouts
  sluice suite --grid 400 --out configs/suites/grid.json     calls spread over everything that routing asks about

A grid is for finding thresholds: kernels, groups, strides, dilations, planes, channels, padding, batches, types and layouts,
every pair of values together in one call at least, no call above 512 MiB. --batch, --dt and --tag narrow it.)";

void add_suite(CLI::App& app, Options& o) {
  app.footer(suite_footer);
  app.add_option("FILE", o.inputs, "ONNX models, recordings, benchdnn's files, suites")->check(CLI::ExistingFile);
  add_out(app, o, "The suite, JSON; it appears complete or not at all");
  add_combinations(app, o, "default: as the files say");
  app.add_flag("--dense", o.dense, "Keep ungrouped convolutions of more than 8 channels");
  app.add_option("--grid", o.grid, "Draw so many calls instead of reading any")
      ->type_name("N")
      ->check(CLI::Range(1, 10000));
  app.add_option("--seed", o.seed, "Seed of the grid (default 1)")->type_name("N")->check(seed);
}

void add_rewrite(CLI::App& app, Options& o) {
  app.add_option("MODEL", o.model, "An ONNX model; it is never modified")->required();
  app.add_option("-o,--out", o.out, "Where the rewritten model goes; it appears complete or not at all")
      ->type_name("FILE");
  app.add_option("--regular", o.lowering,
                 "What the runtime's own lowering can compile: onnxruntime, none, or a file (default onnxruntime)")
      ->type_name("WHAT");
  app.add_option("--batch", o.plan_batch, "Plan inputs whose first dimension is not fixed for this batch")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30));
  app.add_flag("--dry-run", o.dry_run, "Print what would be replaced, write nothing");
  app.add_flag("--force", o.force, "Take nodes that routing would keep");
  app.add_option(
         "--device", o.device,
         "What the model is prepared for: a described device (`sluice devices`), cuda, cuda:N, host, host:80 or "
         "a description's .json (default: cuda:0 where there is a GPU, else host)")
      ->type_name("DESC");
  app.add_option("--routing-table", o.routing_table, "Routing table, or a folder of them (else SLUICE_ROUTING_TABLE)")
      ->type_name("PATH");
}

// Each leaf sets the command when it was the one that parsed.
CLI::App* leaf(CLI::App& parent, Options& o, Command command, const char* name, const char* help) {
  CLI::App* app = parent.add_subcommand(name, help);
  app->callback([&o, command] { o.command = command; });
  app->add_flag("-v,--verbose", o.verbose, "Print the library's messages on stderr");
  add_json(*app, o);
  return app;
}

void build(CLI::App& app, Options& o) {
  app.set_version_flag("--version", "sluice " SLUICE_VERSION);
  app.footer(footer);
  app.require_subcommand(1);
  leaf(app, o, Command::devices, "devices", "GPUs of this machine, the host device, and the described devices");

  CLI::App* run =
      leaf(app, o, Command::run, "run", "Route, compile, tune, run, check and time one call on random data");
  add_problem(*run, o);
  add_device(*run, o, "cuda, cuda:N or host (default: cuda:0 where there is a GPU, else host)");
  add_files(*run, o);
  run->add_flag("--require-cache", o.require_cache, "Fail where the cache cannot be written")->group("Files");
  run->add_option("--iters", o.iterations, "Timed replays of the winner and of the copy; 0 = do not time (default 30)")
      ->type_name("N")
      ->check(CLI::Range(0, 100000));
  run->add_option("--seed", o.seed, "Seed of the data (default 1)")->type_name("N")->check(seed);
  run->add_option("--check", o.check, "Outputs to check, spread over y; 0 = all (default: about a second's worth)")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 60));
  run->add_flag("--integers", o.integer_data, "Integer data whose sums are exact: demands bit-equal results");

  CLI::App* explain =
      leaf(app, o, Command::explain, "explain", "How one call is decided; compiles, times and runs nothing");
  add_problem(*explain, o);
  add_device(*explain, o, "cuda, cuda:N, host, or a described device as `sluice devices` lists them");
  add_files(*explain, o);

  add_bench(
      *leaf(app, o, Command::bench, "bench", "Tune, check and time every call of a suite beside cuDNN and a copy"), o);
  add_tune(*leaf(app, o, Command::tune, "tune", "Tune every call of a suite into a decision table"), o);
  add_suites(*leaf(app, o, Command::compile, "compile",
                   "Compile every candidate of a suite's calls into the binary store; --device may be a described one"),
             o);
  add_merge(*leaf(app, o, Command::merge, "merge", "Join decision tables, those of a fleet's shards say"), o);
  add_derive(*leaf(app, o, Command::derive, "derive", "Turn measured rows into a routing table"), o);
  add_fit(*leaf(app, o, Command::fit, "fit", "Learn from tuned calls what to pick for one that was never tuned"), o);
  add_report(*leaf(app, o, Command::report, "report", "Draw results: one HTML page, and pictures"), o);
  add_suite(*leaf(app, o, Command::suite, "suite", "Make a suite of calls: from models, recordings, other suites"), o);
  add_lint(*leaf(app, o, Command::lint, "lint", "What is wrong with routing tables, decision tables and heuristics"),
           o);

  add_rewrite(*leaf(app, o, Command::rewrite, "rewrite", "Replace convolutions of an ONNX model, all or nothing"), o);

  CLI::App* cache = app.add_subcommand("cache", "The stores of kernels and decisions");
  cache->require_subcommand(1);
  const auto cache_leaf = [&](Command command, const char* name, const char* help) {
    CLI::App* app_leaf = leaf(*cache, o, command, name, help);
    app_leaf->add_option("--cache-dir", o.cache_dir, "Root of both stores (else SLUICE_CACHE_DIR)")->type_name("DIR");
    return app_leaf;
  };
  cache_leaf(Command::cache_ls, "ls", "Every entry, with its size and what it holds");
  cache_leaf(Command::cache_verify, "verify", "Reads every entry; exit code 5 where one is damaged");
  cache_leaf(Command::cache_prune, "prune", "Removes the least recently used entries beyond a size")
      ->add_option("--max-mb", o.max_mb, "Size that each store keeps (default SLUICE_CACHE_MAX_MB)")
      ->type_name("MB")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40));
  cache_leaf(Command::cache_clear, "clear", "Removes every entry");
  cache_leaf(Command::cache_path, "path", "Prints where the stores are");

  CLI::App* env = leaf(app, o, Command::env, "env", "What was found where and what is loaded: the support report");
  add_files(*env, o);
}

// "no subcommand 'fly'; one of devices, run, ..." where the next word after those that were understood is not one.
std::string unknown_subcommand(const CLI::App& at, const char* word) {
  const auto known = at.get_subcommands([](const CLI::App*) { return true; });
  if (known.empty() || word == nullptr || *word == '-') return {};
  std::string text = std::string("no subcommand '") + word + "'; one of ";
  for (const CLI::App* one : known) text += (one == known.front() ? "" : ", ") + one->get_name();
  return text;
}

}  // namespace

Parsed parse_command_line(int argc, const char* const* argv) {
  Parsed parsed;
  CLI::App app{about, "sluice"};
  build(app, parsed.options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    parsed.exit = app.exit(asked, std::cout, std::cerr);
  } catch (const CLI::ParseError& error) {
    std::string help = "sluice";
    const CLI::App* at = &app;
    int words = 1;
    for (; !at->get_subcommands().empty(); ++words) {
      at = at->get_subcommands().front();
      help += " " + at->get_name();
    }
    const std::string unknown = unknown_subcommand(*at, words < argc ? argv[words] : nullptr);
    complain((unknown.empty() ? error.what() : unknown) + " (see `" + help + " --help`)");
    parsed.exit = exit_usage;
  }
  return parsed;
}

Result<ConvProblem> problem_of(const Options& o) {
  std::string text;
  const auto add = [&](const std::string& token) { text += (text.empty() ? "" : " ") + token; };
  for (const auto& token : o.problem) add(token);
  const std::pair<const char*, const std::string*> flags[] = {
      {"dt=", &o.dtype},       {"tag=", &o.tag},     {"wtag=", &o.weight_tag}, {"bias=", &o.bias},
      {"act=", &o.activation}, {"alpha=", &o.alpha}, {"beta=", &o.beta},       {"align=", &o.align},
  };
  for (const auto& [key, value] : flags) {
    if (!value->empty()) add(key + *value);
  }
  if (o.residual) add("z=1");
  return parse(text);
}

Regular regular_of(const Options& o) { return o.regular == "no" ? Regular::no : Regular::yes; }

Result<std::optional<Policy>> policy_of(const Options& o) {
  if (o.policy.empty()) return std::optional<Policy>();
  if (const auto policy = parse_policy(o.policy)) return std::optional<Policy>(policy);
  return Error{Code::invalid, "--policy " + o.policy + ": not a policy"};
}

Result<Environment> environment_of(const Options& o) {
  SL_ASSIGN(Environment environment, read_environment());
  SL_TRY(known_schedules(environment));
  if (!o.cache_dir.empty()) environment.cache_dir = o.cache_dir;
  if (!o.routing_table.empty()) environment.routing_table = o.routing_table;
  if (!o.heuristic.empty()) environment.heuristic = o.heuristic;
  if (!o.decision_table.empty()) environment.decision_table = o.decision_table;
  if (o.untested) environment.sanitized = "all";
  return environment;
}

}  // namespace sl::tool
