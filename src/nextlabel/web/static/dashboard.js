// Shared by all pages of the dashboard: copy buttons, menus and relative times.

import { ago } from "./dashboard-ago.js";

async function copy(button, text) {
  const before = button.innerHTML;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Press Ctrl+C";
    const field = button.parentElement.querySelector("input");
    field?.select();
  }
  setTimeout(() => { button.innerHTML = before; }, 1500);
}

for (const button of document.querySelectorAll("[data-copy], [data-copy-from]")) {
  button.hidden = false;
  button.addEventListener("click", () => {
    const from = button.dataset.copyFrom;
    copy(button, from ? document.getElementById(from).value : button.dataset.copy);
  });
}

document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});

ago();
setInterval(ago, 10_000);
