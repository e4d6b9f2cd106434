// tarsus map: matches a clip's skeleton to a model and reports how well the motion fits.
#include <fmt/core.h>

#include <filesystem>
#include <memory>
#include <optional>

#include "command.hpp"
#include "tarsus/control/retarget.hpp"
#include "tarsus/io/clip_file.hpp"
#include "tarsus/io/clip_mapping.hpp"
#include "tarsus/io/output_file.hpp"

namespace tarsus::app {

namespace {

struct Map {
  std::string clip, model, mapping, out, clip_out;
  bool json = false;
  ReadOptions options;
};

nlohmann::json to_json(const ClipMapping& mapping, const RetargetReport& r, const MotionClip& moved,
                       const Model& model) {
  nlohmann::json points = nlohmann::json::object();
  for (const PointMapping& p : mapping.points)
    points[p.point] = {{"from", p.from}, {"body", p.body}, {"tip", p.tip}, {"sure", p.sure}};
  int driven = 0;
  for (int j = 0; j < model.njoint(); ++j) driven += moved.find(joint_label(model, j)) != nullptr;
  return {{"confidence", confidence(mapping)},
          {"driven", driven},
          {"joints", model.njoint()},
          {"points", points},
          {"up", axis_name(r.up)},
          {"scale", r.scale},
          {"direction_error_degrees",
           {{"mean", r.direction_error * 180 / kPi}, {"worst", r.direction_worst * 180 / kPi}, {"segment", r.worst}}},
          {"stances", r.stances},
          {"slide_m", {{"mean", r.slide_mean}, {"max", r.slide_max}}},
          {"sink_m", r.sink_max}};
}

void execute(const Map& map) {
  check_apart({{"--out", map.out}, {"--clip-out", map.clip_out}},
              {{"the clip", map.clip}, {"the model", map.model}, {"--mapping", map.mapping}});
  for (const std::string& file : {map.out, map.clip_out}) {
    if (!file.empty()) check_output(file);
  }
  const Model model = load_model(map.model, map.options, map.json);
  const MotionClip clip = read_clip(map.clip);
  ClipMapping mapping = map.mapping.empty() ? map_skeleton(model, clip) : read_clip_mapping(map.mapping);
  if (mapping.points.empty()) throw InputError(Location{map.mapping, 0, 0, {}}, "expected a mapping with \"points\"");
  const Retargeted moved = retarget(model, clip, mapping);
  mapping.up = moved.report.up, mapping.forward = moved.report.forward;
  if (!map.out.empty()) write_file(map.out, write_clip_mapping(mapping));
  const nlohmann::json json = to_json(mapping, moved.report, moved.clip, model);
  if (map.json) {
    print_json(json);
  } else {
    fmt::print("  {:<16}{:<28}{:<32}sure\n", "point", "of the clip", "of the model");
    for (const PointMapping& p : mapping.points)
      fmt::print("  {:<16}{:<27} {:<31} {:.2f}\n", p.point, p.from, p.body + (p.tip ? " (far end)" : ""), p.sure);
    fmt::print("confidence {:.2f}; drives {} of {} joints; up in the clip is {}\n{}\n", confidence(mapping),
               json["driven"].get<int>(), model.njoint(), axis_name(moved.report.up), text(moved.report));
  }
  if (map.mapping.empty()) {
    if (const std::optional<Diagnostic> doubt = check_match(mapping)) tell("{}\n", doubt->text());
  }
  if (!map.clip_out.empty()) write_file(map.clip_out, write_clip(moved.clip));
}

}  // namespace

void add_map_command(CLI::App& app) {
  auto map = std::make_shared<Map>();
  CLI::App* command = app.add_subcommand("map", "Match a clip's skeleton to a humanoid model, and retarget the clip");
  command->add_option("clip", map->clip, "Clip with a skeleton: BVH, DeepMimic's humanoid, or another")->required();
  command->add_option("model", map->model, "MJCF or URDF file")->required();
  command->add_option("--mapping", map->mapping, "Use this mapping file instead of finding a mapping");
  command->add_option("--out", map->out, "Write the mapping to this file (JSON), to keep or edit it");
  command->add_option("--clip-out", map->clip_out, "Write the retargeted motion to this file, as a clip of this model");
  command->add_flag("--json", map->json, "One JSON object instead of the table");
  add_read_options(*command, map->options);
  command->footer(
      "Finds hips, knees, ankles, shoulders and other joints by the names that Mixamo, CMU, DAZ, LAFAN1, "
      "SMPL, Blender, Unreal, MVN and\n"
      "Biovision use, otherwise by the positions of the ends of the limbs. Then fits the motion frame by "
      "frame: it keeps the directions\n"
      "of the bones and the model's lengths, and feet neither slide nor sink. If the skeletons do not seem "
      "to match (confidence under\n"
      "0.3), the exit status is 1 and no clip is written, unless --mapping names a file that matches "
      "them.\n"
      "\n"
      "  tarsus map walk.bvh models/humanoid.xml\n"
      "  tarsus map walk.bvh models/humanoid.xml --out walk_map.json --clip-out walk.json\n"
      "  tarsus run models/humanoid.xml --clip walk.json                      follows what --clip-out "
      "wrote\n"
      "\n"
      "tarsus run --clip walk.bvh retargets automatically where no mapping file fits the clip's skeleton. "
      "CMU's skeletons have mapping\n"
      "files, which copy joint angles unchanged. More: docs/clips.md.");
  command->callback([map] { execute(*map); });
}

}  // namespace tarsus::app
