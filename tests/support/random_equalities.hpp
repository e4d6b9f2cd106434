// Random constraint sets on a tree: every kind of row, between a link and the world, or two links of the same or
// different branches.
#pragma once

#include "support/random_model.hpp"
#include "tarsus/constraint/equality.hpp"

namespace tarsus::test {

struct EqualityOptions {
  int count = 3;        ///< constraints tried; those between bodies that cannot move against each other are left out
  int max_rows = 1000;  ///< constraints that would exceed it are left out
  bool user = true;
};

EqualitySet random_equalities(Random& random, const Model& model, const EqualityOptions& options = {});

}  // namespace tarsus::test
