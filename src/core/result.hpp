// Errors are values: Result<T> holds a T or an Error, Status holds success or an Error.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace sl {

/// What kind of outcome a call had. The C ABI's status codes are these numbers (see sluice.h).
enum class Code : int {
  ok = 0,
  kept = 1,          ///< not an error: the caller's own convolution should run
  not_prepared = 2,  ///< the stream is capturing and no plan is ready; the capture stays valid
  invalid = 3,       ///< bad input; the message names the field, the value and what would be right
  unsupported = 4,   ///< no schedule can serve the call on this device
  out_of_memory = 5,
  device = 6,        ///< the driver or device failed
  compile = 7,       ///< a kernel did not compile
  wrong_result = 8,  ///< a kernel's output failed verification
  environment = 9,   ///< missing toolkit, unreadable file, no write access where one was demanded
  not_found = 10,
  pinned_miss = 11,  ///< policy `pinned` and the table has no decision for the call
  internal = 12,
};

/// Why a call did not succeed: `message` says which call, what was wrong, and what would be right.
struct Error {
  Code code = Code::internal;
  std::string message;
};

/// A T, or the Error that says why there is none. Value-like; as thread-safe as T.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT implicit
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT implicit

  bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }

  /// Requires ok().
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  /// Requires !ok().
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

/// Success, or the Error. Success costs no allocation.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT implicit

  bool ok() const noexcept { return !error_.has_value(); }
  explicit operator bool() const noexcept { return ok(); }
  const Error& error() const& { return *error_; }
  Error&& error() && { return *std::move(error_); }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace sl

/// Returns the error of a Status-valued expression from the enclosing function.
#define SL_TRY(expr)                                                                      \
  do {                                                                                    \
    if (auto sl_status_ = (expr); !sl_status_.ok()) return std::move(sl_status_).error(); \
  } while (false)

#define SL_CONCAT_(a, b) a##b
#define SL_CONCAT(a, b) SL_CONCAT_(a, b)

/// SL_ASSIGN(auto x, f()): x becomes the value, or the enclosing function returns the error.
#define SL_ASSIGN(lhs, expr)                                                                            \
  auto SL_CONCAT(sl_result_, __LINE__) = (expr);                                                        \
  if (!SL_CONCAT(sl_result_, __LINE__).ok()) return std::move(SL_CONCAT(sl_result_, __LINE__)).error(); \
  lhs = std::move(SL_CONCAT(sl_result_, __LINE__)).value()
