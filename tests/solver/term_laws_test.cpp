// The laws of many terms at once, against those of single terms (law_test.cpp has the definition).
#include "tarsus/solver/term_laws.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "solver/law.hpp"
#include "tarsus/solver/step_newton.hpp"

namespace tarsus::test {
namespace {

/// Terms of all laws in any order, which slide, stick, open, or carry nothing.
struct Terms {
  std::vector<Term> terms;
  std::vector<TermRow> rows;
  std::vector<double> free, u, y;

  Terms(std::mt19937& engine, int count, bool contacts_alone) {
    std::normal_distribution<double> normal;
    const auto uniform = [&](double a, double b) { return std::uniform_real_distribution<double>(a, b)(engine); };
    const auto chance = [&](double share) { return uniform(0, 1) < share; };
    for (int i = 0; i < count; ++i) {
      const int kind = contacts_alone ? 2 : int(uniform(0, 6));  // 2 and 3: contacts with three rows
      const int counts[] = {1, 3, 3, 3, 6, 4};
      Term term{kind == 0 ? Law::interval : kind == 1 ? Law::ball : Law::contact, int(rows.size()), counts[kind]};
      term.friction = chance(0.1) ? 0 : uniform(0.1, 1.5), term.torsional = uniform(0.1, 1),
      term.rolling = uniform(0.1, 1);
      term.lower = -uniform(0.1, 1), term.upper = uniform(0.1, 2);
      const bool directional = chance(0.1), nothing = chance(0.3);
      const double R = std::exp(uniform(-6, 1));
      for (int k = 0; k < term.nrow; ++k) {
        rows.push_back({k == 2 && !directional ? rows.back().compliance : std::exp(uniform(-6, 1)), normal(engine),
                        k == 0 ? 0 : normal(engine) * 0.1, std::exp(uniform(-1, 1))});
        if (kind == 1) rows.back().compliance = R;
        free.push_back(normal(engine)), u.push_back(normal(engine));
        y.push_back(nothing ? 0 : normal(engine) + (k == 0));
      }
      terms.push_back(term);
    }
  }
  StepProblem problem() const { return {terms, rows, free}; }
};

/// Equal to the single term's result to rounding: packs fuse multiplications with additions.
void expect_near(double a, double b, double size) { EXPECT_NEAR(a, b, 1e-11 * (1 + std::abs(size))); }

void expect_tangent(const Term& term, const Tangent& G, const Tangent& alone) {
  double size = 0;
  for (int r = 0; r < term.nrow; ++r) {
    for (int c = 0; c < term.nrow; ++c) size = std::max(size, std::abs(alone.at[r][c]));
  }
  EXPECT_EQ(G.open, alone.open);
  for (int r = 0; r < term.nrow; ++r) {
    for (int c = 0; c < term.nrow; ++c) expect_near(G.at[r][c], alone.at[r][c], size);
  }
}

double product(const Tangent& G, int row, int n, const double* x) {
  double sum = 0;
  for (int c = 0; c < n; ++c) sum += G.at[row][c] * x[c];
  return sum;
}

TEST(TermLaws, AreThoseOfEachTermAlone) {
  std::mt19937 engine{7};
  int opened = 0;
  for (int trial = 0; trial < 600; ++trial) {
    SCOPED_TRACE(trial);
    const Terms t(engine, trial % 13, trial % 3 == 0);  // whole groups of lanes, and a remainder
    const StepProblem problem = t.problem();
    const std::size_t n = t.rows.size();
    TermLaws laws;
    laws.sort(problem);
    std::vector<Tangent> tangents(t.terms.size());
    std::vector<double> carried(n), impulse(n);
    for (const int mode : {0, 1, 2}) {  // law; tangents of natural map, whole; for changes
      double sum = 0, expected = 0;
      if (mode == 0)
        laws.law(problem, t.y, tangents, carried);
      else
        sum = laws.tangents(problem, t.u, t.y, mode == 2, tangents, carried);
      laws.impulses(problem, tangents, carried, t.u, impulse);
      for (std::size_t i = 0; i < t.terms.size(); ++i) {
        const Term& term = t.terms[i];
        const int first = term.first_row;
        const TermRow* rows = &t.rows[first];
        Tangent alone{};
        double g[kTermRows], offset[kTermRows];
        if (mode == 0)
          term_law(term, rows, &t.y[first], kOwnNormal, g, &alone);
        else
          expected += natural_map(term, rows, kSlidingShare, &t.u[first], &t.y[first], &alone, g);
        expect_tangent(term, tangents[i], alone);
        opened += alone.open;
        for (int k = 0; k < term.nrow; ++k) {
          const double at =
              mode == 0 ? rows[k].target + rows[k].compliance * (rows[k].centre - t.y[first + k]) : t.u[first + k];
          offset[k] = at - t.free[first + k];
        }
        for (int k = 0; k < term.nrow; ++k) {
          const double more = mode == 2 ? 0 : product(alone, k, term.nrow, offset);
          const double less = product(alone, k, term.nrow, &t.u[first]);
          expect_near(carried[first + k], g[k] + more, std::abs(g[k]) + std::abs(more) + std::abs(less));
          expect_near(impulse[first + k], g[k] + more - less, std::abs(g[k]) + std::abs(more) + std::abs(less));
        }
      }
      expect_near(sum, expected, expected);
      if (mode > 0) expect_near(laws.map(problem, t.u, t.y), expected, expected);
    }
    double worst = 0, of_contacts = 0;
    for (const Term& term : t.terms) {
      const double miss = natural_residual(term, &t.rows[term.first_row], &t.u[term.first_row], &t.y[term.first_row]);
      worst = std::max(worst, miss);
      if (term.law == Law::contact) of_contacts = std::max(of_contacts, miss);
    }
    const TermResidual residual = laws.residual(problem, t.u, t.y);
    expect_near(residual.all, worst, worst), expect_near(residual.contacts, of_contacts, of_contacts);
  }
  EXPECT_GT(opened, 100);
}

/// A single non-finite number makes the residual non-finite.
TEST(TermLaws, ResidualIsNoNumberWhereOneOfThemIsNone) {
  std::mt19937 engine{8};
  const double none[] = {std::numeric_limits<double>::quiet_NaN(), kUnbounded, -kUnbounded};
  for (int trial = 0; trial < 300; ++trial) {
    Terms t(engine, 9, true);
    const std::size_t at = engine() % t.u.size();
    for (Term& term : t.terms) term.friction = 0.5, t.y[term.first_row] = 1;  // so that friction matters
    (trial % 2 ? t.u : t.y)[at] = none[trial % 3];
    TermLaws laws;
    laws.sort(t.problem());
    EXPECT_FALSE(std::isfinite(laws.residual(t.problem(), t.u, t.y).all)) << trial;
  }
}

}  // namespace
}  // namespace tarsus::test
