// Shapes fixed to bodies, drawn as instances: one batch for each geometry, one instance for each shape of each world.
import * as THREE from 'three';
import { mergeVertices, toCreasedNormals } from 'three/addons/utils/BufferGeometryUtils.js';
import { floats, integers } from './sources.js';

const along_z = (geometry) => geometry.rotateX(Math.PI / 2);

function meshGeometry(mesh) {
  const indexed = new THREE.BufferGeometry();
  indexed.setAttribute('position', new THREE.BufferAttribute(floats(mesh.vertices), 3));
  indexed.setIndex(new THREE.BufferAttribute(new Uint32Array(integers(mesh.triangles).buffer), 1));
  return toCreasedNormals(indexed, 0.6);  // edges sharper than 0.6 rad stay hard
}

/// [key, scale, function that makes the geometry] of a shape. Few keys, many instances.
/// n: segments of a circle.
function geometryOf(shape, meshes, n) {
  const [x, y, z] = shape.size;
  switch (shape.type) {
    case 'box': return ['box', [x, y, z], () => new THREE.BoxGeometry(2, 2, 2)];
    case 'sphere': return ['sphere', [x, x, x], () => new THREE.SphereGeometry(1, n, n / 2)];
    case 'ellipsoid': return ['sphere', [x, y, z], () => new THREE.SphereGeometry(1, n, n / 2)];
    case 'cylinder': return ['cylinder', [x, x, y], () => along_z(new THREE.CylinderGeometry(1, 1, 2, n))];
    case 'capsule':
      return [`capsule ${x} ${y}`, [1, 1, 1], () => along_z(new THREE.CapsuleGeometry(x, 2 * y, n >> 2, Math.ceil(0.6 * n)))];
    case 'arrow': return ['arrow', [x, x, y], arrowGeometry];
    case 'mesh': return [`mesh ${shape.mesh}`, [1, 1, 1], () => meshGeometry(meshes[shape.mesh])];
  }
  return null;
}

/// A capsule or a sphere as one rectangle that faces the camera: two triangles instead of fifty, with the shape's own outline,
/// light and place. Its texels are half the axis, with the radius, and the centre.
const kRound = {
  vertex: `
    varying vec2 across;  // from the middle of the axis, in radii
    flat varying vec3 side, upward, shade;
    flat varying float straight;
    void main() {
      vec4 axis_and_size = texelFetch(places, at_copy, 0);
      vec3 half_axis = mat3(modelViewMatrix) * axis_and_size.xyz;
      vec3 centre = (modelViewMatrix * texelFetch(places, at_copy + ivec2(1, 0), 0)).xyz;
      float size = axis_and_size.w;
      vec2 corner = vec2((gl_VertexID + 1 & 2) - 1, (gl_VertexID & 2) - 1);
      vec3 back = -normalize(centre), flat_axis = half_axis - dot(half_axis, back) * back;
      float seen = length(flat_axis);
      upward = seen > 1e-3 * size ? flat_axis / seen : normalize(cross(back, vec3(0.6, 0.0, 0.8)));
      side = cross(upward, back);
      straight = seen / size;
      across = corner * vec2(1.0, 1.0 + straight);
      vec3 at = centre + corner.y * half_axis + size * (corner.x * side + corner.y * upward);
      shade = color;
      gl_Position = projectionMatrix * vec4(at, 1.0);
    }`,
  fragment: `
    #include <common>
    #include <lights_pars_begin>
    varying vec2 across;
    flat varying vec3 side, upward, shade;
    flat varying float straight;
    void main() {
      vec2 off = vec2(across.x, sign(across.y) * max(abs(across.y) - straight, 0.0));
      float square = dot(off, off);
      if (square > 1.0) discard;
      vec3 normal = off.x * side + off.y * upward + sqrt(1.0 - square) * cross(side, upward);
      vec3 light = getHemisphereLightIrradiance(hemisphereLights[0], normal)
        + max(dot(normal, directionalLights[0].direction), 0.0) * directionalLights[0].color;
      gl_FragColor = vec4(RECIPROCAL_PI * light * shade, 1.0);
      #include <colorspace_fragment>
    }`,
};
function roundMaterial() {
  return new THREE.ShaderMaterial({ lights: true, uniforms: THREE.UniformsUtils.clone(THREE.UniformsLib.lights),
    vertexShader: kRound.vertex, fragmentShader: kRound.fragment });
}
/// For whatever asks where the shape may be: the vertices find their corners by themselves.
function roundGeometry() {
  const out = new THREE.BufferGeometry();
  out.setAttribute('position', new THREE.Float32BufferAttribute([-1, -1, -1, 1, -1, -1, 1, 1, 1, -1, 1, 1], 3));
  return out.setIndex([0, 1, 2, 0, 2, 3]);
}
function roundOf({ type, size: [radius, half] }) {
  if (type === 'sphere') return ['round', [radius, radius, 0], roundGeometry];
  return type === 'capsule' && ['round', [radius, radius, half], roundGeometry];
}
/// The three faces of a box that a camera can see at most, of a box whose corner (1, 1, 1) is turned to it.
function facesGeometry() {
  const out = new THREE.BufferGeometry();
  out.setAttribute('position', new THREE.Float32BufferAttribute([1, 1, 1, 1, 1, -1, 1, -1, 1, -1, 1, 1, 1, -1, -1, -1, 1, -1, -1, -1, 1], 3));
  return out.setIndex([0, 2, 4, 0, 4, 1, 0, 1, 5, 0, 5, 3, 0, 3, 6, 0, 6, 2]);
}

/// Instances as copies of their geometry in one mesh, for programs that draw in the place of a graphics card: to them each
/// instance is a call of its own, of 10 us. The vertices find their instance's matrix in a texture.
class Copies extends THREE.InstancedMesh {
  static kAcross = 256;  // instances in a row of the texture
  /// kind: round, box or other.
  constructor(geometry, material, count, kind) {
    const texels = kind === 'round' ? 2 : 4, rows = Math.ceil(count / Copies.kAcross), shape = geometry;
    if (kind === 'box') geometry = facesGeometry();
    if (kind === 'other') {  // corners shared by all faces that meet there
      for (const name of ['normal', 'uv']) geometry.deleteAttribute(name);
      geometry = mergeVertices(geometry);
    }
    super(new THREE.BufferGeometry(), material, rows * Copies.kAcross);
    this.isInstancedMesh = false;  // to the renderer it is one mesh
    const vertices = geometry.getAttribute('position').count, { array: corners } = geometry.getAttribute('position');
    const { array: index } = geometry.index, positions = new Float32Array(count * corners.length), all = new Uint32Array(count * index.length);
    for (let i = 0; i < count; ++i) {
      positions.set(corners, i * corners.length);
      for (let k = 0; k < index.length; ++k) all[i * index.length + k] = i * vertices + index[k];
    }
    Object.assign(this, { count, kind, shape, vertices });
    this.geometry.setAttribute('position', new THREE.BufferAttribute(positions, 3));
    this.geometry.setAttribute('color', new THREE.BufferAttribute(new Float32Array(positions.length).fill(1), 3));
    this.geometry.setIndex(new THREE.BufferAttribute(all, 1));
    this.numbers = new Float32Array(4 * texels * Copies.kAcross * rows);
    this.places = new THREE.DataTexture(this.numbers, texels * Copies.kAcross, rows, THREE.RGBAFormat, THREE.FloatType);
    Object.assign(material, { vertexColors: true, flatShading: true }, kind === 'box' && { side: THREE.DoubleSide });
    const place = `instanceMatrix = mat4(${[0, 1, 2, 3].map((k) => `texelFetch(places, at_copy + ivec2(${k}, 0), 0)`)});`;
    const turned = `vec3 toward = (cameraPosition - instanceMatrix[3].xyz) * mat3(instanceMatrix);
      vec3 transformed = position * mix(vec3(-1.0), vec3(1.0), step(0.0, toward));`;
    material.onBeforeCompile = (shader) => {
      shader.uniforms.places = { value: this.places };
      if (kind === 'box') shader.vertexShader = shader.vertexShader.replace('#include <begin_vertex>', turned);
      shader.vertexShader = `#define USE_INSTANCING
        uniform highp sampler2D places;
        mat4 instanceMatrix;
        ${shader.vertexShader.replace('void main() {', `void main() {
          int copy = gl_VertexID / ${vertices};
          ivec2 at_copy = ivec2(${texels} * (copy % ${Copies.kAcross}), copy / ${Copies.kAcross});
          ${kind === 'round' ? '' : place}`)}`;
    };
    material.customProgramCacheKey = () => `copies ${kind} ${vertices}`;
  }
  /// Radii of what is round, in turn.
  setSizes(radii) {
    for (let i = 0; i < this.count; ++i) this.numbers[8 * i + 3] = radii[i % radii.length], this.numbers[8 * i + 7] = 1;
  }
  getMatrixAt(i, m) {
    if (this.kind !== 'round') return m.fromArray(this.numbers, 16 * i);
    const [x, y, z, size, at_x, at_y, at_z] = this.numbers.subarray(8 * i, 8 * i + 7);
    return m.set(size, 0, x, at_x, 0, size, y, at_y, 0, 0, z, at_z, 0, 0, 0, 1);
  }
  setColorAt(i, { r, g, b }) {
    const { array } = this.geometry.getAttribute('color');
    for (let v = i * this.vertices; v < (i + 1) * this.vertices; ++v) array.set([r, g, b], 3 * v);
  }
  /// Rays meet the shapes.
  raycast(caster, hits) {
    if (this.kind !== 'round') {
      const { geometry } = this;
      this.geometry = this.shape;
      super.raycast(caster, hits);
      this.geometry = geometry;
      return;
    }
    const { ray, near, far } = caster;
    const m = new THREE.Matrix4(), [x, axis, centre, point] = [0, 1, 2, 3].map(() => new THREE.Vector3());
    for (let instanceId = 0; instanceId < this.count; ++instanceId) {
      this.getMatrixAt(instanceId, m);
      x.setFromMatrixColumn(m, 0), axis.setFromMatrixColumn(m, 2), centre.setFromMatrixPosition(m);
      const square = ray.distanceSqToSegment(centre.clone().sub(axis), centre.clone().add(axis), point);
      const distance = ray.origin.distanceTo(point) - Math.sqrt(Math.max(x.lengthSq() - square, 0));
      if (square < x.lengthSq() && distance > near && distance < far)
        hits.push({ distance, point: ray.at(distance, new THREE.Vector3()), object: this, instanceId });
    }
  }
}

/// From the origin to (0, 0, 1); its radius, 1, is to be scaled.
function arrowGeometry() {
  const shaft = along_z(new THREE.CylinderGeometry(0.5, 0.5, 0.8, 10)).translate(0, 0, 0.4).toNonIndexed();
  const head = along_z(new THREE.ConeGeometry(1, 0.2, 14)).translate(0, 0, 0.9).toNonIndexed();
  const out = new THREE.BufferGeometry();
  for (const name of ['position', 'normal']) {
    const a = shaft.getAttribute(name).array, b = head.getAttribute(name).array;
    const all = new Float32Array(a.length + b.length);
    all.set(a), all.set(b, a.length);
    out.setAttribute(name, new THREE.BufferAttribute(all, 3));
  }
  return out;
}

/// Columns of the rotation and the position of each pose (position, orientation w x y z), 12 numbers each.
export function frames(poses, out) {
  const n = poses.length / 7;
  for (let i = 0; i < n; ++i) {
    const p = 7 * i, m = 12 * i, w = poses[p + 3], x = poses[p + 4], y = poses[p + 5], z = poses[p + 6];
    out[m] = 1 - 2 * (y * y + z * z), out[m + 1] = 2 * (x * y + w * z), out[m + 2] = 2 * (x * z - w * y);
    out[m + 3] = 2 * (x * y - w * z), out[m + 4] = 1 - 2 * (x * x + z * z), out[m + 5] = 2 * (y * z + w * x);
    out[m + 6] = 2 * (x * z + w * y), out[m + 7] = 2 * (y * z - w * x), out[m + 8] = 1 - 2 * (x * x + y * y);
    out[m + 9] = poses[p], out[m + 10] = poses[p + 1], out[m + 11] = poses[p + 2];
  }
  return out;
}

/// matrix (column-major 4 x 4 at `at`) = frame (12 numbers at `f`) · local (12 numbers)
function place(matrix, at, all, f, local) {
  for (let c = 0; c < 4; ++c) {
    const a = local[3 * c], b = local[3 * c + 1], d = local[3 * c + 2], move = c === 3 ? 1 : 0;
    for (let r = 0; r < 3; ++r)
      matrix[at + 4 * c + r] = all[f + r] * a + all[f + 3 + r] * b + all[f + 6 + r] * d + move * all[f + 9 + r];
    matrix[at + 4 * c + 3] = move;
  }
}

/// Half the axis and the centre of what is round, at `at` and `at` + 4.
function placeRound(numbers, at, all, f, local) {
  for (let c = 0; c < 2; ++c) {
    const a = local[3 * c + 6], b = local[3 * c + 7], d = local[3 * c + 8];
    for (let r = 0; r < 3; ++r) numbers[at + 4 * c + r] = all[f + r] * a + all[f + 3 + r] * b + all[f + 6 + r] * d + c * all[f + 9 + r];
  }
}

/// All shapes of one look (solid, ghost, joint axes, …) of all worlds.
export class ShapeSet extends THREE.Group {
  /// shapes: [{body, type, size, position, orientation, rgba, mesh}]; each world has nbody bodies.
  constructor(shapes, meshes, nbody, worlds, { ghost = false, shadows = true, onTop = false, plain = false } = {}) {
    super();
    this.nbody = nbody, this.worlds = worlds, this.plain = plain;
    const batches = new Map(), count = shapes.length * worlds;
    const segments = count < 1500 ? (plain ? 12 : 32) : count < 9000 ? (plain ? 8 : 12) : plain ? 6 : 8;
    const many = plain && count >= 300;
    for (const shape of shapes) {
      const found = (many && !ghost && !onTop && shape.rgba[3] === 1 && roundOf(shape)) || geometryOf(shape, meshes, segments);
      if (!found) continue;
      const [key, scale, make] = found, see_through = !ghost && shape.rgba[3] < 1;
      if (shape.rgba[3] === 0) continue;
      const name = key + (see_through ? ` ${shape.rgba[3]}` : '');
      if (!batches.has(name)) batches.set(name, { make, key, many, items: [], opacity: see_through ? shape.rgba[3] : 1 });
      batches.get(name).items.push({ shape, local: this.local(shape, scale) });
    }
    for (const batch of batches.values()) this.add(this.batch(batch, ghost, shadows, onTop));
  }
  local(shape, scale) {
    const o = shape.orientation ?? [1, 0, 0, 0], p = shape.position ?? [0, 0, 0];
    const m = frames(Float32Array.from([...p, ...o]), new Float32Array(12));
    for (let c = 0; c < 3; ++c) for (let r = 0; r < 3; ++r) m[3 * c + r] *= scale[c];
    return m;
  }
  batch({ make, key, many, items, opacity }, ghost, shadows, onTop) {
    const round = key === 'round', material = round ? roundMaterial() : this.plain ? new THREE.MeshLambertMaterial()
      : new THREE.MeshStandardMaterial({ roughness: 0.6, metalness: 0.05 });
    if (ghost) {
      Object.assign(material, { transparent: true, opacity: 0.3, depthWrite: false });
      material.color.set(0x4aa3ff), material.emissive.set(0x1a5cc0);
    }
    if (opacity < 1) Object.assign(material, { transparent: true, opacity });
    if (onTop) Object.assign(material, { depthTest: false, transparent: true, opacity: 0.85 });
    const geometry = make(), count = items.length * this.worlds, small = geometry.getAttribute('position').count <= 64;
    const mesh = many && small ? new Copies(geometry, material, count, round || key === 'box' ? key : 'other') : new THREE.InstancedMesh(geometry, material, count);
    if (round) mesh.setSizes(items.map(({ shape }) => shape.size[0]));
    mesh.instanceMatrix.setUsage(THREE.DynamicDrawUsage);
    mesh.frustumCulled = false, mesh.castShadow = shadows && !ghost, mesh.receiveShadow = shadows && !ghost;
    if (onTop) mesh.renderOrder = 2;
    mesh.items = items;
    const colour = new THREE.Color();
    if (!ghost) for (let w = 0; w < this.worlds; ++w) items.forEach(({ shape }, k) => {
      mesh.setColorAt(w * items.length + k, colour.setRGB(...shape.rgba.slice(0, 3), THREE.SRGBColorSpace));
    });
    return mesh;
  }
  /// all: frames() of [worlds][nbody] poses.
  move(all) {
    if (!this.visible) return;
    for (const mesh of this.children) {
      const numbers = mesh.numbers ?? mesh.instanceMatrix.array, [put, stride] = mesh.kind === 'round' ? [placeRound, 8] : [place, 16];
      let at = 0;
      for (let w = 0; w < this.worlds; ++w) for (const { shape, local } of mesh.items) {
        put(numbers, at, all, 12 * (w * this.nbody + shape.body), local);
        at += stride;
      }
      (mesh.places ?? mesh.instanceMatrix).needsUpdate = true;
      mesh.boundingSphere = null;  // of the old poses
    }
  }
  /// World and body of a raycaster's hit.
  owner(hit) {
    const n = hit.object.items.length;
    return { world: Math.floor(hit.instanceId / n), body: hit.object.items[hit.instanceId % n].shape.body };
  }
}

/// Each from the origin along z, of height and radius 1 (a ball: about the origin).
const kMarks = {
  ball: () => new THREE.SphereGeometry(1, 10, 6),
  arrow: arrowGeometry,
  rod: () => along_z(new THREE.CylinderGeometry(1, 1, 1, 8)).translate(0, 0, 0.5),
  cone: () => new THREE.ConeGeometry(1, 1, 24, 1, true).translate(0, -0.5, 0).rotateX(-Math.PI / 2),  // tip at the origin
};

/// As many balls, arrows, rods or cones as there happen to be: contacts, forces, bonds, friction. All but rods lie over
/// the scene.
export class Marks extends THREE.Group {
  constructor(colour, kind, opacity = 0.9) {
    super();
    this.kind = kind;
    this.material = kind === 'rod' ? new THREE.MeshStandardMaterial({ color: colour, roughness: 0.6 })
      : new THREE.MeshBasicMaterial({ color: colour, depthTest: false, transparent: true, opacity,
        side: kind === 'cone' ? THREE.DoubleSide : THREE.FrontSide });
    this.reserve(64);
  }
  reserve(n) {
    if (this.mesh) { this.remove(this.mesh); this.mesh.geometry.dispose(); this.mesh.dispose(); }
    this.mesh = new THREE.InstancedMesh(kMarks[this.kind](), this.material, n);
    this.mesh.frustumCulled = false, this.mesh.renderOrder = this.kind === 'rod' ? 0 : 3;
    this.add(this.mesh);
  }
  /// items: [origin, vector (along it, of its length; none for balls), radius [m]]. Vectors of no length are left out.
  show(items) {
    if (items.length > this.mesh.instanceMatrix.count) this.reserve(2 * items.length);
    const m = new THREE.Matrix4(), q = new THREE.Quaternion(), z = new THREE.Vector3(0, 0, 1), s = new THREE.Vector3();
    let count = 0;
    for (const [origin, vector, radius] of items) {
      const length = vector ? vector.length() : radius;
      if (!(length > 0)) continue;
      if (vector) q.setFromUnitVectors(z, vector.clone().divideScalar(length));
      this.mesh.setMatrixAt(count++, m.compose(origin, q, s.set(radius, radius, length)));
    }
    this.mesh.count = count, this.mesh.visible = count > 0;
    if (count > 0) this.mesh.instanceMatrix.needsUpdate = true;
  }
}

/// Semi-axes and orientation of the homogeneous ellipsoid with this inertia: Jacobi's method on a symmetric 3 x 3.
export function inertiaEllipsoid(mass, [xx, xy, xz, yy, yz, zz]) {
  const a = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], v = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];
  for (let sweep = 0; sweep < 12; ++sweep) for (const [p, q] of [[0, 1], [0, 2], [1, 2]]) {
    if (Math.abs(a[p][q]) < 1e-15) continue;
    const angle = 0.5 * Math.atan2(2 * a[p][q], a[q][q] - a[p][p]), c = Math.cos(angle), s = Math.sin(angle);
    for (let k = 0; k < 3; ++k) [a[k][p], a[k][q]] = [c * a[k][p] - s * a[k][q], s * a[k][p] + c * a[k][q]];
    for (let k = 0; k < 3; ++k) [a[p][k], a[q][k]] = [c * a[p][k] - s * a[q][k], s * a[p][k] + c * a[q][k]];
    for (let k = 0; k < 3; ++k) [v[k][p], v[k][q]] = [c * v[k][p] - s * v[k][q], s * v[k][p] + c * v[k][q]];
  }
  const I = [a[0][0], a[1][1], a[2][2]], trace = I[0] + I[1] + I[2];
  const size = I.map((i) => Math.sqrt(Math.max(2.5 * (trace - 2 * i) / mass, 0)));
  const turn = new THREE.Matrix4().set(...v[0], 0, ...v[1], 0, ...v[2], 0, 0, 0, 0, 1);
  if (turn.determinant() < 0) turn.scale(new THREE.Vector3(1, 1, -1));
  const q = new THREE.Quaternion().setFromRotationMatrix(turn);
  return { size, orientation: [q.w, q.x, q.y, q.z] };
}
