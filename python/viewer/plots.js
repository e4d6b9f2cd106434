// Curves over time, one small canvas each.
const kWindow = 600;  // number of points shown

export class Plot {
  constructor(series) {
    this.series = series;
    this.canvas = document.createElement('canvas');
    this.canvas.className = 'plot';
    this.canvas.setAttribute('role', 'img');
  }
  draw(times, now, whole) {
    const { canvas } = this, ratio = devicePixelRatio || 1, style = getComputedStyle(canvas);
    const width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width || !times.length) return;
    if (canvas.width !== Math.round(width * ratio)) canvas.width = width * ratio, canvas.height = height * ratio;
    const g = canvas.getContext('2d'), values = this.series.values;
    const first = whole ? 0 : Math.max(0, times.length - kWindow), t0 = times[first];
    const span = Math.max(times[times.length - 1] - t0, 1e-9);
    let low = Infinity, high = -Infinity, current = values[values.length - 1];
    for (let i = first; i < values.length; ++i) {
      if (Number.isFinite(values[i])) low = Math.min(low, values[i]), high = Math.max(high, values[i]);
      if (whole && times[i] <= now + 1e-6) current = values[i];
    }
    if (!(high > low)) { const middle = Number.isFinite(low) ? low : 0, pad = Math.abs(middle) / 2 || 1; low = middle - pad, high = middle + pad; }
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, width, height);
    g.font = '11px system-ui, sans-serif', g.fillStyle = style.color;
    const label = `${this.series.name}${this.series.unit ? ` [${this.series.unit}]` : ''}: ${short(current)}`;
    g.fillText(label, 2, 11);
    canvas.setAttribute('aria-label', label);
    g.globalAlpha = 0.7, g.textAlign = 'right';
    g.fillText(short(high), width - 2, 25), g.fillText(short(low), width - 2, height - 3);
    g.textAlign = 'left', g.globalAlpha = 1;
    const x = (t) => (t - t0) / span * width, y = (v) => height - 4 - (v - low) / (high - low) * (height - 22);
    g.strokeStyle = style.getPropertyValue('--accent'), g.lineWidth = 1.5;
    g.beginPath();
    const stride = Math.max(1, Math.floor((values.length - first) / (2 * width)));
    for (let i = first; i < values.length; i += stride) g.lineTo(x(times[i]), y(values[i]));
    g.stroke();
    if (whole) {
      g.strokeStyle = style.color, g.globalAlpha = 0.5;
      g.beginPath(), g.moveTo(x(now), 14), g.lineTo(x(now), height), g.stroke();
      g.globalAlpha = 1;
    }
  }
}

export function short(x) {
  if (!Number.isFinite(x)) return '–';
  const size = Math.abs(x);
  return size !== 0 && (size < 1e-3 || size >= 1e5) ? x.toExponential(1) : String(Number(x.toPrecision(4)));
}
