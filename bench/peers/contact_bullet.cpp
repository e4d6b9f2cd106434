// Bullet's sequential impulses with Bullet's defaults, except for the number of iterations and without sleeping.
#include <btBulletDynamicsCommon.h>

#include "peers/contact_peers.hpp"

namespace tarsus {

namespace {

btVector3 vector(const Vec3d& v) { return {btScalar(v.x), btScalar(v.y), btScalar(v.z)}; }

class Bullet final : public ContactPeer {
 public:
  explicit Bullet(const RigidScene& scene)
      : scene_(scene), dispatcher_(&configuration_), world_(&dispatcher_, &broad_, &solver_, &configuration_) {
    world_.setGravity(vector(scene.options.gravity));
    world_.getSolverInfo().m_numIterations = scene.options.iterations;
    for (const BodyShape& s : scene.shapes) {
      std::unique_ptr<btCollisionShape> shape;
      btTransform pose = btTransform::getIdentity();
      btScalar mass = 0;
      btVector3 inertia(0, 0, 0);
      if (s.body < 0) {
        const Vec3d n = s.local.rotation.column_z();
        shape = std::make_unique<btStaticPlaneShape>(vector(n), btScalar(dot(n, s.local.position)));
      } else {
        const RigidBody& b = scene.bodies[std::size_t(s.body)];
        shape = std::make_unique<btSphereShape>(btScalar(s.shape.size.x));
        mass = btScalar(b.mass), inertia = vector(b.inertia);
        pose.setOrigin(vector(b.position));
      }
      auto body =
          std::make_unique<btRigidBody>(btRigidBody::btRigidBodyConstructionInfo(mass, nullptr, shape.get(), inertia));
      body->setWorldTransform(pose);
      body->setFriction(btScalar(scene.surfaces[0].friction));
      body->setActivationState(DISABLE_DEACTIVATION);
      world_.addRigidBody(body.get());
      if (s.body >= 0) moving_.push_back(body.get());
      bodies_.push_back(std::move(body));
      shapes_.push_back(std::move(shape));
    }
  }
  ~Bullet() override {
    for (auto& b : bodies_) world_.removeRigidBody(b.get());
  }
  std::string name() const override { return "bullet"; }
  void step() override { world_.stepSimulation(btScalar(scene_.options.dt), 0, btScalar(scene_.options.dt)); }
  PeerMeasure measure() const override {
    std::vector<Vec3d> centres;
    for (const btRigidBody* b : moving_) {
      const btVector3 p = b->getWorldTransform().getOrigin();
      centres.push_back({p.x(), p.y(), p.z()});
    }
    return measure_spheres(scene_, centres);
  }

 private:
  const RigidScene& scene_;
  btDefaultCollisionConfiguration configuration_;
  btCollisionDispatcher dispatcher_;
  btDbvtBroadphase broad_;
  btSequentialImpulseConstraintSolver solver_;
  btDiscreteDynamicsWorld world_;
  std::vector<std::unique_ptr<btCollisionShape>> shapes_;
  std::vector<std::unique_ptr<btRigidBody>> bodies_;
  std::vector<btRigidBody*> moving_;
};

}  // namespace

std::unique_ptr<ContactPeer> make_bullet_peer(const RigidScene& scene) { return std::make_unique<Bullet>(scene); }

}  // namespace tarsus
