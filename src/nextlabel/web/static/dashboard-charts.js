// Charts on top of uPlot: colours from the style sheet, redrawn when the size or the colour scheme changes.

const all = new Set();
const dark = matchMedia("(prefers-color-scheme: dark)");
const FONT = "12px Inter, system-ui, sans-serif";

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function axis(values, more = {}) {
  return {
    stroke: () => colour("muted"),
    font: FONT,
    grid: { stroke: () => colour("line"), width: 1 },
    ticks: { show: false },
    values: values && ((u, ticks) => ticks.map(values)),
    ...more,
  };
}

/** A number for an axis: 12,000 as 12k. */
export function short(x) {
  if (x >= 1e6) return `${+(x / 1e6).toPrecision(3)}M`;
  if (x >= 1e4) return `${+(x / 1e3).toPrecision(3)}k`;
  return x.toLocaleString("en");
}

/** A share as a percentage for an axis. */
export const percentShort = (x) => `${+(100 * x).toFixed(1)}%`;

/** A share as a percentage. */
export const percent = (x, digits = 1) => `${(100 * x).toFixed(digits)}%`;

class Chart {
  constructor(element, options, data, tip) {
    this.element = element;
    this.tip = document.createElement("div");
    this.tip.className = "chart-tip";
    this.tip.hidden = true;
    const hooks = { setCursor: [(u) => this.point(u, tip)] };
    this.plot = new uPlot({ ...options, ...this.size(), legend: { show: false }, hooks }, data, element);
    element.append(this.tip);
    all.add(this);
    new ResizeObserver(() => this.plot.setSize(this.size())).observe(element);
  }

  size() {
    return { width: Math.max(this.element.clientWidth, 60), height: Math.max(this.element.clientHeight, 60) };
  }

  point(u, tip) {
    const { idx, left, top } = u.cursor;
    const text = idx == null || left < 0 ? "" : tip(u.data, idx);
    this.tip.hidden = !text;
    if (!text) return;
    this.tip.textContent = text;
    const room = this.element.clientWidth - this.tip.offsetWidth - 8;
    this.tip.style.left = `${Math.max(0, Math.min(left + u.over.offsetLeft + 12, room))}px`;
    this.tip.style.top = `${Math.max(0, top - 34)}px`;
  }

  set(data) {
    this.plot.setData(data);
  }
}

dark.addEventListener("change", () => all.forEach((chart) => chart.plot.redraw(false, true)));

/** Bars with one name each. */
export function bars(element, names, counts, tip) {
  let called = names;
  const chart = new Chart(
    element,
    {
      scales: { x: { time: false, range: (u) => [-0.6, u.data[0].length - 0.4] }, y: { range: (u, low, high) => [0, Math.max(high, 1) * 1.05] } },
      axes: [
        axis((x) => (Number.isInteger(x) ? called[x] ?? "" : ""), { grid: { show: false }, size: 30, space: 34, incrs: [1, 2, 4, 5, 10] }),
        axis((y) => (Number.isInteger(y) ? short(y) : ""), { size: 48 }),
      ],
      series: [{}, { fill: () => colour("accent"), width: 0, points: { show: false }, paths: uPlot.paths.bars({ size: [0.82, 64], radius: 0.12 }) }],
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
    },
    [counts.map((_, k) => k), counts],
    (data, k) => tip(called[k], data[1][k]),
  );
  return {
    set(newNames, newCounts) {
      called = newNames;
      chart.set([newCounts.map((_, k) => k), newCounts]);
    },
  };
}

/** A curve, or several over the same x; `marks` are [x, y, colour, text] drawn as points with words. */
export function curves(element, data, series, options) {
  let marks = options.marks ?? [];
  const draw = (u) => {
    const { ctx } = u;
    const ratio = devicePixelRatio;
    const { left, top, width, height } = u.bbox;
    ctx.save();
    ctx.textAlign = "left";
    ctx.font = `500 ${12 * ratio}px Inter, system-ui, sans-serif`;
    const written = [];
    for (const [x, y, ink, text] of marks) {
      const px = u.valToPos(x, "x", true);
      if (px < left - 1 || px > left + width + 1) continue;
      ctx.strokeStyle = ctx.fillStyle = colour(ink);
      if (y == null) {
        ctx.setLineDash([4 * ratio, 4 * ratio]);
        ctx.lineWidth = ratio;
        ctx.beginPath();
        ctx.moveTo(px, top);
        ctx.lineTo(px, top + height);
        ctx.stroke();
        ctx.setLineDash([]);
      } else {
        ctx.beginPath();
        ctx.arc(px, u.valToPos(y, "y", true), 4.5 * ratio, 0, 2 * Math.PI);
        ctx.fill();
      }
      if (text) {
        const wide = ctx.measureText(text).width;
        const beyond = px + wide + 12 * ratio > left + width;
        const at = beyond ? px - wide - 8 * ratio : px + 8 * ratio;
        const low = y == null ? top + height - 8 * ratio : u.valToPos(y, "y", true) + 18 * ratio;
        const free = (py) => py > top + 10 * ratio && py < top + height - 4 * ratio && written.every(
          ([from, to, line]) => at > to || at + wide < from || Math.abs(py - line) > 15 * ratio);
        // Below the point if there is room, else above it, else further away: no word on another.
        const tries = [low, low - 26 * ratio, low + 16 * ratio, low - 42 * ratio, low + 32 * ratio, low - 58 * ratio];
        const py = tries.find(free) ?? Math.min(low, top + height - 6 * ratio);
        written.push([at, at + wide, py]);
        ctx.fillText(text, at, py);
      }
    }
    ctx.restore();
  };
  const chart = new Chart(
    element,
    {
      scales: { x: { time: false }, y: { range: options.range } },
      axes: [axis(short, { grid: { show: false }, size: 30, space: 70 }), axis(options.values, { size: 56, space: 34 })],
      series: [{}, ...series.map(({ ink, dash, fill }) => ({
        stroke: () => colour(ink), width: 2, dash, spanGaps: true, points: { show: false }, fill: fill && (() => colour(fill)),
      }))],
      bands: (options.bands ?? []).map(({ series: pair, ink }) => ({ series: pair, fill: () => colour(ink) })),
      cursor: { y: false, drag: { x: false, y: false } },
      plugins: [{ hooks: { draw: [draw] } }],
    },
    data,
    options.tip,
  );
  return {
    set(newData) { chart.set(newData); },
    mark(newMarks) {
      marks = newMarks;
      chart.plot.redraw(false, false);
    },
  };
}

/** A range of y with some room above and below. */
export function roomy(u, low, high) {
  if (low == null) return [0, 1];
  const room = Math.max(high - low, 1e-6) * 0.12;
  return [low - room, high + room];
}

/** y at x, linear between the points. */
export function interpolate(xs, ys, x) {
  if (x <= xs[0]) return ys[0];
  for (let k = 1; k < xs.length; k++) {
    if (x <= xs[k]) return ys[k - 1] + ((ys[k] - ys[k - 1]) * (x - xs[k - 1])) / (xs[k] - xs[k - 1] || 1);
  }
  return ys.at(-1);
}
