#include "tarsus/io/gains_text.hpp"

#include <charconv>
#include <filesystem>

#include "json_text.hpp"
#include "tarsus/io/xml.hpp"

namespace tarsus {

namespace {

constexpr const char* kExpected = "KP,KD, KP,KD,ROOT_KP,ROOT_KD or a file that exists";

std::vector<double> numbers(const std::string& text) {
  std::vector<double> out;
  const char *p = text.data(), *end = p + text.size();
  while (p < end) {
    double x = 0;
    const auto [next, error] = std::from_chars(p, end, x);
    if (error != std::errc() || (next != end && *next != ',')) {
      throw ValueError("gains", "\"" + text + "\"", kExpected);
    }
    out.push_back(x);
    p = next == end ? end : next + 1;
  }
  if (out.size() != 2 && out.size() != 4) throw ValueError("gains", "\"" + text + "\"", kExpected);
  return out;
}

void set(Drives& drives, const Joint& joint, const std::vector<double>& gains) {
  for (int k = 0; k < joint.nv(); ++k) drives.kp[joint.qvel + k] = gains[0], drives.kd[joint.qvel + k] = gains[1];
}

Drives from_file(const Model& model, const std::string& path) {
  const JsonDocument document(read_file(path, JsonLimits{}.bytes), path);
  const JsonValue& json = document.root();
  if (!json.is(JsonValue::Type::object))
    throw InputError(document.where(json), "expected an object {\"joint\": [KP, KD], …}");
  Drives drives = Drives::none(model);
  for (const Joint& joint : model.joints) {
    const JsonValue* gains = json.find(joint.name);
    if (!gains) gains = json.find(moves_freely(joint.type) ? "root" : "default");
    if (!gains) continue;
    if (!gains->is(JsonValue::Type::numbers) || gains->size() != 2)
      throw InputError(document.where(*gains, joint.name), "expected [KP, KD], two numbers");
    set(drives, joint, gains->numbers);
  }
  for (std::size_t i = 0; i < json.keys.size(); ++i) {
    const std::string& key = json.keys[i];
    if (key != "default" && key != "root" && model.find_joint(key) < 0)
      throw InputError(document.where(json.items[i], key), "the model has no joint named " + quote(key));
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
