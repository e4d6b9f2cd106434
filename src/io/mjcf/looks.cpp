// Elements whose attributes are kept as they are written, or passed over: the names that MJCF has for them.
#include <fmt/format.h>

#include <algorithm>

#include "io/mjcf/states.hpp"

namespace tarsus::mjcf {
namespace {

constexpr std::pair<std::string_view, std::string_view> kAttributes[] = {
    {"material",
     "class emission metallic name reflectance rgba roughness shininess specular texrepeat texture texuniform"},
    {"layer", "role texture"},
    {"texture",
     "builtin class colorspace content_type embed file fileback filedown filefront fileleft fileright fileup "
     "gridlayout gridsize height hflip mark markrgb name nchannel random rgb1 rgb2 type vflip width"},
    {"camera",
     "axisangle class euler focal focalpixel fovy ipd mode name output pos principal principalpixel projection quat "
     "resolution sensorsize target user xyaxes zaxis"},
    {"light",
     "active ambient attenuation bulbradius castshadow class cutoff diffuse dir directional exponent intensity mode "
     "name pos range softness specular target texture type"},
    {"global",
     "azimuth bvactive cameraid elevation ellipsoidinertia fovy glow ipd linewidth offheight offwidth orthographic "
     "realtime"},
    {"quality", "numquads numslices numstacks offsamples shadowsize"},
    {"headlight", "active ambient diffuse specular"},
    {"map",
     "actuatortendon alpha fogend fogstart force haze shadowclip shadowscale stiffness stiffnessrot torque zfar znear"},
    {"scale",
     "actuatorlength actuatorwidth camera com connect constraint contactheight contactwidth forcewidth framelength "
     "framewidth frustum jointlength jointwidth light selectpoint slidercrank"},
    {"rgba",
     "actuator actuatornegative actuatorpositive bv bvactive camera com connect constraint contactforce "
     "contactfriction contactgap contactpoint contacttorque crankbroken fog force frustum haze inertia joint light "
     "rangefinder selectpoint slidercrank"},
    {"visual", ""},
    {"statistic", "center extent meaninertia meanmass meansize"},
    {"size",
     "memory nconmax njmax nkey nstack nuser_actuator nuser_body nuser_cam nuser_geom nuser_jnt nuser_sensor "
     "nuser_site nuser_tendon nuserdata"},
    {"numeric", "data name size"},
    {"text", "data name"},
    {"tuple", "name"},
    {"element", "objname objtype prm"},
};

}  // namespace

void refuse_unknown(const XmlElement& e) {
  const auto* const of = std::find_if(std::begin(kAttributes), std::end(kAttributes),
                                      [&](const auto& known) { return e.is(known.first); });
  if (of == std::end(kAttributes))
    return e.error(fmt::format("<{}> is not an element of <{}>", e.name(), e.parent().name()));
  const std::vector<std::string_view> names = split_blanks(of->second);
  for (const auto& [name, value] : e.all_attributes()) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      e.error(fmt::format("<{}> has no attribute {}", e.name(), quote(name)), name.c_str());
  }
}

}  // namespace tarsus::mjcf
