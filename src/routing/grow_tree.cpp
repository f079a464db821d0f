#include "routing/grow_tree.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace sl {
namespace {

/// Three digits.
double rounded(double value) {
  if (value == 0) return 0;
  const double digits = 2 - std::floor(std::log10(std::abs(value)));
  const double scale = std::pow(10, std::abs(digits));  // a whole number, so that the result is the nearest decimal
  return digits > 0 ? std::round(value * scale) / scale : std::round(value / scale) * scale;
}

/// A bound from `low` on and below `high`, in the middle of sizes where there is a middle that reads well: what lies
/// between two measured values goes to the nearer one.
double between(double low, double high) {
  if (!(low > 0) || !std::isfinite(high)) return low;
  double middle = std::sqrt(low * high);
  middle = middle >= 1000 ? std::floor(middle) : rounded(middle);
  if (low == std::floor(low) && high == std::floor(high)) middle = std::floor(middle);
  return middle >= low && middle < high ? middle : low;
}

}  // namespace

Grove::Node Grove::make_node(const TreeSamples& from, std::vector<std::size_t> samples, std::size_t least) {
  Node node;
  node.samples = std::move(samples);
  const std::size_t count = node.samples.size();
  double weight = 0, sum = 0;
  for (const std::size_t i : node.samples) {
    weight += from.weight[i];
    sum += from.weight[i] * from.target[i];
  }
  node.mean = sum / weight;
  // Sums are taken in the samples' own order in every column, apart from what sorting by its values changes; below this
  // a gain is the rounding of those sums.
  double spread = 0;
  for (const std::size_t i : node.samples) {
    const double off = from.target[i] - node.mean;
    spread += from.weight[i] * off * off;
  }
  node.gain = 1e-9 * (1 + spread);
  const double floor = node.gain;
  std::vector<std::size_t> order = node.samples;
  for (std::size_t column = 0; column < from.columns.size(); ++column) {
    const std::vector<double>& values = from.columns[column].values;
    order = node.samples;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
    double below_weight = 0, below_sum = 0;  // of what is off the mean, so that the sums stay small
    for (std::size_t place = 1; place < count; ++place) {
      const std::size_t last = order[place - 1];
      below_weight += from.weight[last];
      below_sum += from.weight[last] * (from.target[last] - node.mean);
      if (place < least || count - place < least || values[last] == values[order[place]]) continue;
      const double above_weight = weight - below_weight;
      const double gain = below_sum * below_sum / below_weight + below_sum * below_sum / above_weight;
      if (gain <= node.gain * (1 + 1e-9)) continue;
      node.gain = gain;
      node.column = column;
      node.at_most = between(values[last], values[order[place]]);
    }
  }
  if (node.gain == floor) node.gain = 0;
  return node;
}

void Grove::branch(const TreeSamples& from, Nodes& nodes, std::size_t at, std::size_t order, std::size_t least) {
  const std::vector<double>& values = from.columns[nodes[at].column].values;
  std::vector<std::size_t> below, above;
  for (const std::size_t i : nodes[at].samples) (values[i] <= nodes[at].at_most ? below : above).push_back(i);
  // Of a word, 1 is yes; of a number, what is at most the bound.
  if (!from.columns[nodes[at].column].word.empty()) std::swap(below, above);
  nodes[at].order = order;
  nodes[at].yes = nodes.size();
  nodes.push_back(make_node(from, std::move(below), least));
  nodes[at].no = nodes.size();
  nodes.push_back(make_node(from, std::move(above), least));
}

Grove::Grove(const std::vector<TreeSamples>& samples, std::size_t branches, std::size_t least) {
  for (const TreeSamples& one : samples) {
    std::vector<std::size_t> all(one.target.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    trees_.emplace_back().push_back(make_node(one, std::move(all), least));
    auto& names = names_.emplace_back();
    for (const TreeColumn& column : one.columns) names.emplace_back(column.feature, column.word);
  }
  while (grown_ < branches) {
    double best = 0;
    std::size_t tree = 0, node = 0;
    for (std::size_t t = 0; t < trees_.size(); ++t) {
      for (std::size_t n = 0; n < trees_[t].size(); ++n) {
        const Node& one = trees_[t][n];
        if (one.order == 0 && one.gain > best) best = one.gain, tree = t, node = n;
      }
    }
    if (best == 0) break;
    branch(samples[tree], trees_[tree], node, ++grown_, least);
  }
}

void Grove::copy(const Nodes& nodes, std::size_t which, std::size_t at, std::size_t branches,
                 double (*value)(double, std::int64_t), Tree& out) const {
  const Node& node = nodes[at];
  const std::size_t place = out.size();
  out.emplace_back();
  if (node.order == 0 || node.order > branches) {
    out[place].cases = static_cast<std::int64_t>(node.samples.size());
    out[place].value = value(node.mean, out[place].cases);
    return;
  }
  const auto& [feature, word] = names_[which][node.column];
  out[place].feature = feature;
  out[place].is = word;
  if (word.empty()) out[place].at_most = node.at_most;
  out[place].yes = out.size();
  copy(nodes, which, node.yes, branches, value, out);
  out[place].no = out.size();
  copy(nodes, which, node.no, branches, value, out);
}

Tree Grove::tree(std::size_t which, std::size_t branches, double (*value)(double, std::int64_t)) const {
  Tree out;
  copy(trees_[which], which, 0, branches, value, out);
  return out;
}

}  // namespace sl
