// The queue: keyboard shortcuts, actions that can be undone, and live updates of the list.
import { key, live, localTimes, numberedReasons, relativeTimes, send, toast } from "./console.js";
import { rememberList } from "./neighbours.js";
import { sendLater } from "./undo.js";

const list = document.querySelector("[data-live=list]");
const selected = new Set();
const pending = new Set();
let lastSeq = null, everything = false;

const rows = () => [...list.querySelectorAll("tr[data-row]")];
const rowOf = (id) => list.querySelector(`tr[data-id="${CSS.escape(id)}"]`);
const focusedRow = () => document.activeElement?.closest?.("tr[data-row]") ?? null;
const reviews = () => list.querySelector("[data-bulk]") !== null || document.querySelector("dialog[data-reject]") !== null;

// ---- moving ----
function move(by) {
  const all = rows();
  if (!all.length) return;
  const at = focusedRow() ? all.indexOf(focusedRow()) + by : by > 0 ? 0 : all.length - 1;
  const row = all[Math.max(0, Math.min(all.length - 1, at))];
  row.querySelector("[data-open]").focus();
  row.scrollIntoView({ block: "nearest" });
}
key("j", () => move(1));
key("k", () => move(-1));
key("/", () => { document.querySelector(".filter-box").open = true; document.querySelector("[data-filter]").focus(); });
// ---- density, as this browser remembers it ----
const density = document.querySelector("[data-density]");
function showDensity() {
  const compact = localStorage.getItem("muniment-density") === "compact";
  document.documentElement.dataset.density = compact ? "compact" : "comfortable";
  if (density) { density.hidden = false; density.textContent = compact ? "Comfortable rows" : "Compact rows"; }
}
density?.addEventListener("click", () => { localStorage.setItem("muniment-density", localStorage.getItem("muniment-density") === "compact" ? "comfortable" : "compact"); showDensity(); });
showDensity();
for (const [letter, form] of [["e", "edit"], ["o", "override"]]) {
  key(letter, () => { const row = focusedRow(); if (row && reviews()) location.assign(`${row.querySelector("[data-open]").href}#${form}`); });
}

// ---- selecting ----
function show() {
  for (const row of rows()) {
    const box = row.querySelector("input[name=proposal_id]");
    if (box) box.checked = selected.has(row.dataset.id);
    row.classList.toggle("selected", selected.has(row.dataset.id));
    row.classList.toggle("pending", pending.has(row.dataset.id));
  }
  const bulk = list.querySelector("[data-bulk]");
  if (!bulk) return;
  const matching = bulk.querySelector("[data-all-matching]"), total = Number(matching.dataset.matching);
  const whole = selectable().length > 0 && selectable().every((row) => selected.has(row.dataset.id));
  if (!whole) everything = false;
  matching.hidden = !whole || everything || total <= rows().length;
  const count = everything ? total : selected.size;
  bulk.querySelector("[data-selected-count]").textContent = everything ? `All ${count} that match are selected` : count ? `${count} selected` : "Select all";
  const all = bulk.querySelector("[data-select-all]");
  all.hidden = false;
  all.checked = count > 0 && whole;
  all.indeterminate = count > 0 && !all.checked;
  bulk.querySelector("[data-approve]").disabled = !count;
  for (const button of bulk.querySelectorAll("[data-reject-open], [data-assign]")) { button.hidden = false; button.disabled = !count; }
}
const selectable = () => rows().filter((row) => !pending.has(row.dataset.id) && row.querySelector("input[name=proposal_id]:not(:disabled)"));
function select(id, wanted) {
  if (wanted) selected.add(id); else selected.delete(id);
  show();
}
list.addEventListener("change", (event) => {
  if (event.target.matches("[data-select-all]")) {
    for (const row of selectable()) { if (event.target.checked) selected.add(row.dataset.id); else selected.delete(row.dataset.id); }
    show();
  } else if (event.target.matches("input[name=proposal_id]")) select(event.target.value, event.target.checked);
});
key("x", () => { const row = focusedRow(); if (row?.querySelector("input[name=proposal_id]:not(:disabled)")) select(row.dataset.id, !selected.has(row.dataset.id)); });

// ---- acting on the selected rows, else on the focused one ----
function targets() {
  const some = rows().filter((row) => selected.has(row.dataset.id));
  return (some.length ? some : [focusedRow()]).filter((row) => row && !pending.has(row.dataset.id));
}
function actLater(message, targeted, request) {
  const ids = targeted.map((row) => row.dataset.id);
  const focused = focusedRow() && ids.includes(focusedRow().dataset.id);
  const wereSelected = ids.filter((id) => selected.has(id));
  for (const id of ids) { pending.add(id); selected.delete(id); showProblem(id, ""); }
  const restore = () => { for (const id of ids) pending.delete(id); show(); };
  const onUndo = () => { for (const id of wereSelected) selected.add(id); restore(); };
  sendLater(message, request, { onUndo, onDone: (result) => finished(result, restore), onError: (error) => { restore(); for (const id of ids) showProblem(id, error.message); refresh(); } });
  show();
  if (focused) focusNext(ids);
}
function focusNext(ids) {
  const next = rows().find((row) => !pending.has(row.dataset.id) && row.rowIndex > rowOf(ids[0]).rowIndex);
  next?.querySelector("[data-open]").focus();
}
async function finished(result, restore) {
  restore();
  await refresh();
  for (const [id, message] of Object.entries(result?.failed ?? {})) showProblem(id, message);
}
function showProblem(id, message) {
  const place = rowOf(id)?.querySelector("[data-row-problem]");
  if (place) { place.textContent = message; place.hidden = !message; }
}
const proposals = (some) => (some.length === 1 ? "one proposal" : `${some.length} proposals`);
const path = (row, action) => `/console/queue/${encodeURIComponent(row.dataset.id)}/${action}`;

async function approve() {
  if (everything) { planThenApprove({ all: "yes", ...Object.fromEntries(new URLSearchParams(location.search)) }, targets()); return; }
  const all = targets();
  const some = all.filter((row) => row.querySelector("input[name=proposal_id]:not(:disabled)"));
  if (some.length < all.length) toast("Someone else has to approve what you wrote or edited");
  if (!some.length) return;
  if (some.length > 1) { planThenApprove(some.map((row) => ["proposal_id", row.dataset.id]), some); return; }
  const [row] = some, version = row.dataset.version, where = path(row, "approve");
  actLater(`Approving one proposal: ${nameOf(row)}`, some, (send) => send(where, { version }));
}
const nameOf = (row) => { const text = row.querySelector("[data-open]").textContent.trim(); return text.length > 60 ? `${text.slice(0, 60)}…` : text; };

// ---- several at once: the mix is shown and confirmed, then sent after the delay with the versions that were seen ----
const planDialog = document.querySelector("dialog[data-plan-dialog]");
let planned = null;
async function planThenApprove(fields, some) {
  let plan;
  try { plan = await send("/console/queue/plan", fields); } catch (error) { toast(error.message); return; }
  planned = { plan, some };
  const place = planDialog.querySelector("[data-plan-place]");
  place.innerHTML = plan.html;
  const count = Number(place.querySelector("[data-plan]").dataset.approved);
  planDialog.querySelector("[data-plan-count]").textContent = count === 1 ? "one proposal" : `${count} proposals`;
  planDialog.querySelector("[data-confirm]").hidden = !count;
  planDialog.returnValue = "cancel";
  planDialog.showModal();
  planDialog.querySelector(count ? "[data-confirm]" : "[value=cancel]").focus();
}
planDialog?.addEventListener("close", () => {
  const { plan, some } = planned ?? {};
  planned = null;
  if (!plan) return;
  for (const [id, message] of Object.entries(plan.left_out)) showProblem(id, message);
  if (planDialog.returnValue !== "approve") return;
  const items = plan.items.split(" "), ids = new Set(items.map((item) => item.split(":")[0]));
  everything = false;
  for (const id of Object.keys(plan.left_out)) selected.delete(id);
  actLater(`Approving ${items.length === 1 ? "one proposal" : `${items.length} proposals`}`, some.filter((row) => ids.has(row.dataset.id)), async (send) => {
    const result = await send("/console/queue/approve", { items: plan.items });
    if (result.memories) result.takeBack = () => takeBack(result.memories);
    return result;
  });
  for (const [id, message] of Object.entries(plan.left_out)) showProblem(id, message);
});
async function takeBack(memories) {
  try { toast((await send("/console/queue/take-back", { memories })).notice); } catch (error) { toast(error.message, { seconds: 12 }); }
  refresh();
}
// One request each: a conflict with one proposal does not stop the rest.
function each(some, action, fields, done) {
  const read = some.map((row) => [row.dataset.id, path(row, action), row.dataset.version]);
  return async (send) => {
    const failed = {};
    await Promise.all(read.map(async ([id, where, version]) => {
      try { await send(where, { ...fields, version }); } catch (error) { failed[id] = error.message; }
    }));
    const count = read.length - Object.keys(failed).length;
    return { notice: [count && `${count} ${done}`, ...new Set(Object.values(failed))].filter(Boolean).join("; "), failed };
  };
}
function assign() {
  const some = targets();
  if (some.length) actLater(`Assigning ${proposals(some)} to you`, some, each(some, "assign", {}, "assigned to you"));
}
const dialog = document.querySelector("dialog[data-reject]");
let rejected = [];
function openReject() {
  rejected = targets();
  if (!rejected.length || !dialog) return;
  dialog.querySelector("[data-reject-count]").textContent = proposals(rejected);
  dialog.returnValue = "cancel";
  dialog.showModal();
  dialog.querySelector("input").value = "";
  dialog.querySelector("input").focus();
}
if (dialog) numberedReasons(dialog, (reason, input) => { input.value = reason; dialog.close("reject"); });
dialog?.addEventListener("close", () => {
  if (dialog.returnValue !== "reject") return;
  const { reason, note } = Object.fromEntries(new FormData(dialog.querySelector("form")));
  actLater(`Rejecting ${proposals(rejected)}`, rejected, each(rejected, "reject", { reason, note }, "rejected"));
  dialog.querySelector("textarea").value = "";
});
if (reviews()) {
  key("a", approve);
  key("r", openReject);
  key("s", assign);
}
document.addEventListener("submit", (event) => { if (event.target.id === "bulk") { event.preventDefault(); approve(); } });
list.addEventListener("click", (event) => {
  if (event.target.closest("[data-all-matching]")) { everything = true; show(); }
  if (event.target.closest("[data-reject-open]")) openReject();
  if (event.target.closest("[data-assign]")) assign();
});

// ---- live updates: reload the lists, keep the selection and the focus ----
let loading = null, outdated = false;
function refresh() {
  // What is being loaded may be older than what calls for this: it is loaded once more afterwards.
  outdated = true;
  loading ??= reloadUntilCurrent().finally(() => { loading = null; });
  return loading;
}
async function reloadUntilCurrent() {
  while (outdated) {
    outdated = false;
    await reload();
  }
}
async function reload() {
  const response = await fetch(location.href, { headers: { Accept: "text/html" } }).catch(() => null);
  if (!response?.ok) return;
  const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
  if (!fresh.querySelector("[data-live=list]")) { location.reload(); return; }
  const focused = focusedRow()?.dataset.id, at = focusedRow() ? rows().indexOf(focusedRow()) : -1;
  const boxed = document.activeElement?.matches?.("input[name=proposal_id]");
  const problems = new Map(rows().map((row) => [row.dataset.id, row.querySelector("[data-row-problem]").textContent]));
  for (const part of document.querySelectorAll("[data-live]")) part.replaceChildren(...fresh.querySelector(`[data-live=${part.dataset.live}]`).childNodes);
  const there = new Set(rows().map((row) => row.dataset.id));
  for (const id of [...selected]) if (!there.has(id)) selected.delete(id);
  for (const [id, message] of problems) if (message) showProblem(id, message);
  localTimes(list);
  relativeTimes(list);
  show();
  remember();
  if (focused) {
    const row = rowOf(focused) ?? rows()[Math.min(at, rows().length - 1)];
    row?.querySelector(boxed ? "input[name=proposal_id]" : "[data-open]").focus({ preventScroll: true });
  }
}
live(({ seq, open }) => {
  const first = lastSeq === null;
  const shown = document.querySelector("[data-open-total]")?.dataset.openTotal;
  if (first ? String(open) !== shown : seq !== lastSeq) refresh();
  lastSeq = seq;
});

// ---- for the page of one proposal: its neighbours, and the way back ----
const remember = () => rememberList(document, location.pathname + location.search);
remember();
show();
