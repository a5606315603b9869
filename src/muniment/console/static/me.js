// My memory: what is forgotten can be undone for a few seconds, before it is sent. Leaving the page sends it at once.
import { bindForms, keepToasts, localTimes, relativeTimes, send, toast } from "./console.js";
import { allAnswered, isLeaving, sendLater } from "./undo.js";

const list = document.querySelector("[data-held]");
const pending = new Set();

function show() {
  for (const button of document.querySelectorAll("button[data-forget]")) {
    const waits = pending.has(button.dataset.memoryId);
    button.setAttribute("aria-disabled", waits);
    button.closest("[data-memory]").classList.toggle("pending", waits);
  }
}
// Before the form itself hears of it, and sends it.
document.addEventListener("submit", (event) => {
  const button = event.submitter;
  if (!button?.matches("[data-forget]")) return;
  event.preventDefault();
  event.stopPropagation();
  const { memoryId, forget } = button.dataset, action = button.getAttribute("formaction") ?? button.form.getAttribute("action");
  if (pending.has(memoryId)) return;
  pending.add(memoryId);
  const end = () => { pending.delete(memoryId); show(); };
  sendLater(forget ? `Forgetting: ${forget}` : "Forgetting one memory", () => send(action), { onUndo: end, onError: end, onDone: () => { end(); return list ? reload() : leave(); } });
  show();
}, true);

async function reload() {
  const response = await fetch(location.href, { headers: { Accept: "text/html" } }).catch(() => null);
  const fresh = response?.ok ? new DOMParser().parseFromString(await response.text(), "text/html").querySelector("[data-held]") : null;
  if (!fresh) { toast("Load the page again to see what is held now"); return; }
  const focused = list.contains(document.activeElement) ? document.activeElement.closest("[data-memory]")?.dataset.memory : null;
  list.replaceChildren(...fresh.childNodes);
  localTimes(list);
  relativeTimes(list);
  bindForms(list);
  show();
  const row = focused && list.querySelector(`[data-memory="${CSS.escape(focused)}"]`);
  if (row) (row.querySelector("button") ?? row.querySelector("a"))?.focus({ preventScroll: true });
}
async function leave() {
  await allAnswered();
  keepToasts();
  if (!isLeaving()) location.assign("/console/me");
}
