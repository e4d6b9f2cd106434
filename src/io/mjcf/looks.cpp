// Elements whose attributes are kept as written or ignored: the attributes that MJCF allows.
#include <fmt/format.h>

#include <algorithm>

#include "io/mjcf/states.hpp"

namespace tarsus::mjcf {
namespace {

/// The attributes of each element. If no other code reads an attribute, its kind of value follows '='; see
/// check_value().
constexpr std::pair<std::string_view, std::string_view> kAttributes[] = {
    {"material",
     "class name emission=1 metallic=1 reflectance=1 rgba=4 roughness=1 shininess=1 specular=1 texrepeat=2 texture "
     "texuniform=bool"},
    {"layer", "role=rgb|occlusion|roughness|metallic|normal|opacity|emissive|rgba|orm texture"},
    {"texture",
     "class name builtin=none|gradient|checker|flat colorspace=auto|linear|sRGB content_type embed=bool file "
     "fileback filedown filefront fileleft fileright fileup gridlayout gridsize=2i height=1i hflip=bool "
     "mark=none|edge|cross|random markrgb=3 nchannel=1i random=1 rgb1=3 rgb2=3 type=2d|cube|skybox vflip=bool "
     "width=1i"},
    {"camera",
     "class name axisangle euler pos quat xyaxes zaxis focal=2 focalpixel=2 fovy=1 ipd=1 "
     "mode=fixed|track|trackcom|targetbody|targetbodycom output=+rgb|depth|distance|normal|segmentation principal=2 "
     "principalpixel=2 "
     "projection=perspective|orthographic resolution=2i sensorsize=2 target user=*"},
    {"light",
     "class name dir pos active=bool ambient=3 attenuation=3 bulbradius=1 castshadow=bool cutoff=1 diffuse=3 "
     "directional=bool exponent=1 intensity=1 mode=fixed|track|trackcom|targetbody|targetbodycom range=1 "
     "softness=1 specular=3 target texture type=spot|directional|point|image"},
    {"global",
     "azimuth=1 bvactive=bool cameraid=1i elevation=1 ellipsoidinertia=bool fovy=1 glow=1 ipd=1 linewidth=1 "
     "offheight=1i offwidth=1i orthographic=bool realtime=1"},
    {"quality", "numquads=1i numslices=1i numstacks=1i offsamples=1i shadowsize=1i"},
    {"headlight", "active=false|true|auto|0|1|2 ambient=3 diffuse=3 specular=3"},
    {"map",
     "actuatortendon=1 alpha=1 fogend=1 fogstart=1 force=1 haze=1 shadowclip=1 shadowscale=1 stiffness=1 "
     "stiffnessrot=1 torque=1 zfar=1 znear=1"},
    {"scale",
     "actuatorlength=1 actuatorwidth=1 camera=1 com=1 connect=1 constraint=1 contactheight=1 contactwidth=1 "
     "forcewidth=1 framelength=1 framewidth=1 frustum=1 jointlength=1 jointwidth=1 light=1 selectpoint=1 "
     "slidercrank=1"},
    {"rgba",
     "actuator=4 actuatornegative=4 actuatorpositive=4 bv=4 bvactive=4 camera=4 com=4 connect=4 constraint=4 "
     "contactforce=4 contactfriction=4 contactgap=4 contactpoint=4 contacttorque=4 crankbroken=4 fog=4 force=4 "
     "frustum=4 haze=4 inertia=4 joint=4 light=4 rangefinder=4 selectpoint=4 slidercrank=4"},
    {"visual", ""},
    {"statistic", "center=3 extent=1 meaninertia=1 meanmass=1 meansize=1"},
    {"lengthrange",
     "accel=1 interval=1 inttotal=1 maxforce=1 mode=none|muscle|muscleuser|all timeconst=1 timestep=1 tolrange=1 "
     "useexisting=bool uselimit=bool"},
    {"size",
     "memory nconmax=1i njmax=1i nstack=1i nkey nuser_actuator nuser_body nuser_cam nuser_geom nuser_jnt "
     "nuser_sensor nuser_site nuser_tendon nuserdata"},
    {"numeric", "data=* name size"},
    {"text", "data name"},
    {"tuple", "name"},
    {"element",
     "objname objtype=body|xbody|joint|dof|geom|site|camera|light|flex|mesh|skin|hfield|texture|material|pair|exclude|"
     "equality|tendon|actuator|sensor|numeric|text|tuple|key|plugin|frame prm=1"},
};

}  // namespace

void refuse_unknown(const XmlElement& e) {
  const auto* const of = std::find_if(std::begin(kAttributes), std::end(kAttributes),
                                      [&](const auto& known) { return e.is(known.first); });
  if (of == std::end(kAttributes))
    return e.error(fmt::format("<{}> is not an element of <{}>", e.name(), e.parent().name()));
  const std::vector<std::string_view> known = split_blanks(of->second);
  for (const auto& [name, value] : e.all_attributes()) {
    const auto same = [&name = name](std::string_view entry) { return entry.substr(0, entry.find('=')) == name; };
    const auto found = std::find_if(known.begin(), known.end(), same);
    if (found == known.end())
      e.error(fmt::format("<{}> has no attribute {}", e.name(), quote(name)), name.c_str());
    else if (found->size() > name.size())
      check_value(e, name.c_str(), found->substr(name.size() + 1));
  }
}

void check_value(const XmlElement& e, const char* attribute, std::string_view kind) {
  const char first = kind.front();
  if (kind.find('|') == std::string_view::npos && (first == '*' || (first >= '0' && first <= '9'))) {
    const bool integers = kind.ends_with('i');
    const std::size_t least = first == '*' ? 0 : static_cast<std::size_t>(first - '0');
    const std::size_t most = kind.size() > 2 && kind[1] == '-' ? static_cast<std::size_t>(kind[2] - '0') : least;
    const Count count = first == '*' ? Count::any() : Count::between(least, most);
    std::vector<double> numbers;
    std::vector<int> whole;
    integers ? e.read(attribute, whole, count) : e.read(attribute, numbers, count);
    return;
  }
  std::vector<std::string_view> words;
  const bool several = first == '+';
  for (std::string_view rest = kind == "bool" ? "true|false" : kind.substr(several); !rest.empty();) {
    const std::size_t end = std::min(rest.find('|'), rest.size());
    words.push_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  std::string word;
  if (!several) return void(read_word(e, attribute, words, word));
  const std::string text = e.text(attribute);
  for (const std::string_view part : split_blanks(text)) {
    const auto found = std::find(words.begin(), words.end(), part);
    if (found == words.end())
      return e.error(fmt::format("attribute '{}': {} is unknown or repeated", attribute, quote(part)), attribute);
    words.erase(found);
  }
}

void check_hull_limit(const XmlElement& e) {
  int most = -1;
  if (e.read("maxhullvert", most) && most != -1 && most < 4)
    e.error(fmt::format("attribute 'maxhullvert' is {}, expected -1 or at least 4", most), "maxhullvert");
}

void check_delay(const XmlElement& e, double delay, int samples) {
  if (delay > 0 && samples <= 0)
    e.error(fmt::format("'delay' is {}, but 'nsample' is {}, expected a positive number", delay, samples), "delay");
}

void refuse_repeated(const std::vector<XmlElement>& elements) {
  std::vector<std::string_view> seen;
  for (const XmlElement& e : elements) {
    if (std::find(seen.begin(), seen.end(), e.name()) != seen.end())
      e.error(fmt::format("a second <{}> in one <{}>", e.name(), e.parent().name()));
    seen.push_back(e.name());
  }
}

}  // namespace tarsus::mjcf
