// Relative times, such as "3 min. ago".

const UNITS = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
const words = new Intl.RelativeTimeFormat("en", { numeric: "always", style: "short" });

/** Show every <time data-ago> inside `root` as a relative time. */
export function ago(root = document) {
  for (const element of root.querySelectorAll("time[data-ago]")) {
    const at = new Date(element.dateTime);
    const seconds = Math.max(0, (Date.now() - at) / 1000);
    const [unit, size] = UNITS.find(([, size]) => seconds >= size) ?? UNITS.at(-1);
    const text = seconds < 5 ? "just now" : words.format(-Math.floor(seconds / size), unit);
    element.title = at.toLocaleString();
    if (element.textContent !== text) element.textContent = text;
  }
}
