// One proposal: keyboard shortcuts, the next one at once after a decision, edits checked as you type, who else is looking.
import { checkWhileTyping } from "./check.js";
import { bindForms, fieldsOf, keepToasts, key, live, localTimes, numberedReasons, send, toast } from "./console.js";
import { nextProposal, prefetch, rememberedList } from "./neighbours.js";
import { allAnswered, isLeaving, sendLater } from "./undo.js";

const here = () => document.querySelector("[data-proposal]");
const pageOf = (id) => `/console/queue/${encodeURIComponent(id)}`;
const path = (action) => `${pageOf(here().dataset.proposal)}/${action}`;
const nameOf = () => { const text = document.querySelector("#fact").textContent.trim(); return text.length > 60 ? `${text.slice(0, 60)}…` : text; };
const back = () => document.querySelector("[data-back]").href;

// ---- to the next proposal, without loading the page again: what was decided can still be undone ----
function show(id, page) {
  const fresh = new DOMParser().parseFromString(page, "text/html");
  const main = fresh.querySelector("#main");
  if (!main?.querySelector("[data-proposal]")) { location.assign(pageOf(id)); return; }
  document.querySelector("#main").replaceChildren(...main.childNodes);
  document.title = fresh.title;
  history.pushState(null, "", pageOf(id));
  scrollTo(0, 0);
  setUp();
  document.querySelector("#main").focus({ preventScroll: true });
}
addEventListener("popstate", () => location.reload());
async function go(by) {
  const next = await nextProposal(here().dataset.proposal, by);
  if (next) location.assign(pageOf(next));
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
  history.pushState(null, "", pageOf(id));
  setUp();
}
async function leave(result) {
  // The answer to an earlier decision may come later than this one's, and may matter more.
  await allAnswered();
  keepToasts();
  if (isLeaving()) return;
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
const form = (action) => document.querySelector(`form[data-action=${action}]`);
// What may have been written to be approved asks for a reason first.
const approve = () => { if (document.getElementById("approve")) openForm("approve"); else form("approve")?.requestSubmit(); };
for (const [letter, name] of [["r", "reject"], ["e", "edit"], ["o", "override"], ["b", "both"], ["c", "comment"]]) key(letter, () => openForm(name));
// After the browser has scrolled to the anchor, which takes the focus.
if (location.hash.length > 1) addEventListener("load", () => setTimeout(() => openForm(location.hash.slice(1))));
key("a", approve);
key("l", () => form("hold")?.requestSubmit());
key("s", () => { const form = document.querySelector("form[data-assign]"); if (form) { form.elements.to.value = ""; form.requestSubmit(); } });
key("p", () => document.querySelector("[data-preview-form]")?.requestSubmit());

// ---- preview of recall after approval ----
async function showPreview(event) {
  event.preventDefault();
  const form = event.currentTarget, place = document.querySelector("[data-preview-place]");
  place.setAttribute("aria-busy", "true");
  try {
    place.innerHTML = (await send(path("preview"), fieldsOf(form))).html;
    localTimes(place);
  } catch (error) {
    toast(error.message);
  } finally {
    place.removeAttribute("aria-busy");
  }
}

// ---- who else is looking, and changes by others ----
function showChange(message) {
  const place = document.querySelector("[data-changed]");
  place.textContent = `${message} `;
  const again = document.createElement("a");
  again.href = pageOf(here().dataset.proposal);
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

// The second click of a double click meets the next proposal, which nobody has read yet.
addEventListener("click", (event) => {
  if (event.detail < 2 || !event.target.closest("[data-actions] button, [data-thumbs] button")) return;
  event.preventDefault();
  event.stopPropagation();
}, true);

// ---- two thumbs: swipe right to approve what has nothing to notice, left to reject ----
function swipeToApprove() {
  if (document.querySelector("[data-thumbs]").dataset.swipe === undefined) toast("Read the warnings first. A swipe does not approve this proposal; the button does.");
  else form("approve")?.requestSubmit();
}
let touch = null;
addEventListener("touchstart", (event) => { touch = event.touches.length === 1 && !event.target.closest("pre, input, textarea, select, .scroll") ? { x: event.touches[0].clientX, y: event.touches[0].clientY } : null; }, { passive: true });
addEventListener("touchend", (event) => {
  if (!touch || !document.querySelector("[data-thumbs]")?.checkVisibility()) return;
  const x = event.changedTouches[0].clientX - touch.x, y = event.changedTouches[0].clientY - touch.y;
  if (Math.abs(x) > 120 && Math.abs(x) > 3 * Math.abs(y)) { if (x > 0) swipeToApprove(); else openForm("reject"); }
}, { passive: true });

function setUp() {
  const queue = rememberedList();
  document.querySelector("[data-back]").href = queue.back;
  for (const form of document.querySelectorAll("form[data-action]")) form.addEventListener("submit", (event) => { event.preventDefault(); decide(form); });
  const edit = document.querySelector("form[data-edit]");
  if (edit) checkWhileTyping(edit, () => send(path("check"), fieldsOf(edit)));
  document.querySelector("[data-preview-form]")?.addEventListener("submit", showPreview);
  for (const one of document.querySelectorAll("form[data-action]:has([data-reasons])")) numberedReasons(one, (reason, input) => { input.value = reason; one.requestSubmit(); });
  for (const button of document.querySelectorAll("[data-thumb]")) button.addEventListener("click", () => { if (button.dataset.thumb === "approve") approve(); else openForm("reject"); });
  const main = document.querySelector("#main");
  localTimes(main);
  bindForms(main);
  if (here().dataset.open === "yes") nextProposal(here().dataset.proposal, 1).then((next) => { if (next) prefetch(next); });
}
setUp();
