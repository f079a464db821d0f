// operator new that fails on demand, in this thread.
#pragma once

#include <cstdint>

namespace sl::test {

/// While alive, allocation number `nth` (from 0) fails, and with `for_good` every one after it.
class FailingNew {
 public:
  explicit FailingNew(std::int64_t nth, bool for_good = false);
  ~FailingNew();
  FailingNew(const FailingNew&) = delete;
  FailingNew& operator=(const FailingNew&) = delete;
  bool failed() const;  ///< the allocation came
};

}  // namespace sl::test
