// One campaign: charts, the slider, and what changes while it runs.
// The server makes all HTML; here pieces are put in place of their older selves.

import { ago } from "./dashboard-ago.js";
import { bars, curves, interpolate, percent, percentShort, roomy } from "./dashboard-charts.js";

const EVERY_MS = 2000;
const live = document.getElementById("live");
const slider = document.getElementById("slider");
const said = document.getElementById("what-if-said");
let numbers = JSON.parse(document.getElementById("charts").textContent);
const made = {};

const worth = (y) => (numbers.accuracy ? percent(y) : y.toPrecision(4));
const chances = () => numbers.chance.map((_, k) => `${5 * k}%`);

function gained(gain) {
  if (!numbers.accuracy) return `+${gain.toPrecision(3)}`;
  const points = 100 * gain;
  const digits = points >= 0.1 || points === 0 ? 1 : Math.min(1 - Math.floor(Math.log10(points)), 6);
  return `+${points.toFixed(digits)} points`;
}

function draw() {
  const { labels, labelNames, chance, curve } = numbers;
  if (labels.length) {
    if (made.labels) made.labels.set(labelNames, labels);
    else {
      made.labels = bars(document.getElementById("chart-labels"), labelNames, labels,
        (name, n) => `${name} ${name === "1" ? "label" : "labels"}: ${n.toLocaleString("en")} items`);
    }
    if (made.chance) made.chance.set(chances(), chance);
    else {
      made.chance = bars(document.getElementById("chart-chance"), chances(), chance,
        (name, n) => `${name} to ${parseInt(name, 10) + 5}%: ${n.toLocaleString("en")} items`);
    }
  }
  if (!curve.length) return;
  const data = [curve.map(([x]) => x), curve.map(([, y]) => y)];
  if (made.curve) made.curve.set(data);
  else {
    made.curve = curves(document.getElementById("chart-curve"), data, [{ ink: "accent" }], {
      range: (u, low, high) => roomy(u, Math.min(low ?? 1, numbers.now ?? 1), high),
      values: (y) => (numbers.accuracy ? percentShort(y) : `${+y.toPrecision(4)}`),
      tip: ([xs, ys], k) => `${xs[k].toLocaleString("en")} labels: at most ${worth(ys[k])}`,
    });
    document.getElementById("what-if").hidden = false;
  }
  const most = curve.at(-1)[0] - numbers.budget;
  slider.max = most;
  slider.step = Math.max(1, Math.round(most / 200));
  whatIf();
}

function whatIf() {
  const { budget, curve, upper, spent, now, heading } = numbers;
  if (!curve.length) return;
  const more = +slider.value;
  const most = interpolate(curve.map(([x]) => x), curve.map(([, y]) => y), budget + more);
  const text = more === 0
    ? `With the budget of ${budget.toLocaleString("en")} labels: at most ${worth(upper)}.`
    : `${more.toLocaleString("en")} more labels buy at most ${gained(Math.max(most - upper, 0))}: from ${worth(upper)} to ${worth(most)}.`;
  if (said.textContent !== text) said.textContent = text;
  slider.setAttribute("aria-valuetext", `${more.toLocaleString("en")} more labels`);
  made.curve.mark([
    [budget, null, "line-strong", ""],
    [spent, now, "good", "now"],
    ...(heading == null ? [] : [[budget, heading, "warn", "forecast"]]),
    [budget + more, most, "accent", more ? "" : "at most"],
  ]);
}

function replace(parts) {
  const waiting = [];
  for (const [name, html] of Object.entries(parts)) {
    const place = document.querySelector(`[data-part="${name}"]`);
    if (!place) continue;
    if (place.contains(document.activeElement)) waiting.push(name);  // nothing moves under somebody's hands
    else {
      place.innerHTML = html;
      ago(place);
    }
  }
  return waiting;
}

async function look() {
  const { campaign, seq, seen } = live.dataset;
  const address = `/campaigns/${campaign}/live?after=${seq}&seen=${encodeURIComponent(seen)}`;
  const response = await fetch(address, { headers: { accept: "application/json" } });
  if (response.status === 401) location.reload();
  if (response.status !== 200) return;
  const change = await response.json();
  const waiting = replace(change.parts);
  live.dataset.seq = change.seq;
  live.dataset.seen = waiting.reduce((text, name) => text.replace(new RegExp(`(^|[~,])${name}:[^,]*`), `$1${name}:`), change.seen);
  if (waiting.length) live.dataset.seq = 0;
  if (change.charts) {
    numbers = change.charts;
    draw();
  }
}

async function follow() {
  if (document.visibilityState === "visible") {
    try {
      await look();
    } catch {
      // the network is away for a moment: the next look will tell
    }
  }
  setTimeout(follow, EVERY_MS);
}

slider.addEventListener("input", whatIf);
draw();
setTimeout(follow, EVERY_MS / 2);
