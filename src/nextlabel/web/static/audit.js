// Keys for the answers of an expert, as on the workers' page, where they can be switched off.
const shortcutsOn = () => localStorage.getItem("nextlabel:shortcuts-off") !== "1";
document.documentElement.classList.toggle("shortcuts", shortcutsOn());
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing || !shortcutsOn()) return;
  const key = event.key.toLowerCase();
  const button = [...document.querySelectorAll("[data-keys]")].find((one) => [...one.dataset.keys].includes(key));
  if (!button) return;
  event.preventDefault();
  button.click();
});
