// One proposal: the keyboard, an edit checked while it is typed, recall after it, and who else is looking.
import { key, live, localTimes, send, toast } from "./console.js";
import { hold } from "./held.js";

const shown = document.querySelector("[data-proposal]");
const id = shown.dataset.proposal;
const path = (deed) => `/console/queue/${encodeURIComponent(id)}/${deed}`;
const fieldsOf = (form) => Object.fromEntries([...new FormData(form)].filter(([name]) => name !== "form_token"));

// ---- the way back, and to the next ----
const queue = JSON.parse(sessionStorage.getItem("muniment-queue") ?? "null") ?? { back: "/console/queue", ids: [] };
const back = document.querySelector("[data-back]");
if (queue.back.startsWith("/console/queue")) back.href = queue.back;
function beside(by) {
  const at = queue.ids.indexOf(id);
  return at < 0 ? undefined : queue.ids[at + by];
}
const go = (by) => { const next = beside(by); if (next) location.assign(`/console/queue/${encodeURIComponent(next)}`); else toast(by > 0 ? "This is the last of the list" : "This is the first of the list"); };
key("j", () => go(1));
key("k", () => go(-1));
key("Escape", () => location.assign(back.href));

// ---- forms by the keyboard ----
function openForm(name) {
  const details = document.getElementById(name);
  if (details?.tagName !== "DETAILS") return;
  details.open = true;
  details.querySelector("input:not([type=hidden]), select, textarea")?.focus();
  details.scrollIntoView({ block: "nearest" });
}
for (const [letter, name] of [["r", "reject"], ["e", "edit"], ["o", "override"]]) key(letter, () => openForm(name));
// After the browser has gone to the place itself, which takes the focus.
if (location.hash.length > 1) addEventListener("load", () => setTimeout(() => openForm(location.hash.slice(1))));
key("a", () => document.querySelector("form[data-action=approve]")?.requestSubmit());
key("s", () => { const form = document.querySelector("form[data-assign]"); if (form) { form.elements.to.value = ""; form.requestSubmit(); } });
key("p", () => document.querySelector("[data-preview-form]")?.requestSubmit());

// ---- what ends it waits a few seconds ----
for (const form of document.querySelectorAll("form[data-action]")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const fields = fieldsOf(form);
    const buttons = [...document.querySelectorAll("[data-actions] button")];
    if (buttons.some((button) => button.disabled)) return;
    for (const button of buttons) button.disabled = true;
    const free = () => { for (const button of buttons) button.disabled = false; };
    hold(form.dataset.said, () => send(form.action, fields), {
      undone: free,
      done: (told) => { shown.dataset.open = "no"; location.assign(onwards(told)); },
      failed: (error) => { free(); changed(error.message); attend(); },
    });
  });
}
function onwards(told) {
  const next = beside(1);
  const to = new URL(told.to === "/console/queue" ? (next ? `/console/queue/${encodeURIComponent(next)}` : back.href) : told.to, location.origin);
  to.searchParams.set("said", told.vouched);
  return to;
}

// ---- the gates again, while it is typed ----
const edit = document.querySelector("form[data-edit]");
if (edit) {
  const place = edit.querySelector("[data-check-place]");
  let timer, asked = 0;
  const check = async () => {
    const mine = ++asked;
    place.setAttribute("aria-busy", "true");
    let html;
    try { ({ html } = await send(path("check"), fieldsOf(edit))); } catch (error) {
      const told = document.createElement("p");
      told.className = "problem";
      told.textContent = error.message;
      html = told.outerHTML;
    }
    if (mine !== asked) return;
    place.innerHTML = html;
    place.removeAttribute("aria-busy");
  };
  edit.addEventListener("input", (event) => { if (event.target.name !== "note") { clearTimeout(timer); timer = setTimeout(check, 400); } });
  edit.querySelector("[data-check-button]").addEventListener("click", (event) => { event.preventDefault(); clearTimeout(timer); check(); });
}

// ---- recall after it, when asked for ----
const preview = document.querySelector("[data-preview-form]");
preview?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const place = document.querySelector("[data-preview-place]");
  place.setAttribute("aria-busy", "true");
  const query = new URLSearchParams({ ...fieldsOf(preview), part: "yes" });
  const answer = await fetch(`${path("preview")}?${query}`, { headers: { Accept: "application/json" } }).catch(() => null);
  const told = await answer?.json().catch(() => ({})) ?? {};
  place.removeAttribute("aria-busy");
  if (answer?.ok) { place.innerHTML = told.html; localTimes(place); } else toast(told.detail ?? "the server cannot be reached");
});

// ---- who else is looking, and what became of it ----
function changed(message) {
  const place = document.querySelector("[data-changed]");
  place.textContent = `${message} `;
  const again = document.createElement("a");
  again.href = location.pathname;
  again.textContent = "Look again";
  place.append(again);
  place.hidden = false;
}
async function attend() {
  if (document.hidden || shown.dataset.open !== "yes" || !document.querySelector("[data-actions]")) return;
  let told;
  try { told = await send(path("attend")); } catch { return; }
  if (shown.dataset.open !== "yes") return;
  const place = document.querySelector("[data-others]");
  place.hidden = !told.others.length;
  const names = told.others.flatMap((name, n) => { const bdi = document.createElement("bdi"); bdi.textContent = name; return n ? [", ", bdi] : [bdi]; });
  place.replaceChildren(...names, told.others.length ? ` ${told.others.length === 1 ? "is" : "are"} looking at this too.` : "");
  if (String(told.version) !== shown.dataset.version && document.querySelector("[data-changed]").hidden) changed(`This has changed: ${told.told}.`);
}
setInterval(attend, 10000);
let before = null;
live(({ seq }) => { if (before !== null && seq !== before) attend(); before = seq; });
