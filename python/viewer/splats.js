// Shapes of a few pixels. The page draws them itself into an image with depths, and the scene shows this image as one
// rectangle. In a software renderer each triangle costs about a microsecond, whatever its size.
import * as THREE from 'three';

const kFar = 1e30, kShades = 4096;
/// sRGB bytes for linear shades from 0 to 1.
const kBytes = Uint8Array.from({ length: kShades + 1 }, (_, i) => {
  const c = i / kShades;
  return Math.round(255 * (c <= 0.0031308 ? 12.92 * c : 1.055 * c ** (1 / 2.4) - 0.055));
});

const kVertex = `
  uniform vec4 bounds;
  void main() { gl_Position = vec4(mix(bounds.xy, bounds.zw, position.xy), 0.0, 1.0); }`;
const kFragment = `
  uniform highp sampler2D depths, colours;
  uniform vec2 toDepth;
  void main() {
    ivec2 at = ivec2(gl_FragCoord.xy);
    float depth = texelFetch(depths, at, 0).r;
    if (depth >= ${kFar}) discard;
    gl_FragColor = vec4(texelFetch(colours, at, 0).rgb, 1.0);
    gl_FragDepth = 0.5 + 0.5 * (toDepth.y / depth - toDepth.x);
  }`;

export class Splats extends THREE.Mesh {
  static kMostPixels = 20;  // across a shape
  constructor() {
    const uniforms = { depths: { value: null }, colours: { value: null }, toDepth: { value: new THREE.Vector2() },
      bounds: { value: new THREE.Vector4() } };
    super(new THREE.BufferGeometry(), new THREE.ShaderMaterial({ uniforms, vertexShader: kVertex, fragmentShader: kFragment }));
    this.geometry.setAttribute('position', new THREE.Float32BufferAttribute([0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0], 3));
    this.geometry.setIndex([0, 1, 2, 0, 2, 3]);
    this.frustumCulled = false, this.renderOrder = -1, this.visible = false;
    this.shape = new Float64Array(15);  // input of round() and box(), in the camera's axes
    this.lights = new Float64Array(15);
    this.width = this.height = this.count = 0;  // count: number of shapes in the picture
  }
  /// width, height: size of the camera's picture [pixels].
  begin(camera, width, height, sky, sun) {
    if (this.count > 0) this.depths.fill(kFar, this.bottom * this.width, this.top * this.width);
    if (this.width !== width || this.height !== height) this.depths = null;
    const p = camera.projectionMatrix.elements;
    Object.assign(this, { width, height, count: 0, perMeter: 0.5 * p[5] * height, near: camera.near });  // perMeter: pixels, at 1 m
    this.left = width, this.right = 0, this.bottom = height, this.top = 0;  // bounds of all shapes
    this.most = Splats.kMostPixels / (2 * this.perMeter);
    this.material.uniforms.toDepth.value.set(p[10], p[14]);
    const turn = (v) => v.transformDirection(camera.matrixWorldInverse).toArray();
    const [top, bottom] = [sky.color, sky.groundColor].map((c) => c.toArray().map((x) => x * sky.intensity / Math.PI));
    this.lights.set([...turn(new THREE.Vector3().setFromMatrixPosition(sky.matrixWorld)),
      ...turn(sun.position.clone().sub(sun.target.position)), ...top.map((x, c) => (x + bottom[c]) / 2),
      ...top.map((x, c) => (x - bottom[c]) / 2), ...sun.color.toArray().map((x) => x * sun.intensity / Math.PI)]);
  }
  /// Called for the first shape in a picture of a new size.
  reserve() {
    const { width, height, material: { uniforms } } = this;
    this.depths = new Float32Array(width * height).fill(kFar), this.colours = new Uint8Array(4 * width * height);
    const map = (numbers, format, type) => new THREE.DataTexture(numbers, width, height, format, type);
    for (const name of ['depths', 'colours']) uniforms[name].value?.dispose();
    uniforms.depths.value = map(this.depths, THREE.RedFormat, THREE.FloatType);
    uniforms.colours.value = map(this.colours, THREE.RGBAFormat, THREE.UnsignedByteType);
  }
  end() {
    this.visible = this.count > 0;
    if (!this.visible) return;
    const { uniforms: { depths, colours, bounds } } = this.material, { width, height } = this;
    depths.value.needsUpdate = colours.value.needsUpdate = true;
    bounds.value.set(2 * this.left / width - 1, 2 * this.bottom / height - 1, 2 * this.right / width - 1, 2 * this.top / height - 1);
  }
  cover(left, right, bottom, top) {
    ++this.count;
    if (left < this.left) this.left = left;
    if (right >= this.right) this.right = right + 1;
    if (bottom < this.bottom) this.bottom = bottom;
    if (top >= this.top) this.top = top + 1;
  }
  /// shape: centre, half the axis, radius, colour. As kRound in shapes.js, but depth is approximated as linear along the axis.
  round() {
    if (!this.depths) this.reserve();
    const { width, height, perMeter, depths, colours, lights, shape } = this;
    const cx = shape[0], cy = shape[1], cz = shape[2], hx = shape[3], hy = shape[4], hz = shape[5];
    const size = shape[6], red = shape[7], green = shape[8], blue = shape[9];
    const depth = -cz, low = perMeter / (depth + hz), high = perMeter / (depth - hz);
    const x0 = (cx - hx) * low, y0 = (cy - hy) * low, x1 = (cx + hx) * high, y1 = (cy + hy) * high;
    const half = 0.5 * Math.sqrt((x1 - x0) * (x1 - x0) + (y1 - y0) * (y1 - y0)), radius = Math.max(size * perMeter / depth, 0.5);
    const straight = half > 1e-3, ux = straight ? 0.5 * (x1 - x0) / half : 0, uy = straight ? 0.5 * (y1 - y0) / half : 1;
    // Axes of the normals: towards the camera (b), along the projected axis (v), sideways (s).
    const far = 1 / Math.sqrt(cx * cx + cy * cy + cz * cz), bx = -cx * far, by = -cy * far, bz = -cz * far;
    const lx = straight ? hx : 0, ly = straight ? hy : 1, lz = straight ? hz : 0, along = lx * bx + ly * by + lz * bz;
    let vx = lx - along * bx, vy = ly - along * by, vz = lz - along * bz;
    const seen = 1 / Math.sqrt(vx * vx + vy * vy + vz * vz);
    vx *= seen, vy *= seen, vz *= seen;
    const sx = vy * bz - vz * by, sy = vz * bx - vx * bz, sz = vx * by - vy * bx;
    const topS = sx * lights[0] + sy * lights[1] + sz * lights[2], topV = vx * lights[0] + vy * lights[1] + vz * lights[2];
    const topB = bx * lights[0] + by * lights[1] + bz * lights[2];
    const sunS = sx * lights[3] + sy * lights[4] + sz * lights[5], sunV = vx * lights[3] + vy * lights[4] + vz * lights[5];
    const sunB = bx * lights[3] + by * lights[4] + bz * lights[5];
    const r0 = red * lights[6], r1 = red * lights[9], r2 = red * lights[12], g0 = green * lights[7], g1 = green * lights[10];
    const g2 = green * lights[13], b0 = blue * lights[8], b1 = blue * lights[11], b2 = blue * lights[14];
    const middleX = 0.5 * (x0 + x1 + width) - 0.5, middleY = 0.5 * (y0 + y1 + height) - 0.5;
    const reachX = Math.abs(ux) * half + radius, reachY = Math.abs(uy) * half + radius;
    const left = Math.max(Math.ceil(middleX - reachX), 0), right = Math.min(Math.floor(middleX + reachX), width - 1);
    const bottom = Math.max(Math.ceil(middleY - reachY), 0), top = Math.min(Math.floor(middleY + reachY), height - 1);
    const steep = straight ? hz / half : 0, inverse = 1 / radius;
    if (left > right || bottom > top) return;
    this.cover(left, right, bottom, top);
    for (let j = bottom; j <= top; ++j) {
      const y = j - middleY;
      for (let i = left, at = j * width + left; i <= right; ++i, ++at) {
        const x = i - middleX, t = x * ux + y * uy, clamped = t > half ? half : t < -half ? -half : t;
        const s = (x * uy - y * ux) * inverse, v = (t - clamped) * inverse, square = s * s + v * v;
        if (square > 1) continue;
        const n = Math.sqrt(1 - square), d = depth - steep * clamped - n * size;
        if (d >= depths[at]) continue;
        depths[at] = d;
        const sky = s * topS + v * topV + n * topB, facing = s * sunS + v * sunV + n * sunB, sun = facing > 0 ? facing : 0, p = 4 * at;
        const r = r0 + r1 * sky + r2 * sun, g = g0 + g1 * sky + g2 * sun, b = b0 + b1 * sky + b2 * sun;
        colours[p] = kBytes[(r < 1 ? r : 1) * kShades | 0], colours[p + 1] = kBytes[(g < 1 ? g : 1) * kShades | 0];
        colours[p + 2] = kBytes[(b < 1 ? b : 1) * kShades | 0];
      }
    }
  }
  /// shape: centre, half the three edges, colour. Rays are approximated as parallel and enter the box through one of three faces.
  box() {
    if (!this.depths) this.reserve();
    const { width, height, depths, colours, lights, shape: s } = this;
    const cx = s[0], cy = s[1], cz = s[2], far = 1 / Math.sqrt(cx * cx + cy * cy + cz * cz), depth = -cz, meters = depth / this.perMeter;
    const face = this.face ??= { across: new Float64Array(3), up: new Float64Array(3), thick: new Float64Array(3), bytes: new Uint8Array(9) };
    const { across, up, thick, bytes } = face;
    let squares = 0;
    for (let k = 0; k < 3; ++k) {
      const ex = s[3 * k + 3], ey = s[3 * k + 4], ez = s[3 * k + 5], square = ex * ex + ey * ey + ez * ez;
      let slow = (ex * cx + ey * cy + ez * cz) * far / square;
      if (Math.abs(slow) < 1e-6) slow = 1e-6;
      // A ray crosses the faces at the depths x · across + y · up ∓ thick.
      across[k] = -meters * ex / square / slow, up[k] = -meters * ey / square / slow, thick[k] = 1 / Math.abs(slow);
      squares += square;
      const unit = (slow > 0 ? -1 : 1) / Math.sqrt(square), sky = unit * (ex * lights[0] + ey * lights[1] + ez * lights[2]);
      const sun = Math.max(unit * (ex * lights[3] + ey * lights[4] + ez * lights[5]), 0);
      for (let c = 0; c < 3; ++c)
        bytes[3 * k + c] = kBytes[Math.min(s[12 + c] * (lights[6 + c] + lights[9 + c] * sky + lights[12 + c] * sun), 1) * kShades | 0];
    }
    const reach = Math.max(Math.sqrt(squares) / meters, 0.5), middleX = cx / meters + 0.5 * width - 0.5, middleY = cy / meters + 0.5 * height - 0.5;
    const left = Math.max(Math.ceil(middleX - reach), 0), right = Math.min(Math.floor(middleX + reach), width - 1);
    const bottom = Math.max(Math.ceil(middleY - reach), 0), top = Math.min(Math.floor(middleY + reach), height - 1);
    const a0 = across[0], a1 = across[1], a2 = across[2], u0 = up[0], u1 = up[1], u2 = up[2], t0 = thick[0], t1 = thick[1], t2 = thick[2];
    if (left > right || bottom > top) return;
    this.cover(left, right, bottom, top);
    for (let j = bottom; j <= top; ++j) {
      const y = j - middleY;
      for (let i = left, at = j * width + left; i <= right; ++i, ++at) {
        const x = i - middleX, p0 = x * a0 + y * u0, p1 = x * a1 + y * u1, p2 = x * a2 + y * u2;
        const e0 = p0 - t0, e1 = p1 - t1, e2 = p2 - t2, first = e0 > e1 ? (e0 > e2 ? e0 : e2) : e1 > e2 ? e1 : e2;
        if (first > p0 + t0 || first > p1 + t1 || first > p2 + t2) continue;
        const d = depth + first * depth * far;
        if (d >= depths[at]) continue;
        depths[at] = d;
        const from = first === e0 ? 0 : first === e1 ? 3 : 6, p = 4 * at;
        colours[p] = bytes[from], colours[p + 1] = bytes[from + 1], colours[p + 2] = bytes[from + 2];
      }
    }
  }
}
