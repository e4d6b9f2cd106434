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

/// Numbers of one link. T: R of a model, or a pack of worlds with their own masses and gravity.
template <class T>
struct HangingLink {
  T hangs;   ///< 1: what hangs on the joint may be too heavy for it; else 0
  T loose;   ///< 1: the loops on its tree leave it free to swing: loads, chains of free bodies, cables
  T weight;  ///< w = 1/√I of a joint that turns, I what it carries at rest; 0 for other joints
  T above;   ///< sum of the weights from here to the root, with its own
  T most;    ///< ¼ h² a that the step resolves [kg m²]
};
inline constexpr int kHangingNumbers = 5;  ///< of a link, in the order above

/// A table's numbers in the form that kernels take; null: the model's.
template <class R>
const HangingLink<R>* hanging_links(const WorldTable<R>& table) {
  return table.hanging.empty() ? nullptr : reinterpret_cast<const HangingLink<R>*>(table.hanging.data());
}

class EqualitySet;
struct RestingWorlds;
struct ReferenceMass;

template <class R>
class HangingLinks {
 public:
  /// @param equalities null: none; else they must outlive this object
  HangingLinks(const Model& model, double h, const EqualitySet* equalities);

  /// Whether something may hang on a chain too light for the step. If not, find() does nothing in worlds of the model.
  bool any() const { return some_; }
  /// Whether something could hang with other masses or more gravity, or loops hold something.
  bool possible() const { return possible_; }
  /// The inertia that the joints need in the step from data.qpos. Overwrites data.links().
  /// @param inertia [pack][nv][lane]; empty: none
  void find(const Model& model, BasicData<R>& data, AlignedVector<R>& inertia);

  std::span<const HangingLink<R>> links() const { return links_; }
  /// Those of worlds with their own masses and gravity [world][link].
  /// @param worlds overwritten  @param gravity [world] its length [m/s²]  @param masses [world][link]
  std::vector<HangingLink<double>> links(const Model& model, RestingWorlds& worlds, std::span<const double> gravity,
                                         std::span<const ReferenceMass> masses) const;

 private:
  std::vector<HangingLink<R>> links_;
  double h_;
  const EqualitySet* equalities_;
  bool some_ = false, possible_ = false;
};

extern template class HangingLinks<double>;
extern template class HangingLinks<float>;

}  // namespace tarsus
