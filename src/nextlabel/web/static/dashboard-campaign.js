// One campaign: charts, the slider, and updates while it runs.
// The server renders all HTML; this script replaces the parts that changed.

import { ago } from "./dashboard-ago.js";
import { bars, curves, interpolate, percent, percentShort, roomy } from "./dashboard-charts.js";

const POLL_MS = 2000;
const live = document.getElementById("live");
const slider = document.getElementById("slider");
const whatIfText = document.getElementById("what-if-text");
let chartData = JSON.parse(document.getElementById("charts").textContent);
const charts = {};

const formatValue = (y) => (chartData.accuracy ? percent(y) : y.toPrecision(4));
const binNames = () => chartData.probability.map((_, k) => `${5 * k}%`);

function formatGain(gain) {
  if (!chartData.accuracy) return `+${gain.toPrecision(3)}`;
  const points = 100 * gain;
  const digits = points >= 0.1 || points === 0 ? 1 : Math.min(1 - Math.floor(Math.log10(points)), 6);
  return `+${points.toFixed(digits)} points`;
}

function draw() {
  const { labels, labelNames, probability, curve } = chartData;
  if (labels.length) {
    if (charts.labels) charts.labels.set(labelNames, labels);
    else {
      charts.labels = bars(document.getElementById("chart-labels"), labelNames, labels,
        (name, n) => `${name} ${name === "1" ? "label" : "labels"}: ${n.toLocaleString("en")} items`);
    }
    if (charts.probability) charts.probability.set(binNames(), probability);
    else if (probability.some((n) => n > 0)) {
      charts.probability = bars(document.getElementById("chart-probability"), binNames(), probability,
        (name, n) => `${name} to ${parseInt(name, 10) + 5}%: ${n.toLocaleString("en")} items`);
    }
  }
  if (chartData.learnt) {
    if (curve.length || chartData.history.length) drawLearnt(); // there may be no forecast
    return;
  }
  if (!curve.length) return;
  const data = [curve.map(([x]) => x), curve.map(([, y]) => y)];
  if (charts.curve) charts.curve.set(data);
  else {
    charts.curve = curves(document.getElementById("chart-curve"), data, [{ ink: "accent" }], {
      range: (u, low, high) => roomy(u, Math.min(low ?? 1, chartData.now ?? 1), high),
      values: (y) => (chartData.accuracy ? percentShort(y) : `${+y.toPrecision(4)}`),
      tip: ([xs, ys], k) => `${xs[k].toLocaleString("en")} labels: at most ${formatValue(ys[k])}`,
    });
    document.getElementById("what-if").hidden = false;
  }
  const most = curve.at(-1)[0] - chartData.budget;
  slider.max = most;
  slider.step = Math.max(1, Math.round(most / 200));
  whatIf();
}

/** Expected accuracy so far with its band, and the forecast from here on. */
function drawLearnt() {
  const { history, curve, budget, spent, now, forecast, upper } = chartData;
  const ahead = curve.filter(([x]) => x > spent);
  const xs = [...new Set([...history.map(([x]) => x), spent, ...ahead.map(([x]) => x)])].sort((a, b) => a - b);
  const past = new Map(history.map((point) => [point[0], point]));
  const future = new Map([[spent, now], ...ahead]);
  const column = (k) => xs.map((x) => past.get(x)?.[k] ?? null);
  const data = [xs, column(3), column(2), column(1), xs.map((x) => future.get(x) ?? null)];
  if (charts.curve) charts.curve.set(data);
  else {
    charts.curve = curves(document.getElementById("chart-curve"), data, [
      { ink: "line-strong" }, { ink: "line-strong" }, { ink: "good" }, { ink: "warn", dash: [5, 5] },
    ], {
      bands: [{ series: [1, 2], ink: "good-soft" }],
      range: (u, low, high) => roomy(u, low, Math.min(high ?? 1, 1)),
      values: percentShort,
      tip: ([x, high, low, mean, later], k) => (mean[k] != null
        ? `${x[k].toLocaleString("en")} labels: ${percent(mean[k])} expected, ${percent(low[k])} to ${percent(high[k])}`
        : `${x[k].toLocaleString("en")} labels: forecast ${percent(later[k])}`),
    });
  }
  charts.curve.mark([
    [budget, null, "line-strong", ""],
    [spent, now, "good", "now"],
    ...(spent >= budget || forecast == null ? [] : [[budget, forecast, "warn", "forecast"]]),
    ...(spent >= budget || upper == null ? [] : [[budget, upper, "accent", "at most"]]),
  ]);
}

function whatIf() {
  const { budget, curve, upper, spent, now, forecast } = chartData;
  if (!curve.length) return;
  const more = +slider.value;
  const most = interpolate(curve.map(([x]) => x), curve.map(([, y]) => y), budget + more);
  const text = more === 0
    ? `With the budget of ${budget.toLocaleString("en")} labels: at most ${formatValue(upper)}.`
    : `${more.toLocaleString("en")} more labels gain at most ${formatGain(Math.max(most - upper, 0))}: from ${formatValue(upper)} to ${formatValue(most)}.`;
  if (whatIfText.textContent !== text) whatIfText.textContent = text;
  slider.setAttribute("aria-valuetext", `${more.toLocaleString("en")} more labels`);
  charts.curve.mark([
    [budget, null, "line-strong", ""],
    [spent, now, "good", "now"],
    ...(forecast == null ? [] : [[budget, forecast, "warn", "forecast"]]),
    [budget + more, most, "accent", more ? "" : "at most"],
  ]);
}

function replace(parts) {
  const postponed = [];
  for (const [name, html] of Object.entries(parts)) {
    const place = document.querySelector(`[data-part="${name}"]`);
    if (!place) continue;
    if (place.contains(document.activeElement)) postponed.push(name);  // not while somebody is using it
    else {
      place.innerHTML = html;
      ago(place);
    }
  }
  return postponed;
}

async function poll() {
  const { seq, seen } = live.dataset;
  const address = `${live.dataset.address}?after=${seq}&seen=${encodeURIComponent(seen)}`;
  const response = await fetch(address, { headers: { accept: "application/json" } });
  if ([401, 410].includes(response.status)) location.reload(); // signed out, or the campaign was deleted: the page says so
  if (response.status !== 200) return;
  const change = await response.json();
  const postponed = replace(change.parts);
  live.dataset.seq = change.seq;
  live.dataset.seen = postponed.reduce((text, name) => text.replace(new RegExp(`(^|[~,])${name}:[^,]*`), `$1${name}:`), change.seen);
  if (postponed.length) live.dataset.seq = 0;
  if (change.charts) {
    chartData = change.charts;
    draw();
  }
}

async function follow() {
  if (document.visibilityState === "visible") {
    try {
      await poll();
    } catch {
      // no connection for a moment: the next poll tries again
    }
  }
  setTimeout(follow, POLL_MS);
}

slider?.addEventListener("input", whatIf); // a campaign that tells workers apart has none
draw();
setTimeout(follow, POLL_MS / 2);
