#include "support/matrix_cases.hpp"

#include <bit>
#include <cstring>

#include "reference/reference.hpp"

namespace sl::test {
namespace {

std::vector<std::byte> bytes_of(const void* from, std::size_t count) {
  std::vector<std::byte> bytes(count);
  std::memcpy(bytes.data(), from, count);
  return bytes;
}

/// Two matrices of small integers, row after row, and their bits one behind the other.
struct Operands {
  std::vector<double> a, b;
  std::vector<std::byte> x;

  Operands(DType dtype, std::size_t a_count, std::size_t b_count, std::uint32_t state) : a(a_count), b(b_count) {
    const auto draw = [&state] {
      state = state * 1664525U + 1013904223U;
      return static_cast<double>(state >> 28) - 7.0;
    };
    for (double& v : a) v = draw();
    for (double& v : b) v = draw();
    x.resize((a.size() + b.size()) * 2);
    std::int64_t at = 0;
    for (const double v : a) store_element(dtype, x.data(), at++, v);
    for (const double v : b) store_element(dtype, x.data(), at++, v);
  }
};

MatrixCase mma_case(DType dtype, std::size_t k) {
  Operands operands(dtype, 16 * k, k * 8, 12345);
  const auto& [a, b, x] = operands;
  std::vector<std::uint32_t> want;
  for (std::size_t row = 0; row < 16; ++row) {
    for (std::size_t column = 0; column < 8; ++column) {
      double sum = 1.0;
      for (std::size_t i = 0; i < k; ++i) sum += a[row * k + i] * b[i * 8 + column];
      want.push_back(std::bit_cast<std::uint32_t>(static_cast<float>(sum)));
    }
  }
  return {"mma", {{"DTYPE", static_cast<int>(dtype)}, {"K", static_cast<std::int64_t>(k)}}, x, want};
}

/// The columns that a group of 4 of a row keeps: testing_pick() of the kernel, written as a table.
constexpr std::size_t picks[6][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};

MatrixCase sparse_case(DType dtype, std::size_t k) {
  Operands operands(dtype, 16 * k / 2, k * 8, 54321);
  const auto& [a, b, x] = operands;
  std::vector<std::uint32_t> want;
  for (std::size_t row = 0; row < 16; ++row) {
    for (std::size_t column = 0; column < 8; ++column) {
      double sum = 1.0;
      for (std::size_t i = 0; i < k / 2; ++i) {
        const std::size_t group = i / 2, at = 4 * group + picks[(row * 5 + group) % 6][i % 2];
        sum += a[row * (k / 2) + i] * b[at * 8 + column];
      }
      want.push_back(std::bit_cast<std::uint32_t>(static_cast<float>(sum)));
    }
  }
  return {"mma_sparse", {{"DTYPE", static_cast<int>(dtype)}, {"K", static_cast<std::int64_t>(k)}}, x, want};
}

MatrixCase shared_case(DType dtype) {
  std::vector<std::byte> x(128);
  std::vector<std::uint32_t> want(96);
  for (std::int64_t i = 0; i < 32; ++i) {
    const double low = static_cast<double>(i) - 9, high = 3 - static_cast<double>(i) / 2;
    store_element(dtype, x.data(), 2 * i, low);
    store_element(dtype, x.data(), 2 * i + 1, high);
    std::vector<std::byte> sums(4);
    store_element(dtype, sums.data(), 0, 2 * low + high);
    store_element(dtype, sums.data(), 1, 2 * high + low);
    std::uint32_t word = 0;
    std::memcpy(&word, x.data() + 4 * i, 4);
    want[static_cast<std::size_t>(i)] = word << 16 | word >> 16;
    std::memcpy(&want[static_cast<std::size_t>(64 + i)], sums.data(), 4);
  }
  return {"shared", {{"DTYPE", static_cast<int>(dtype)}}, std::move(x), want};
}

MatrixCase load_case(std::size_t n, bool transposed, int width) {
  std::vector<std::uint16_t> rows(8 * n * 8);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::uint16_t>(1000 + i);
  std::vector<std::byte> x = bytes_of(rows.data(), rows.size() * 2);
  for (std::size_t i = rows.size() - 8; i < rows.size(); ++i) rows[i] = 0;  // the row that is not present
  std::vector<std::uint32_t> want;
  for (std::size_t lane = 0; lane < 32; ++lane) {
    const std::size_t g = lane / 4, t = lane % 4;
    for (std::size_t m = 0; m < n; ++m) {
      const auto at = [&](std::size_t row, std::size_t column) {
        return std::uint32_t{rows[(8 * m + row) * 8 + column]};
      };
      want.push_back(transposed ? at(2 * t, g) | at(2 * t + 1, g) << 16 : at(g, 2 * t) | at(g, 2 * t + 1) << 16);
    }
  }
  return {"load_matrix",
          {{"N", static_cast<std::int64_t>(n)}, {"TRANS", transposed ? 1 : 0}, {"BYTES", width}},
          std::move(x),
          want};
}

MatrixCase exchange_case() {
  std::vector<std::uint32_t> x(32), want(96);
  for (std::uint32_t i = 0; i < 32; ++i) x[i] = 0x01020304U * (i + 1);
  for (std::uint32_t i = 0; i < 32; ++i) {
    want[i] = x[31 - i];
    want[32 + i] = x[i < 3 ? i : i - 3];
    const std::uint32_t a = x[i], b = ~x[i];
    want[64 + i] = (a >> 8 & 0xffU) | (b >> 24) << 8 | (a & 0xffU) << 16 | (b >> 16 & 0xffU) << 24;
  }
  return {"exchange", {}, bytes_of(x.data(), 128), want};
}

}  // namespace

std::string MatrixCase::what() const {
  std::string text = kernel;
  for (const auto& [name, value] : constants) text += " " + name + "=" + std::to_string(value);
  return text;
}

std::vector<MatrixCase> matrix_cases() {
  std::vector<MatrixCase> cases = {exchange_case()};
  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (const std::size_t k : {8U, 16U}) cases.push_back(mma_case(dtype, k));
    for (const std::size_t k : {16U, 32U}) cases.push_back(sparse_case(dtype, k));
    cases.push_back(shared_case(dtype));
  }
  for (const std::size_t n : {1U, 2U, 4U}) {
    for (const bool transposed : {false, true}) cases.push_back(load_case(n, transposed, n == 1 ? 4 : n == 2 ? 8 : 16));
  }
  return cases;
}

}  // namespace sl::test
