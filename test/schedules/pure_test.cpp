// The parts of a schedule that are pure functions: configurations, refusals, geometry, parameters.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "schedules/common.hpp"
#include "schedules/list.hpp"
#include "support/generators.hpp"
#include "support/problems.hpp"

namespace sl::test {
namespace {

DeviceInfo device(const char* name, const char* backend, int capability, int sm_count) {
  DeviceInfo info;
  info.name = name;
  info.backend = backend;
  info.capability = capability;
  info.sm_count = sm_count;
  return info;
}

const DeviceInfo h200 = device("NVIDIA H200", "cuda", 90, 132);

ConvProblem parsed(const std::string& text) {
  const Result<ConvProblem> problem = parse(text);
  EXPECT_TRUE(problem.ok()) << text << ": " << (problem.ok() ? "" : problem.error().message);
  return problem.ok() ? *problem : ConvProblem{};
}

// ---- Config ----

RC_GTEST_PROP(ConfigText, RoundTrips, ()) {
  Config config;
  const int count = *rc::gen::inRange(0, 5);
  for (int i = 0; i < count; ++i) config.knobs.emplace_back("knob" + std::to_string(i), *rc::gen::arbitrary<int>());
  const auto again = Config::parse(config.to_string());
  RC_ASSERT(again.has_value());
  RC_ASSERT(*again == config);
}

TEST(ConfigText, RejectsWhatIsNotOne) {
  for (const char* text : {"vec", "vec=", "=4", "vec=4,", ",vec=4", "vec=4,,cols=2", "vec=4x", "vec= 4",
                           "vec=99999999999", "vec=4,vec=2", "Vec=4", "vec=4;cols=2", "v c=1"}) {
    EXPECT_FALSE(Config::parse(text).has_value()) << text;
  }
  EXPECT_EQ(Config::parse("vec=4,cols=2")->get("cols"), 2);
}

// ---- fast_div ----

std::int64_t divide(std::int64_t a, const SlFastDiv& d) {  // as kernels/common/index.cuh does
  return static_cast<std::int64_t>((static_cast<std::uint64_t>(a) * d.mul) >> d.shift);
}

RC_GTEST_PROP(FastDiv, IsDivision, ()) {
  const auto bits = *rc::gen::inRange(1, 32);
  const std::int64_t d = std::max<std::int64_t>(1, *rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << bits) - 1);
  const std::int64_t a = *rc::gen::inRange<std::int64_t>(0, std::int64_t{1} << 31);
  RC_ASSERT(divide(a, fast_div(d)) == a / d);
}

TEST(FastDiv, IsDivisionAtTheEdges) {
  constexpr std::int64_t last = (std::int64_t{1} << 31) - 1;
  std::set<std::int64_t> edges = {1, 2, 3, 5, 7, 641, 6700417, last, last - 1};
  for (int bit = 1; bit < 31; ++bit) {
    for (const std::int64_t off : {-1, 0, 1}) edges.insert((std::int64_t{1} << bit) + off);
  }
  edges.erase(0);
  for (const std::int64_t d : edges) {
    const SlFastDiv fast = fast_div(d);
    EXPECT_EQ(fast.divisor, static_cast<unsigned>(d));
    for (const std::int64_t m : edges) {
      for (const std::int64_t off : {-1, 0, 1}) {
        for (const std::int64_t a : {m + off, last / d * d + off, (m % (last / d + 1)) * d + off}) {
          if (a < 0 || a > last) continue;
          ASSERT_EQ(divide(a, fast), a / d) << a << " / " << d;
        }
      }
    }
  }
}

// ---- Refusals ----

struct RefusalCase {
  const Schedule* schedule;
  const char* problem;
  const char* names;  ///< the field and value the reason must name; null = can run
};

TEST(Refusals, NameTheFieldAndItsValue) {
  const RefusalCase cases[] = {
      {&dw_flat, "g8ic8ih9oc8oh9kh3ph1", nullptr},
      {&dw_flat, "g4ic8ih9oc8oh9kh3ph1", "c / groups = 2"},
      {&dw_flat, "g8ic8ih40oc8oh40kh31ph15", nullptr},
      {&dw_row8, "g8ic8ih9oc8oh9kh9ph4", nullptr},
      {&dw_row8, "g8ic8ih9oc16oh9kh3ph1", nullptr},
      {&dw_row8, "g8ic8ih20oc8oh20kh11ph5", "r * s = 121"},
      {&dw_row8, "g8ic8ih20oc8oh20kh3ph2dh1", "dil_h = 2"},
      {&dw_row8, "g8ic8ih3iw99oc8oh1ow2kh3kw3sw64ph0pw0", "stride_w = 64"},
      {&dw_row8, "g4ic8ih9oc8oh9kh3ph1", "c / groups = 2"},
      {&dw_direct, "g8ic8ih12oc8oh12kh9ph4", nullptr},
      {&dw_direct, "g7ic7ih13oc7oh7kh3sh2ph2dh1 dt=f16 tag=nhwc align=2", nullptr},
      {&dw_direct, "g8ic8ih12oc16oh12kh3ph1", "k / groups = 2"},
      {&dw_direct, "g8ic8ih20oc8oh20kh11ph5", "r * s = 121"},
      {&dw_direct, "g8ic8ih8200oc8oh8200kh3ph1", "elements of an image = 537920000"},
      {&dw_direct, "g8ic8ih99oc8oh3kh3ph0dh47 tag=nhwc", "(r - 1) * dil_h = 96"},
      {&grp_direct, "g2ic16ih12oc16oh12kh9ph4 dt=bf16", nullptr},
      {&grp_direct, "g3ic21ih13oc15oh7kh3sh2ph2dh1 dt=f16 tag=nhwc align=2", nullptr},
      {&grp_direct, "g8ic8ih9oc16oh9kh3ph1 tag=nhwc", nullptr},
      {&grp_direct, "g8ic8ih9oc8oh9kh3ph1", "k / groups = 1"},
      {&grp_direct, "g2ic32ih9oc32oh9kh3ph1", "c / groups = 16"},
      {&grp_direct, "g4ic8ih20oc8oh20kh11ph5", "r * s = 121"},
      {&grp_direct, "g4ic8ih8200oc8oh8200kh3ph1", "elements of an image = 537920000"},
      {&grp_direct, "g4ic8ih99oc8oh3kh3ph0dh47 tag=nhwc", "(r - 1) * dil_h = 96"},
      {&grp_mma_direct, "g2ic16ih12oc16oh12kh5ph2 dt=bf16 tag=nhwc align=4", nullptr},
      {&grp_mma_direct, "g2ic16ih9oc16oh9kh3ph1 tag=nhwc", "dt = f32"},
      {&grp_mma_direct, "g2ic16ih9oc16oh9kh3ph1 dt=f16", nullptr},
      {&grp_mma_direct, "g4ic16ih9oc32oh9kh3ph1 dt=f16 tag=nhwc", nullptr},
      {&grp_mma_direct, "g8ic24ih9oc24oh9kh3ph1 dt=f16 tag=nhwc", "c / groups = 3"},
      {&grp_mma_direct, "g3ic12ih9oc12oh9kh3ph1 dt=f16 tag=nhwc", "c = 12"},
      {&grp_mma_direct, "g2ic16ih9oc24oh9kh3ph1 dt=f16 tag=nhwc", "k / groups = 12"},
      {&grp_mma_direct, "g2ic16ih9oc16oh9kh3ph1 dt=f16 tag=nhwc align=2", "align = 2"},
      {&grp_mma_direct, "g2ic16ih20oc16oh20kh15ph7 dt=f16 tag=nhwc", "r * s = 225"},
      {&dw_stage, "g8ic8ih12oc8oh12kh7ph3", nullptr},
      {&dw_stage, "g8ic8ih12oc8oh12kh3ph2dh1", nullptr},
      {&dw_stage, "g8ic8ih12oc16oh12kh3ph1", "k / groups = 2"},
      {&dw_stage, "g8ic8ih12oc8oh12kh9ph4", nullptr},
      {&dw_stage, "g8ic8ih12oc8oh12kh11ph5", "r * s = 121"},
      {&dw_stage, "g8ic8ih13oc8oh6kh3sh2ph1dh1", "dil_h = 2"},
      {&dw_stage, "g8ic8ih13oc8oh13kh3ph1 dt=f16", "w = 13"},
      {&dw_stage, "g7ic7ih12oc7oh12kh3ph1 dt=f16 tag=nhwc", "c = 7"},
      {&dw_stage, "g8ic8ih3iw9999oc8oh3ow5kh3kw3ph1dh0dw4996pw0", "(s - 1) * dil_w = 9994"},
      {&dw_band, "g8ic8ih10oc8oh10kh7ph3 dt=f16", nullptr},
      {&dw_band, "g8ic8ih10oc24oh5kh3sh2ph1 dt=bf16", nullptr},
      {&dw_band, "g8ic8ih10oc8oh10kh3ph1", "dtype = f32"},
      {&dw_band, "g8ic8ih10oc8oh10kh3ph1 dt=f16 tag=nhwc", "layout = nhwc"},
      {&dw_band, "g4ic8ih10oc8oh10kh3ph1 dt=f16", "c / groups = 2"},
      {&dw_band, "g8ic8ih9oc8oh9kh3ph1 dt=f16", "w = 9"},
      {&dw_band, "g8ic8ih10oc8oh10kh3ph1 dt=f16 align=2", "align = 2"},
      {&dw_band, "g8ic8ih40oc8oh40kh31ph15 dt=f16", "r = 31"},
      {&dw_band, "g8ic8ih3iw9000oc8oh1ow4kh3kw3sw2999ph0pw0 dt=f16", "r = 3"},
      {&dw_band, "g8ic8ih40iw10oc8oh1ow10kh40kw3sh40sw1ph0pw1 dt=f16", "stride_h = 40"},
      {&dw_band_nhwc, "g8ic8ih9oc8oh9kh7ph3 dt=f16 tag=nhwc", nullptr},
      {&dw_band_nhwc, "g7ic7ih20oc7oh20kh13ph6 dt=bf16 tag=nhwc align=2", nullptr},
      {&dw_band_nhwc, "g8ic8ih9oc8oh9kh7ph3 dt=f16", "tag = nchw"},
      {&dw_band_nhwc, "g8ic8ih9oc8oh9kh7ph3 tag=nhwc", "dt = f32"},
      {&dw_band_nhwc, "g8ic8ih9oc16oh9kh7ph3 dt=f16 tag=nhwc", "k / groups = 2"},
      {&dw_band_nhwc, "g8ic8ih40oc8oh40kh31ph15 dt=f16 tag=nhwc", "r * s = 961"},
      {&dw_band_nhwc, "g8ic8ih40iw40oc8oh40ow8kh5kw5sw5ph2pw2 dt=f16 tag=nhwc", "stride_w = 5"},
      {&dw_band_nhwc, "g8ic8ih9oc8oh9kh3ph1 dt=f16 tag=nhwc", "r * s = 9"},
      {&dw_band_rows, "g8ic8ih14oc8oh14kh13ph6 dt=f16", nullptr},
      {&dw_band_rows, "g7ic7ih13oc7oh13kh7ph3 dt=bf16 tag=nhwc align=2", nullptr},
      {&dw_band_rows, "g120mb32ic120ih28oc120oh28kh9ph4 dt=f16", "n * c * p * q = 3010560"},
      {&dw_band_rows, "g8ic8ih14oc8oh14kh13ph6", "dt = f32"},
      {&dw_band_rows, "g4ic8ih14oc8oh14kh13ph6 dt=f16", "c / groups = 2"},
      {&dw_band_rows, "g8ic8ih14oc16oh14kh13ph6 dt=f16", "k / groups = 2"},
      {&dw_band_rows, "g8ic8ih14oc8oh7kh7sh2ph3 dt=f16", "stride_h = 2"},
      {&dw_band_rows, "g8ic8ih14oc8oh14kh7ph6dh1 dt=f16", "dil_h = 2"},
      {&dw_band_rows, "g8ic8ih14oc8oh14kh3ph1 dt=f16", "r * s = 9"},
      {&dw_band_rows, "g8ic8ih99iw9oc8oh35ow9kh65kw9ph0pw4 dt=f16", "r = 65"},
      {&dw_band_rows, "g8ic8ih9iw65oc8oh9ow65kh7kw7ph3pw3 dt=f16", "w = 65"},
      {&dw_large, "g8ic8ih14oc8oh14kh13ph6", nullptr},
      {&dw_large, "g8ic8ih12oc8oh12kh9ph4", "r * s = 81"},
      {&dw_large, "g8ic8ih28oc8oh14kh13sh2ph6", "stride_h = 2"},
      {&dw_large, "g8ic8ih28oc8oh28kh13ph12dh1", "dil_h = 2"},
      {&dw_large, "g8ic8ih200oc8oh200kh99ph49", "r * s = 9801"},
      {&dw_segments, "g8ic8ih14oc8oh14kh13ph6", nullptr},
      {&dw_segments, "g8ic8ih12oc8oh12kh9ph4", "r * s = 81"},
      {&dw_segments, "g8ic8ih28oc8oh14kh13sh2ph6 dt=f16 tag=nhwc", nullptr},
      {&dw_segments, "g8ic8ih28oc8oh28kh13ph12dh1", "dil_h = 2"},
      {&dw_segments, "g8ic8ih14oc16oh14kh13ph6", "k / groups = 2"},
      {&dw_segments, "g8ic8ih1iw999oc8oh1ow999kh1kw129ph0pw64", "s = 129"},
      {&dw_segments, "g8ic8ih900iw9oc8oh900ow9kh801kw127ph400pw63", "r * s = 101727"},
      {&dw_plane, "g8ic8ih7oc8oh7kh3ph1", nullptr},
      {&dw_plane, "g8ic8ih14oc8oh7kh3sh2ph1 dt=f16", nullptr},
      {&dw_plane, "g8ic8ih7oc8oh7kh3ph1 tag=nhwc", "layout = 1"},
      {&dw_plane, "g8ic8ih18oc8oh18kh3ph1", "w = 18"},
      {&dw_plane, "g8ic8ih5iw129oc8oh5ow129kh3kw3ph1pw1", "w = 129"},
      {&dw_plane, "g8ic8ih7oc8oh7kh3ph2dh1", "dil_h = 2"},
      {&dw_plane, "g8ic8ih9000iw7oc8oh9000ow7kh3kw3ph1pw1", "h * w = 63000"},
      {&dw_fold, "g8ic8ih14oc8oh14kh7ph3", nullptr},
      {&dw_fold, "g8ic8ih20iw24oc8oh20ow22kh5kw3ph2pw0", nullptr},
      {&dw_fold, "g8ic8ih14oc8oh14kh7ph3 tag=nhwc", "layout = 1"},
      {&dw_fold, "g8ic8ih14oc8oh14kh7ph3 dt=f16", "dtype = 1"},
      {&dw_fold, "g4ic8ih14oc8oh14kh7ph3", "c / groups = 2"},
      {&dw_fold, "g8ic8ih14oc16oh14kh7ph3", "k / groups = 2"},
      {&dw_fold, "g8ic8ih14oc8oh14kh3ph2dh1", "dil_h = 2"},
      {&dw_fold, "g8ic8ih14oc8oh7kh5sh2ph2", "stride_h = 2"},
      {&dw_fold, "g8ic8ih14oc8oh14kh7ph3 align=8", "align = 8"},
      {&dw_fold, "g8ic8ih1iw64oc8oh1ow64kh1kw15ph0pw7", "r = 1"},
      {&dw_fold, "g8ic8ih14oc8oh14kh3ph1", "r * s = 9"},
      {&dw_fold, "g8ic8ih14oc8oh14kh11ph5", "r * s = 121"},
      {&dw_fold, "g8ic8ih14iw14oc8oh16ow14kh5kw5ph2pw2", "pad_bottom = 4"},
      {&dw_fold, "g8ic8ih14iw14oc8oh20ow14kh5kw5ph5pw2", "pad_top = 5"},
      {&dw_fold, "g8ic8ih7iw16oc8oh7ow16kh5kw5ph2pw2", "p = 7"},
      {&dw_fold, "g8ic8ih16iw7oc8oh16ow7kh5kw5ph2pw2", "q = 7"},
      {&dw_fold, "g8ic8ih14iw15oc8oh14ow14kh5kw4ph2pw1", "h * w = 210"},
      {&dw_fold, "g8ic8ih128oc8oh128kh5ph2", "h * w = 16384"},
      {&dw_fold, "g8ic8ih4oc8oh4kh9ph4", "h = 4"},
      {&dw_fold, "g8ic8ih16iw34oc8oh16ow34kh5kw5ph2pw2", "q = 34"},
      {&dw_toeplitz, "g8ic8ih7oc8oh7kh7ph3 dt=f16", nullptr},
      {&dw_toeplitz, "g8ic8ih14oc8oh14kh5ph2 dt=bf16", nullptr},
      {&dw_toeplitz, "g8ic8ih7oc8oh7kh5ph2", "dtype = f32"},
      {&dw_toeplitz, "g8ic8ih7oc8oh7kh5ph2 dt=f16 tag=nhwc", "layout = nhwc"},
      {&dw_toeplitz, "g4ic8ih7oc8oh7kh5ph2 dt=f16", "c / groups = 2"},
      {&dw_toeplitz, "g8ic8ih7oc16oh7kh5ph2 dt=f16", "k / groups = 2"},
      {&dw_toeplitz, "g8ic8ih17oc8oh17kh5ph2 dt=f16", "h * w = 289"},
      {&dw_toeplitz, "g8ic8ih8oc8oh8kh7ph3 dt=f16", "h * w = 64"},
      {&dw_toeplitz, "g8ic8ih7oc8oh17kh5ph7 dt=f16", "p * q = 289"},
      {&dw_toeplitz, "g8ic8ih14oc8oh7kh5sh2ph2 dt=f16", "stride_h = 2"},
      {&dw_toeplitz, "g8ic8ih7oc8oh7kh3ph1 dt=f16", "r * s = 9"},
      {&dw_toeplitz, "g8ic8ih14oc8oh14kh13ph6 dt=f16", "r * s = 169"},
      {&dw_toeplitz, "g7ic7ih7oc7oh7kh5ph2 dt=f16", "c * h * w = 343"},
      {&dw_toeplitz_bulk, "g8ic8ih7oc8oh7kh5ph2 dt=f16", nullptr},
      {&dw_toeplitz_bulk, "g8ic8ih14oc8oh14kh7ph3 dt=f16", nullptr},
      {&dw_toeplitz_bulk, "g12ic12ih7oc12oh7kh5ph2 dt=f16", "c = 12"},
      {&dw_toeplitz_bulk, "g8ic8ih7oc8oh7kh5ph2 dt=f16 align=8", "align = 8"},
      {&dw_toeplitz_bulk, "g8ic8ih7oc8oh7kh3ph1 dt=f16", "r * s = 9"},
      {&dw_plane_bulk, "g8ic8ih7oc8oh7kh3ph1 dt=f16", nullptr},
      {&dw_plane_bulk, "g4ic4ih7oc4oh7kh3ph1", nullptr},
      {&dw_plane_bulk, "g4ic4ih7oc4oh7kh3ph1 dt=f16", "c = 4"},
      {&dw_plane_bulk, "g8ic8ih7oc8oh7kh3ph1 align=4", "align = 4"},
      {&dw_plane_bulk, "g8ic8ih7oc8oh7kh9ph4", "r * s = 81"},
      {&dw_band_plane, "g8ic8ih7oc8oh7kh7ph3 dt=f16", nullptr},
      {&dw_band_plane, "g8ic8ih14oc16oh7kh3sh2ph1 dt=bf16", nullptr},
      {&dw_band_plane, "g8ic8ih7oc8oh7kh3ph1", "dtype = f32"},
      {&dw_band_plane, "g8ic8ih7oc8oh7kh3ph1 dt=f16 tag=nhwc", "layout = nhwc"},
      {&dw_band_plane, "g4ic8ih7oc8oh7kh3ph1 dt=f16", "c / groups = 2"},
      {&dw_band_plane, "g8ic8ih17oc8oh17kh3ph1 dt=f16", "w = 17"},
      {&dw_band_plane, "g8ic8ih7oc8oh39kh3ph17 dt=f16", "q = 39"},
      {&dw_band_plane, "g8ic8ih16oc8oh16kh31ph15 dt=f16", "r = 31"},
      {&dw_band_plane, "g7ic7ih7oc7oh7kh3ph1 dt=f16", "c * h * w = 343"},
      {&dw_band_plane, "g8ic8ih700iw16oc8oh700ow16kh3kw3ph1pw1 dt=f16", "h * w = 11200"},
      {&dw_mult, "g8ic8ih9oc16oh9kh3ph1", nullptr},
      {&dw_mult, "g8ic8ih9oc8oh9kh3ph1", "k / groups = 1"},
      {&dw_mult, "g8ic8ih9oc136oh9kh3ph1", "k / groups = 17"},
      {&dw_mult, "g8ic8ih9oc16oh9kh3ph2dh1", "dil_h = 2"},
      {&dw_mult, "g2ic2ih3iw99oc4oh3ow1kh3kw99ph1pw0", "s = 99"},
      {&grp_outer, "g4ic32ih9oc32oh9kh3ph1", nullptr},
      {&grp_outer, "g4ic12ih9oc16oh5kh3sh2ph2dh1 tag=nhwc align=4", nullptr},
      {&grp_outer, "g4ic32ih9oc32oh9kh3ph1 dt=f16", "dt = f16"},
      {&grp_outer, "g8ic8ih9oc32oh9kh3ph1", "c / groups = 1"},
      {&grp_outer, "g2ic64ih9oc16oh9kh3ph1", "c / groups = 32"},
      {&grp_outer, "g4ic32ih9oc24oh9kh3ph1", "k / groups = 6"},
      {&grp_outer, "g4ic32ih20oc32oh20kh11ph5", "r * s = 121"},
      {&grp_outer, "g4ic32ih3000oc32oh3000kh3ph1", "elements of an image = 288000000"},
      {&grp_outer, "g4ic32ih9iw16000oc32oh9ow2000kh3kw3ph1pw1dw7000", "(s - 1) * dil_w = 14002"},
      {&grp_outer, "g4ic32ih9iw9oc32oh1ow9kh2kw1ph100000000dh99999999sh70000001", "(r - 1) * dil_h = 100000000"},
      {&grp_fma, "g4ic8ih9oc8oh9kh3ph1", nullptr},
      {&grp_fma, "g4ic4ih9oc8oh9kh3ph1 dt=f16 tag=nhwc align=2", nullptr},
      {&grp_fma, "g4ic28ih9oc20oh5kh3sh2ph1dh1 tag=nchw", nullptr},
      {&grp_fma, "g8ic8ih9oc8oh9kh3ph1", "k / groups = 1"},
      {&grp_fma, "g2ic32ih9oc32oh9kh3ph1", "c / groups = 16"},
      {&grp_fma, "g4ic8ih11oc8oh11kh11ph5", "r * s = 121"},
      {&grp_fma, "g4ic8ih20iw9oc8oh3ow9kh18kw1ph0", "r = 18"},
      {&grp_fma, "g4ic32ih9iw16000oc32oh9ow2000kh3kw3ph1pw1dw7000", "(s - 1) * dil_w = 14002"},
      {&grp_fma, "g4ic8ih9iw9oc8oh1ow9kh2kw1ph100000000dh99999999sh70000001", "dil_h = 100000000"},
      {&grp_plane, "g4ic8ih9oc8oh9kh3ph1", nullptr},
      {&grp_plane, "g1ic3ih9oc8oh9kh3ph1", nullptr},
      {&grp_plane, "g8ic8ih9oc8oh9kh3ph1", "c / groups = 1"},
      {&grp_reduce, "g8ic8ih7oc8oh1kh7ph0", nullptr},
      {&grp_reduce, "g8ic8ih7oc8oh6kh2ph0", "r * s * c / groups = 4"},
      {&grp_reduce, "mb64g64ic64ih56oc64oh56kh3ph1", "n * k * p * q = 12845056"},
      {&grp_mma_nhwc, "g8ic32ih9oc32oh9kh3ph1 dt=f16 tag=nhwc", nullptr},
      {&grp_mma_nhwc, "g8ic8ih9oc24oh9kh3ph1 dt=bf16 tag=nhwc", nullptr},
      {&grp_mma_nhwc, "g8ic32ih9oc32oh9kh3ph1 dt=f32 tag=nhwc", "dt = f32"},
      {&grp_mma_nhwc, "g8ic32ih9oc32oh9kh3ph1 dt=f16 tag=nchw", "tag = nchw"},
      {&grp_mma_nhwc, "g8ic24ih9oc32oh9kh3ph1 dt=f16 tag=nhwc", "c / groups = 3"},
      {&grp_mma_nhwc, "g3ic12ih9oc12oh9kh3ph1 dt=f16 tag=nhwc", "c = 12"},
      {&grp_mma_nhwc, "g8ic32ih9oc32oh9kh3ph1 dt=f16 tag=nhwc align=8", "align = 8"},
      {&grp_mma_nhwc, "g8ic8ih9oc8oh9kh3ph1 dt=f16 tag=nhwc", "k / groups = 1"},
      {&grp_mma_nhwc, "g8ic32ih11oc32oh11kh11ph5 dt=f16 tag=nhwc", "r * s = 121"},
      {&grp_mma_nhwc, "g8ic32ih9iw16000oc32oh9ow2000kh3kw3ph1pw1dw7000 dt=f16 tag=nhwc", "shared memory = "},
      {&grp_mma_nchw, "g5ic15ih9oc20oh9kh3ph1 dt=f16 tag=nchw", nullptr},
      {&grp_mma_nchw, "g8ic8ih9oc24oh9kh3ph1 dt=bf16 tag=nchw align=2", nullptr},
      {&grp_mma_nchw, "g8ic32ih9oc32oh9kh3ph1 dt=f32 tag=nchw", "dt = f32"},
      {&grp_mma_nchw, "g8ic32ih9oc32oh9kh3ph1 dt=f16 tag=nhwc", "tag = nhwc"},
      {&grp_mma_nchw, "g2ic32ih9oc32oh9kh3ph1 dt=f16 tag=nchw", "c / groups = 16"},
      {&grp_mma_nchw, "g8ic8ih9oc8oh9kh3ph1 dt=f16 tag=nchw", "k / groups = 1"},
      {&grp_mma_nchw, "g8ic64ih11oc64oh11kh11ph5 dt=f16 tag=nchw", "r * s = 121"},
      {&mult_mma, "g3ic3ih9oc24oh9kh3ph1 dt=f16 tag=nchw align=2", nullptr},
      {&mult_mma, "g1ic3ih9oc64oh5kh7sh2ph3 dt=bf16 tag=nhwc", nullptr},
      {&mult_mma, "g8ic8ih9oc64oh9kh3ph1 dt=f32 tag=nhwc", "dt = f32"},
      {&mult_mma, "g2ic32ih9oc32oh9kh3ph1 dt=f16 tag=nhwc", "c / groups = 16"},
      {&mult_mma, "g8ic8ih9oc96oh9kh3ph1 dt=f16 tag=nhwc", "k / groups = 12"},
      {&mult_mma, "g8ic64ih9oc64oh9kh3ph1 dt=f16 tag=nhwc", "k / groups = 8"},
      {&mult_mma, "g8ic8ih9oc64oh7kh3dh1ph1 dt=f16 tag=nchw", "dil_h = 2"},
      {&mult_mma, "g3ic3ih9oc24oh9kh3ph1 dt=f16 tag=nhwc align=8", "align = 8"},
      {&mult_mma, "g4ic8ih29oc64oh29kh29ph14 dt=f16 tag=nchw", "r * s = 841"},
      {&dw_flat, "mb1g1ic1ih1iw600000000oc1oh1ow600000000kh1kw1", "w = 600000000"},
  };
  for (const RefusalCase& c : cases) {
    const Refusal refusal = c.schedule->can_run(parsed(c.problem), h200);
    if (c.names == nullptr) {
      EXPECT_FALSE(refusal.has_value()) << c.schedule->name << " " << c.problem << ": " << *refusal;
    } else {
      ASSERT_TRUE(refusal.has_value()) << c.schedule->name << " " << c.problem;
      EXPECT_NE(refusal->find(c.names), std::string::npos) << *refusal << " does not say " << c.names;
    }
  }
}

TEST(Refusals, ConfigurationsFromFilesAreChecked) {
  const ConvProblem nhwc = parsed("g12ic12ih9oc12oh9kh3ph1 dt=f16 tag=nhwc");
  const ConvProblem nchw = parsed("g12ic12ih9oc12oh9kh3ph1 dt=f16 tag=nchw");
  const ConvProblem grouped = parsed("g3ic12ih9oc12oh9kh3ph1");
  const ConvProblem small = parsed("g12ic12ih7oc12oh7kh7ph3 dt=f16 tag=nchw");
  const ConvProblem folded = parsed("g12ic12ih14oc12oh14kh7ph3");
  const ConvProblem even = parsed("g12ic12ih9iw10oc12oh9ow10kh3kw3ph1pw1 dt=f16 tag=nchw");
  const ConvProblem halves = parsed("g8ic32ih9oc32oh9kh3ph1 dt=f16 tag=nhwc");
  const ConvProblem stem = parsed("g1ic3ih30oc64oh15kh7sh2ph3 dt=f16 tag=nchw");
  const ConvProblem planes = parsed("g8ic32ih9oc32oh9kh3ph1 dt=f16 tag=nchw");
  const ConvProblem large = parsed("g8ic8ih14oc8oh14kh13ph6");
  const ConvProblem octets = parsed("g4ic32ih9oc32oh9kh3ph1 dt=f16 tag=nhwc");
  struct {
    const Schedule* schedule;
    const ConvProblem* problem;
    const char *config, *names;
  } const cases[] = {
      {&dw_flat, &nhwc, "vec=4,cols=2,threads=128", nullptr},
      {&dw_flat, &nhwc, "vec=8,cols=2,threads=128", "vec = 8"},
      {&dw_flat, &nhwc, "vec=3,cols=2,threads=128", "vec = 3"},
      {&dw_flat, &nchw, "vec=2,cols=2,threads=128", "vec = 2"},
      {&dw_flat, &nchw, "vec=1,cols=0,threads=128", "cols = 0"},
      {&dw_flat, &nchw, "vec=1,cols=2,threads=100", "threads = 100"},
      {&dw_flat, &nchw, "vec=1,cols=2", "knobs = 2"},
      {&dw_flat, &nchw, "vec=1,rows=2,threads=128", "rows"},
      {&dw_row8, &nchw, "vec=2,cols=8,rows=4,threads=128", "w = 9"},
      {&dw_row8, &nhwc, "vec=4,cols=16,rows=4,threads=128", "cols = 16"},
      {&dw_direct, &nhwc, "vec=4,cols=2,rows=2,lanes=3,split=1,threads=64", nullptr},
      {&dw_direct, &nhwc, "vec=8,cols=2,rows=2,lanes=3,split=1,threads=64", "vec = 8"},
      {&dw_direct, &nhwc, "vec=4,cols=17,rows=1,lanes=3,split=1,threads=64", "cols = 17"},
      {&dw_direct, &nhwc, "vec=4,cols=1,rows=9,lanes=3,split=1,threads=64", "rows = 9"},
      {&dw_direct, &nhwc, "vec=4,cols=8,rows=8,lanes=3,split=1,threads=64", "cols = 8"},
      {&dw_direct, &nhwc, "vec=1,cols=2,rows=2,lanes=33,split=1,threads=32", "lanes = 33"},
      {&dw_direct, &nhwc, "vec=4,cols=2,rows=2,lanes=3,split=4,threads=128", "split = 4"},
      {&dw_direct, &nhwc, "vec=4,cols=2,rows=2,lanes=3,split=2,threads=32", "split = 2"},
      {&dw_direct, &nchw, "vec=1,cols=9,rows=1,lanes=7,split=3,threads=192", nullptr},
      {&dw_direct, &nchw, "vec=1,cols=9,rows=1,lanes=8,split=3,threads=192", "lanes = 8"},
      {&dw_direct, &nchw, "vec=2,cols=2,rows=1,lanes=1,split=1,threads=64", "w = 9"},
      {&dw_direct, &even, "vec=2,cols=3,rows=1,lanes=1,split=1,threads=64", "vec = 2"},
      {&grp_direct, &halves, "outs=4,cols=2,rows=2,split=2,vec=2,lanes=8,threads=64", nullptr},
      {&grp_direct, &halves, "outs=3,cols=2,rows=2,split=1,vec=2,lanes=8,threads=64", "outs = 3"},
      {&grp_direct, &halves, "outs=4,cols=17,rows=1,split=2,vec=2,lanes=8,threads=64", "cols = 17"},
      {&grp_direct, &halves, "outs=4,cols=1,rows=9,split=2,vec=2,lanes=8,threads=64", "rows = 9"},
      {&grp_direct, &halves, "outs=1,cols=2,rows=2,split=2,vec=2,lanes=8,threads=64", "split = 2"},
      {&grp_direct, &halves, "outs=4,cols=2,rows=2,split=2,vec=4,lanes=8,threads=64", "vec = 4"},
      {&grp_direct, &halves, "outs=4,cols=2,rows=2,split=2,vec=2,lanes=33,threads=64", "lanes = 33"},
      {&grp_direct, &halves, "outs=4,cols=8,rows=4,split=1,vec=4,lanes=8,threads=64", "outs = 4"},
      {&grp_direct, &halves, "outs=2,cols=8,rows=4,split=1,vec=4,lanes=8,threads=64", "cols = 8"},
      {&grp_direct, &grouped, "outs=2,cols=3,rows=2,split=1,vec=1,lanes=1,threads=32", nullptr},
      {&grp_direct, &grouped, "outs=2,cols=2,rows=2,split=1,vec=2,lanes=1,threads=32", "w = 9"},
      {&grp_direct, &grouped, "outs=2,cols=1,rows=1,split=1,vec=1,lanes=2,threads=32", "lanes = 2"},
      {&grp_mma_direct, &octets, "units=2,rows=2,part=1,beside=2,threads=64", nullptr},
      {&grp_mma_direct, &octets, "units=3,rows=2,part=1,beside=2,threads=64", "units = 3"},
      {&grp_mma_direct, &octets, "units=2,rows=9,part=1,beside=2,threads=64", "rows = 9"},
      {&grp_mma_direct, &octets, "units=2,rows=2,part=2,beside=2,threads=64", "part = 2"},
      {&grp_mma_direct, &octets, "units=2,rows=2,part=1,beside=3,threads=64", "beside = 3"},
      {&grp_mma_direct, &octets, "units=4,rows=4,part=1,beside=1,threads=1024", "units = 4"},
      {&dw_stage, &nhwc, "vec=2,cols=4,lanes=6,tiles=3,stages=4,rows=3,threads=32", nullptr},
      {&dw_stage, &nhwc, "vec=2,cols=4,lanes=6,tiles=6,stages=4,rows=3,threads=32", "tiles = 6"},
      {&dw_stage, &nhwc, "vec=2,cols=4,lanes=6,tiles=3,stages=1,rows=3,threads=32", "stages = 1"},
      {&dw_stage, &nhwc, "vec=2,cols=17,lanes=6,tiles=5,stages=4,rows=3,threads=32", "cols = 17"},
      {&dw_stage, &nhwc, "vec=1,cols=4,lanes=1,tiles=3,stages=4,rows=3,threads=32", "lanes = 1"},
      {&dw_stage, &nchw, "vec=1,cols=4,lanes=6,tiles=3,stages=4,rows=3,threads=32", "lanes = 6"},
      {&dw_band_nhwc, &nhwc,
       "ch=16,cw=2,own=1,rows=4,groups=2,strips=2,images=1,slots=4,chunk=9,threads=256,blocks=3,steps=2", nullptr},
      {&dw_band_nhwc, &nhwc,
       "ch=16,cw=2,own=1,rows=4,groups=2,strips=2,images=1,slots=2,chunk=9,threads=256,blocks=3,steps=2", "slots = 2"},
      {&dw_band_nhwc, &nhwc,
       "ch=24,cw=2,own=1,rows=4,groups=2,strips=2,images=1,slots=4,chunk=9,threads=256,blocks=3,steps=2", "ch = 24"},
      {&dw_band_nhwc, &nhwc,
       "ch=32,cw=2,own=3,rows=4,groups=2,strips=2,images=1,slots=4,chunk=9,threads=256,blocks=3,steps=2", "own = 3"},
      {&dw_band_nhwc, &nhwc,
       "ch=32,cw=2,own=1,rows=4,groups=2,strips=2,images=1,slots=4,chunk=9,threads=256,blocks=1,steps=2",
       "threads = 256"},
      {&dw_band_nhwc, &nhwc,
       "ch=16,cw=2,own=1,rows=16,groups=2,strips=2,images=1,slots=4,chunk=9,threads=256,blocks=4,steps=2", "rows = 16"},
      {&dw_plane, &nchw, "planes=16,strips=3,tiles=1,threads=64", nullptr},
      {&dw_plane, &nchw, "planes=16,strips=3,tiles=1,threads=32", "threads = 32"},
      {&dw_plane, &nchw, "planes=1,strips=1,tiles=1,threads=32", "planes = 1"},
      {&dw_plane, &nchw, "planes=16,strips=10,tiles=1,threads=160", "strips = 10"},
      {&dw_fold, &folded, "cols=7,planes=8,unroll=1,warps=3,threads=96", nullptr},
      {&dw_fold, &folded, "cols=4,planes=4,unroll=1,warps=3,threads=96", "cols = 4"},
      {&dw_fold, &folded, "cols=2,planes=2,unroll=1,warps=3,threads=96", "cols = 2"},
      {&dw_fold, &folded, "cols=7,planes=9,unroll=1,warps=3,threads=96", "planes = 9"},
      {&dw_fold, &folded, "cols=7,planes=8,unroll=3,warps=3,threads=96", "unroll = 3"},
      {&dw_fold, &folded, "cols=7,planes=8,unroll=2,warps=3,threads=512", "threads = 512"},
      {&dw_fold, &folded, "cols=7,planes=8,unroll=2,warps=4,threads=128", nullptr},
      {&dw_fold, &folded, "cols=7,planes=8,unroll=1,warps=4,threads=128", "warps = 4"},
      {&dw_toeplitz, &small, "channels=4,groups=2,parts=2,turns=9,threads=256", nullptr},
      {&dw_toeplitz, &small, "channels=33,groups=1,parts=1,turns=1,threads=1056", "channels = 33"},
      {&dw_toeplitz, &small, "channels=3,groups=1,parts=1,turns=1,threads=96", "channels = 3"},
      {&dw_toeplitz, &small, "channels=4,groups=3,parts=1,turns=1,threads=128", "groups = 3"},
      {&dw_toeplitz, &small, "channels=4,groups=1,parts=8,turns=1,threads=1024", "parts = 8"},
      {&dw_toeplitz, &small, "channels=4,groups=1,parts=2,turns=1,threads=128", "threads = 128"},
      {&dw_toeplitz_bulk, &small, "channels=8,groups=1,parts=1,stages=2,grid=9,threads=256", nullptr},
      {&dw_toeplitz_bulk, &small, "channels=4,groups=1,parts=1,stages=2,grid=9,threads=128", "channels = 4"},
      {&dw_toeplitz_bulk, &small, "channels=8,groups=1,parts=1,stages=9,grid=9,threads=256", "stages = 9"},
      {&dw_toeplitz_bulk, &small, "channels=8,groups=1,parts=1,stages=8,grid=9,threads=256", "stages = 8"},
      {&dw_toeplitz_bulk, &small, "channels=8,groups=1,parts=2,stages=2,grid=9,threads=256", "threads = 256"},
      {&dw_plane_bulk, &small, "planes=16,strips=4,tiles=1,stages=3,grid=9,threads=64", nullptr},
      {&dw_plane_bulk, &small, "planes=12,strips=4,tiles=1,stages=3,grid=9,threads=64", "planes = 12"},
      {&dw_plane_bulk, &small, "planes=16,strips=4,tiles=1,stages=1,grid=9,threads=64", "stages = 1"},
      {&dw_plane_bulk, &small, "planes=16,strips=4,tiles=1,stages=3,grid=9,threads=96", "threads = 96"},
      {&dw_band_rows, &even, "channels=4,images=4,groups=2,pack=2,split=1,threads=128,blocks=1,grid=132", nullptr},
      {&dw_band_rows, &even, "channels=3,images=4,groups=2,pack=2,split=1,threads=128,blocks=1,grid=132",
       "channels = 3"},
      {&dw_band_rows, &even, "channels=4,images=4,groups=9,pack=2,split=1,threads=128,blocks=1,grid=132", "groups = 9"},
      {&dw_band_rows, &even, "channels=4,images=4,groups=2,pack=3,split=1,threads=128,blocks=1,grid=132", "pack = 3"},
      {&dw_band_rows, &even, "channels=4,images=4,groups=2,pack=2,split=3,threads=128,blocks=1,grid=132", "split = 3"},
      {&dw_band_rows, &even, "channels=4,images=4,groups=2,pack=2,split=1,threads=128,blocks=17,grid=132",
       "blocks = 17"},
      {&dw_band_rows, &even, "channels=64,images=64,groups=2,pack=2,split=1,threads=128,blocks=1,grid=132",
       "channels = 64"},
      {&dw_large, &large, "planes=8,rows=7,cols=7,taps=4,row_tiles=4,col_tiles=2,split=2,threads=128", nullptr},
      {&dw_large, &large, "planes=8,rows=7,cols=7,taps=4,row_tiles=2,col_tiles=2,split=2,threads=128", "row_tiles = 2"},
      {&dw_large, &large, "planes=9,rows=7,cols=7,taps=4,row_tiles=4,col_tiles=2,split=2,threads=128", "planes = 9"},
      {&dw_large, &large, "planes=8,rows=7,cols=7,taps=4,row_tiles=4,col_tiles=2,split=2,threads=256", "threads = 256"},
      {&dw_large, &large, "planes=8,rows=9,cols=9,taps=4,row_tiles=4,col_tiles=2,split=2,threads=128", "cols = 9"},
      {&dw_segments, &large, "channels=2,images=2,per=2,cols=14,tiles=1,rows=14,step=1,chunk=9,fence=2,threads=32",
       nullptr},
      {&dw_segments, &large, "channels=3,images=2,per=2,cols=14,tiles=1,rows=14,step=1,chunk=9,fence=2,threads=32",
       "channels = 3"},
      {&dw_segments, &large, "channels=2,images=33,per=1,cols=14,tiles=1,rows=14,step=1,chunk=9,fence=2,threads=32",
       "images = 33"},
      {&dw_segments, &large, "channels=2,images=1,per=2,cols=14,tiles=1,rows=14,step=1,chunk=9,fence=2,threads=32",
       "per = 2"},
      {&dw_segments, &large, "channels=2,images=2,per=2,cols=65,tiles=1,rows=14,step=1,chunk=9,fence=2,threads=32",
       "cols = 65"},
      {&dw_segments, &large, "channels=2,images=2,per=2,cols=7,tiles=1,rows=14,step=1,chunk=9,fence=2,threads=32",
       "cols = 7"},
      {&dw_segments, &large, "channels=2,images=2,per=2,cols=14,tiles=1,rows=15,step=1,chunk=9,fence=2,threads=32",
       "rows = 15"},
      {&dw_segments, &large, "channels=2,images=2,per=2,cols=14,tiles=1,rows=14,step=2,chunk=9,fence=2,threads=32",
       "step = 2"},
      {&dw_segments, &large, "channels=2,images=2,per=2,cols=14,tiles=1,rows=14,step=1,chunk=9,fence=2,threads=64",
       "threads = 64"},
      {&dw_segments, &large, "channels=2,images=2,per=2,cols=14,tiles=1,rows=14,step=1,chunk=9,fence=3,threads=32",
       "fence = 3"},
      {&dw_band, &even, "copy=2,tiles=1,blocks=2,share=1,batch=4,depth=3,store=2,rows=9,threads=128", nullptr},
      {&dw_band, &even, "copy=4,tiles=1,blocks=2,share=1,batch=4,depth=3,store=2,rows=9,threads=128", "w = 10"},
      {&dw_band, &even, "copy=1,tiles=1,blocks=2,share=1,batch=4,depth=3,store=2,rows=9,threads=128", "copy = 1"},
      {&dw_band, &even, "copy=2,tiles=5,blocks=1,share=1,batch=4,depth=3,store=2,rows=9,threads=128", "tiles = 5"},
      {&dw_band, &even, "copy=2,tiles=1,blocks=3,share=1,batch=4,depth=3,store=2,rows=9,threads=128", "blocks = 3"},
      {&dw_band, &even, "copy=2,tiles=1,blocks=2,share=2,batch=4,depth=3,store=2,rows=9,threads=128", "share = 2"},
      {&dw_band, &even, "copy=2,tiles=1,blocks=2,share=1,batch=4,depth=1,store=2,rows=9,threads=128", "depth = 1"},
      {&dw_band, &even, "copy=2,tiles=1,blocks=2,share=1,batch=4,depth=32,store=2,rows=9,threads=128", "depth = 32"},
      {&dw_band, &even, "copy=2,tiles=1,blocks=2,share=1,batch=64,depth=2,store=2,rows=9,threads=128", "batch = 64"},
      {&dw_band, &even, "copy=2,tiles=1,blocks=2,share=1,batch=4,depth=3,store=1,rows=9,threads=128", "store = 1"},
      {&dw_band, &even, "copy=2,tiles=1,blocks=2,share=1,batch=4,depth=3,store=8,rows=9,threads=128", "store = 8"},
      {&dw_band_plane, &even, "channels=2,groups=1,rows=9,threads=64", nullptr},
      {&dw_band_plane, &even, "channels=65,groups=1,rows=9,threads=64", "channels = 65"},
      {&dw_band_plane, &even, "channels=32,groups=1,rows=9,threads=64", "channels = 32"},
      {&dw_band_plane, &even, "channels=2,groups=3,rows=9,threads=64", "groups = 3"},
      {&grp_fma, &grouped, "outs=4,cols=4,split=1,lanes=3,tiles=3,copy=1,stages=4,rows=9,threads=32", nullptr},
      {&grp_fma, &grouped, "outs=3,cols=4,split=1,lanes=3,tiles=3,copy=1,stages=4,rows=9,threads=32", "outs = 3"},
      {&grp_fma, &grouped, "outs=4,cols=9,split=1,lanes=3,tiles=3,copy=1,stages=4,rows=9,threads=32", "cols = 9"},
      {&grp_fma, &grouped, "outs=1,cols=4,split=2,lanes=3,tiles=3,copy=1,stages=4,rows=9,threads=32", "split = 2"},
      {&grp_fma, &grouped, "outs=1,cols=4,split=1,lanes=3,tiles=3,copy=1,stages=4,rows=9,threads=32", "lanes = 3"},
      {&grp_fma, &grouped, "outs=4,cols=4,split=2,lanes=6,tiles=3,copy=1,stages=4,rows=9,threads=32", "tiles = 3"},
      {&grp_fma, &grouped, "outs=4,cols=4,split=1,lanes=3,tiles=3,copy=4,stages=4,rows=9,threads=32", "copy = 4"},
      {&grp_fma, &grouped, "outs=4,cols=4,split=1,lanes=3,tiles=3,copy=1,stages=1,rows=9,threads=32", "stages = 1"},
      {&grp_fma, &grouped, "outs=4,cols=8,split=1,lanes=3,tiles=2,copy=1,stages=4,rows=9,threads=1024", "cols = 8"},
      {&grp_outer, &grouped, "outs=4,rows=2,cols=8,lanes=3,high=5,wide=2,threads=32", nullptr},
      {&grp_outer, &grouped, "outs=6,rows=2,cols=8,lanes=3,high=5,wide=2,threads=32", "outs = 6"},
      {&grp_outer, &grouped, "outs=4,rows=4,cols=8,lanes=3,high=5,wide=2,threads=32", "cols = 8"},
      {&grp_outer, &grouped, "outs=4,rows=2,cols=8,lanes=4,high=5,wide=2,threads=32", "lanes = 4"},
      {&grp_outer, &grouped, "outs=4,rows=2,cols=8,lanes=3,high=5,wide=2,threads=544", "threads = 544"},
      {&grp_outer, &grouped, "outs=4,rows=2,cols=8,lanes=1,high=200,wide=2,threads=416", "lanes = 1"},
      {&grp_plane, &grouped, "lanes=32,outs=4,cols=4,turns=1,threads=128", nullptr},
      {&grp_plane, &grouped, "lanes=32,outs=8,cols=2,turns=1,threads=128", "outs = 8"},
      {&grp_plane, &grouped, "lanes=3,outs=1,cols=2,turns=1,threads=128", "lanes = 3"},
      {&grp_mma_nhwc, &halves, "octets=4,slices=1,units=2,rows=4,tiles=2,stages=2,blocks=1,threads=128", nullptr},
      {&grp_mma_nhwc, &halves, "octets=3,slices=1,units=2,rows=4,tiles=2,stages=2,blocks=1,threads=128", "units = 2"},
      {&grp_mma_nhwc, &halves, "octets=4,slices=1,units=2,rows=4,tiles=2,stages=2,blocks=1,threads=96", "threads = 96"},
      {&grp_mma_nhwc, &halves, "octets=4,slices=1,units=4,rows=16,tiles=2,stages=2,blocks=1,threads=32", "units = 4"},
      {&grp_mma_nhwc, &halves, "octets=16,slices=1,units=4,rows=7,tiles=16,stages=2,blocks=1,threads=128",
       "tiles = 16"},
      {&grp_mma_nchw, &planes, "groups=2,units=1,part=4,across=3,rows=2,down=2,stages=2,blocks=1,threads=128", nullptr},
      {&grp_mma_nchw, &planes, "groups=2,units=1,part=4,across=3,rows=2,down=2,stages=2,blocks=1,threads=64",
       "threads = 64"},
      {&grp_mma_nchw, &planes, "groups=2,units=1,part=6,across=3,rows=2,down=2,stages=2,blocks=1,threads=128",
       "part = 6"},
      {&grp_mma_nchw, &planes, "groups=2,units=1,part=4,across=9,rows=2,down=2,stages=2,blocks=1,threads=128",
       "across = 9"},
      {&grp_mma_nchw, &planes, "groups=2,units=2,part=4,across=3,rows=2,down=2,stages=2,blocks=1,threads=64",
       "units = 2"},
      {&mult_mma, &stem, "out_units=8,units=4,part=2,tiles=1,rows=1,stages=2,blocks=1,threads=128", nullptr},
      {&mult_mma, &stem, "out_units=6,units=4,part=2,tiles=1,rows=1,stages=2,blocks=1,threads=128", "out_units = 6"},
      {&mult_mma, &stem, "out_units=6,units=3,part=2,tiles=1,rows=1,stages=2,blocks=1,threads=128", "units = 3"},
      {&mult_mma, &stem, "out_units=8,units=4,part=3,tiles=1,rows=1,stages=2,blocks=1,threads=128", "part = 3"},
      {&mult_mma, &stem, "out_units=8,units=4,part=2,tiles=17,rows=1,stages=2,blocks=1,threads=128", "tiles = 17"},
      {&mult_mma, &stem, "out_units=8,units=4,part=2,tiles=1,rows=17,stages=2,blocks=1,threads=128", "rows = 17"},
      {&mult_mma, &stem, "out_units=8,units=4,part=2,tiles=1,rows=1,stages=3,blocks=1,threads=128", "stages = 3"},
      {&mult_mma, &stem, "out_units=8,units=4,part=2,tiles=1,rows=1,stages=2,blocks=1,threads=96", "threads = 96"},
      {&mult_mma, &stem, "out_units=8,units=8,part=8,tiles=1,rows=1,stages=1,blocks=1,threads=64", "units = 8"},
      {&grp_reduce, &grouped, "lanes=64,threads=128", "lanes = 64"},
      {&grp_reduce, &grouped, "lanes=128,threads=128", nullptr},
  };
  for (const auto& c : cases) {
    const Refusal refusal = c.schedule->fits(*c.problem, *Config::parse(c.config));
    EXPECT_EQ(refusal.has_value(), c.names != nullptr) << c.schedule->name << " " << c.config << refusal.value_or("");
    if (refusal && c.names != nullptr) {
      EXPECT_NE(refusal->find(c.names), std::string::npos) << *refusal;
    }
  }
}

// ---- The space ----

template <class Check>
void for_each_candidate(const Check& check) {
  std::size_t turn = 0;
  for (const NamedProblem& row : test_problems()) {
    for (const ConvProblem& problem : spread_variants(row.problem, turn++)) {
      for (const Schedule* schedule : all_schedules()) {
        if (schedule->can_run(problem, h200)) continue;
        const auto configs = schedule->configs(problem, h200);
        EXPECT_FALSE(configs.empty()) << schedule->name << " " << problem.to_string();
        EXPECT_LE(configs.size(), 8U) << schedule->name << " " << problem.to_string();
        for (const Config& config : configs) check(*schedule, problem, config);
      }
    }
  }
}

TEST(Space, EveryConfigurationFitsAndIsNamedOnce) {
  for_each_candidate([](const Schedule& schedule, const ConvProblem& problem, const Config& config) {
    const Refusal refusal = schedule.fits(problem, config);
    EXPECT_FALSE(refusal.has_value()) << schedule.name << " " << config.to_string() << " " << problem.to_string()
                                      << ": " << *refusal;
    EXPECT_EQ(Config::parse(config.to_string()), config);
    std::set<std::string> names;
    for (const auto& [name, value] : schedule.kernel(problem, config).constants) {
      EXPECT_TRUE(names.insert(name).second) << schedule.name << " has two constants " << name;
    }
  });
}

TEST(Space, GeometryCoversTheWork) {
  for_each_candidate([](const Schedule& schedule, const ConvProblem& problem, const Config& config) {
    SlParams params{};
    schedule.params(problem, config, params);
    const Geometry geometry = schedule.geometry(problem, config);
    const std::string what = std::string(schedule.name) + " " + config.to_string() + " " + problem.to_string();
    EXPECT_EQ(geometry.block, config.get("threads")) << what;
    EXPECT_EQ(schedule.kernel(problem, config).threads, geometry.block) << what;
    EXPECT_LE(geometry.grid, max_grid) << what;
    EXPECT_EQ(geometry.grid == 0, problem.n == 0) << what;
    EXPECT_EQ(params.n, problem.n) << what;
    EXPECT_EQ(params.pad_left, problem.pad_left) << what;
    EXPECT_EQ(params.x, nullptr) << what;
    const std::int64_t threads = geometry.grid * geometry.block;
    const int lanes = &schedule == &grp_reduce ? config.get("lanes") : 1;
    if (&schedule == &dw_mult || &schedule == &grp_plane) {  // strips x channel lanes, `turns` strips a thread
      const std::int64_t channels = &schedule == &dw_mult ? problem.c : problem.k / config.get("outs");
      EXPECT_GE(threads * params.aux[1], params.aux[0] * channels) << what;
    } else {
      EXPECT_GE(threads, params.work * lanes) << what;
      EXPECT_LT(threads - params.work * lanes, geometry.block + lanes) << what;
    }
  });
}

TEST(Space, HugeProblemsGetAGridThatExists) {
  // 2^33 strips of one output: more blocks than a grid has, unless a thread takes several.
  ConvProblem problem = parsed("mb1g2ic4ih1oc4oh1kh1");
  problem.n = std::int64_t{1} << 35;
  ASSERT_TRUE(problem.needs_64bit_offsets());
  for (const Config& config : grp_plane.configs(problem, h200)) {
    const Geometry geometry = grp_plane.geometry(problem, config);
    EXPECT_LE(geometry.grid, max_grid);
    SlParams params{};
    grp_plane.params(problem, config, params);
    EXPECT_GE(geometry.grid * geometry.block * params.aux[1], params.aux[0] * (problem.k / config.get("outs")));
    for (const auto& [name, value] : grp_plane.kernel(problem, config).constants) {
      if (name == "INDEX64") {
        EXPECT_EQ(value, 1);
      }
    }
  }
  ConvProblem depthwise = parsed("mb1g4ic4ih1oc4oh1kh1");
  depthwise.n = std::int64_t{1} << 38;
  const Refusal refusal = dw_flat.can_run(depthwise, h200);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_NE(refusal->find("1099511627776"), std::string::npos) << *refusal;
}

// Dynamic shapes must not recompile: n is never compiled in, and a base schedule's kernel holds no size at all.
TEST(Space, KernelsHoldNoSizes) {
  for_each_candidate([](const Schedule& schedule, const ConvProblem& problem, const Config& config) {
    if (problem.n == 0) return;
    ConvProblem more = problem;
    more.n += 3;
    const std::string here = schedule.kernel(problem, config).canonical();
    EXPECT_EQ(here, schedule.kernel(more, config).canonical()) << schedule.name << " compiles n in";
    if (!schedule.size_generic) return;
    more.h += 2 * problem.stride_h;
    more.w += 5 * problem.stride_w;
    more.p += 2;
    more.q += 5;
    more.groups *= 3, more.c *= 3, more.k *= 3;
    if (schedule.fits(more, config)) return;
    EXPECT_EQ(here, schedule.kernel(more, config).canonical()) << schedule.name << " compiles a size in";
  });
}

RC_GTEST_PROP(Space, RandomProblemsHaveABase, ()) {
  const auto problem = *small_problem();
  const Schedule* base = base_schedule(problem, h200);
  RC_ASSERT(base == (problem.depthwise() ? &dw_flat : &grp_plane));
  const CandidateSet set = candidates(problem, h200, {}, {});
  RC_ASSERT(std::any_of(set.candidates.begin(), set.candidates.end(),
                        [&](const Candidate& candidate) { return candidate.schedule == base; }));
  for (const Candidate& candidate : set.candidates) {
    RC_ASSERT(!candidate.schedule->fits(problem, candidate.config).has_value());
  }
}

// ---- Candidates ----

TEST(Candidates, RefusalsSayWhy) {
  const ConvProblem problem = parsed("g8ic8ih9oc8oh9kh3ph1");
  const std::vector<std::string> only = {"dw_flat", "dw_row8"}, disabled = {"dw_row8"};
  const CandidateSet set = candidates(problem, h200, only, disabled);
  for (const Candidate& candidate : set.candidates) EXPECT_EQ(candidate.schedule, &dw_flat);
  std::map<std::string, std::string> reasons;
  for (const auto& [schedule, reason] : set.refusals) reasons[schedule] = reason;
  EXPECT_EQ(reasons.size(), all_schedules().size() - 1);
  EXPECT_NE(reasons["dw_row8"].find("disabled"), std::string::npos);
  EXPECT_NE(reasons["grp_plane"].find("not among"), std::string::npos);
}

// A budget that ends early must have tried every schedule's best guess, not one schedule's whole space.
TEST(Candidates, EveryScheduleComesOnceBeforeAnyComesTwice) {
  const CandidateSet set = candidates(parsed("g64mb8ic64ih28oc64oh28kh3ph1"), h200, {}, {});
  std::map<const Schedule*, std::size_t> turns;
  std::size_t turn = 0;
  for (const Candidate& candidate : set.candidates) {
    const std::size_t mine = turns[candidate.schedule]++;
    EXPECT_GE(mine, turn) << candidate.schedule->name << " is late with " << candidate.config.to_string();
    turn = mine;
    const std::vector<Config> own = candidate.schedule->configs(parsed("g64mb8ic64ih28oc64oh28kh3ph1"), h200);
    EXPECT_EQ(candidate.config, own[mine]);
  }
  EXPECT_GE(turns.size(), 2U);
}

TEST(Candidates, CapabilityIsChecked) {
  const ConvProblem problem = parsed("g8ic8ih9oc8oh9kh3ph1");
  for (const DeviceInfo& info : {device("old", "cuda", 75, 40), device("MI300X", "rocm", 0, 304)}) {
    const CandidateSet set = candidates(problem, info, {}, {});
    EXPECT_TRUE(set.candidates.empty());
    EXPECT_EQ(set.refusals.size(), all_schedules().size());
    EXPECT_NE(set.refusals.front().reason.find("needs 80"), std::string::npos) << set.refusals.front().reason;
    EXPECT_EQ(base_schedule(problem, info), nullptr);
  }
}

TEST(Candidates, DigestsTellSchedulesAndSetsApart) {
  std::set<std::string> digests;
  for (const Schedule* schedule : all_schedules()) {
    EXPECT_TRUE(digests.insert(schedule->digest().hex()).second);
    EXPECT_EQ(find_schedule(schedule->name), schedule);
  }
  EXPECT_EQ(find_schedule("dw_nothing"), nullptr);
  const ConvProblem problem = parsed("g8ic8ih9oc8oh9kh3ph1");
  const CandidateSet all = candidates(problem, h200, {}, {});
  const std::vector<std::string> only = {"dw_flat"};
  EXPECT_EQ(all.digest(), candidates(problem, h200, {}, {}).digest());
  EXPECT_NE(all.digest(), candidates(problem, h200, only, {}).digest());
}

}  // namespace
}  // namespace sl::test
