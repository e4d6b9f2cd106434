// ODE's quick step (successive over-relaxation) with ODE's defaults, except for the number of iterations.
#include <ode/ode.h>

#include "peers/contact_peers.hpp"

namespace tarsus {

namespace {

class Ode final : public ContactPeer {
 public:
  explicit Ode(const RigidScene& scene) : scene_(scene) {
    dInitODE2(0);
    world_ = dWorldCreate();
    space_ = dHashSpaceCreate(nullptr);
    group_ = dJointGroupCreate(0);
    dWorldSetGravity(world_, dReal(scene.options.gravity.x), dReal(scene.options.gravity.y),
                     dReal(scene.options.gravity.z));
    dWorldSetQuickStepNumIterations(world_, scene.options.iterations);
    for (const BodyShape& s : scene.shapes) {
      if (s.body < 0) {
        const Vec3d n = s.local.rotation.column_z();
        dCreatePlane(space_, dReal(n.x), dReal(n.y), dReal(n.z), dReal(dot(n, s.local.position)));
        continue;
      }
      const RigidBody& b = scene.bodies[std::size_t(s.body)];
      dBodyID body = dBodyCreate(world_);
      dMass mass;
      dMassSetSphereTotal(&mass, dReal(b.mass), dReal(s.shape.size.x));
      dBodySetMass(body, &mass);
      dBodySetPosition(body, dReal(b.position.x), dReal(b.position.y), dReal(b.position.z));
      dGeomSetBody(dCreateSphere(space_, dReal(s.shape.size.x)), body);
      bodies_.push_back(body);
    }
  }
  ~Ode() override {
    dJointGroupDestroy(group_);
    dSpaceDestroy(space_);
    dWorldDestroy(world_);
    dCloseODE();
  }
  std::string name() const override { return "ode"; }
  void step() override {
    dSpaceCollide(space_, this, &Ode::near);
    dWorldQuickStep(world_, dReal(scene_.options.dt));
    dJointGroupEmpty(group_);
  }
  PeerMeasure measure() const override {
    std::vector<Vec3d> centres;
    for (dBodyID b : bodies_) {
      const dReal* p = dBodyGetPosition(b);
      centres.push_back({p[0], p[1], p[2]});
    }
    return measure_spheres(scene_, centres);
  }

 private:
  static void near(void* self, dGeomID a, dGeomID b) {
    Ode& ode = *static_cast<Ode*>(self);
    dContact contact{};
    if (dCollide(a, b, 1, &contact.geom, sizeof(dContact)) == 0) return;
    contact.surface.mode = dContactApprox1;
    contact.surface.mu = dReal(ode.scene_.surfaces[0].friction);
    dJointAttach(dJointCreateContact(ode.world_, ode.group_, &contact), dGeomGetBody(a), dGeomGetBody(b));
  }

  const RigidScene& scene_;
  dWorldID world_;
  dSpaceID space_;
  dJointGroupID group_;
  std::vector<dBodyID> bodies_;
};

}  // namespace

std::unique_ptr<ContactPeer> make_ode_peer(const RigidScene& scene) { return std::make_unique<Ode>(scene); }

}  // namespace tarsus
