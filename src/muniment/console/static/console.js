// Shared by all pages: local times, light and dark mode, keyboard shortcuts, toasts, live counts.

const root = document.documentElement;

// ---- light and dark ----
const stored = localStorage.getItem("muniment-theme");
if (stored === "light" || stored === "dark") root.dataset.theme = stored;
document.querySelector("[data-theme-switch]")?.addEventListener("click", () => {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("muniment-theme", root.dataset.theme);
});

// ---- on a phone the menu is wider than the screen: scroll to the current section ----
const current = document.querySelector(".menu [aria-current]");
if (current) current.parentElement.scrollLeft = current.offsetLeft - (current.parentElement.clientWidth - current.offsetWidth) / 2;

// ---- times in the viewer's zone, UTC on hover ----
export function localTimes(within = document) {
  const format = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
  for (const time of within.querySelectorAll("time[datetime]:not([data-relative])")) {
    const at = new Date(time.dateTime);
    if (!Number.isNaN(at.getTime())) time.textContent = format.format(at);
  }
}
localTimes();

// ---- relative times, by the server's clock ----
const skew = document.body.dataset.now ? new Date(document.body.dataset.now) - Date.now() : 0;
function duration(seconds) {
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    if (seconds >= size) return `${(seconds / size).toFixed(1).replace(/\.0$/, "")} ${unit}`;
  }
  return `${Math.round(seconds)} s`;
}
export function relativeTimes(within = document) {
  for (const time of within.querySelectorAll("time[data-relative]")) {
    const passed = (Date.now() + skew - new Date(time.dateTime)) / 1000;
    if (!Number.isNaN(passed)) time.textContent = passed >= 0 ? `${duration(passed)} ago` : `in ${duration(-passed)}`;
  }
}
setInterval(relativeTimes, 20000);

// ---- toasts, with an undo button where there is one ----
export function toast(message, { undo, undoText = "Undo", seconds = 5 } = {}) {
  const place = document.querySelector("[data-toasts]");
  const box = document.createElement("div");
  box.className = "toast";
  const text = document.createElement("span");
  text.textContent = message;
  box.append(text);
  let done = false;
  const end = () => { if (!done) { done = true; box.remove(); } };
  if (undo) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = undoText;
    button.addEventListener("click", () => { end(); undo(); });
    box.append(button);
  }
  place.append(box);
  setTimeout(end, seconds * 1000);
  return end;
}
// The notice after an action is part of the page, so that it shows without script too.
const notice = document.querySelector("[data-notice]");
if (notice) {
  notice.remove();
  toast(notice.textContent);
  const clean = new URL(location.href);
  clean.searchParams.delete("notice");
  history.replaceState(null, "", clean);
}

// ---- requests ----
export async function send(path, fields = {}) {
  const body = new URLSearchParams(fields);
  body.set("form_token", document.body.dataset.formToken ?? "");
  const response = await fetch(path, { method: "POST", body, headers: { Accept: "application/json" }, keepalive: true });
  const result = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(result.detail ?? `the server returned ${response.status}`);
  return result;
}

// ---- the keyboard ----
const bindings = new Map();
export function key(name, act) { bindings.set(name, act); }
let previousKey = "";
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.closest?.("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");
  if (typing) { if (event.key === "Escape") event.target.blur(); return; }
  if (document.querySelector("dialog[open]")) return;
  const both = `${previousKey} ${event.key}`;
  previousKey = event.key;
  const act = bindings.get(both) ?? bindings.get(event.key);
  if (act) { event.preventDefault(); previousKey = ""; act(event); }
});
const help = document.querySelector("[data-help]");
const openHelp = () => help?.showModal();
document.querySelector("[data-help-open]")?.addEventListener("click", openHelp);
key("?", openHelp);
const search = document.querySelector("[data-search]");
if (search) key("/", () => search.focus());
for (const [letter, page] of [["q", "queue"], ["c", "contradictions"], ["m", "memory"], ["a", "audit"]]) {
  key(`g ${letter}`, () => { if (document.querySelector(`nav a[href="/console/${page}"]`)) location.assign(`/console/${page}`); });
}

// ---- reasons by number: the first key in an empty field picks one ----
export function numberedReasons(form, choose) {
  const input = form.querySelector("input[name=reason]");
  const buttons = [...form.querySelectorAll("[data-reasons] button")];
  input?.addEventListener("keydown", (event) => {
    const button = input.value || event.ctrlKey || event.metaKey || event.altKey ? null : buttons[Number(event.key) - 1];
    if (button) { event.preventDefault(); choose(button.value, input); }
  });
  for (const button of buttons) button.addEventListener("click", () => choose(button.value, input));
}

// ---- live changes of the tenant ----
// One stream per visible page, none while it is hidden: browsers allow few connections to a server.
const watchers = new Set();
let source = null;
function watch() {
  if (document.hidden || !watchers.size) { source?.close(); source = null; return; }
  if (source) return;
  source = new EventSource("/console/live");
  source.addEventListener("changes", (event) => { const change = JSON.parse(event.data); for (const each of watchers) each(change); });
}
document.addEventListener("visibilitychange", watch);
addEventListener("pageshow", watch);
addEventListener("pagehide", () => { source?.close(); source = null; });
export function live(onChange) { watchers.add(onChange); watch(); }
export function showOpen(count) {
  const badge = document.querySelector("[data-open-count]");
  if (badge) { badge.textContent = count; badge.hidden = !count; }
}
if (document.querySelector("[data-open-count]")) live(({ open }) => showOpen(open));

// ---- forms that are sent once, and forms that need a confirmation ----
export function bindForms(within) {
  for (const form of within.querySelectorAll("form[data-once]")) {
    form.addEventListener("submit", () => { for (const button of form.querySelectorAll("button")) button.disabled = true; });
  }
}
bindForms(document);
for (const input of document.querySelectorAll("input[data-must-equal]")) {
  const button = input.form.querySelector("button[type=submit]");
  const check = () => { button.disabled = input.value !== input.dataset.mustEqual; };
  input.addEventListener("input", check);
  check();
}
