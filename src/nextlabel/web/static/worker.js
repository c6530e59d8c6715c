// The worker's page without full page loads. Everything here also works as plain forms when this file does not run.
//
// An answer is kept in sessionStorage until the service has confirmed it, and sent again while the connection is lost:
// the service takes the same answer to the same item once, however often it comes.
(() => {
  "use strict";

  const panel = document.getElementById("panel");
  if (!panel) return;
  const texts = JSON.parse(panel.dataset.texts);
  const plurals = new Intl.PluralRules(document.documentElement.lang);
  const statusLine = document.getElementById("status");
  let address = panel.dataset.address; // in a frame, without cookies, it says what was read and answered last
  const KEPT = "nextlabel:" + address.split("?")[0];
  const SHORTCUTS_OFF = "nextlabel:shortcuts-off";
  const TIMEOUT_MS = 15000;
  const RETRY_MS = [500, 1000, 2000, 4000, 8000];
  const ACTIVE_MS = 180000; // after so long without any activity, the worker may have left
  const LOST = [401, 404, 410]; // the page itself says why: no cookie, no such campaign, or one that was deleted
  const SETTLE_MS = 300; // the second click of a double click must not answer the next item

  let sending = false;
  let shownAt = 0;
  let activeAt = Date.now();
  let leaseUntil = 0;
  let leaseFull = 0;
  let nextRenewal = 0;
  let retryTimer = 0;

  // Storage by its name: in a frame of another site, even to look at it may be forbidden.
  const stored = (kind, name, value) => {
    try {
      const storage = window[kind];
      if (value === undefined) return storage.getItem(name);
      if (value === null) storage.removeItem(name);
      else storage.setItem(name, value);
    } catch {
      // storage may be blocked: then an unsent answer is lost with the page
    }
    return null;
  };

  const announce = (text, trouble = false) => {
    statusLine.textContent = text;
    statusLine.classList.toggle("trouble", trouble);
  };

  const call = async (path, fields) => {
    const response = await fetch(path, {
      method: fields ? "POST" : "GET",
      body: fields,
      headers: { Accept: "application/json" },
      credentials: "same-origin",
      cache: "no-store",
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    let body = null;
    try {
      body = await response.json();
    } catch {
      body = null;
    }
    return { status: response.status, ok: response.ok && body !== null, body: body || {} };
  };

  // Resolves after some time, or as soon as the browser says that it is online again.
  const pause = (ms) =>
    new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        removeEventListener("online", done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      addEventListener("online", done);
    });

  const currentLease = () => panel.querySelector("[data-lease]")?.dataset.lease ?? null;
  const currentReason = () => panel.querySelector("[data-reason]")?.dataset.reason ?? null;

  const show = (body) => {
    if (body.language !== document.documentElement.lang) {
      location.reload(); // the requester has chosen another language: the page around the panel has texts too
      return;
    }
    panel.innerHTML = body.panel;
    if (body.address !== address) {
      address = body.address;
      history.replaceState(null, "", address);
    }
    panel.classList.add("fresh");
    document.title = body.title;
    scrollTo(0, 0);
    document.getElementById("item")?.focus({ preventScroll: true });
    settle();
  };

  // A question that depends on another one is asked when that has the answer.
  const askParts = () => {
    for (const part of panel.querySelectorAll("[data-if]")) {
      part.hidden = part.disabled = !panel.querySelector(`.part input[value="${part.dataset.if}"]`)?.checked;
    }
  };

  // Called whenever new content is shown.
  const settle = () => {
    shownAt = performance.now();
    askParts();
    clearTimeout(retryTimer);
    for (const image of panel.querySelectorAll("img")) {
      if (image.complete && image.naturalWidth === 0) showLoadError(image); // failed before the listener was there
    }
    const item = panel.querySelector("[data-lease]");
    if (item) {
      leaseFull = Number(item.dataset.left) * 1000;
      leaseUntil = Date.now() + leaseFull;
      nextRenewal = 0;
    } else {
      leaseUntil = 0;
      const retry = Number(panel.querySelector("[data-retry]")?.dataset.retry ?? 0);
      if (retry > 0) retryTimer = setTimeout(refreshWhenVisible, retry * 1000);
    }
  };

  // One request at a time: until it is confirmed, all buttons are disabled for assistive technology but keep the focus.
  const setSending = (now) => {
    sending = now;
    panel.classList.toggle("sending", now);
    for (const button of panel.querySelectorAll("button")) {
      if (now) button.setAttribute("aria-disabled", "true");
      else button.removeAttribute("aria-disabled");
    }
  };

  const showLoadError = (medium) => {
    if (medium.parentNode.querySelector(".failed")) return;
    const line = document.createElement("p");
    line.className = "failed muted small";
    const link = document.createElement("a");
    link.href = medium.src;
    link.target = "_blank";
    link.rel = "noopener noreferrer";
    link.textContent = texts.media.open;
    const [before, after] = texts.media.failed.split("{link}");
    line.append(before, link, after);
    medium.parentNode.append(line);
  };

  const send = async (fields) => {
    if (sending) return;
    setSending(true);
    stored("sessionStorage", KEPT, fields);
    let reply = null;
    for (let attempt = 0; ; attempt += 1) {
      try {
        reply = await call(address, new URLSearchParams(fields));
        if (reply.ok || (reply.status >= 400 && reply.status < 500 && reply.status !== 429)) break;
      } catch {
        // no connection
      }
      announce(texts.status.not_sent, true);
      await pause(RETRY_MS[Math.min(attempt, RETRY_MS.length - 1)]);
    }
    stored("sessionStorage", KEPT, null);
    setSending(false);
    if (!reply.ok) {
      if (LOST.includes(reply.status)) location.reload();
      else announce((reply.status === 422 && panel.querySelector(".number span")?.textContent) || texts.status.failed, true);
      return;
    }
    show(reply.body);
    const note = document.getElementById("note");
    announce(note ? note.textContent : confirmation(fields));
  };

  const confirmation = (fields) => {
    const sent = new URLSearchParams(fields);
    if (sent.get("move") === "begin") return currentLease() ? texts.status.new_item : "";
    if (sent.get("move") === "undo") return texts.status.undone;
    if (sent.get("move") === "release") return texts.status.skipped;
    const saved = panel.querySelector(".undo strong");
    return saved ? texts.status.saved_label.replace("{label}", () => saved.textContent) : texts.status.saved;
  };

  // Fetch what the service shows now; the page changes only if that is different.
  const refresh = async () => {
    if (sending) return;
    try {
      const reply = await call(address);
      if (sending) return;
      if (LOST.includes(reply.status)) {
        location.reload();
        return;
      }
      if (!reply.ok) throw new Error(String(reply.status));
      const parsed = document.createElement("template");
      parsed.innerHTML = reply.body.panel;
      const lease = parsed.content.querySelector("[data-lease]")?.dataset.lease ?? null;
      const reason = parsed.content.querySelector("[data-reason]")?.dataset.reason ?? null;
      if (statusLine.classList.contains("trouble")) announce("");
      if (lease !== currentLease() || reason !== currentReason()) {
        show(reply.body);
        announce(lease ? texts.status.new_item : "");
      } else {
        settle();
      }
    } catch {
      announce(texts.status.offline, true);
      clearTimeout(retryTimer);
      retryTimer = setTimeout(refreshWhenVisible, 3000);
    }
  };

  // A page in the background must not take an item from other workers.
  const refreshWhenVisible = () => {
    if (document.visibilityState === "visible") refresh();
    else document.addEventListener("visibilitychange", refreshWhenVisible, { once: true });
  };

  // A number with the form of the text that the language's plural asks for.
  const said = (forms, n) => (forms[plurals.select(n)] ?? forms.other).replace("{n}", String(n));

  const timeLeft = (seconds) => {
    if (seconds <= 0) return texts.time.up;
    if (seconds < 90) return said(texts.time.seconds, Math.ceil(seconds));
    if (seconds < 5400) return said(texts.time.minutes, Math.round(seconds / 60));
    if (seconds < 172800) return said(texts.time.hours, Math.round(seconds / 3600));
    return said(texts.time.days, Math.round(seconds / 86400));
  };

  const isActive = () => {
    if (document.visibilityState !== "visible") return false;
    const playing = [...panel.querySelectorAll("audio, video")].some((medium) => !medium.paused);
    return playing || Date.now() - activeAt < ACTIVE_MS;
  };

  const renew = async (lease) => {
    nextRenewal = Date.now() + 5000;
    try {
      const reply = await call(panel.dataset.renew, new URLSearchParams({ lease }));
      if (!reply.ok || lease !== currentLease()) return;
      const left = Number(reply.body.left) * 1000;
      if (Date.now() + left <= leaseUntil + 1000) nextRenewal = Date.now() + 60000; // the deadline allows no more
      leaseUntil = Date.now() + left;
      leaseFull = Math.max(leaseFull, left);
    } catch {
      // the next tick tries again
    }
  };

  const tick = () => {
    const lease = currentLease();
    const line = document.getElementById("time");
    if (!lease || !line) return;
    const left = leaseUntil - Date.now();
    const text = timeLeft(left / 1000);
    if (line.textContent !== text) line.textContent = text;
    line.classList.toggle("short", left < Math.min(30000, leaseFull / 4));
    if (left > 0 && left < leaseFull / 2 && Date.now() >= nextRenewal && !sending && isActive()) renew(lease);
  };

  const shortcutsOn = () => stored("localStorage", SHORTCUTS_OFF) !== "1";

  panel.addEventListener("submit", (event) => {
    if ("leaves" in event.target.dataset) return; // back to the platform
    event.preventDefault();
    const button = event.submitter;
    const answering = event.target.id === "answers";
    if (sending || (answering && performance.now() - shownAt < SETTLE_MS)) return;
    const fields = new URLSearchParams(new FormData(event.target));
    if (button?.name) fields.set(button.name, button.value);
    if (button?.classList.contains("choice")) button.classList.add("chosen");
    send(fields.toString());
  });

  panel.addEventListener("change", askParts);

  panel.addEventListener(
    "click",
    (event) => {
      if (event.detail > 1 && event.target.closest("button")) event.preventDefault();
    },
    true,
  );

  // Whoever opens the comment wants to write one.
  panel.addEventListener(
    "toggle",
    (event) => {
      if (event.target.open && event.target.matches?.(".comment")) event.target.querySelector("textarea").focus();
    },
    true,
  );

  panel.addEventListener(
    "error",
    (event) => {
      if (event.target.matches?.("img, audio, video")) showLoadError(event.target);
    },
    true,
  );

  document.addEventListener("keydown", (event) => {
    activeAt = Date.now();
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing || !shortcutsOn()) return;
    const typing = "textarea, select, audio, video, [contenteditable], input:not([type=checkbox], [type=radio])";
    if (event.target.closest?.(typing)) return;
    if (event.key === "Enter" && !event.target.closest?.("a, button, input, summary")) panel.querySelector(".send")?.click();
    if ([...event.key].length !== 1) return;
    const key = event.key.toLowerCase();
    const buttons = [...panel.querySelectorAll("[data-keys]")].filter((one) => !one.closest("[hidden]"));
    const button = buttons.find((one) => one.dataset.keys.includes(key));
    if (button && key !== " ") {
      event.preventDefault();
      button.click();
    }
  });

  for (const kind of ["pointerdown", "pointermove", "scroll", "touchstart"]) {
    addEventListener(kind, () => (activeAt = Date.now()), { passive: true, capture: true });
  }
  addEventListener("pageshow", (event) => {
    if (event.persisted) refresh();
  });

  const keysSwitch = document.getElementById("keys-on");
  const followSwitch = () => document.documentElement.classList.toggle("shortcuts", shortcutsOn());
  keysSwitch.checked = shortcutsOn();
  keysSwitch.addEventListener("change", () => {
    stored("localStorage", SHORTCUTS_OFF, keysSwitch.checked ? null : "1");
    followSwitch();
  });
  document.getElementById("keys-switch").hidden = false;
  followSwitch();

  if (location.search && location.pathname + location.search !== address) history.replaceState(null, "", address);
  setInterval(tick, 1000);
  settle();
  shownAt = -SETTLE_MS;
  const kept = stored("sessionStorage", KEPT);
  if (kept) send(kept);
})();
