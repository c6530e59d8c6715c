// The page of an expert: keys for the answers, as on the workers' page, where they can be switched off, and questions
// that depend on another one.
const shortcutsOn = () => localStorage.getItem("nextlabel:shortcuts-off") !== "1";
const askParts = () => {
  for (const part of document.querySelectorAll("[data-if]")) {
    part.hidden = part.disabled = !document.querySelector(`.part input[value="${part.dataset.if}"]`)?.checked;
  }
};
document.documentElement.classList.toggle("shortcuts", shortcutsOn());
document.addEventListener("change", askParts);
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing || !shortcutsOn()) return;
  if (event.target.matches?.("input:not([type=checkbox], [type=radio])")) return;
  const key = event.key.toLowerCase();
  if (key === "enter" && !event.target.closest?.("a, button, input")) document.querySelector(".send")?.click();
  const all = [...document.querySelectorAll("[data-keys]")].filter((one) => !one.closest("[hidden]"));
  const button = all.find((one) => [...one.dataset.keys].includes(key));
  if (!button) return;
  event.preventDefault();
  button.click();
});
askParts();
