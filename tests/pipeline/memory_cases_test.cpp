// What preparing a plan holds in memory.
#include "float_model.h"
#include "gearshift/prepare.h"

namespace gearshift {
namespace {

class MemoryCases : public FloatModel {
 protected:
  Result<Plan> plan(Session& session) const { return session.plan(session.registry()); }
};

TEST_F(MemoryCases, Case75OnlyThePlannedLayoutIsPacked) {
  const std::string stubs = GEARSHIFT_TEST_PLUGINS "/stub_plugin.so";
  // The reference reads the checkpoint's bytes; kernels with a layout of their own stand behind it, eligible and
  // unused.
  auto listed = Session::open(model(), options({{"plugin", stubs}, {"linear-backend", "bf16=reference"}}));
  ASSERT_TRUE(listed.ok()) << listed.error().message();
  const auto without = plan(*listed);
  ASSERT_TRUE(without.ok()) << without.error().message();
  const auto unpacked = prepare(listed->checkpoint(), without->layers[0], 1);
  ASSERT_TRUE(unpacked.ok());
  EXPECT_TRUE(unpacked->packed.empty());
  EXPECT_EQ(without->layers[0].decision->second_layout_bytes, 0u);

  auto asked = Session::open(model(), options({{"plugin", stubs}, {"linear-backend", "bf16=stub_right"}}));
  ASSERT_TRUE(asked.ok());
  const auto with = plan(*asked);
  ASSERT_TRUE(with.ok());
  const auto packed = prepare(asked->checkpoint(), with->layers[0], 1);
  ASSERT_TRUE(packed.ok());
  ASSERT_EQ(packed->packed.size(), 1u);
  const LayerSpec& layer = with->layers[0].layer;
  EXPECT_EQ(packed->packed[0].second.size(), static_cast<size_t>(layer.n * layer.k * 4));
  EXPECT_EQ(with->layers[0].decision->prepare_peak_bytes, static_cast<uint64_t>(layer.n * layer.k * 4))
      << "packed straight from the file";
}

}  // namespace
}  // namespace gearshift
