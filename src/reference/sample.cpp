#include "reference/sample.hpp"

#include <algorithm>

namespace sl {
namespace {

// The i-th of `parts` equal pieces of [0, total) starts here; no product that could overflow.
std::int64_t piece_start(std::int64_t total, std::int64_t parts, std::int64_t i) {
  return total / parts * i + std::min(i, total % parts);
}

// Corners first, then the middles of the edges: the places where padding and partial tiles meet.
std::vector<std::int64_t> border_of_plane(const ConvProblem& v) {
  const std::int64_t last_p = v.p - 1, last_q = v.q - 1, mid_p = v.p / 2, mid_q = v.q / 2;
  const std::int64_t places[][2] = {{0, 0},     {last_p, last_q}, {0, last_q},     {last_p, 0},
                                    {mid_p, 0}, {0, mid_q},       {mid_p, last_q}, {last_p, mid_q}};
  std::vector<std::int64_t> border;
  for (const auto& place : places) {
    const std::int64_t index = place[0] * v.q + place[1];
    if (std::find(border.begin(), border.end(), index) == border.end()) border.push_back(index);
  }
  return border;
}

std::uint64_t scatter(std::uint64_t value) {
  value = (value ^ (value >> 33)) * 0xFF51AFD7ED558CCDULL;  // MurmurHash3's finaliser
  value = (value ^ (value >> 33)) * 0xC4CEB9FE1A85EC53ULL;
  return value ^ (value >> 33);
}

}  // namespace

std::vector<std::int64_t> sample_outputs(const ConvProblem& v, std::int64_t most) {
  const std::int64_t total = v.y_elements();
  const std::int64_t plane = v.p * v.q;
  const std::int64_t planes = v.n * v.k;
  std::vector<std::int64_t> chosen = {0};
  if (most > 1) chosen.push_back(total - 1);

  // A third of what is left for borders, of planes from the first to the last.
  const std::vector<std::int64_t> border = border_of_plane(v);
  const auto border_size = static_cast<std::int64_t>(border.size());
  const std::int64_t border_budget = std::max<std::int64_t>(0, most - 2) / 3;
  const std::int64_t visited = std::min(planes, border_budget / border_size);
  for (std::int64_t i = 0; i < visited; ++i) {
    const std::int64_t at = visited == 1 ? 0 : i == visited - 1 ? planes - 1 : piece_start(planes, visited, i);
    for (const std::int64_t place : border) chosen.push_back(at * plane + place);
  }

  const std::int64_t spread = most - static_cast<std::int64_t>(chosen.size());
  for (std::int64_t i = 0; i < spread; ++i) {
    const std::int64_t start = piece_start(total, spread, i);
    const auto length = static_cast<std::uint64_t>(piece_start(total, spread, i + 1) - start);
    chosen.push_back(start + static_cast<std::int64_t>(scatter(static_cast<std::uint64_t>(i) + 1) % length));
  }
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

}  // namespace sl
