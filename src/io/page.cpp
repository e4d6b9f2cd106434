#include "tarsus/io/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "base64.hpp"
#include "tarsus/dynamics/dynamics.hpp"
#include "tarsus/dynamics/tendon_pull.hpp"
#include "tarsus/io/output_file.hpp"
#include "tarsus/math/rotation.hpp"
#include "tarsus/model/data.hpp"

namespace tarsus {

namespace {

constexpr double kFrameSpacing = 1.0 / 60;
constexpr int kPose = 7, kSegment = 6, kContact = 10;
constexpr std::size_t kMostArrows = 400;  ///< a frame with more contacts has no arrows: they would hide the bodies
/// The place of the recording in the page.
constexpr std::string_view kRoom = "<script id=\"recording\" type=\"application/json\">null</script>";

/// Places the mocap bodies at the poses given for all states, or at those of state i of n.
void place_mocap(Data& data, const MocapPoses& mocap, std::size_t i = 0, std::size_t n = 1) {
  const auto take = [&](const char* name, std::span<const double> from, AlignedVector<double>& to) {
    if (from.empty()) return;
    const bool each = from.size() != to.size();
    check_size(name, from.size(), (each ? n : 1) * to.size());
    std::copy_n(from.begin() + std::ptrdiff_t(each ? i * to.size() : 0), to.size(), to.begin());
  };
  take("mocap_pos", mocap.position, data.mocap_pos), take("mocap_quat", mocap.orientation, data.mocap_quat);
}

void pose_row(const Model& model, Data& data, std::span<const double> qpos, float* out) {
  kinematics<double>(model, data, qpos);
  for (int i = 0; i < model.nbody(); ++i) {
    const Transformd X = body_pose<double>(model, data, i);
    const Quatd q = quaternion(X.R);
    const double row[kPose] = {X.p.x, X.p.y, X.p.z, q.w, q.x, q.y, q.z};
    for (const double x : row) *out++ = float(x);
  }
}

/// Appends the segments of all tendons; kinematics() left them in `data`.
void add_segments(const Model& model, const TendonSet& tendons, const Data& data, std::vector<float>& out) {
  std::vector<TendonSegment> path;
  for (int t = 0; t < tendons.size(); ++t) tendon_path(model, tendons[t], data.links(), path);
  for (const TendonSegment& s : path) {
    for (const double x : {s.from.x, s.from.y, s.from.z, s.to.x, s.to.y, s.to.z}) out.push_back(float(x));
  }
}

/// Escapes "<" in JSON for a script element. It could end the element, or begin a comment that hides its end.
std::string in_script(std::string json) {
  for (std::size_t at = 0; (at = json.find('<', at)) != std::string::npos; ++at) json.replace(at, 1, "\\u003c");
  return json;
}

}  // namespace

void body_poses(const Model& model, std::span<const double> qpos, std::span<float> poses, const MocapPoses& mocap) {
  const std::size_t nq = std::size_t(model.nq), row = std::size_t(kPose) * model.nbody(), n = poses.size() / row;
  check_size("poses", poses.size(), n * row), check_size("qpos", qpos.size(), n * nq);
  Data data(model);
  for (std::size_t i = 0; i < n; ++i) {
    place_mocap(data, mocap, i, n);
    pose_row(model, data, qpos.subspan(i * nq, nq), poses.data() + i * row);
  }
}

std::vector<float> tendon_segments(const Model& model, std::span<const double> qpos, const MocapPoses& mocap) {
  check_size("qpos", qpos.size(), std::size_t(model.nq));
  std::vector<float> out;
  if (model.spec.tendons.empty()) return out;
  const TendonSet tendons = TendonSet::of(model);
  if (!tendons.spatial()) return out;
  Data data(model);
  place_mocap(data, mocap);
  kinematics<double>(model, data, qpos);
  add_segments(model, tendons, data, out);
  return out;
}

struct PageWriter::State {
  const Model& model;
  Data data;
  TendonSet tendon_set;
  std::string scene;
  std::vector<float> time, poses, ghost, tendons, error, kinetic, potential;
  std::vector<int> tendon_start{0};
  struct Contacts {
    std::vector<float> rows, force, penetration, residual, iterations;
    std::vector<int> start{0};
  } contacts;
  /// The latest frame while it is not kept. The next frame may replace it.
  struct Last {
    double time;
    std::vector<double> qpos, qvel, target;
    double error;
    std::optional<PageContacts> contacts;
  };
  std::optional<Last> last;

  explicit State(const Model& m) : model(m), data(m), tendon_set(TendonSet::of(m)), scene(in_script(scene_json(m))) {}

  void add(std::vector<float>& rows, std::span<const double> qpos) {
    const std::size_t begin = rows.size();
    rows.resize(begin + std::size_t(kPose) * model.nbody());
    pose_row(model, data, qpos, rows.data() + begin);
  }
  void add(const PageContacts& now) {
    double sum = 0;
    for (std::size_t i = 0; i + kContact <= now.rows.size(); i += kContact)
      sum += norm(Vec3d{now.rows[i + 3], now.rows[i + 4], now.rows[i + 5]});
    if (now.rows.size() <= kMostArrows * kContact)
      contacts.rows.insert(contacts.rows.end(), now.rows.begin(), now.rows.end());
    contacts.start.push_back(int(contacts.rows.size() / kContact));
    contacts.force.push_back(float(sum)), contacts.penetration.push_back(float(now.penetration));
    contacts.residual.push_back(float(now.residual)), contacts.iterations.push_back(float(now.iterations));
  }
  void keep_last() {
    if (!last) return;
    if (!last->target.empty()) add(ghost, last->target), error.push_back(float(last->error));
    if (last->contacts) add(*last->contacts);
    add(poses, last->qpos);
    kinematics<double>(model, data, last->qpos, last->qvel);
    add_segments(model, tendon_set, data, tendons);
    tendon_start.push_back(int(tendons.size() / kSegment));
    const Energy e = energy<double>(model, data, last->qpos, last->qvel);
    kinetic.push_back(float(e.kinetic)), potential.push_back(float(e.potential + e.spring));
    time.push_back(float(last->time));
    last.reset();
  }
  /// Removes the parts of a frame during which memory ran out.
  void cut() {
    const auto shorten = [](auto& list, std::size_t most) { list.resize(std::min(list.size(), most)); };
    const std::size_t n = time.size(), pose = std::size_t(kPose) * model.nbody();
    shorten(poses, n * pose), shorten(ghost, n * pose);
    for (auto* list : {&error, &kinetic, &potential, &contacts.force, &contacts.penetration, &contacts.residual,
                       &contacts.iterations})
      shorten(*list, n);
    shorten(tendon_start, n + 1), shorten(contacts.start, n + 1);
    shorten(tendons, std::size_t(tendon_start.back()) * kSegment);
    shorten(contacts.rows, std::size_t(contacts.start.back()) * kContact);
  }
  /// Writes the JSON in small parts: when memory has run out, there is no room for a second copy of the numbers.
  void write(std::ostream& out) const {
    const auto base64_of = [&out](const auto& values) {
      constexpr std::size_t kPart = 3072;  // numbers; a multiple of 3 bytes, so that the parts' texts join
      out << '"';
      for (std::span rest(values); !rest.empty(); rest = rest.subspan(std::min(kPart, rest.size())))
        out << base64_bytes(std::as_bytes(rest.first(std::min(kPart, rest.size()))));
      out << '"';
    };
    const auto put = [&](const char* key, const auto& values) { out << ",\"" << key << "\":", base64_of(values); };
    out << R"({"format":"tarsus-page","version":1,"scene":)" << scene
        << fmt::format(",\"frames\":{}", time.size());  // `<<` would group digits as the global locale does
    put("time", time), put("poses", poses);
    if (!ghost.empty()) put("ghost", ghost);
    if (!tendons.empty()) put("tendons", tendons), put("tendon_start", tendon_start);
    if (!contacts.rows.empty()) put("contacts", contacts.rows), put("contact_start", contacts.start);
    out << ",\"series\":[";
    const char* comma = "";
    const auto plot = [&](const char* name, const char* unit, const std::vector<float>& values) {
      if (values.empty()) return;
      out << comma << R"({"name":")" << name << R"(","unit":")" << unit << R"(","values":)";
      base64_of(values), out << '}', comma = ",";
    };
    plot("tracking error", "m", error);
    plot("kinetic energy", "J", kinetic), plot("potential energy", "J", potential);
    plot("contact force", "N", contacts.force), plot("penetration", "m", contacts.penetration);
    plot("contact residual", "m/s", contacts.residual), plot("contact iterations", "", contacts.iterations);
    out << "]}";
  }
};

PageWriter::PageWriter(const Model& model, const MocapPoses& mocap) : state_(std::make_unique<State>(model)) {
  place_mocap(state_->data, mocap);
}
PageWriter::~PageWriter() = default;

void PageWriter::frame(double time, std::span<const double> qpos, std::span<const double> qvel,
                       std::span<const double> target, double tracking_error, const PageContacts* contacts) {
  State& s = *state_;
  check_size("qpos", qpos.size(), std::size_t(s.model.nq));
  check_size("qvel", qvel.size(), std::size_t(s.model.nv));
  if (!target.empty()) check_size("target", target.size(), std::size_t(s.model.nq));
  if (contacts && contacts->rows.size() % kContact != 0)
    throw ShapeError("contacts", contacts->rows.size(), contacts->rows.size() / kContact * kContact);
  const auto copy = [](std::span<const double> x) { return std::vector<double>(x.begin(), x.end()); };
  s.last = {time, copy(qpos), copy(qvel), copy(target), tracking_error, {}};
  if (contacts) s.last->contacts = *contacts;
  if (s.time.empty() || time >= double(s.time.back()) + kFrameSpacing * (1 - 1e-3)) s.keep_last();
}

void PageWriter::end_early() { state_->last.reset(), state_->cut(); }

int PageWriter::frames() const { return int(state_->time.size()); }

std::string PageWriter::json() {
  State& s = *state_;
  s.keep_last();
  std::ostringstream out;
  s.write(out);
  return out.str();
}

void PageWriter::write(const std::filesystem::path& file, std::string_view page) {
  const std::size_t room = page.find(kRoom);
  if (room == std::string_view::npos) throw ValueError("page", "without a place for the recording", std::string(kRoom));
  const std::size_t at = room + kRoom.find("null");
  state_->keep_last();
  OutputFile out(file);
  out.stream() << page.substr(0, at);
  state_->write(out.stream());
  out.stream() << page.substr(at + 4);
  out.finish();
}

}  // namespace tarsus
