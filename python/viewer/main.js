// The page: buttons, keys, sliders and plots for a stage and a source of frames.
import * as THREE from 'three';
import { Plot, short } from './plots.js';
import { Live, Recording } from './sources.js';
import { kOverlays, Stage } from './stage.js';

const $ = (id) => document.getElementById(id);
const make = (tag, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};
const options = new URLSearchParams(location.hash.slice(1));
const embedded = JSON.parse($('recording').textContent);
const address = `${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}${location.pathname.replace(/[^/]*$/, '')}socket`;
const source = embedded ? new Recording(embedded) : new Live(address);
const stage = new Stage($('view'), options.get('quality') ?? 'auto');
const speeds = [0.1, 0.25, 0.5, 1, 2, 4];
const plots = new Map();  // series' name → Plot
let picked = null;        // names of the series to plot; null: not chosen yet
let plotsStale = true, shown = 0;

// -- theme, panel --

const wanted = options.get('theme') ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
function setTheme(name) {
  document.documentElement.dataset.theme = name;
  stage.setTheme(name);
  plotsStale = true;
}
const otherTheme = () => setTheme(document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark');
setTheme(wanted === 'dark' ? 'dark' : 'light');
if (options.has('bare')) document.documentElement.dataset.bare = '';
function setPanel(open) {
  $('panel').hidden = !open;
  $('menu').setAttribute('aria-expanded', String(open));
}
setPanel(options.get('panel') !== '0' && !(innerWidth < 640 && !options.has('panel')));

// -- messages from the source --

const handlers = {
  opened() {
    $('title').textContent = source.scene.name || 'tarsus';
    document.title = `${source.scene.name || 'model'} · tarsus`;
    stage.canPush = !!source.canPush;
    stage.open(source.scene);
    plots.clear();
    $('plots').replaceChildren();
    picked ??= new Set(source.series.slice(0, 1).map((s) => s.name));
    $('plot-picks').replaceChildren(...source.series.map((s) => checkbox(s.name, picked.has(s.name), (on) => {
      if (on) picked.add(s.name); else picked.delete(s.name);
      layPlots();
    })));
    $('plot-section').hidden = source.series.length === 0;
    layPlots();
    layControls();
    layPushes();
    layGallery();
    const seek = $('seek');
    seek.disabled = source.live;
    if (!source.live) seek.min = source.start, seek.max = source.end;
    handlers.state();
  },
  controls: layControls,
  frame(frame) {
    stage.update(frame);
    $('time').textContent = `${frame.time.toFixed(2)} s`;
    if (!source.live) $('seek').value = frame.time;
    plotsStale = true;
    ++shown;
  },
  state() {
    $('play').textContent = source.playing ? 'Pause' : 'Play';
    $('play').setAttribute('aria-pressed', String(source.playing));
    $('speed').value = String(source.speed);
  },
  message(text, bad) {
    $('status').textContent = text ?? '';
    $('status').classList.toggle('bad', !!bad);
  },
};

function checkbox(label, on, changed) {
  const input = make('input', { type: 'checkbox', checked: on });
  input.addEventListener('change', () => changed(input.checked));
  return make('label', { className: 'line' }, input, label);
}
function layPlots() {
  for (const s of source.series) {
    if (picked.has(s.name) && !plots.has(s.name)) plots.set(s.name, new Plot(s));
    if (!picked.has(s.name)) plots.delete(s.name);
  }
  $('plots').replaceChildren(...[...plots.values()].map((p) => p.canvas));
  plotsStale = true;
}
function layControls() {
  const rows = [];
  if (source.keyframes?.length) {
    rows.push(make('div', { className: 'row' }, ...source.keyframes.map((name, i) => {
      const button = make('button', { textContent: name || `keyframe ${i}` });
      button.addEventListener('click', () => source.keyframe(i));
      return button;
    })));
  }
  for (const c of source.controls ?? []) rows.push(c.choices ? choice(c) : slider(c));
  $('controls').replaceChildren(...rows);
  $('control-section').hidden = rows.length === 0;
}
function choice(c) {
  const select = make('select', {}, ...c.choices.map((name) => make('option', { value: name, textContent: name, selected: name === c.value })));
  select.addEventListener('change', () => source.control(c.name, select.value));
  return make('label', { className: 'line' }, c.label ?? c.name, select);
}
/// A slider for a control between low and high; a logarithmic one (log) requires low > 0.
function slider(c) {
  const to = (x) => (c.log ? Math.log10(x) : x), from = (x) => (c.log ? 10 ** x : x);
  const input = make('input', { type: 'range', min: to(c.low), max: to(c.high), step: 'any', value: to(c.value) });
  input.dataset.control = c.name;
  const value = make('output', { textContent: `${short(c.value)} ${c.unit ?? ''}` });
  input.addEventListener('input', () => {
    const x = from(Number(input.value));
    value.textContent = `${short(x)} ${c.unit ?? ''}`;
    source.control(c.name, x);
  });
  return make('label', { className: 'control' }, make('span', { textContent: c.label ?? c.name }), value, input);
}
function layGallery() {
  $('gallery-section').hidden = !source.gallery;
  $('gallery').replaceChildren(...(source.gallery ?? []).map(({ name, line, picture }) => {
    const button = make('button', { title: line }, make('span', { textContent: `${name}: ${line}` }));
    if (picture) button.prepend(make('img', { src: `thumbnails/${name}.jpg`, alt: '' }));
    button.addEventListener('click', () => source.order('open', { name }));
    return button;
  }));
}
/// Buttons for users without a mouse: each pulls the chosen body in one direction for half a second.
function layPushes() {
  const bodies = source.scene.bodies.map((b, i) => [b.name || `body ${i}`, i]).filter(([, i]) => stage.moves(i));
  $('push-section').hidden = !source.canPush || !bodies.length;
  $('push-body').replaceChildren(...bodies.slice(0, 400).map(([name, i]) => make('option', { value: i, textContent: name })));
  const directions = { '+x': [1, 0, 0], '−x': [-1, 0, 0], '+y': [0, 1, 0], '−y': [0, -1, 0], '+z': [0, 0, 1] };
  $('push-buttons').replaceChildren(...Object.entries(directions).map(([name, d]) => {
    const button = make('button', { textContent: name, ariaLabel: `Push along ${name}` });
    button.addEventListener('click', () => {
      const owner = { world: 0, body: Number($('push-body').value) };
      const point = new THREE.Vector3(...(source.scene.bodies[owner.body].com ?? [0, 0, 0]));
      const at = point.clone().applyMatrix4(stage.frameOf(owner));
      stage.hold(owner.body, 0, point, at.addScaledVector(new THREE.Vector3(...d), stage.size));
      setTimeout(() => stage.letGo(), 500);
    });
    return button;
  }));
}

// -- actions of the user --

const toggle = () => (source.playing ? source.pause() : source.play());
function faster(n) {
  const i = speeds.indexOf(source.speed) + n;
  if (i >= 0 && i < speeds.length) source.setSpeed(speeds[i]);
}
const again = () => { stage.framed = false; source.reset(); };
$('play').addEventListener('click', toggle);
$('back').addEventListener('click', () => source.step(-1));
$('forward').addEventListener('click', () => source.step(1));
$('reset').addEventListener('click', again);
$('seek').addEventListener('input', () => { source.pause(); source.seek?.(Number($('seek').value)); });
$('speed').addEventListener('change', () => source.setSpeed(Number($('speed').value)));
$('menu').addEventListener('click', () => setPanel($('panel').hidden));
const boxes = Object.fromEntries(kOverlays.map(([key, label]) => [key, checkbox(label, stage.show[key], (value) => {
  stage.show[key] = value;
  stage.dirty = true;
})]));
boxes.fine = checkbox('fine picture', !stage.plain, (value) => stage.setPlain(!value));
boxes.dark = checkbox('dark', wanted === 'dark', otherTheme);
$('shows').replaceChildren(...Object.values(boxes));
stage.onPush = (body, world, point, target) => source.push?.(body, world, point, target);
stage.onRelease = () => source.release?.();
const keys = {
  ' ': toggle, ArrowLeft: () => source.step(-1), ArrowRight: () => source.step(1), r: again, '-': () => faster(-1),
  '+': () => faster(1), '=': () => faster(1), t: () => boxes.dark.click(), m: () => setPanel($('panel').hidden),
  f: () => boxes.follow.click(),
  a: () => stage.turn(-0.1, 0, 1), d: () => stage.turn(0.1, 0, 1), w: () => stage.turn(0, 0, 0.9),
  s: () => stage.turn(0, 0, 1.1), q: () => stage.turn(0, -0.07, 1), e: () => stage.turn(0, 0.07, 1),
};
addEventListener('keydown', (event) => {
  // Space and arrow keys go to a form field that has the focus.
  const field = event.target.closest?.('input, select, button, summary');
  if (event.ctrlKey || event.metaKey || event.altKey || (field && /^( |Arrow)/.test(event.key))) return;
  const action = keys[event.key] ?? keys[event.key.toLowerCase()];
  if (action) { action(); event.preventDefault(); }
});

// -- drawing --

let last = performance.now(), busy = 0, drawn = 0;
function draw(now) {
  requestAnimationFrame(draw);
  const begin = performance.now();
  source.tick(Math.min((now - last) / 1000, 0.25));
  last = now;
  const fresh = stage.draw();
  if (plotsStale) {
    plotsStale = false;
    for (const p of plots.values()) p.draw(source.times, stage.frame?.time ?? 0, !source.live);
  }
  if (fresh) busy += performance.now() - begin, ++drawn;
}
/// Interface for tests and for programs that take pictures.
window.tarsus = {
  source, stage,
  get frames() { return shown; },
  /// Number of pictures drawn since the page was opened, and the page's own time for them [ms].
  get cost() { return { drawn, busy }; },
  get ready() { return shown > 0 && drawn > 0; },
  seek(t) { source.pause(); source.seek(t); stage.draw(); },
};
source.open(handlers);
if (!source.live && options.has('t')) source.seek(Number(options.get('t')));
else if (!source.live && !options.has('paused')) source.play();
requestAnimationFrame(draw);
