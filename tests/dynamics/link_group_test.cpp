// Groups of links that an inward pass treats together: they contain all links, tips first, and only independent ones.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/random_model.hpp"
#include "tarsus/io/model_file.hpp"

namespace tarsus::test {
namespace {

void expect_sound(const Model& model) {
  const ModelView<double> view = model.view<double>();
  std::vector<int> group_of(std::size_t(view.nlink), -1);
  for (int g = 0; g < view.ninward; ++g) {
    const LinkGroup& group = view.inward[g];
    ASSERT_GE(group.count, 1);
    ASSERT_LE(group.count, LinkGroup::kLinks);
    const JointType type = view.link[group.link[0]].joint;
    if (type == JointType::free || type == JointType::slide) {
      ASSERT_EQ(group.count, 1);
    }
    for (int k = 0; k < LinkGroup::kLinks; ++k) {
      const int i = group.link[k];
      if (k >= group.count) {
        ASSERT_EQ(i, group.link[0]);
        continue;
      }
      ASSERT_EQ(group_of[i], -1) << "link " << i << " twice";
      ASSERT_EQ(view.link[i].joint, type);
      group_of[i] = g;
    }
  }
  for (int i = 0; i < view.nlink; ++i) {
    ASSERT_GE(group_of[i], 0) << "link " << i << " in no group";
    if (view.link[i].parent >= 0) {
      ASSERT_LT(group_of[i], group_of[view.link[i].parent]);
    }
  }
}

TEST(LinkGroups, HoldEveryLinkOnceBehindAllThatRideOnIt) {
  for (unsigned seed = 0; seed < 300; ++seed) expect_sound(random_tree(seed, {.bodies = 1 + int(seed % 40)}));
}

TEST(LinkGroups, LimbsOfTheHumanoidGoSideBySide) {
  const Model model = compile(read_model(std::string(TARSUS_SOURCE_DIR) + "/models/humanoid.xml", {}));
  expect_sound(model);
  const ModelView<double> view = model.view<double>();
  std::vector<int> sizes;
  for (int g = 0; g < view.ninward; ++g) sizes.push_back(view.inward[g].count);
  // Head and feet; knees and elbows; hips and shoulders; chest; root.
  EXPECT_EQ(sizes, (std::vector<int>{3, 4, 4, 1, 1}));
}

}  // namespace
}  // namespace tarsus::test
