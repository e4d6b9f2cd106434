#include "tarsus/io/text_number.hpp"

#include <gtest/gtest.h>

#include <clocale>
#include <cmath>
#include <limits>
#include <locale>

namespace tarsus {
namespace {

TEST(TextNumber, AcceptsWhatFilesWrite) {
  const std::pair<const char*, double> kGood[] = {{".5", .5},    {"5.", 5},        {"+1", 1},
                                                  {"+.5", .5},   {"-1e-3", -1e-3}, {"1E5", 1e5},
                                                  {" \n7\t", 7}, {"0e-400", 0},    {"4.9e-324", 4.9e-324},
                                                  {"-0", -0.0}};
  for (const auto& [text, value] : kGood) {
    const Parsed<double> parsed = parse_number(text);
    EXPECT_TRUE(parsed) << text << parsed.error;
    EXPECT_EQ(parsed.value, value) << text;
  }
  EXPECT_TRUE(std::signbit(parse_number("-0").value));
}

TEST(TextNumber, RefusesWithTheValueAndTheReason) {
  const std::pair<const char*, const char*> kBad[] = {
      {"nan", "not a finite"},    {"-nan", "not a finite"}, {"inf", "not a finite"}, {"-infinity", "not a finite"},
      {"1e400", "range"},         {"1e-400", "range"},      {"0x10", "hexadecimal"}, {"1,5", "commas"},
      {"1.0f", "not a number"},   {"1e", "not a number"},   {".", "not a number"},   {"+", "not a number"},
      {"++1", "not a number"},    {"+-1", "not a number"},  {"", "empty"},           {"1 2", "not one number"},
      {"1.5abc", "not a number"}, {"--1", "not a number"},  {"١", "not a number"}};
  for (const auto& [text, reason] : kBad) {
    const Parsed<double> parsed = parse_number(text);
    EXPECT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error.find(reason), std::string::npos) << text << ": " << parsed.error;
  }
}

TEST(TextNumber, InfinityOnlyWhereAllowed) {
  EXPECT_EQ(parse_number("inf", Infinities::allow).value, std::numeric_limits<double>::infinity());
  EXPECT_FALSE(parse_number("nan", Infinities::allow));
}

TEST(TextNumber, CountsOfLists) {
  EXPECT_EQ(parse_numbers(" 1\n2\t3 ").value, (std::vector<double>{1, 2, 3}));
  EXPECT_NE(parse_numbers("1 2", Count::exactly(3)).error.find("has 2 numbers, expected 3"), std::string::npos);
  EXPECT_NE(parse_numbers("1 2 3 4", Count::exactly(3)).error.find("has 4 numbers, expected 3"), std::string::npos);
  EXPECT_NE(parse_numbers("", Count::between(1, 3)).error.find("has 0 numbers, expected 1 to 3"), std::string::npos);
  EXPECT_NE(parse_numbers("1 x 3").error.find("'x'"), std::string::npos);
  EXPECT_TRUE(parse_numbers(""));
}

TEST(TextNumber, WholeNumbers) {
  EXPECT_EQ(parse_integer("3").value, 3);
  EXPECT_EQ(parse_integer("3.0").value, 3);
  EXPECT_EQ(parse_integer("-2147483648").value, -2147483648LL);
  for (const char* text : {"3.5", "2147483648", "1e10", "x", ""}) EXPECT_FALSE(parse_integer(text)) << text;
  EXPECT_EQ(parse_integers("1 -2 3").value, (std::vector<int>{1, -2, 3}));
}

TEST(TextNumber, WordsOfTruth) {
  EXPECT_TRUE(parse_bool("true").value);
  EXPECT_FALSE(parse_bool(" true "));  // MuJoCo's words have no blanks around them
  EXPECT_FALSE(parse_bool("false").value);
  EXPECT_FALSE(parse_bool("True"));
  EXPECT_FALSE(parse_bool("1"));
}

TEST(TextNumber, LocaleWithCommasChangesNothing) {
  struct Commas : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
  };
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new Commas));
  const std::string c_before = std::setlocale(LC_ALL, nullptr);
  std::setlocale(LC_ALL, "de_DE.UTF-8");  // where it is installed, for C's functions too
  EXPECT_EQ(parse_number("1.5").value, 1.5);
  EXPECT_FALSE(parse_number("1,5"));
  std::setlocale(LC_ALL, c_before.c_str());
  std::locale::global(before);
}

TEST(TextNumber, QuotesForMessages) {
  EXPECT_EQ(quote("a\x01z"), "'a\\x01z'");
  EXPECT_EQ(quote(std::string(100, 'x')), "'" + std::string(40, 'x') + "…'");
  const std::string cut = quote(std::string(39, 'x') + "éé");  // é has two bytes: the first would be cut in half
  EXPECT_EQ(cut, "'" + std::string(39, 'x') + "…'");
}

}  // namespace
}  // namespace tarsus
