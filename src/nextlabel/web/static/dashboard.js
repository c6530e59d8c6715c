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

// Times are sent in UTC, as pages without scripts show them, and shown here in the time zone of whoever reads.
for (const field of document.querySelectorAll('input[type="datetime-local"]')) {
  const sent = Object.assign(document.createElement("input"), { type: "hidden", name: field.name, value: field.value });
  const note = field.closest("label").querySelector(".muted");
  field.removeAttribute("name");
  if (field.value) {
    const at = new Date(`${field.value}Z`);
    field.value = new Date(at - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
  }
  field.addEventListener("input", () => {
    sent.value = field.value ? new Date(field.value).toISOString().slice(0, 16) : "";
  });
  field.after(sent);
  note.textContent = note.textContent.replace("UTC", `${Intl.DateTimeFormat().resolvedOptions().timeZone} time`);
}

ago();
setInterval(ago, 10_000);
