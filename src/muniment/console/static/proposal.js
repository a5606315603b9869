// One proposal: keyboard shortcuts, the next one at once after a decision, edits checked as you type, who else is looking.
import { bindForms, key, live, localTimes, numberedReasons, send, toast } from "./console.js";
import { nextProposal, prefetch, rememberedList } from "./neighbours.js";
import { sendLater } from "./undo.js";

const here = () => document.querySelector("[data-proposal]");
const path = (action, id = here().dataset.proposal) => `/console/queue/${encodeURIComponent(id)}/${action}`;
const fieldsOf = (form) => Object.fromEntries([...new FormData(form)].filter(([name]) => name !== "form_token"));
const nameOf = () => { const text = document.querySelector("#fact").textContent.trim(); return text.length > 60 ? `${text.slice(0, 60)}…` : text; };
const back = () => document.querySelector("[data-back]").href;

// ---- to the next proposal, without loading the page again: what was decided can still be undone ----
function show(id, page) {
  const fresh = new DOMParser().parseFromString(page, "text/html");
  const main = fresh.querySelector("#main");
  if (!main?.querySelector("[data-proposal]")) { location.assign(`/console/queue/${encodeURIComponent(id)}`); return; }
  document.querySelector("#main").replaceChildren(...main.childNodes);
  document.title = fresh.title;
  history.pushState(null, "", `/console/queue/${encodeURIComponent(id)}`);
  scrollTo(0, 0);
  setUp();
  document.querySelector("#main").focus({ preventScroll: true });
}
addEventListener("popstate", () => location.reload());
async function go(by) {
  const next = await nextProposal(here().dataset.proposal, by);
  if (next) location.assign(`/console/queue/${encodeURIComponent(next)}`);
  else toast(by > 0 ? "This is the last proposal in the list" : "This is the first proposal in the list");
}
key("j", () => go(1));
key("k", () => go(-1));
key("Escape", () => location.assign(back()));

// ---- decisions are sent after a few seconds, while the next proposal is already there ----
async function decide(form) {
  const buttons = [...document.querySelectorAll("[data-actions] button, [data-thumbs] button")];
  if (buttons.some((button) => button.disabled)) return;
  for (const button of buttons) button.disabled = true;
  const enable = () => { for (const button of buttons) button.disabled = false; };
  const id = here().dataset.proposal, fields = fieldsOf(form), action = form.action, before = document.querySelector("#main").cloneNode(true);
  let undone = false, moved = false;
  sendLater(`${form.dataset.pendingText}: ${nameOf()}`, () => send(action, fields), {
    quiet: () => moved,
    onUndo: () => { undone = true; if (moved) restore(id, before); else enable(); },
    onDone: (result) => { if (!moved) { here().dataset.open = "no"; leave(result); } },
    onError: (error) => { if (moved) { toast(`${nameOfClone(before)}: ${error.message}`, { seconds: 12 }); return; } enable(); showChange(error.message); attend(); },
  });
  // At the end of the list the page stays, and the list comes once the decision was sent.
  const next = await nextProposal(id, 1), page = next && await prefetch(next);
  if (!page || undone) return;
  moved = true;
  show(next, page);
}
const nameOfClone = (main) => main.querySelector("#fact")?.textContent.trim().slice(0, 40) ?? "";
function restore(id, main) {
  for (const button of main.querySelectorAll("button")) button.disabled = false;
  document.querySelector("#main").replaceChildren(...main.childNodes);
  history.pushState(null, "", `/console/queue/${encodeURIComponent(id)}`);
  setUp();
}
function leave(result) {
  const to = new URL(result.to === "/console/queue" ? back() : result.to, location.origin);
  to.searchParams.set("notice", result.signed_notice);
  location.assign(to);
}

// ---- forms by key ----
function openForm(name) {
  const details = document.getElementById(name);
  if (details?.tagName !== "DETAILS") return;
  details.open = true;
  details.querySelector("input:not([type=hidden]), select, textarea")?.focus();
  details.scrollIntoView({ block: "nearest" });
}
for (const [letter, name] of [["r", "reject"], ["e", "edit"], ["o", "override"], ["b", "both"], ["c", "comment"]]) key(letter, () => openForm(name));
// After the browser has scrolled to the anchor, which takes the focus.
if (location.hash.length > 1) addEventListener("load", () => setTimeout(() => openForm(location.hash.slice(1))));
key("a", () => document.querySelector("form[data-action=approve]")?.requestSubmit());
key("l", () => document.querySelector("form[data-action=hold]")?.requestSubmit());
key("s", () => { const form = document.querySelector("form[data-assign]"); if (form) { form.elements.to.value = ""; form.requestSubmit(); } });
key("p", () => document.querySelector("[data-preview-form]")?.requestSubmit());

// ---- check an edit against the gates as you type ----
function checkWhileTyping(edit) {
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
async function showPreview(event) {
  event.preventDefault();
  const form = event.currentTarget, place = document.querySelector("[data-preview-place]");
  place.setAttribute("aria-busy", "true");
  const query = new URLSearchParams({ ...fieldsOf(form), part: "yes" });
  const response = await fetch(`${path("preview")}?${query}`, { headers: { Accept: "application/json" } }).catch(() => null);
  const result = await response?.json().catch(() => ({})) ?? {};
  place.removeAttribute("aria-busy");
  if (response?.ok) { place.innerHTML = result.html; localTimes(place); } else toast(result.detail ?? "the server cannot be reached");
}

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
  const shown = here();
  if (document.hidden || shown.dataset.open !== "yes" || !document.querySelector("[data-actions]")) return;
  let state;
  try { state = await send(path("attend")); } catch { return; }
  if (shown !== here() || shown.dataset.open !== "yes") return;
  const place = document.querySelector("[data-others]");
  place.hidden = !state.others.length;
  const names = state.others.flatMap((name, n) => { const bdi = document.createElement("bdi"); bdi.textContent = name; return n ? [", ", bdi] : [bdi]; });
  place.replaceChildren(...names, state.others.length ? ` ${state.others.length === 1 ? "is" : "are"} also looking at this.` : "");
  if (String(state.version) !== shown.dataset.version && document.querySelector("[data-changed]").hidden) showChange(`This has changed: ${state.latest}.`);
}
setInterval(attend, 10000);
let lastSeq = null;
live(({ seq }) => { if (lastSeq !== null && seq !== lastSeq) attend(); lastSeq = seq; });

// ---- two thumbs: swipe right to approve, left to reject ----
let touch = null;
addEventListener("touchstart", (event) => { touch = event.touches.length === 1 && !event.target.closest("pre, input, textarea, select, .scroll") ? { x: event.touches[0].clientX, y: event.touches[0].clientY } : null; }, { passive: true });
addEventListener("touchend", (event) => {
  if (!touch || !document.querySelector("[data-thumbs]")?.checkVisibility()) return;
  const x = event.changedTouches[0].clientX - touch.x, y = event.changedTouches[0].clientY - touch.y;
  if (Math.abs(x) > 120 && Math.abs(x) > 3 * Math.abs(y)) { if (x > 0) document.querySelector("form[data-action=approve]")?.requestSubmit(); else openForm("reject"); }
}, { passive: true });

function setUp() {
  const queue = rememberedList();
  document.querySelector("[data-back]").href = queue.back;
  for (const form of document.querySelectorAll("form[data-action]")) form.addEventListener("submit", (event) => { event.preventDefault(); decide(form); });
  const edit = document.querySelector("form[data-edit]");
  if (edit) checkWhileTyping(edit);
  document.querySelector("[data-preview-form]")?.addEventListener("submit", showPreview);
  const reject = document.querySelector("form[data-action=reject]");
  if (reject) numberedReasons(reject, (reason, input) => { input.value = reason; reject.requestSubmit(); });
  for (const button of document.querySelectorAll("[data-thumb]")) button.addEventListener("click", () => { if (button.dataset.thumb === "approve") document.querySelector("form[data-action=approve]")?.requestSubmit(); else openForm("reject"); });
  const main = document.querySelector("#main");
  localTimes(main);
  bindForms(main);
  if (here().dataset.open === "yes") nextProposal(here().dataset.proposal, 1).then((next) => { if (next) prefetch(next); });
}
setUp();
