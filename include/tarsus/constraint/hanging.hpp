// What hangs on a light chain of links makes it stiff, as tension does with a string: a rope of n links of length l
// vibrates at up to 2 √(n g/l), and with a load faster still. Gravity at the start of the step drives vibrations that
// the step does not resolve. The implicit midpoint rule turns the stiffness into inertia of the joints, as for springs
// and loops (decision 418).
#pragma once

#include <span>
#include <vector>

#include "tarsus/dynamics/dynamics.hpp"

namespace tarsus {

inline constexpr double kUnresolved = 0.25;  ///< ¼ h² k relative to the inertia that a joint carries: h ω = 1

template <class R>
struct HangingLink {
  bool hangs;  ///< what hangs on the joint may be too heavy for it
  bool loose;  ///< the loops on its tree leave it free to swing: loads, chains of free bodies, cables
  R weight;    ///< w = 1/√I of a joint that turns, I what it carries at rest; 0 for other joints
  R above;     ///< sum of the weights from here to the root, with its own
  R most;      ///< ¼ h² a that the step resolves [kg m²]
};

class EqualitySet;

template <class R>
class HangingLinks {
 public:
  /// @param equalities null: none
  HangingLinks(const Model& model, double h, const EqualitySet* equalities);

  /// Whether something may hang on a chain too light for the step. If not, find() does nothing.
  bool any() const { return some_; }
  /// The inertia that the joints need in the step from data.qpos. Overwrites data.links().
  /// @param inertia [pack][nv][lane]; empty: none
  void find(const Model& model, BasicData<R>& data, AlignedVector<R>& inertia);

  std::span<const HangingLink<R>> links() const { return links_; }

 private:
  std::vector<HangingLink<R>> links_;
  R h_;
  bool some_ = false;
};

extern template class HangingLinks<double>;
extern template class HangingLinks<float>;

}  // namespace tarsus
