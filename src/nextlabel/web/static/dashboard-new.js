// A new campaign: dropping a file, and what a budget buys.

import { curves, interpolate, percent, percentShort, roomy } from "./dashboard-charts.js";

const drop = document.getElementById("drop");
const form = document.getElementById("make");

function watchDrop() {
  const file = document.getElementById("file");
  const message = document.getElementById("drop-text");
  const send = () => {
    if (!file.files.length) return;
    const most = +drop.dataset.most - 4096;  // the form itself needs some bytes
    if (file.files[0].size > most) {
      const [has, takes] = [file.files[0].size, most].map((n) => `${(n / 1048576).toFixed(1)} MiB`);
      message.textContent = `The file has ${has}, but this page accepts at most ${takes}. Use the API, or raise the service’s limit.`;
      file.value = "";
      return;
    }
    message.textContent = `Reading ${file.files[0].name}…`;
    drop.requestSubmit();
  };
  file.addEventListener("change", send);
  send(); // a file that was chosen before this script ran
  for (const kind of ["dragenter", "dragover"]) {
    drop.addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.add("over");
    });
  }
  for (const kind of ["dragleave", "drop"]) drop.addEventListener(kind, () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    if (!event.dataTransfer.files.length) return;
    file.files = event.dataTransfer.files;
    send();
  });
}

function watchForm() {
  const budget = document.getElementById("budget");
  const labels = document.getElementById("labels");
  const score = document.getElementById("score");
  const accuracy = document.getElementById("accuracy");
  const message = document.getElementById("budget-text");
  const table = document.querySelector("#budget-table tbody");
  const element = document.getElementById("chart-budget");
  let chart, curve, asked = "", timer;

  const answers = () => labels.value.split("\n").filter((line) => line.trim()).length;
  const skill = () => accuracy.value > 0.5 && accuracy.value < 1 ? { accuracy: accuracy.value } : {};
  const price = () => +form.elements.pay_per_label.value * (1 + +form.elements.platform_fee.value);
  const wanted = () => {
    const [, before, amount, after] = budget.value.replace(/[, ]/g, "").match(/^([a-z]{2,8})?([\d.]+)([a-z]{2,8})?$/i) || [];
    return before || after ? Math.floor(amount / price() + 1e-9) : Number(amount);
  };

  function describeBudget() {
    if (!curve) return;
    const U = wanted();
    if (!Number.isFinite(U) || U <= 0) {
      message.textContent = "Give a whole number of labels, or money and the pay per label (under More).";
      return;
    }
    const last = curve.budgets.at(-1);
    const at = Math.min(U, last);
    const expected = interpolate(curve.budgets, curve.expected, at);
    const most = interpolate(curve.budgets, curve.most, at);
    const each = (U / form.dataset.rows).toFixed(1);
    message.textContent = U > last
      ? `${each} labels per item: beyond the curve, ${percent(expected)} or better.`
      : `${each} labels per item: about ${percent(expected)} correct, at most ${percent(most)} if workers are alike and as assumed below.`;
    if (price()) message.textContent += ` ${U.toLocaleString("en")} labels cost ${(U * price()).toFixed(2)} ${(budget.value.match(/[a-z]+/i) || [form.elements.currency.value])[0]}.`;
    if (curve.scaled) message.textContent += " Computed for 1,000 items and scaled.";
    chart.mark([[at, null, "line-strong", ""], [at, expected, "accent", ""]]);
  }

  function show(newCurve) {
    curve = newCurve;
    const data = [curve.budgets, curve.expected, curve.most];
    if (chart) chart.set(data);
    else {
      chart = curves(element, data, [{ ink: "accent" }, { ink: "line-strong", dash: [5, 5] }], {
        range: roomy,
        values: percentShort,
        tip: ([x, y, z], k) => `${x[k].toLocaleString("en")} labels: about ${percent(y[k])}, at most ${percent(z[k])}`,
      });
    }
    table.replaceChildren(...curve.budgets.flatMap((U, k) => {
      if (k % 4) return [];
      const row = document.createElement("tr");
      for (const [tag, text] of [["th", U.toLocaleString("en")], ["td", percent(curve.expected[k])], ["td", percent(curve.most[k])]]) {
        const cell = document.createElement(tag);
        cell.className = "n";
        if (tag === "th") cell.scope = "row";
        cell.textContent = text;
        row.append(cell);
      }
      return [row];
    }));
    describeBudget();
  }

  async function ask() {
    const J = answers();
    if (J < 2 || J > 26) return;
    const query = new URLSearchParams({ answers: J, score: J === 2 ? score.value : "", ...skill() }).toString();
    if (query === asked) return;
    asked = query;
    message.textContent = "Computing what a budget buys…";
    try {
      for (let tries = 0; tries < 10; tries++) {
        const response = await fetch(`${form.dataset.curve}?${query}`, { headers: { accept: "application/json" } });
        if (query !== asked) return;
        if (response.status === 202) continue;
        if (!response.ok) throw new Error();
        const curve = await response.json();
        if (query !== asked) return;
        if (curve.why) message.textContent = curve.why;
        else show(curve);
        return;
      }
    } catch {
      if (query === asked) message.textContent = "What a budget buys could not be computed.";
    }
  }

  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(ask, 400);
  };
  labels.addEventListener("input", soon);
  accuracy.addEventListener("input", soon);
  score.addEventListener("change", soon);
  for (const name of ["budget", "pay_per_label", "platform_fee", "currency"]) form.elements[name].addEventListener("input", describeBudget);
  ask();

  form.addEventListener("submit", () => {
    document.getElementById("submit").disabled = true;
    document.getElementById("submit-text").textContent = "Adding the items…";
  });
  addEventListener("pageshow", () => { document.getElementById("submit").disabled = false; });
}

if (drop) watchDrop();
if (form) watchForm();
