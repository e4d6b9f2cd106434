// The walk over <worldbody>: bodies, frames, replicas, attached models. It is a loop with an explicit stack, so that no
// nesting can overflow the call stack.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "io/mjcf/builder.hpp"

namespace tarsus::mjcf {
namespace {

constexpr std::size_t kMostElements = 500'000;
constexpr int kMostReplicas = 100'000;
constexpr int kMostAttachLevels = 20;

int count_of(const XmlElement& replicate) { return parse_integer(replicate.attribute("count").value_or("1")).value; }

/// What the names in a replica end with. All suffixes have the same width: 00 … 17.
std::string replica_suffix(const XmlElement& replicate, int count, int replica) {
  return replicate.text("sep") + fmt::format("{:0{}}", replica, std::to_string(count).size());
}

/// Number of elements that a <replicate> makes, with all nested ones. Counting stops above kMostElements.
double expanded_size(const Source& source, const XmlElement& replicate) {
  const auto count = [](const XmlElement& e) { return e.is("replicate") ? std::max(1, count_of(e)) : 1; };
  std::vector<std::pair<XmlElement, double>> open{{replicate, count(replicate)}};
  double sum = 0;
  while (!open.empty() && sum <= kMostElements) {
    const auto [e, copies] = open.back();
    open.pop_back();
    sum += copies;
    for (const XmlElement& child : source.items(e)) open.emplace_back(child, copies * count(child));
  }
  return sum;
}

}  // namespace

void Builder::walk(const Scope& scope) {
  std::vector<XmlElement> worlds;
  for (const XmlElement& e : scope.source->items(scope.source->root())) {
    if (e.is("worldbody")) worlds.push_back(e);
  }
  for (const XmlElement& world : worlds) {
    Task task{world, scope, 0, {}, &scope.source->main_defaults(), -1};
    world.mark_all_children();
    world.report_unread(Severity::error);
    push_children(world, task);
    while (!tasks_.empty()) {
      const Task next = std::move(tasks_.back());
      tasks_.pop_back();
      visit(next);
    }
  }
}

void Builder::push(const std::vector<XmlElement>& elements, const Task& like) {
  for (auto e = elements.rbegin(); e != elements.rend(); ++e) {
    Task task = like;
    task.element = *e;
    task.replica = -1;
    tasks_.push_back(std::move(task));
  }
}

void Builder::push_children(const XmlElement& parent, const Task& like) {
  push(like.scope.source->items(parent), like);
}

void Builder::count_element(const XmlElement& e) {
  if (++elements_ > kMostElements) {
    throw InputError(
        e.where(), fmt::format("the model has more than {} elements: is a replicate count too large?", kMostElements));
  }
}

void Builder::visit(const Task& task) {
  const XmlElement& e = task.element;
  count_element(e);
  if (e.is("body"))
    open_body(task);
  else if (e.is("frame"))
    open_frame(task);
  else if (e.is("replicate"))
    task.replica < 0 ? open_replicate(task) : open_replica(task);
  else if (e.is("attach"))
    attach(task);
  else if (e.is("joint") || e.is("freejoint"))
    add_joint(task);
  else if (e.is("geom"))
    add_geom(task);
  else if (e.is("site"))
    add_site(task);
  else if (e.is("inertial"))
    add_inertial(task);
  else if (e.is("camera") || e.is("light"))
    add_camera_or_light(task);
  else if (e.is("plugin"))
    e.warn("<plugin> is not supported and has no effect");
  else if (e.is("flexcomp"))
    e.warn("<flexcomp> is not simulated: its body, vertices and constraints are left out");
  else if (e.is("composite"))
    e.error("<composite> is not supported, nor is it in MuJoCo 4: write the bodies, or use <replicate>");
  else
    e.error(fmt::format("<{}> is not an element of <body>", e.name()));
}

void Builder::open_body(const Task& task) {
  const XmlElement& e = task.element;
  const Source& source = *task.scope.source;
  BodySpec body(task.scope.naming.of(e.text("name")));
  body.where = e.where();
  body.parent = task.body;
  Pose pose;
  e.read("pos", pose.position);
  read_orientation(e, source.compiler(), pose.orientation);
  pose = is_identity(task.frame) ? pose : compose(task.frame, pose);
  body.position = pose.position;
  body.orientation = pose.orientation;
  e.read("mocap", body.mocap);
  if (body.mocap && task.body != 0) e.error("a mocap body must be a child of the world", "mocap");
  e.read("gravcomp", body.gravity_compensation);
  e.read("user", body.user);
  check_value(e, "sleep", "auto|never|allowed|init");  // hints to MuJoCo's compiler
  check_value(e, "fuse", "false|auto"), check_value(e, "simple", "false|auto");
  const Defaults& defaults = source.defaults(e, *task.defaults, "childclass");
  e.mark_all_children();
  e.report_unread(Severity::error);
  Task inside = add_body(std::move(body), e, task);
  inside.defaults = &defaults;
  push_children(e, inside);
}

/// Adds a body and returns the task for its children.
Builder::Task Builder::add_body(BodySpec body, const XmlElement& e, const Task& task) {
  declare(Kind::body, body.name, e, &task.scope);
  spec_.bodies.push_back(std::move(body));
  body_compiler_.push_back(&task.scope.source->compiler());
  explicit_inertia_.push_back(false);
  origins_.bodies.push_back({origin(e, task.scope), {}});
  Task inside = task;
  inside.body = static_cast<int>(spec_.bodies.size()) - 1;
  inside.frame = {};
  return inside;
}

void Builder::open_frame(const Task& task) {
  const XmlElement& e = task.element;
  Task inside = task;
  Pose pose;
  e.read("pos", pose.position);
  read_orientation(e, task.scope.source->compiler(), pose.orientation);
  declare(Kind::frame, task.scope.naming.of(e.text("name")), e);
  inside.frame = compose(task.frame, pose);
  inside.defaults = &task.scope.source->defaults(e, *task.defaults, "childclass");
  e.mark_all_children();
  e.report_unread(Severity::error);
  push_children(e, inside);
}

void Builder::open_replicate(const Task& task) {
  const XmlElement& e = task.element;
  int count = 0;
  Vec3d offset{0, 0, 0};
  std::array<double, 3> angles{};
  const bool counted = require(e, "count") && e.read("count", count);
  e.read("offset", offset);
  e.read("euler", angles);
  e.ignore({"sep", "prefix"});  // MuJoCo 4 accepts a prefix and ignores it
  const Defaults& defaults = task.scope.source->defaults(e, *task.defaults, "childclass");
  e.mark_all_children();
  e.report_unread(Severity::error);
  if (!counted) return;
  if (count < 0 || count > kMostReplicas) {
    return e.error(fmt::format("attribute 'count' is {}, expected 0 to {}", count, kMostReplicas), "count");
  }
  if (task.scope.naming.suffix.empty() && expanded_size(*task.scope.source, e) > kMostElements) {
    return e.error(fmt::format("replicas would make more than {} elements", kMostElements), "count");
  }
  std::vector<Pose> poses(static_cast<std::size_t>(count));
  for (std::size_t i = 1; i < poses.size(); ++i) {  // i times the angles, not i times the rotation
    const double times = static_cast<double>(i);
    poses[i].position = compose(poses[i - 1], {offset, {}}).position;
    poses[i].orientation =
        from_euler({times * angles[0], times * angles[1], times * angles[2]}, task.scope.source->compiler());
  }
  for (int i = count - 1; i >= 0; --i) {
    Task replica = task;
    replica.replica = i;
    replica.defaults = &defaults;
    replica.frame = compose(task.frame, poses[static_cast<std::size_t>(i)]);
    replica.scope.naming.suffix = replica_suffix(e, count, i) + task.scope.naming.suffix;  // innermost first
    tasks_.push_back(std::move(replica));
  }
}

void Builder::open_replica(const Task& task) {
  Task inside = task;
  enter_replica(inside.scope);
  push_children(task.element, inside);
}

/// Makes a new replica, with the suffix that the scope has, the scope's innermost one.
void Builder::enter_replica(Scope& scope) {
  replicas_.all.push_back({scope.naming.suffix, scope.replica, ++replicas_.opened});
  scope.replica = static_cast<int>(replicas_.all.size()) - 1;
}

/// The source of a <model> asset, which is found by the asset's name or, if there is none, by the file's model name,
/// as in MuJoCo.
const Source* Builder::attached_source(const XmlElement& e, const Scope& scope, const std::string& model) {
  for (const XmlElement& asset : scope.source->section("asset")) {
    if (!asset.is("model")) continue;
    std::string name, file;
    const bool named = asset.read("name", name);
    if (!asset.read("file", file)) continue;
    if (named && name != model) continue;
    const Source* source = load_source(asset, scope.source->model_path(file, asset.where()));
    if (named || (source && source->root().text("model") == model)) return source;
  }
  e.error(fmt::format("there is no <model> named {}", quote(model)), "model");
  return nullptr;
}

const Source* Builder::load_source(const XmlElement& asset, const std::filesystem::path& path) {
  const auto [place, is_new] = sources_.try_emplace(path.lexically_normal().string());
  if (!is_new) return place->second.get();
  if (options_.disable_includes) return asset.error("<model> is not allowed here", "file"), nullptr;
  try {
    XmlDocument document = XmlDocument::load(path, sink_, {}, asset.where("file"));
    if (!document.root().is("mujoco")) {
      asset.error(fmt::format("the root element of the model is <{}>; only MJCF's <mujoco> can be attached",
                              document.root().name()),
                  "file");
      return nullptr;
    }
    place->second = std::make_unique<Source>(std::move(document), path.parent_path(), options_, sink_);
    place->second->follow(*body_compiler_.front());
  } catch (const InputError& error) {
    for (const Diagnostic& d : error.diagnostics()) sink_.add(d.severity, d.where, d.message);
  }
  return place->second.get();
}

namespace {

/// A body or frame that is attached, the childclass there, and the <replicate>s around it, outermost first.
struct Part {
  XmlElement element;
  const Defaults* defaults = nullptr;
  std::vector<XmlElement> replicates;

  /// The suffixes of the replicas that give the element this name, outermost first; none if it has another name.
  std::optional<std::vector<std::string>> suffixes(std::string_view name) const {
    const std::string own = element.text("name");
    if (own.empty() || !name.starts_with(own)) return std::nullopt;
    name.remove_prefix(own.size());
    std::vector<std::string> out;
    for (auto e = replicates.rbegin(); e != replicates.rend(); ++e) {
      const int count = count_of(*e);
      const std::string first = replica_suffix(*e, count, 0), given(name.substr(0, first.size()));
      const int replica =
          parse_integer(std::string_view(given).substr(std::min(given.size(), e->text("sep").size()))).value;
      if (replica < 0 || replica >= count || given != replica_suffix(*e, count, replica)) return std::nullopt;
      out.insert(out.begin(), given);
      name.remove_prefix(given.size());
    }
    if (!name.empty()) return std::nullopt;
    return out;
  }
};

/// The body or frame with that name, and the suffixes of the replicas that it is in.
std::pair<Part, std::vector<std::string>> find_part(const Source& source, std::string_view tag,
                                                    const std::string& name) {
  std::vector<Part> open;
  for (const XmlElement& e : source.items(source.root())) {
    if (e.is("worldbody")) open.push_back({e, &source.main_defaults(), {}});
  }
  while (!open.empty()) {
    const Part part = std::move(open.back());
    open.pop_back();
    if (part.element.is(tag)) {
      if (const auto suffixes = part.suffixes(name)) return {part, *suffixes};
    }
    std::vector<XmlElement> replicates = part.replicates;
    if (part.element.is("replicate")) replicates.push_back(part.element);
    const Defaults& inside = source.defaults(part.element, *part.defaults, "childclass");
    for (const XmlElement& child : source.items(part.element)) {
      if (child.is("body") || child.is("frame") || child.is("replicate")) open.push_back({child, &inside, replicates});
    }
  }
  return {};
}

}  // namespace

void Builder::attach(const Task& task) {
  const XmlElement& e = task.element;
  std::string model, body, frame, prefix;
  const bool named = require(e, "model") && e.read("model", model);
  const bool has_body = e.read("body", body), has_frame = e.read("frame", frame);
  if (!e.attribute("prefix")) e.error("<attach> needs the attribute 'prefix'");  // it may be empty
  e.read("prefix", prefix);
  e.report_unread(Severity::error);
  if (!named) return;
  if (has_body && has_frame) return e.error("<attach> takes a body or a frame, not both");
  const Source* source = attached_source(e, task.scope, model);
  if (!source) return;
  if (source->has_section("option")) e.warn("the options of attached models have no effect");
  if (task.scope.level >= kMostAttachLevels) {
    return e.error(
        fmt::format("models attach one another more than {} levels deep: is there a cycle?", kMostAttachLevels),
        "model");
  }
  Task inside = task;
  inside.scope = {source,
                  {task.scope.naming.prefix + prefix, task.scope.naming.suffix},
                  task.scope.level + 1,
                  task.scope.replica,
                  ++replicas_.opened};
  inside.defaults = &source->main_defaults();
  inside.replica = -1;
  inside.scope.world_is_body = has_body && body == "world";
  if (assets_read_.insert({source, inside.scope.naming.prefix}).second)
    read_settings(inside.scope), read_assets(inside.scope);
  attachments_.push_back(inside.scope);
  if (inside.scope.world_is_body) {
    BodySpec world(inside.scope.naming.of("world"));
    world.where = e.where(), world.parent = task.body;
    world.position = task.frame.position, world.orientation = task.frame.orientation;
    inside = add_body(std::move(world), e, inside);
  }
  if (inside.scope.world_is_body || (!has_body && !has_frame)) return push(source->section("worldbody"), inside);
  const auto [part, suffixes] = find_part(*source, has_body ? "body" : "frame", has_body ? body : frame);
  if (!part.element)
    return e.error(fmt::format("model {} has no {} named {}", quote(model), has_body ? "body" : "frame",
                               quote(has_body ? body : frame)));
  for (const std::string& suffix : suffixes) {
    inside.scope.naming.suffix = suffix + inside.scope.naming.suffix;
    enter_replica(inside.scope);
  }
  inside.defaults = part.defaults;
  inside.element = part.element;
  tasks_.push_back(std::move(inside));
}

}  // namespace tarsus::mjcf
