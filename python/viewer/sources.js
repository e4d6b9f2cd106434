// Sources of frames: a recording inside the page, or a simulation at the other end of a WebSocket. Both provide the scene and
// the values of the series, emit frames {time, poses, ghost, contacts, tendons} and accept the same commands.

export function bytes(base64) {
  const text = atob(base64), out = new Uint8Array(text.length);
  for (let i = 0; i < text.length; ++i) out[i] = text.charCodeAt(i);
  return out.buffer;
}
export const floats = (base64) => new Float32Array(bytes(base64 ?? ''));
export const integers = (base64) => new Int32Array(bytes(base64 ?? ''));

/// Plays the frames that the page contains.
export class Recording {
  live = false;
  playing = false;
  speed = 1;
  index = 0;
  constructor(document) {
    this.scene = document.scene;
    this.times = floats(document.time);
    this.poses = floats(document.poses);
    this.ghost = floats(document.ghost);
    this.contactData = floats(document.contacts);
    this.contactStart = integers(document.contact_start);
    this.tendonData = floats(document.tendons);
    this.tendonStart = integers(document.tendon_start);
    this.series = document.series.map((s) => ({ name: s.name, unit: s.unit, values: floats(s.values) }));
    this.stride = this.poses.length / this.times.length;
    this.start = this.times[0], this.end = this.times[this.times.length - 1];
    this.time = this.start;
  }
  open(handlers) {
    this.handlers = handlers;
    handlers.opened();
    this.show(0);
  }
  show(index) {
    this.index = Math.min(Math.max(index, 0), this.times.length - 1);
    const i = this.index, row = (all) => all.subarray(i * this.stride, (i + 1) * this.stride);
    const part = (all, start, n) => (start.length ? all.subarray(n * start[i], n * start[i + 1]) : all);
    this.handlers.frame({ time: this.times[i], poses: row(this.poses), ghost: this.ghost.length ? row(this.ghost) : null,
      contacts: part(this.contactData, this.contactStart, 10), tendons: part(this.tendonData, this.tendonStart, 6), index: i });
  }
  /// Shows the last frame at or before t.
  seek(t) {
    this.time = Math.min(Math.max(t, this.start), this.end);
    let low = 0, high = this.times.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.times[middle] <= this.time + 1e-6) low = middle; else high = middle - 1;
    }
    this.show(low);
  }
  /// Called whenever the browser draws. elapsed: since the last call [s].
  tick(elapsed) {
    if (!this.playing) return;
    const t = this.time + elapsed * this.speed, span = this.end - this.start;
    this.seek(t > this.end && span > 0 ? this.start + (t - this.start) % span : t);
  }
  play() { this.playing = true; this.handlers.state(); }
  pause() { this.playing = false; this.handlers.state(); }
  step(n) {
    this.pause();
    this.show(this.index + n);
    this.time = this.times[this.index];
  }
  reset() { this.seek(this.start); }
  setSpeed(speed) { this.speed = speed; this.handlers.state(); }
}

/// Sends commands as JSON and receives binary frames. docs/viewer.md describes their layout.
export class Live {
  live = true;
  playing = false;
  speed = 1;
  series = [];
  constructor(address) { this.address = address; }
  open(handlers) {
    this.handlers = handlers;
    this.socket = new WebSocket(this.address);
    this.socket.binaryType = 'arraybuffer';
    this.socket.onmessage = (event) => (typeof event.data === 'string' ? this.text(JSON.parse(event.data))
      : this.numbers(event.data));
    this.socket.onclose = () => {
      handlers.message('The connection to the program is lost. The page keeps trying to connect again.', true);
      setTimeout(() => this.open(handlers), 1000);
    };
  }
  text(message) {
    if (message.type === 'scene') {
      this.scene = message.scene;
      this.series = message.series.map((s) => ({ ...s, values: [] }));
      this.controls = message.controls;
      this.canPush = message.can_push;
      this.keyframes = message.keyframes;
      this.gallery = message.gallery;
      this.history = [];
      this.handlers.opened();
    } else if (message.type === 'controls') {
      this.controls = message.controls;
      this.handlers.controls();
    } else if (message.type === 'error') {
      this.handlers.message(message.text, true);
    } else if (message.type === 'state') {
      this.playing = message.playing, this.speed = message.speed;
      this.handlers.state();
      this.handlers.message(message.text, message.bad);
    }
  }
  numbers(buffer) {
    if (!this.scene) return;
    const head = new Uint32Array(buffer, 0, 6), time = new Float64Array(buffer, 24, 1)[0];
    let at = 32;
    const take = (n) => { const out = new Float32Array(buffer, at, n); at += 4 * n; return out; };
    const poses = take(head[0]), ghost = take(head[1]), contacts = take(head[2]), values = take(head[3]), tendons = take(head[4]);
    // If time goes back, the later points of the plots are removed.
    while (this.history.length && this.history[this.history.length - 1] >= time - 1e-9) {
      this.history.pop();
      for (const s of this.series) s.values.pop();
    }
    this.history.push(time);
    this.series.forEach((s, k) => s.values.push(values[k]));
    if (this.history.length > 1200) {
      this.history.splice(0, 200);
      for (const s of this.series) s.values.splice(0, 200);
    }
    this.time = time;
    this.handlers.frame({ time, poses, ghost: ghost.length ? ghost : null, contacts, tendons });
  }
  get times() { return this.history; }
  tick() {}
  order(what, more = {}) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify({ do: what, ...more }));
  }
  play() { this.order('play'); }
  pause() { this.order('pause'); }
  step(n) { this.order('step', { n }); }
  reset() { this.order('reset'); }
  setSpeed(value) { this.order('speed', { value }); }
  keyframe(index) { this.order('keyframe', { index }); }
  control(name, value) { this.order('control', { name, value }); }
  push(body, world, point, target) { this.order('push', { body, world, point, target }); }
  release() { this.order('release'); }
}
