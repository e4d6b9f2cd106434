// The scene in three dimensions: ground, light, camera, shapes, overlays, and pushing by the pointer.
import * as THREE from 'three';
import { OrbitControls } from 'three/addons/controls/OrbitControls.js';
import { frames, inertiaEllipsoid, Marks, ShapeSet } from './shapes.js';
import { Splats } from './splats.js';

// ground: both colours of the squares, of a plane that has no colour or that of kPaper.
const kThemes = {
  light: { top: '#8fb6dc', bottom: '#eaf1f7', fog: 0xdfe9f2, ground: [[211, 217, 223], [194, 202, 210]], sun: 2.2, sky: 2.0 },
  dark: { top: '#0d1620', bottom: '#2a3644', fog: 0x232e3a, ground: [[58, 67, 77], [49, 57, 65]], sun: 1.7, sky: 1.3 },
};
const kUncoloured = '0.5,0.5,0.5', kPaper = 0.8;  // colour of a geom without one in MuJoCo; grey level
const kSquare = 2, kGround = 400;  // sides of a square and of the whole ground, which follows the camera's target [m]
/// Check boxes under "Show": key, label, whether initially on.
export const kOverlays = [
  ['ghost', 'reference (ghost)', true], ['contacts', 'contact forces', true],
  ['cones', 'friction cones', false], ['axes', 'joint axes', false],
  ['com', 'centres of mass', false], ['inertia', 'inertia ellipsoids', false], ['loops', 'loops', true],
  ['tendons', 'tendons', true], ['bonds', 'bonds', true], ['hiddenShapes', 'collision shapes', false], ['shadows', 'shadows', true],
  ['follow', 'follow the model', true],
];

/// Whether the browser draws with a software renderer instead of a graphics card.
function drawnBySoftware() {
  const gl = document.createElement('canvas').getContext('webgl2'), names = gl?.getExtension('WEBGL_debug_renderer_info');
  const renderer = names ? gl.getParameter(names.UNMASKED_RENDERER_WEBGL) : '';
  gl?.getExtension('WEBGL_lose_context')?.loseContext();
  return /swiftshader|llvmpipe|softpipe|software|basic render/i.test(renderer);
}

/// A material that shows a texture's colours without conversion.
function unlit(map) {
  const material = new THREE.MeshBasicMaterial({ map });
  material.onBeforeCompile = (shader) => { shader.fragmentShader = shader.fragmentShader.replace('#include <colorspace_fragment>', ''); };
  return material;
}

export class Stage {
  /// quality: high, low (half the resolution, simpler light and shapes, no shadows), or auto: low without a graphics card.
  constructor(canvas, quality = 'auto') {
    this.canvas = canvas;
    this.plain = quality === 'low' || (quality === 'auto' && drawnBySoftware());
    this.renderer = new THREE.WebGLRenderer({ canvas, antialias: !this.plain, preserveDrawingBuffer: false });
    this.renderer.shadowMap.enabled = true;
    this.renderer.shadowMap.type = THREE.PCFShadowMap;
    this.world = new THREE.Scene();
    this.camera = new THREE.PerspectiveCamera(40, 1, 0.01, 1000);
    this.camera.up.set(0, 0, 1);
    this.orbit = new OrbitControls(this.camera, canvas);
    this.orbit.enableDamping = false;
    this.orbit.addEventListener('change', () => { this.stale = true; });
    this.sky = new THREE.HemisphereLight(0xffffff, 0x8a8f96, 1.5);
    this.sun = new THREE.DirectionalLight(0xffffff, 2.2);
    this.sun.castShadow = true;
    this.sun.shadow.mapSize.set(2048, 2048);
    this.sun.shadow.normalBias = 0.02;
    this.splats = new Splats();
    this.world.add(this.sky, this.sun, this.sun.target, this.splats);
    this.contactPoints = new Marks(0xffd23c, 'ball'), this.contactForces = new Marks(0xe8452c, 'arrow');
    this.frictionCones = new Marks(0x2f9e8f, 'cone', 0.35), this.pull = new Marks(0x35c46a, 'arrow');
    this.tendons = new Marks(0xd0463c, 'rod');
    this.world.add(this.frictionCones, this.contactPoints, this.contactForces, this.pull, this.tendons);
    this.show = Object.fromEntries(kOverlays.map(([key, , on]) => [key, on]));
    if (this.plain) this.show.shadows = false;
    this.centre = new THREE.Vector3();
    canvas.addEventListener('pointerdown', (e) => this.grab(e));
    canvas.addEventListener('pointermove', (e) => this.drag(e));
    for (const end of ['pointerup', 'pointercancel']) canvas.addEventListener(end, () => this.letGo());
  }

  setTheme(name) {
    const theme = kThemes[name];
    this.stale = true;
    this.theme = theme;
    this.world.background = this.plain ? new THREE.Color(theme.bottom) : this.blend();
    this.sun.intensity = theme.sun, this.sky.intensity = theme.sky;
    if (this.ground) this.ground.material.map = this.checker();
  }
  blend() {
    const sky = document.createElement('canvas');
    sky.width = 2, sky.height = 256;
    const g = sky.getContext('2d'), blend = g.createLinearGradient(0, 0, 0, 256);
    blend.addColorStop(0, this.theme.top), blend.addColorStop(0.75, this.theme.bottom);
    g.fillStyle = blend, g.fillRect(0, 0, 2, 256);
    const map = new THREE.CanvasTexture(sky);
    map.colorSpace = THREE.SRGBColorSpace;
    return map;
  }
  /// Switches between plain and fine pictures. Antialiasing stays as it was when the page was opened.
  setPlain(plain) {
    this.plain = plain;
    this.setTheme(document.documentElement.dataset.theme);
    if (!this.scene) return;
    const { frame, framed } = this;
    this.open(this.scene);
    this.framed = framed;
    if (frame) this.update(frame);
  }
  /// Squares of the theme's colours, tinted by the plane's.
  checker() {
    const colour = this.groundPlane.rgba.slice(0, 3), tint = `${colour}` === kUncoloured ? [1, 1, 1] : colour.map((c) => c / kPaper);
    const tile = document.createElement('canvas');
    tile.width = tile.height = 128;
    const g = tile.getContext('2d');
    for (const [i, x, y] of [[0, 0, 0], [1, 64, 0], [1, 0, 64], [0, 64, 64]]) {
      g.fillStyle = `rgb(${this.theme.ground[i].map((c, k) => Math.min(c * tint[k], 255))})`;
      g.fillRect(x, y, 64, 64);
    }
    const map = new THREE.CanvasTexture(tile);
    map.wrapS = map.wrapT = THREE.RepeatWrapping, map.anisotropy = this.plain ? 1 : 8;
    map.colorSpace = this.plain ? THREE.NoColorSpace : THREE.SRGBColorSpace;
    if (this.plain) map.minFilter = THREE.LinearMipmapNearestFilter;
    map.repeat.setScalar(kGround / (2 * kSquare));
    return map;
  }

  /// Lays out a scene. Poses come with update().
  open(scene) {
    for (const old of this.sets ?? []) this.world.remove(old);
    for (const old of [this.ground, this.bonds]) if (old) this.world.remove(old);
    this.ground = this.bonds = null;
    this.scene = scene;
    this.nbody = scene.bodies.length, this.worlds = scene.worlds ?? 1;
    const of = (shapes, options) =>
      new ShapeSet(shapes, scene.meshes ?? [], this.nbody, this.worlds, { ...options, plain: this.plain });
    const far = 5 * Math.max(scene.extent ?? 1, 1), isPlane = (s) => s.type === 'plane';  // far: half the side of an infinite plane
    const shapes = scene.shapes.map((s) => (isPlane(s) ? { ...s, size: s.size.map((x) => x || far) } : s));
    const solid = shapes.filter((s) => !isPlane(s)), planes = shapes.filter((s) => isPlane(s) && !s.hidden && s.rgba[3] > 0);
    this.looks = of(solid.filter((s) => !s.hidden));
    this.planes = of(planes.slice(1));
    this.hiddenShapes = of(shapes.filter((s) => s.hidden), { ghost: true });
    this.ghost = of(solid.filter((s) => !s.hidden && s.body > 0), { ghost: true });
    this.axes = of(this.axisShapes(), { onTop: true, shadows: false });
    this.com = of(this.ballShapes(), { onTop: true, shadows: false });
    this.inertia = of(this.inertiaShapes(), { shadows: false });
    this.loops = of(this.loopShapes(), { onTop: true, shadows: false });
    this.sets = [this.looks, this.planes, this.hiddenShapes, this.ghost, this.axes, this.com, this.inertia, this.loops];
    this.world.add(...this.sets);
    this.frames = new Float32Array(12 * this.nbody * this.worlds), this.ghostFrames = new Float32Array(this.frames.length);
    if (planes.length) this.layGround(planes[0]);
    if (scene.bonds?.length) this.addBonds(scene.bonds);
    this.framed = false;
  }
  get scale() { return this.size / 2; }
  axisShapes() {
    const out = [];
    for (const j of this.scene.joints ?? []) {
      if (j.type !== 'hinge' && j.type !== 'slide') continue;
      const q = new THREE.Quaternion().setFromUnitVectors(new THREE.Vector3(0, 0, 1), new THREE.Vector3(...j.axis));
      const length = 0.12 * (this.scene.extent ?? 1);
      out.push({ body: j.body, type: 'arrow', size: [0.05 * length, length, 0], position: j.position,
        orientation: [q.w, q.x, q.y, q.z], rgba: j.type === 'hinge' ? [0.1, 0.5, 0.95, 1] : [0.1, 0.75, 0.4, 1] });
    }
    return out;
  }
  massive() { return this.scene.bodies.map((b, body) => ({ ...b, body })).filter((b) => b.mass > 0 && b.com); }
  ballShapes() {
    const total = this.massive().reduce((sum, b) => sum + b.mass, 0), extent = this.scene.extent ?? 1;
    return this.massive().map((b) => ({ body: b.body, type: 'sphere', position: b.com, rgba: [0.95, 0.75, 0.1, 1],
      size: [0.06 * extent * Math.cbrt(b.mass / total), 0, 0] }));
  }
  inertiaShapes() {
    return this.massive().filter((b) => b.inertia).map((b) => {
      const { size, orientation } = inertiaEllipsoid(b.mass, b.inertia);
      return { body: b.body, type: 'ellipsoid', size, orientation, position: b.com, rgba: [0.75, 0.3, 0.85, 0.45] };
    });
  }
  loopShapes() {
    return (this.scene.loops ?? []).flatMap((l) => [0, 1].map((k) => ({ body: l.bodies[k], type: 'sphere',
      size: [0.02 * (this.scene.extent ?? 1), 0, 0], position: l.points[k], rgba: k ? [0.1, 0.7, 0.9, 1] : [0.95, 0.3, 0.6, 1] })));
  }
  /// The first plane is infinite, whatever its size in the file.
  layGround(plane) {
    this.groundPlane = plane;
    const material = this.plain ? unlit(this.checker())
      : new THREE.MeshStandardMaterial({ roughness: 0.95, map: this.checker() });
    if (plane.rgba[3] < 1) Object.assign(material, { transparent: true, opacity: plane.rgba[3] });
    this.ground = new THREE.Mesh(new THREE.PlaneGeometry(kGround, kGround), material);
    this.ground.receiveShadow = true;
    this.world.add(this.ground);
  }
  /// Moves the ground with its body, and after the camera's target by whole pairs of squares.
  placeGround() {
    const { body, position: p = [0, 0, 0], orientation: [w, x, y, z] = [1, 0, 0, 0] } = this.groundPlane;
    const local = new THREE.Matrix4().compose(new THREE.Vector3(...p), new THREE.Quaternion(x, y, z, w), new THREE.Vector3(1, 1, 1));
    const pose = this.frameOf({ world: 0, body }).multiply(local), at = this.orbit.target.clone().applyMatrix4(pose.clone().invert());
    const pair = 2 * kSquare, whole = new THREE.Vector3(pair * Math.round(at.x / pair), pair * Math.round(at.y / pair), 0);
    this.ground.quaternion.setFromRotationMatrix(pose);
    this.ground.position.copy(whole.applyMatrix4(pose));
  }
  addBonds(pairs) {
    this.pairs = pairs;
    this.bonds = new Marks(0x8a97a6, 'rod');
    this.world.add(this.bonds);
  }

  /// Takes a new frame. A set of shapes moves only while it is visible.
  update(frame) {
    this.frame = frame;
    this.framesStale = true;
    this.dirty = true;
    if (!this.framed) this.look();
    if (this.show.follow) this.follow();
  }
  /// Rotations and positions of all bodies, computed on demand.
  get all() {
    if (this.framesStale) frames(this.frame.poses, this.frames);
    this.framesStale = false;
    return this.frames;
  }
  apply() {
    const { show, frame } = this;
    this.dirty = false, this.stale = true;
    this.looks.visible = this.planes.visible = true;
    if (this.ground) this.placeGround();
    for (const key of ['hiddenShapes', 'axes', 'com', 'inertia', 'loops']) this[key].visible = show[key];
    this.ghost.visible = show.ghost && !!frame.ghost;
    const all = () => this.all, ofGhost = () => frames(frame.ghost, this.ghostFrames);
    for (const set of this.sets) set === this.ghost ? set.move(frame.ghost, ofGhost) : set.move(frame.poses, all);
    this.showContacts(frame.contacts);
    this.showTendons(frame.tendons);
    if (this.bonds) {
      this.bonds.visible = show.bonds;
      const at = (body) => new THREE.Vector3(...frame.poses.subarray(7 * body, 7 * body + 3));
      this.bonds.show(this.pairs.map(([a, b]) => [at(a), at(b).sub(at(a)), 0.05 * (this.scene.extent ?? 1)]));
    }
    this.sun.castShadow = show.shadows;
  }
  /// numbers: position, force, normal and friction coefficient of each contact.
  showContacts(numbers) {
    const points = [], forces = [], cones = [], radius = 0.01 * this.size;
    // An arrow of 1/4 of the scene's size represents the total weight.
    const weight = Math.max(this.massive().reduce((sum, b) => sum + b.mass, 0) * 9.81, 1e-9);
    for (let i = 0; i + 9 < numbers.length; i += 10) {
      const vector = (k) => new THREE.Vector3(...numbers.subarray(i + k, i + k + 3));
      const at = vector(0), force = vector(3).multiplyScalar(this.size / 4 / weight), friction = numbers[i + 9];
      if (this.show.contacts) {
        points.push([at, null, 0.006 * this.size * Math.min(1, Math.sqrt(200 / numbers.length))]);
        if (force.length() > radius / 2) forces.push([at, force, radius]);
      }
      if (this.show.cones && friction > 0) {
        const height = 0.08 * this.size / Math.hypot(1, friction);  // all cones have the same slant height
        cones.push([at, vector(6).multiplyScalar(height), height * friction]);
      }
    }
    this.contactPoints.show(points), this.contactForces.show(forces), this.frictionCones.show(cones);
  }
  /// numbers: both ends of each straight segment.
  showTendons(numbers) {
    const parts = [], radius = 0.003 * this.size;
    for (let i = 0; this.show.tendons && i + 5 < numbers.length; i += 6) {
      const from = new THREE.Vector3(...numbers.subarray(i, i + 3)), to = new THREE.Vector3(...numbers.subarray(i + 3, i + 6));
      parts.push([from, to.sub(from), radius]);
    }
    this.tendons.show(parts);
  }
  showPull() {
    if (!this.held) return this.pull.show([]);
    const from = this.attached(), to = this.held.target;
    this.pull.show([[from, to.clone().sub(from), 0.008 * this.size]]);
  }

  /// Mass-weighted mean position of the bodies of the first world, except body 0.
  middle() {
    const sum = new THREE.Vector3();
    let total = 0;
    this.scene.bodies.forEach((b, i) => {
      if (i === 0 || !(b.mass > 0)) return;
      const at = 7 * i, p = this.frame.poses;
      sum.addScaledVector(new THREE.Vector3(p[at], p[at + 1], p[at + 2]), b.mass), total += b.mass;
    });
    return total > 0 ? sum.divideScalar(total) : sum;
  }
  /// Places the camera so that it sees all shapes.
  look() {
    this.framed = true;
    for (const set of this.sets) set.visible = set === this.looks, set.move(this.frame.poses, () => this.all);
    const box = new THREE.Box3(), part = new THREE.Box3(), m = new THREE.Matrix4();
    for (const mesh of this.looks.children) {
      const shape = mesh.shape ?? mesh.geometry;
      shape.computeBoundingBox();
      for (let i = 0; i < mesh.count; ++i) {
        mesh.getMatrixAt(i, m);
        box.union(part.copy(shape.boundingBox).applyMatrix4(m));
      }
    }
    if (box.isEmpty()) box.set(new THREE.Vector3(-1, -1, -1), new THREE.Vector3(1, 1, 1));
    const sphere = box.getBoundingSphere(new THREE.Sphere());
    this.size = Math.max(sphere.radius * 2, 1e-6);
    this.centre.copy(this.middle());
    this.fit();
    const direction = new THREE.Vector3(1, -1.7, 0.55).normalize();
    this.orbit.target.copy(sphere.center);
    this.camera.position.copy(sphere.center).addScaledVector(direction, this.distance(box, direction));
    this.camera.near = this.size / 200, this.camera.far = this.size * 60 + 100;
    this.camera.updateProjectionMatrix();
    this.orbit.update();
    this.aim();
  }
  /// Distance at which the camera sees a whole box, with a margin.
  distance(box, direction) {
    const right = new THREE.Vector3().crossVectors(this.camera.up, direction).normalize();
    const up = new THREE.Vector3().crossVectors(direction, right), centre = box.getCenter(new THREE.Vector3());
    const slope = Math.tan(this.camera.fov * Math.PI / 360), corner = new THREE.Vector3();
    let out = 0.8 * this.size;
    for (let i = 0; i < 8; ++i) {
      corner.set(...['x', 'y', 'z'].map((c, k) => ((i >> k) & 1 ? box.max : box.min)[c])).sub(centre);
      const half = Math.max(Math.abs(corner.dot(right)) / this.camera.aspect, Math.abs(corner.dot(up)));
      out = Math.max(out, corner.dot(direction) + half / slope);
    }
    return 1.25 * out;
  }
  aim() {
    const half = 1.2 * this.size, shadow = this.sun.shadow.camera;
    this.sun.target.position.copy(this.orbit.target);
    this.sun.position.copy(this.orbit.target).add(new THREE.Vector3(0.5, -0.6, 1.3).multiplyScalar(this.size * 1.5));
    shadow.left = shadow.bottom = -half, shadow.right = shadow.top = half, shadow.near = 0.01 * this.size, shadow.far = 6 * this.size;
    this.sun.shadow.normalBias = 0.004 * this.size;
    shadow.updateProjectionMatrix();
  }
  follow() {
    if (this.worlds > 1) return;
    const now = this.middle(), move = now.clone().sub(this.centre);
    this.centre.copy(now);
    move.z *= 0.2;  // so that steps do not shake the picture
    this.orbit.target.add(move), this.camera.position.add(move);
    this.aim();
  }
  /// For keys: turns the camera about the target [rad] and scales its distance by a factor.
  turn(azimuth, elevation, factor) {
    const s = new THREE.Spherical(), arm = this.camera.position.clone().sub(this.orbit.target);
    s.setFromVector3(new THREE.Vector3(arm.x, arm.z, -arm.y));
    s.theta += azimuth, s.phi = Math.min(Math.max(s.phi - elevation, 0.05), 3), s.radius *= factor;
    const v = new THREE.Vector3().setFromSpherical(s);
    this.camera.position.copy(this.orbit.target).add(new THREE.Vector3(v.x, -v.z, v.y));
    this.orbit.update();
  }

  /// Fits the picture to the window's size.
  fit() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const ratio = this.plain ? 0.5 : Math.min(devicePixelRatio || 1, 2);
    if (this.width === width && this.height === height && this.ratio === ratio) return;
    this.width = width, this.height = height, this.ratio = ratio, this.stale = true;
    this.renderer.setPixelRatio(ratio), this.renderer.setSize(width, height, false);
    this.camera.aspect = width / Math.max(height, 1), this.camera.updateProjectionMatrix();
  }
  /// Draws the scene if anything has changed. Returns whether it has.
  draw() {
    this.fit();
    if (this.frame && this.dirty) this.apply();
    if (!this.stale) return false;
    this.stale = false;
    this.showPull();
    const { x: width, y: height } = this.renderer.getDrawingBufferSize(new THREE.Vector2());
    this.camera.updateMatrixWorld();
    this.splats.begin(this.camera, width, height, this.sky, this.sun);
    for (const set of this.sets ?? []) set.choose(this.camera, this.splats);
    this.splats.end();
    this.renderer.render(this.world, this.camera);
    return true;
  }

  // -- pushing --

  ray(event) {
    const box = this.canvas.getBoundingClientRect(), ray = new THREE.Raycaster();
    ray.setFromCamera(new THREE.Vector2(2 * (event.clientX - box.left) / box.width - 1, 1 - 2 * (event.clientY - box.top) / box.height), this.camera);
    return ray;
  }
  /// The moving body under a pointer: {world, body, point (in its frame), at (in the world)}.
  pick(event) {
    if (!this.frame) return null;
    const hits = this.ray(event).intersectObjects(this.looks.children, false);
    if (!hits.length) return null;
    const owner = this.looks.owner(hits[0]);
    if (!this.moves(owner.body)) return null;
    return { ...owner, at: hits[0].point, point: this.inBody(owner, hits[0].point) };
  }
  moves(body) { return body > 0 && this.scene.bodies[body].link !== -1; }
  frameOf({ world, body }) {
    const f = this.all.subarray(12 * (world * this.nbody + body));
    return new THREE.Matrix4().set(f[0], f[3], f[6], f[9], f[1], f[4], f[7], f[10], f[2], f[5], f[8], f[11], 0, 0, 0, 1);
  }
  inBody(owner, point) { return point.clone().applyMatrix4(this.frameOf(owner).invert()); }
  attached() { return this.held.point.clone().applyMatrix4(this.frameOf(this.held)); }
  hold(body, world, point, target) {
    this.held = { body, world, point, target }, this.stale = true;
    this.onPush?.(body, world, point.toArray(), target.toArray());
  }
  grab(event) {
    if (!this.onPush || !this.canPush || event.button !== 0) return;
    const found = this.pick(event);
    if (!found) return;
    this.orbit.enabled = false;
    this.canvas.setPointerCapture(event.pointerId);
    this.plane = new THREE.Plane().setFromNormalAndCoplanarPoint(this.camera.getWorldDirection(new THREE.Vector3()), found.at);
    this.hold(found.body, found.world, found.point, found.at);
  }
  drag(event) {
    if (!this.plane) return;
    const target = this.ray(event).ray.intersectPlane(this.plane, new THREE.Vector3());
    if (target) this.hold(this.held.body, this.held.world, this.held.point, target);
  }
  letGo() {
    if (!this.held) return;
    this.held = this.plane = null, this.stale = true;
    this.orbit.enabled = true;
    this.onRelease?.();
  }
}
