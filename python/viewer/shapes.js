// Shapes fixed to bodies, drawn as instances: one batch per geometry, one instance per shape and world.
import * as THREE from 'three';
import { mergeVertices } from 'three/addons/utils/BufferGeometryUtils.js';
import { floats, integers } from './sources.js';

const along_z = (geometry) => geometry.rotateX(Math.PI / 2);

/// The corners of a mesh's triangles, one after the other, each with its normal: the mean of those faces at its vertex that
/// are within 0.6 rad of its own face. Sharper edges stay hard. Vertices within a millionth of the mesh's size are one.
function meshGeometry(mesh) {
  const points = floats(mesh.vertices), corners = integers(mesh.triangles), faces = corners.length / 3, kCrease = Math.cos(0.6);
  const low = [0, 1, 2].map((c) => points.reduce((least, x, i) => (i % 3 === c ? Math.min(least, x) : least), Infinity));
  const size = points.reduce((most, x, i) => Math.max(most, x - low[i % 3]), 0);
  const cells = points.map((x, i) => Math.round(1e6 / size * (x - low[i % 3])));
  const apart = (u, v) => cells[3 * u] - cells[3 * v] || cells[3 * u + 1] - cells[3 * v + 1] || cells[3 * u + 2] - cells[3 * v + 2];
  const sorted = Uint32Array.from({ length: points.length / 3 }, (_, v) => v).sort(apart), vertex = new Uint32Array(sorted.length);
  sorted.forEach((v, k) => { vertex[v] = k > 0 && apart(sorted[k - 1], v) === 0 ? vertex[sorted[k - 1]] : v; });
  const at = new Uint32Array(sorted.length + 1), around = new Uint32Array(corners.length);  // faces around each vertex
  for (const v of corners) ++at[vertex[v]];
  for (let v = 0, sum = 0; v < at.length; ++v) sum += at[v], at[v] = sum;
  corners.forEach((v, i) => { around[--at[vertex[v]]] = Math.floor(i / 3); });
  const [a, b, c] = [0, 1, 2].map(() => new THREE.Vector3()), flat = new Float64Array(3 * faces);
  for (let f = 0; f < faces; ++f) {
    [a, b, c].forEach((p, k) => p.fromArray(points, 3 * corners[3 * f + k]).divideScalar(size));
    b.sub(a).cross(c.sub(a)).normalize().toArray(flat, 3 * f);
  }
  const positions = new Float32Array(3 * corners.length), normals = new Float32Array(positions.length);
  for (let i = 0; i < corners.length; ++i) {
    const own = 3 * Math.floor(i / 3), v = vertex[corners[i]];
    a.set(0, 0, 0);
    for (let k = at[v]; k < at[v + 1]; ++k) {
      const g = 3 * around[k];
      if (flat[own] * flat[g] + flat[own + 1] * flat[g + 1] + flat[own + 2] * flat[g + 2] > kCrease)
        a.x += flat[g], a.y += flat[g + 1], a.z += flat[g + 2];
    }
    a.normalize().toArray(normals, 3 * i);
    positions.set(points.subarray(3 * corners[i], 3 * corners[i] + 3), 3 * i);
  }
  const out = new THREE.BufferGeometry();
  out.setAttribute('position', new THREE.BufferAttribute(positions, 3)), out.setAttribute('normal', new THREE.BufferAttribute(normals, 3));
  return out;
}

/// [key, scale, function that makes the geometry] of a shape. Shapes with equal keys are instances of one geometry.
/// n: number of segments of a circle.
function geometryOf(shape, meshes, n) {
  const [x, y, z] = shape.size;
  switch (shape.type) {
    case 'box': return ['box', [x, y, z], () => new THREE.BoxGeometry(2, 2, 2)];
    case 'sphere': return ['sphere', [x, x, x], () => new THREE.SphereGeometry(1, n, n / 2)];
    case 'ellipsoid': return ['sphere', [x, y, z], () => new THREE.SphereGeometry(1, n, n / 2)];
    case 'cylinder': return ['cylinder', [x, x, y], () => along_z(new THREE.CylinderGeometry(1, 1, 2, n))];
    case 'capsule':
      return [`capsule ${x} ${y}`, [1, 1, 1], () => along_z(new THREE.CapsuleGeometry(x, 2 * y, n >> 2, Math.ceil(0.6 * n)))];
    case 'plane': return ['plane', [x, y, 1], () => new THREE.PlaneGeometry(2, 2)];  // seen from its front alone
    case 'arrow': return ['arrow', [x, x, y], arrowGeometry];
    case 'mesh': return [`mesh ${shape.mesh}`, [1, 1, 1], () => meshGeometry(meshes[shape.mesh])];
  }
  return null;
}

const roundOf = ({ type, size: [radius, half] }) =>
  (type === 'sphere' || type === 'capsule') && ['round', [radius, radius, type === 'capsule' ? half : 0], roundGeometry];
/// A rectangle that the shader turns to the camera. Its vertices span the shape, for computations of bounds.
function roundGeometry() {
  const out = new THREE.BufferGeometry();
  out.setAttribute('position', new THREE.Float32BufferAttribute([-1, -1, -1, 1, -1, -1, 1, 1, 1, -1, 1, 1], 3));
  return out.setIndex([0, 1, 2, 0, 2, 3]);
}
/// The three faces of a box next to its corner (1, 1, 1). A camera sees at most three faces, and the shader mirrors the three
/// faces onto those.
function facesGeometry() {
  const out = new THREE.BufferGeometry();
  out.setAttribute('position', new THREE.Float32BufferAttribute([1, 1, 1, 1, 1, -1, 1, -1, 1, -1, 1, 1, 1, -1, -1, -1, 1, -1, -1, -1, 1], 3));
  return out.setIndex([0, 2, 4, 0, 4, 1, 0, 1, 5, 0, 5, 3, 0, 3, 6, 0, 6, 2]);
}

// Drawing without a graphics card: each vertex looks up its shape and its body's pose in two textures.
const kAcross = 256, kItemTexels = 5;  // records in a row of a texture; columns of a shape's place in its body, colour
const kFind = (vertices) => `
  uniform highp sampler2D poses, items;
  uniform int shapes, bodies;
  vec4 ofItem(int k, int texel) { return texelFetch(items, ivec2(${kItemTexels} * (k % ${kAcross}) + texel, k / ${kAcross}), 0); }
  vec4 ofPose(int k, int texel) { return texelFetch(poses, ivec2(2 * (k % ${kAcross}) + texel, k / ${kAcross}), 0); }
  vec3 rotate(vec4 q, vec3 v) { return v + 2.0 * cross(q.yzw, cross(q.yzw, v) + q.x * v); }
  int copy() { return gl_VertexID / ${vertices}; }
  int item() { return copy() % shapes; }
  int pose() { return copy() / shapes * bodies + int(ofItem(item(), 3).w); }`;
/// Draws a capsule or a sphere as one rectangle that faces the camera: two triangles instead of fifty, with the outline,
/// shading and position of the shape.
const kRound = {
  vertex: `
    varying vec2 across;  // from the middle of the axis, in radii
    flat varying vec3 side, upward, shade;
    flat varying float straight;
    ${kFind(4)}
    void main() {
      int k = item(), b = pose();
      vec4 turn = ofPose(b, 1), axis_and_size = ofItem(k, 2);
      vec3 half_axis = mat3(modelViewMatrix) * rotate(turn, axis_and_size.xyz);
      vec3 centre = (modelViewMatrix * vec4(ofPose(b, 0).xyz + rotate(turn, ofItem(k, 3).xyz), 1.0)).xyz;
      float size = axis_and_size.w;
      vec2 corner = vec2((gl_VertexID + 1 & 2) - 1, (gl_VertexID & 2) - 1);
      vec3 back = -normalize(centre), flat_axis = half_axis - dot(half_axis, back) * back;
      float seen = length(flat_axis);
      upward = seen > 1e-3 * size ? flat_axis / seen : normalize(cross(back, vec3(0.6, 0.0, 0.8)));
      side = cross(upward, back);
      straight = seen / size;
      across = corner * vec2(1.0, 1.0 + straight);
      shade = ofItem(k, 4).rgb;
      gl_Position = projectionMatrix * vec4(centre + corner.y * half_axis + size * (corner.x * side + corner.y * upward), 1.0);
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
const roundMaterial = (uniforms) => Object.assign(new THREE.ShaderMaterial({ lights: true, vertexShader: kRound.vertex,
  fragmentShader: kRound.fragment, uniforms: THREE.UniformsUtils.clone(THREE.UniformsLib.lights) }),
  { onBeforeCompile: (shader) => Object.assign(shader.uniforms, uniforms) });
const table = (records, texels) => {
  const rows = Math.max(Math.ceil(records / kAcross), 1), numbers = new Float32Array(4 * texels * kAcross * rows);
  return new THREE.DataTexture(numbers, texels * kAcross, rows, THREE.RGBAFormat, THREE.FloatType);
};

/// Many shapes as one mesh, for software renderers, in which each instance costs a separate call of 10 us. Shapes outside the
/// view are omitted. Splats draws spheres, capsules and boxes of a few pixels.
class Copies extends THREE.Mesh {
  /// kind: round, box or other. items: as in ShapeSet. poses: texture of [worlds][nbody]. small: whether Splats may draw
  /// small shapes. tinted: whether the colour is that of the material.
  constructor(geometry, material, { kind, items, worlds, nbody, poses, small, tinted }) {
    const shape = geometry, uniforms = { poses: { value: poses }, items: { value: table(items.length, kItemTexels) },
      shapes: { value: items.length }, bodies: { value: nbody } };
    if (kind === 'box') geometry = facesGeometry();
    if (kind === 'other') {  // each corner is one vertex, shared by its faces
      for (const name of ['normal', 'uv']) geometry.deleteAttribute(name);
      geometry.computeBoundingSphere();
      geometry = mergeVertices(geometry, 1e-4 * geometry.boundingSphere.radius);
    }
    const { array: corners, count: vertices } = geometry.getAttribute('position'), count = items.length * worlds;
    super(new THREE.BufferGeometry(), kind === 'round' ? roundMaterial(uniforms) : material);
    Object.assign(this, { kind, items, worlds, nbody, count, shape, vertices, uniforms, small, pattern: geometry.index.array });
    if (kind !== 'round') {
      const positions = new Float32Array(count * corners.length);
      for (let i = 0; i < count; ++i) positions.set(corners, i * corners.length);
      this.geometry.setAttribute('position', new THREE.BufferAttribute(positions, 3));
      this.hook(material, uniforms);
    }
    this.geometry.setIndex(new THREE.BufferAttribute(new Uint32Array(count * this.pattern.length), 1).setUsage(THREE.DynamicDrawUsage));
    this.bodies = Int32Array.from(items, ({ shape: { body } }) => body);
    this.reaches = new Float32Array(items.length), this.sizes = new Float32Array(items.length);
    items.forEach(({ shape: { rgba }, local }, k) => this.setItem(k, local, tinted ? [1, 1, 1] : rgba));
  }
  /// Changes a material of three.js so that it looks up the poses of its instances in the textures.
  hook(material, uniforms) {
    const { kind, vertices } = this;
    Object.assign(material, { vertexColors: true, flatShading: true }, kind === 'box' && { side: THREE.DoubleSide });
    const toward = `vec3 toward = (cameraPosition - instanceMatrix[3].xyz) * mat3(instanceMatrix);
      vec3 transformed = position * mix(vec3(-1.0), vec3(1.0), step(0.0, toward));`;
    material.onBeforeCompile = (shader) => {
      Object.assign(shader.uniforms, uniforms);
      if (kind === 'box') shader.vertexShader = shader.vertexShader.replace('#include <begin_vertex>', toward);
      shader.vertexShader = `#define USE_INSTANCING
        mat4 instanceMatrix;
        ${kFind(vertices)}
        ${shader.vertexShader.replace('#include <color_vertex>', 'vColor = ofItem(item(), 4);').replace('void main() {', `void main() {
          int k = item(), b = pose();
          vec4 turn = ofPose(b, 1);
          instanceMatrix = mat4(${[0, 1, 2].map((c) => `vec4(rotate(turn, ofItem(k, ${c}).xyz), 0.0)`)},
            vec4(ofPose(b, 0).xyz + rotate(turn, ofItem(k, 3).xyz), 1.0));`)}`;
    };
    material.customProgramCacheKey = () => `copies ${kind} ${vertices}`;
  }
  setItem(k, local, colour) {
    const numbers = this.uniforms.items.value.image.data, at = 4 * kItemTexels * k;
    for (let c = 0; c < 4; ++c) numbers.set(local.subarray(3 * c, 3 * c + 3), at + 4 * c);
    const column = (c) => Math.hypot(...local.subarray(3 * c, 3 * c + 3));
    const { boundingSphere: { radius } } = (this.shape.computeBoundingSphere(), this.shape);
    this.sizes[k] = this.kind === 'round' ? column(0) + column(2) : this.kind === 'box' ? Math.hypot(column(0), column(1), column(2))
      : radius * Math.max(column(0), column(1), column(2));
    this.reaches[k] = this.sizes[k] + column(3);
    numbers[at + 11] = column(0), numbers[at + 15] = this.bodies[k];
    const { r, g, b } = new THREE.Color().setRGB(...colour.slice(0, 3), THREE.SRGBColorSpace);
    numbers.set([r, g, b, 1], at + 16);
    this.uniforms.items.value.needsUpdate = true;
  }
  /// Chooses the shapes to draw: `splats` draws those of few pixels at once; the others are drawn with the scene.
  choose(camera, splats) {
    const { kind, small, bodies, reaches, sizes, worlds, nbody, vertices, pattern, poses } = this;
    const n = bodies.length, round = kind === 'round';
    const [v, p] = [camera.matrixWorldInverse.elements, camera.projectionMatrix.elements], locals = this.uniforms.items.value.image.data;
    const ax = Math.hypot(1, p[0]), ay = Math.hypot(1, p[5]), { most, near, shape } = splats, list = this.geometry.index.array;
    let drawn = 0;
    for (let w = 0, i = 0; w < worlds; ++w) for (let k = 0; k < n; ++k, ++i) {
      const at = 7 * (w * nbody + bodies[k]), px = poses[at], py = poses[at + 1], pz = poses[at + 2], reach = reaches[k];
      const x = v[0] * px + v[4] * py + v[8] * pz + v[12], y = v[1] * px + v[5] * py + v[9] * pz + v[13];
      const z = v[2] * px + v[6] * py + v[10] * pz + v[14];
      // Behind the camera, or outside its view frustum.
      if (-z < -reach || -z - p[0] * Math.abs(x) < -reach * ax || -z - p[5] * Math.abs(y) < -reach * ay) continue;
      if (!small || -z - reach < near || sizes[k] > most * (-z - reach)) {
        for (let c = 0; c < pattern.length; ++c) list[drawn++] = vertices * i + pattern[c];
        continue;
      }
      const qw = poses[at + 3], qx = poses[at + 4], qy = poses[at + 5], qz = poses[at + 6], from = 4 * kItemTexels * k;
      for (let c = round ? 2 : 0; c < 4; ++c) {  // columns of the shape's local frame
        const lx = locals[from + 4 * c], ly = locals[from + 4 * c + 1], lz = locals[from + 4 * c + 2];
        const tx = qy * lz - qz * ly + qw * lx, ty = qz * lx - qx * lz + qw * ly, tz = qx * ly - qy * lx + qw * lz;
        const ox = lx + 2 * (qy * tz - qz * ty), oy = ly + 2 * (qz * tx - qx * tz), oz = lz + 2 * (qx * ty - qy * tx);
        const to = c === 3 ? 0 : round ? 3 : 3 * c + 3;
        shape[to] = v[0] * ox + v[4] * oy + v[8] * oz, shape[to + 1] = v[1] * ox + v[5] * oy + v[9] * oz;
        shape[to + 2] = v[2] * ox + v[6] * oy + v[10] * oz;
      }
      shape[0] += x, shape[1] += y, shape[2] += z;
      const colour = round ? 7 : 12;
      shape[colour] = locals[from + 16], shape[colour + 1] = locals[from + 17], shape[colour + 2] = locals[from + 18];
      if (round) shape[6] = locals[from + 11], splats.round(); else splats.box();
    }
    this.geometry.setDrawRange(0, drawn);
    if (drawn === 0) return;
    this.geometry.index.clearUpdateRanges(), this.geometry.index.addUpdateRange(0, drawn);
    this.geometry.index.needsUpdate = true;
  }
  getMatrixAt(i, m) {
    const k = i % this.items.length, pose = Math.floor(i / this.items.length) * this.nbody + this.bodies[k];
    m.identity();
    place(m.elements, 0, frames(this.poses.subarray(7 * pose, 7 * pose + 7), new Float32Array(12)), 0, this.items[k].local);
    return m;
  }
  /// Intersects rays with the shapes.
  raycast(caster, hits) {
    const { ray, near, far } = caster, one = new THREE.Mesh(this.shape, this.material), found = [];
    const m = one.matrixWorld, [x, axis, centre, point] = [0, 1, 2, 3].map(() => new THREE.Vector3());
    for (let instanceId = 0; instanceId < this.count; ++instanceId) {
      this.getMatrixAt(instanceId, m);
      if (this.kind !== 'round') {
        one.raycast(caster, found);
        hits.push(...found.splice(0).map((hit) => ({ ...hit, object: this, instanceId })));
        continue;
      }
      x.setFromMatrixColumn(m, 0), axis.setFromMatrixColumn(m, 2), centre.setFromMatrixPosition(m);
      const square = ray.distanceSqToSegment(centre.clone().sub(axis), centre.clone().add(axis), point);
      const distance = ray.origin.distanceTo(point) - Math.sqrt(Math.max(x.lengthSq() - square, 0));
      if (square < x.lengthSq() && distance > near && distance < far)
        hits.push({ distance, point: ray.at(distance, new THREE.Vector3()), object: this, instanceId });
    }
  }
}

/// An arrow from the origin to (0, 0, 1), of radius 1; instances are scaled.
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

/// All shapes of one kind (solid, ghost, joint axes, …) in all worlds.
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
  /// Texture of all poses, for Copies.
  get places() { return this.posesTexture ??= table(this.nbody * this.worlds, 2); }
  local(shape, scale) {
    const o = shape.orientation ?? [1, 0, 0, 0], p = shape.position ?? [0, 0, 0];
    const m = frames(Float32Array.from([...p, ...o]), new Float32Array(12));
    for (let c = 0; c < 3; ++c) for (let r = 0; r < 3; ++r) m[3 * c + r] *= scale[c];
    return m;
  }
  batch({ make, key, many, items, opacity }, ghost, shadows, onTop) {
    const material = this.plain ? new THREE.MeshLambertMaterial() : new THREE.MeshStandardMaterial({ roughness: 0.6, metalness: 0.05 });
    if (ghost) {
      Object.assign(material, { transparent: true, opacity: 0.3, depthWrite: false });
      material.color.set(0x4aa3ff), material.emissive.set(0x1a5cc0);
    }
    if (opacity < 1) Object.assign(material, { transparent: true, opacity });
    if (onTop) Object.assign(material, { depthTest: false, transparent: true, opacity: 0.85 });
    if (key === 'plane') Object.assign(material, { polygonOffset: true, polygonOffsetFactor: -1, polygonOffsetUnits: -1 });  // over the ground
    const geometry = make(), copied = many && geometry.getAttribute('position').count <= 64;
    const kind = key === 'round' || key === 'box' ? key : 'other', small = kind !== 'other' && !ghost && !onTop && opacity === 1;
    const mesh = copied
      ? new Copies(geometry, material, { kind, items, worlds: this.worlds, nbody: this.nbody, poses: this.places, small, tinted: ghost })
      : new THREE.InstancedMesh(geometry, material, items.length * this.worlds);
    mesh.frustumCulled = false;
    if (onTop) mesh.renderOrder = 2;
    if (copied) return mesh;
    mesh.receiveShadow = shadows && !ghost, mesh.castShadow = mesh.receiveShadow && key !== 'plane';
    mesh.instanceMatrix.setUsage(THREE.DynamicDrawUsage);
    mesh.items = items;
    const colour = new THREE.Color();
    if (!ghost) for (let w = 0; w < this.worlds; ++w) items.forEach(({ shape }, k) => {
      mesh.setColorAt(w * items.length + k, colour.setRGB(...shape.rgba.slice(0, 3), THREE.SRGBColorSpace));
    });
    return mesh;
  }
  /// poses: [worlds][nbody][7]; all(): frames() of them.
  move(poses, all) {
    if (!this.visible) return;
    this.poses = poses, this.stale = true;
    for (const mesh of this.children) {
      if (mesh instanceof Copies) { mesh.poses = poses; continue; }
      const numbers = mesh.instanceMatrix.array, places = all();
      let at = 0;
      for (let w = 0; w < this.worlds; ++w) for (const { shape, local } of mesh.items) {
        place(numbers, at, places, 12 * (w * this.nbody + shape.body), local);
        at += 16;
      }
      mesh.instanceMatrix.needsUpdate = true;
      mesh.boundingSphere = null;  // it belongs to the old poses
    }
  }
  /// Called before each picture.
  choose(camera, splats) {
    if (!this.visible || !this.posesTexture || !this.poses) return;
    let whole = 0;
    for (const mesh of this.children) if (mesh instanceof Copies) mesh.choose(camera, splats), whole += mesh.geometry.drawRange.count;
    if (!this.stale || whole === 0) return;
    this.stale = false;
    const { poses, posesTexture: { image: { data } } } = this;
    for (let p = 0, at = 0; p < poses.length; p += 7, at += 8) {
      data[at] = poses[p], data[at + 1] = poses[p + 1], data[at + 2] = poses[p + 2];
      data[at + 4] = poses[p + 3], data[at + 5] = poses[p + 4], data[at + 6] = poses[p + 5], data[at + 7] = poses[p + 6];
    }
    this.posesTexture.needsUpdate = true;
  }
  /// World and body of a raycaster's hit.
  owner(hit) {
    const n = hit.object.items.length;
    return { world: Math.floor(hit.instanceId / n), body: hit.object.items[hit.instanceId % n].shape.body };
  }
}

/// Each mark extends from the origin along z, with height and radius 1 (a ball: around the origin).
const kMarks = {
  ball: () => new THREE.SphereGeometry(1, 10, 6),
  arrow: arrowGeometry,
  rod: () => along_z(new THREE.CylinderGeometry(1, 1, 1, 8)).translate(0, 0, 0.5),
  cone: () => new THREE.ConeGeometry(1, 1, 24, 1, true).translate(0, -0.5, 0).rotateX(-Math.PI / 2),  // tip at the origin
};

/// A varying number of balls, arrows, rods or cones: contacts, forces, bonds, friction. All except rods are drawn over the
/// scene.
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
  /// items: [origin, vector (direction and length; none for balls), radius [m]]. Vectors of zero length are omitted.
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
