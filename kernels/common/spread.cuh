// Threads spread over rows of places: a thread keeps its column, so that what depends on it is computed once.
#pragma once

#include "common/platform.cuh"

namespace sl {

/// i / N and i % N of what is not negative: shifts and masks where N is a power of two.
template <int N>
SL_DEVICE int over(int i) {
  return static_cast<int>(static_cast<unsigned>(i) / static_cast<unsigned>(N));
}
template <int N>
SL_DEVICE int rest(int i) {
  return static_cast<int>(static_cast<unsigned>(i) % static_cast<unsigned>(N));
}

/// `COUNT` neighbours along a row for SLOTS threads: AT_ONCE of one row each, ROWS rows side by side.
template <int COUNT, int SLOTS>
struct Spread {
  static constexpr int AT_ONCE = COUNT < SLOTS ? COUNT : SLOTS;
  static constexpr int ROWS = SLOTS / AT_ONCE;
  static constexpr int STEPS = (COUNT + AT_ONCE - 1) / AT_ONCE;
  int column, row;  // row >= ROWS: a thread without work
  SL_DEVICE explicit Spread(int slot) : column(rest<AT_ONCE>(slot)), row(over<AT_ONCE>(slot)) {}
  SL_DEVICE bool idle() const { return row >= ROWS; }
};

}  // namespace sl
