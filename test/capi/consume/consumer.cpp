// A user's program in C++17.
#include <sluice/sluice.hpp>

int main() {
  sluice::Context context;
  const auto options = sluice::Options().device("host").cache_dir("off").policy(SLUICE_OFF);
  if (!sluice::Context::create(options, context)) return 1;
  float x = 2.0F, w = 3.0F, y = 0.0F;
  sluice::Conv2d call;
  call.x(&x, SLUICE_F32, {1, 1, 1, 1}).w(&w, SLUICE_F32, {1, 1, 1, 1}).y(&y, SLUICE_F32, {1, 1, 1, 1});
  return context.conv2d(call, nullptr).kept() ? 0 : 2;
}
