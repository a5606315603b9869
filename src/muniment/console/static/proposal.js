// One proposal: keyboard shortcuts, edits checked as you type, recall preview, and who else is looking.
import { key, live, localTimes, send, toast } from "./console.js";
import { sendLater } from "./undo.js";

const shown = document.querySelector("[data-proposal]");
const id = shown.dataset.proposal;
const path = (action) => `/console/queue/${encodeURIComponent(id)}/${action}`;
const fieldsOf = (form) => Object.fromEntries([...new FormData(form)].filter(([name]) => name !== "form_token"));

// ---- back to the queue, and to the next proposal ----
const queue = JSON.parse(sessionStorage.getItem("muniment-queue") ?? "null") ?? { back: "/console/queue", ids: [] };
const back = document.querySelector("[data-back]");
if (queue.back.startsWith("/console/queue")) back.href = queue.back;
function neighbour(by) {
  const at = queue.ids.indexOf(id);
  return at < 0 ? undefined : queue.ids[at + by];
}
const go = (by) => { const next = neighbour(by); if (next) location.assign(`/console/queue/${encodeURIComponent(next)}`); else toast(by > 0 ? "This is the last proposal in the list" : "This is the first proposal in the list"); };
key("j", () => go(1));
key("k", () => go(-1));
key("Escape", () => location.assign(back.href));

// ---- open forms with the keyboard ----
function openForm(name) {
  const details = document.getElementById(name);
  if (details?.tagName !== "DETAILS") return;
  details.open = true;
  details.querySelector("input:not([type=hidden]), select, textarea")?.focus();
  details.scrollIntoView({ block: "nearest" });
}
for (const [letter, name] of [["r", "reject"], ["e", "edit"], ["o", "override"]]) key(letter, () => openForm(name));
// After the browser has scrolled to the anchor, which takes the focus.
if (location.hash.length > 1) addEventListener("load", () => setTimeout(() => openForm(location.hash.slice(1))));
key("a", () => document.querySelector("form[data-action=approve]")?.requestSubmit());
key("s", () => { const form = document.querySelector("form[data-assign]"); if (form) { form.elements.to.value = ""; form.requestSubmit(); } });
key("p", () => document.querySelector("[data-preview-form]")?.requestSubmit());

// ---- final decisions are sent after a few seconds ----
for (const form of document.querySelectorAll("form[data-action]")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const fields = fieldsOf(form);
    const buttons = [...document.querySelectorAll("[data-actions] button")];
    if (buttons.some((button) => button.disabled)) return;
    for (const button of buttons) button.disabled = true;
    const enable = () => { for (const button of buttons) button.disabled = false; };
    sendLater(form.dataset.pendingText, () => send(form.action, fields), {
      onUndo: enable,
      onDone: (result) => { shown.dataset.open = "no"; location.assign(nextPage(result)); },
      onError: (error) => { enable(); showChange(error.message); attend(); },
    });
  });
}
function nextPage(result) {
  const next = neighbour(1);
  const to = new URL(result.to === "/console/queue" ? (next ? `/console/queue/${encodeURIComponent(next)}` : back.href) : result.to, location.origin);
  to.searchParams.set("notice", result.signed_notice);
  return to;
}

// ---- check an edit against the gates as you type ----
const edit = document.querySelector("form[data-edit]");
if (edit) {
  const place = edit.querySelector("[data-check-place]");
  let timer, requests = 0;
  const check = async () => {
    const request = ++requests;
    place.setAttribute("aria-busy", "true");
    let html;
    try { ({ html } = await send(path("check"), fieldsOf(edit))); } catch (error) {
      const problem = document.createElement("p");
      problem.className = "problem";
      problem.textContent = error.message;
      html = problem.outerHTML;
    }
    if (request !== requests) return;
    place.innerHTML = html;
    place.removeAttribute("aria-busy");
  };
  edit.addEventListener("input", (event) => { if (event.target.name !== "note") { clearTimeout(timer); timer = setTimeout(check, 400); } });
  edit.querySelector("[data-check-button]").addEventListener("click", (event) => { event.preventDefault(); clearTimeout(timer); check(); });
}

// ---- preview of recall after approval ----
const preview = document.querySelector("[data-preview-form]");
preview?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const place = document.querySelector("[data-preview-place]");
  place.setAttribute("aria-busy", "true");
  const query = new URLSearchParams({ ...fieldsOf(preview), part: "yes" });
  const response = await fetch(`${path("preview")}?${query}`, { headers: { Accept: "application/json" } }).catch(() => null);
  const result = await response?.json().catch(() => ({})) ?? {};
  place.removeAttribute("aria-busy");
  if (response?.ok) { place.innerHTML = result.html; localTimes(place); } else toast(result.detail ?? "the server cannot be reached");
});

// ---- who else is looking, and changes by others ----
function showChange(message) {
  const place = document.querySelector("[data-changed]");
  place.textContent = `${message} `;
  const again = document.createElement("a");
  again.href = location.pathname;
  again.textContent = "Reload";
  place.append(again);
  place.hidden = false;
}
async function attend() {
  if (document.hidden || shown.dataset.open !== "yes" || !document.querySelector("[data-actions]")) return;
  let state;
  try { state = await send(path("attend")); } catch { return; }
  if (shown.dataset.open !== "yes") return;
  const place = document.querySelector("[data-others]");
  place.hidden = !state.others.length;
  const names = state.others.flatMap((name, n) => { const bdi = document.createElement("bdi"); bdi.textContent = name; return n ? [", ", bdi] : [bdi]; });
  place.replaceChildren(...names, state.others.length ? ` ${state.others.length === 1 ? "is" : "are"} also looking at this.` : "");
  if (String(state.version) !== shown.dataset.version && document.querySelector("[data-changed]").hidden) showChange(`This has changed: ${state.latest}.`);
}
setInterval(attend, 10000);
let lastSeq = null;
live(({ seq }) => { if (lastSeq !== null && seq !== lastSeq) attend(); lastSeq = seq; });
