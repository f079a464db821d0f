#include "tuner/suite_grid.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>

namespace sl::tool {
namespace {

// ---- the properties and their values: what routing's conditions and the schedules' choices ask about ----
// `often`: how many times as often as others a value is drawn once every pair is there, so that what networks use most
// is measured densely.

struct Kernel {
  std::int64_t r, s;
  std::uint64_t often = 1;
};
constexpr std::array<Kernel, 18> kernels = {{
    {3, 3, 8},
    {5, 5, 4},
    {7, 7, 3},
    {9, 9},
    {11, 11},
    {13, 13},
    {21, 21},
    {31, 31},  // of networks
    {1, 3},
    {3, 1},
    {1, 5},
    {5, 1},
    {1, 7},
    {1, 15},  // of one row or column
    {2, 2},
    {4, 4},
    {6, 6},
    {3, 5},  // even, uneven
}};

/// Channels and outputs of one group.
struct Group {
  std::int64_t channels, outputs;
  std::uint64_t often = 1;
};
constexpr std::array<Group, 11> groups = {{
    {1, 1, 10},
    {1, 2},
    {1, 4},
    {1, 8},
    {2, 2, 2},
    {2, 4},
    {4, 4, 3},
    {4, 8},
    {8, 8, 3},
    {8, 16},
    {4, 2},
}};

struct Step {
  std::int64_t h, w;
  std::uint64_t often = 1;
};
constexpr std::array<Step, 4> strides = {{{1, 1, 8}, {2, 2, 4}, {1, 2}, {3, 3}}};
constexpr std::array<Step, 4> dilations = {{{1, 1, 12}, {2, 2, 2}, {1, 2}, {4, 4}}};

constexpr std::array<Step, 12> planes = {{
    {7, 7, 3},
    {8, 8},
    {13, 13},
    {14, 14, 3},
    {19, 20},
    {28, 28, 3},
    {35, 35},
    {40, 64},
    {56, 56, 3},
    {80, 80},
    {112, 112, 3},
    {1, 1024},
}};
/// Input channels, nearly: rounded to a whole number of groups.
constexpr std::array<std::int64_t, 8> widths = {16, 32, 72, 96, 144, 256, 480, 960};
constexpr std::array<std::int64_t, 4> usual_batches = {1, 8, 32, 128};
constexpr std::array<DType, 3> usual_dtypes = {DType::f16, DType::bf16, DType::f32};
constexpr std::array<Layout, 2> usual_layouts = {Layout::nchw, Layout::nhwc};

constexpr std::int64_t most_bytes = std::int64_t{512} << 20;
constexpr std::int64_t most_macs = std::int64_t{1} << 36;

enum Property : std::size_t {
  kernel,
  group,
  stride,
  dilation,
  plane,
  width,
  padding,
  batch,
  dtype,
  layout,
  properties
};
using Row = std::array<std::size_t, properties>;  ///< an index of a value for each

template <class T, std::size_t count>
std::vector<T> given_or(const std::vector<T>& given, const std::array<T, count>& usual) {
  return given.empty() ? std::vector<T>(usual.begin(), usual.end()) : given;
}

class Generator {
 public:
  explicit Generator(const GridOptions& options)
      : options_(options),
        batches_(given_or(options.batches, usual_batches)),
        dtypes_(given_or(options.dtypes, usual_dtypes)),
        layouts_(given_or(options.layouts, usual_layouts)),
        random_(options.seed) {
    levels_ = {kernels.size(),  groups.size(),  strides.size(), dilations.size(), planes.size(), widths.size(), 2,
               batches_.size(), dtypes_.size(), layouts_.size()};
    for (std::size_t a = 0; a < properties; ++a) {
      for (std::size_t b = a + 1; b < properties; ++b) uses_[a][b].assign(levels_[a] * levels_[b], 0);
      often_[a].assign(levels_[a], 1);
    }
    const auto weigh = [&](Property property, const auto& values) {
      for (std::size_t i = 0; i < values.size(); ++i) often_[property][i] = values[i].often;
    };
    weigh(kernel, kernels);
    weigh(group, groups);
    weigh(stride, strides);
    weigh(dilation, dilations);
    weigh(plane, planes);
    often_[padding][0] = 5;  // as large as the input
  }

  GridSuite make() {
    cover();
    while (rows_.size() < options_.calls && fill()) {
    }
    GridSuite grid;
    for (const Row& row : rows_) grid.calls.push_back({*problem_of(row), 1, {}});
    for (std::size_t a = 0; a < properties; ++a) {
      for (std::size_t b = a + 1; b < properties; ++b) {
        for (const int uses : uses_[a][b]) {
          grid.pairs += uses == impossible ? 0 : 1;
          grid.covered += uses > 0 ? 1 : 0;
        }
      }
    }
    return grid;
  }

 private:
  static constexpr int impossible = -1;

  /// A number below `count`. Not std::uniform_int_distribution, whose numbers differ from library to library.
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(random_() % count); }

  Row any() {
    Row row{};
    for (std::size_t i = 0; i < properties; ++i) row[i] = below(levels_[i]);
    return row;
  }

  Row usual() {
    Row row{};
    for (std::size_t i = 0; i < properties; ++i) {
      const auto& often = often_[i];
      auto left = below(std::accumulate(often.begin(), often.end(), std::uint64_t{0}));
      while (left >= often[row[i]]) left -= often[row[i]++];
    }
    return row;
  }

  /// The call, where it is one and is neither too large nor a kernel that is larger than what it slides over.
  std::optional<ConvProblem> problem_of(const Row& row) const {
    const Group& g = groups[row[group]];
    ConvProblem p;
    p.groups = std::max<std::int64_t>(1, widths[row[width]] / g.channels);
    p.c = p.groups * g.channels;
    p.k = p.groups * g.outputs;
    p.r = kernels[row[kernel]].r;
    p.s = kernels[row[kernel]].s;
    p.stride_h = strides[row[stride]].h;
    p.stride_w = strides[row[stride]].w;
    p.dil_h = dilations[row[dilation]].h;
    p.dil_w = dilations[row[dilation]].w;
    p.h = planes[row[plane]].h;
    p.w = planes[row[plane]].w;
    // A dilation or a stride along an axis that has none is another spelling of a call that is there already.
    if ((p.r == 1 && p.s == 1) || (p.dil_h > 1 && p.r == 1) || (p.dil_w > 1 && p.s == 1)) return {};
    if (p.h == 1 && (p.r > 1 || p.stride_h > 1)) return {};
    const bool same = row[padding] == 0;
    if (same) {
      p.pad_top = p.effective_r() / 2;
      p.pad_left = p.effective_s() / 2;
    }
    if (p.effective_r() > p.h + p.pad_top || p.effective_s() > p.w + p.pad_left) return {};
    p.n = batches_[row[batch]];
    p.dtype = dtypes_[row[dtype]];
    p.layout = layouts_[row[layout]];
    const auto sized = with_output_size(p, p.pad_top, p.pad_left);
    if (!sized.ok() || !validate(*sized).ok()) return {};
    if (sized->min_bytes() > most_bytes || sized->macs() > most_macs) return {};
    return *sized;
  }

  /// Whether the row is a call that is not there yet.
  bool fresh(const Row& row) const {
    const auto problem = problem_of(row);
    return problem && !seen_.contains(problem->to_string());
  }

  void take(const Row& row) {
    rows_.push_back(row);
    seen_.insert(problem_of(row)->to_string());
    for (std::size_t a = 0; a < properties; ++a) {
      for (std::size_t b = a + 1; b < properties; ++b) {
        int& uses = uses_[a][b][row[a] * levels_[b] + row[b]];
        uses = std::max(uses, 0) + 1;
      }
    }
  }

  /// How much the row's pairs are wanted, the sum over all. Whole numbers, which no machine rounds otherwise.
  template <class Wanted>
  std::uint64_t wanted(const Row& row, Wanted wanted_pair) const {
    std::uint64_t sum = 0;
    for (std::size_t a = 0; a < properties; ++a) {
      for (std::size_t b = a + 1; b < properties; ++b) {
        const auto uses = static_cast<std::uint64_t>(std::max(0, uses_[a][b][row[a] * levels_[b] + row[b]]));
        sum += wanted_pair(uses, often_[a][row[a]] * often_[b][row[b]]);
      }
    }
    return sum;
  }

  /// The most wanted of at most `count` fresh rows that `draw` makes.
  template <class Draw, class Wanted>
  std::optional<Row> best(int tries, int count, Draw draw, Wanted wanted_pair) {
    std::optional<Row> best;
    std::uint64_t most = 0;
    for (int found = 0; tries > 0 && found < count; --tries) {
      const Row row = draw();
      if (!fresh(row)) continue;
      ++found;
      if (const std::uint64_t score = wanted(row, wanted_pair); !best || score > most) {
        best = row;
        most = score;
      }
    }
    return best;
  }

  /// Every pair of values that a legal call can have, in one call at least: pairs that are nowhere count most by far.
  void cover() {
    const auto rare = [](std::uint64_t uses, std::uint64_t) {
      return 1'000'000 / ((1 + uses) * (1 + uses) * (1 + uses));
    };
    for (std::size_t a = 0; a < properties; ++a) {
      for (std::size_t b = a + 1; b < properties; ++b) {
        for (std::size_t pair = 0; pair < uses_[a][b].size() && rows_.size() < options_.calls; ++pair) {
          if (uses_[a][b][pair] > 0) continue;
          const auto with_pair = [&] {
            Row row = any();
            row[a] = pair / levels_[b];
            row[b] = pair % levels_[b];
            return row;
          };
          if (const auto row = best(4000, 40, with_pair, rare)) {
            take(*row);
          } else {
            uses_[a][b][pair] = impossible;
          }
        }
      }
    }
  }

  /// One more call, of what networks use, where that is in the fewest calls.
  bool fill() {
    const auto sought = [](std::uint64_t uses, std::uint64_t often) { return often * 1'000'000 / (1 + uses); };
    const auto row = best(
        100000, 30, [&] { return usual(); }, sought);
    if (row) take(*row);
    return row.has_value();
  }

  const GridOptions& options_;
  std::vector<std::int64_t> batches_;
  std::vector<DType> dtypes_;
  std::vector<Layout> layouts_;
  std::mt19937_64 random_;
  std::array<std::size_t, properties> levels_{};
  std::array<std::vector<std::uint64_t>, properties> often_;
  std::array<std::array<std::vector<int>, properties>, properties> uses_;
  std::vector<Row> rows_;
  std::set<std::string> seen_;
};

}  // namespace

Result<GridSuite> make_grid(const GridOptions& options) {
  GridSuite grid = Generator(options).make();
  if (grid.calls.empty()) return Error{Code::invalid, "--grid: no call moves at most 512 MiB with these batches"};
  return grid;
}

}  // namespace sl::tool
