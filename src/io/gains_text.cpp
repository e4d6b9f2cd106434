#include "tarsus/io/gains_text.hpp"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace tarsus {

namespace {

using Json = nlohmann::json;

std::vector<double> numbers(const std::string& text) {
  std::vector<double> out;
  const char *p = text.data(), *end = p + text.size();
  while (p < end) {
    double x = 0;
    const auto [next, error] = std::from_chars(p, end, x);
    if (error != std::errc() || (next != end && *next != ',')) {
      throw InputError({"--gains", 0, 0, ""},
                       "\"" + text + "\" is neither KP,KD nor KP,KD,ROOT_KP,ROOT_KD nor a file that exists");
    }
    out.push_back(x);
    p = next == end ? end : next + 1;
  }
  if (out.size() != 2 && out.size() != 4) {
    throw InputError({"--gains", 0, 0, ""}, "\"" + text + "\" has " + std::to_string(out.size()) +
                                                " numbers, expected KP,KD or KP,KD,ROOT_KP,ROOT_KD");
  }
  return out;
}

std::array<double, 2> pair(const std::string& file, const std::string& key, const Json& value) {
  if (!value.is_array() || value.size() != 2 || !value[0].is_number() || !value[1].is_number()) {
    throw InputError({file, 0, 0, "/" + key}, "expected [KP, KD], two numbers");
  }
  return {value[0].get<double>(), value[1].get<double>()};
}

void set(Drives& drives, const Joint& joint, const std::array<double, 2>& gains) {
  for (int k = 0; k < joint.nv(); ++k) drives.kp[joint.qvel + k] = gains[0], drives.kd[joint.qvel + k] = gains[1];
}

Drives from_file(const Model& model, const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in && text.empty()) throw InputError({path, 0, 0, ""}, "cannot be read");
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& e) {
    throw InputError({path, 0, 0, ""}, e.what());
  }
  if (!json.is_object()) throw InputError({path, 0, 0, ""}, "expected an object {\"joint\": [KP, KD], …}");
  Drives drives = Drives::none(model);
  for (const Joint& joint : model.joints) {
    const std::string fallback = moves_freely(joint.type) ? "root" : "default";
    const std::string& key = json.contains(joint.name) ? joint.name : fallback;
    if (json.contains(key)) set(drives, joint, pair(path, key, json[key]));
  }
  for (const auto& [key, value] : json.items()) {
    if (key != "default" && key != "root" && model.find_joint(key) < 0) {
      throw InputError({path, 0, 0, "/" + key}, "the model has no joint of that name");
    }
  }
  return drives;
}

}  // namespace

Drives read_gains(const Model& model, const std::string& text_or_file) {
  if (std::filesystem::is_regular_file(text_or_file)) {
    Drives drives = from_file(model, text_or_file);
    drives.check(model);
    return drives;
  }
  const std::vector<double> n = numbers(text_or_file);
  return n.size() == 2 ? Drives::uniform(model, n[0], n[1], n[0], n[1])
                       : Drives::uniform(model, n[0], n[1], n[2], n[3]);
}

}  // namespace tarsus
