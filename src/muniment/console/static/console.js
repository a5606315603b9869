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
  const precise = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
  for (const time of within.querySelectorAll("time[datetime]:not([data-relative])")) {
    const at = new Date(time.dateTime);
    if (!Number.isNaN(at.getTime())) time.textContent = (time.closest("[data-event]") ? precise : format).format(at);
  }
}
localTimes();

// ---- time inputs: shown and typed in the viewer's zone, sent in UTC ----
const zone = new Intl.DateTimeFormat().resolvedOptions().timeZone;
// The server's days begin in that zone too.
document.cookie = `muniment_zone=${encodeURIComponent(zone)}; path=/console; samesite=strict; max-age=31536000`;
const two = (n, width = 2) => String(n).padStart(width, "0");
function localInputValue(at) {
  const day = `${two(at.getFullYear(), 4)}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  const time = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  return `${day}T${time}${at.getMilliseconds() ? `.${two(at.getMilliseconds(), 3)}` : ""}`;
}
for (const form of document.querySelectorAll("form:has(input[type=datetime-local])")) {
  const fields = [...form.querySelectorAll("input[type=datetime-local]")];
  for (const place of form.querySelectorAll("[data-zone]")) { place.textContent = "(your time)"; place.title = zone; }
  for (const field of fields) {
    const sent = field.getAttribute("value");
    if (sent) { field.title = `${sent} UTC`; field.value = localInputValue(new Date(`${sent}Z`)); }
  }
  form.addEventListener("formdata", (event) => {
    for (const field of fields) {
      if (field.value) event.formData.set(field.name, new Date(field.value).toISOString());
    }
    if (form.method === "get") for (const [name, value] of [...event.formData]) if (!value) event.formData.delete(name);
  });
}

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
// What the toasts of this page say is shown again on the next one.
const KEPT = "muniment-toasts";
export function keepToasts() {
  const texts = [...document.querySelectorAll("[data-toasts] .toast:not(:has(button)) span")].map((text) => text.textContent);
  sessionStorage.setItem(KEPT, JSON.stringify(texts));
}
for (const text of JSON.parse(sessionStorage.getItem(KEPT) ?? "[]")) toast(text, { seconds: 12 });
sessionStorage.removeItem(KEPT);
// The notice after an action is part of the page, so that it shows without script too.
const notice = document.querySelector("[data-notice]");
if (notice) {
  notice.remove();
  toast(notice.textContent);
  const clean = new URL(location.href);
  clean.searchParams.delete("notice");
  history.replaceState(null, "", clean);
}

// ---- density, as this browser remembers it ----
const density = document.querySelector("button[data-density]");
function showDensity() {
  const compact = localStorage.getItem("muniment-density") === "compact";
  document.documentElement.dataset.density = compact ? "compact" : "comfortable";
  if (density) { density.hidden = false; density.textContent = compact ? "Comfortable rows" : "Compact rows"; }
}
density?.addEventListener("click", () => { localStorage.setItem("muniment-density", localStorage.getItem("muniment-density") === "compact" ? "comfortable" : "compact"); showDensity(); });
showDensity();

// ---- requests ----
// A browser lets requests outlive their page only while their bodies are small: 64 KiB for all of them together.
const SMALL_BODIES = 60_000;
let outliving = 0, bound = 0;
// Whether something is being sent that leaving the page would lose.
export const losesByLeaving = () => bound > 0;
export const fieldsOf = (form) => Object.fromEntries([...new FormData(form)].filter(([name]) => name !== "form_token"));
export async function send(path, fields = {}) {
  const body = new URLSearchParams(fields);
  body.set("form_token", document.body.dataset.formToken ?? "");
  const size = String(body).length, keepalive = outliving + size < SMALL_BODIES;
  if (keepalive) outliving += size; else bound += 1;
  try {
    const response = await fetch(path, { method: "POST", body, headers: { Accept: "application/json" }, keepalive });
    const result = await response.json().catch(() => ({}));
    if (!response.ok) throw new Error(result.detail ?? `the server returned ${response.status}`);
    return result;
  } finally {
    if (keepalive) outliving -= size; else bound -= 1;
  }
}

// ---- the keyboard ----
const bindings = new Map();
// A key that is held down acts once, unless it only moves: the next proposal comes under it.
export function key(name, act, { held = false } = {}) { bindings.set(name, { act, held }); }
let previousKey = "";
document.addEventListener("keydown", (event) => {
  // In a field of several lines Enter begins a new one.
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.matches?.("form textarea")) {
    event.preventDefault();
    event.target.form.querySelector("button[type=submit]:not([disabled])")?.click();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.closest?.("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");
  if (typing) { if (event.key === "Escape") event.target.blur(); return; }
  if (document.querySelector("dialog[open]")) return;
  const both = `${previousKey} ${event.key}`;
  previousKey = event.key;
  const found = bindings.get(both) ?? bindings.get(event.key);
  if (!found) return;
  event.preventDefault();
  previousKey = "";
  if (!event.repeat || found.held) found.act(event);
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
  const input = form.querySelector("[data-reasons]")?.parentElement.querySelector("input");
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
function showOpen(count) {
  const badge = document.querySelector("[data-open-count]");
  if (badge) { badge.textContent = count; badge.hidden = !count; }
}
if (document.querySelector("[data-open-count]")) live(({ open }) => showOpen(open));

// ---- forms that are sent once, and forms that need a confirmation ----
export function bindForms(within) {
  for (const form of within.querySelectorAll("form[data-once]")) {
    // A disabled button would not be sent: which one was pressed has to be read first.
    form.addEventListener("submit", () => setTimeout(() => { for (const button of form.querySelectorAll("button")) button.disabled = true; }));
  }
}
bindForms(document);
for (const input of document.querySelectorAll("input[data-must-equal]")) {
  const button = input.form.querySelector("button[type=submit]");
  const check = () => { button.disabled = input.value !== input.dataset.mustEqual; };
  input.addEventListener("input", check);
  check();
}
