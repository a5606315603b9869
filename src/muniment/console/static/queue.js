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
key("j", () => move(1), { held: true });
key("k", () => move(-1), { held: true });
key("/", () => { document.querySelector(".filter-box").open = true; document.querySelector("[data-filter]").focus(); });
for (const [letter, form] of [["e", "edit"], ["o", "override"]]) {
  key(letter, () => { const row = focusedRow(); if (row && reviews()) location.assign(`${row.querySelector("[data-open]").href}#${form}`); });
}

// ---- the head of the table sticks below the bar of actions, however many lines that takes ----
const measured = new CSSStyleSheet();
document.adoptedStyleSheets.push(measured);
const barHeight = new ResizeObserver(([bar]) => measured.replaceSync(`:root { --bar-height: ${bar.target.offsetHeight}px; }`));

// ---- selecting ----
function show() {
  for (const row of rows()) {
    const box = row.querySelector("input[name=items]");
    if (box) box.checked = selected.has(row.dataset.id);
    row.classList.toggle("selected", selected.has(row.dataset.id));
    row.classList.toggle("pending", pending.has(row.dataset.id));
  }
  const bulk = list.querySelector("[data-bulk]");
  if (!bulk) return;
  barHeight.disconnect();
  barHeight.observe(bulk);
  for (const box of list.querySelectorAll("[data-select-group]")) {
    const own = selectable().filter((row) => box.closest("tbody").contains(row)), chosen = own.filter((row) => selected.has(row.dataset.id)).length;
    box.hidden = false;
    box.disabled = !own.length;
    box.checked = chosen > 0 && chosen === own.length;
    box.indeterminate = chosen > 0 && !box.checked;
  }
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
const selectable = () => rows().filter((row) => !pending.has(row.dataset.id) && row.querySelector("input[name=items]:not(:disabled)"));
function select(id, wanted) {
  if (wanted) selected.add(id); else selected.delete(id);
  show();
}
list.addEventListener("change", (event) => {
  if (event.target.matches("[data-select-all]")) {
    for (const row of selectable()) { if (event.target.checked) selected.add(row.dataset.id); else selected.delete(row.dataset.id); }
    show();
  } else if (event.target.matches("[data-select-group]")) {
    const group = event.target.closest("tbody");
    for (const row of selectable().filter((one) => group.contains(one))) { if (event.target.checked) selected.add(row.dataset.id); else selected.delete(row.dataset.id); }
    show();
  } else if (event.target.matches("input[name=items]")) select(event.target.closest("tr").dataset.id, event.target.checked);
});
key("x", () => { const row = focusedRow(); if (row?.querySelector("input[name=items]:not(:disabled)")) select(row.dataset.id, !selected.has(row.dataset.id)); });

// All of the page, then all that match, then none.
key("X", () => {
  const own = selectable(), whole = own.length > 0 && own.every((row) => selected.has(row.dataset.id));
  const more = list.querySelector("[data-all-matching]:not([hidden])");
  if (whole && more) { everything = true; show(); return; }
  for (const row of own) { if (whole) selected.delete(row.dataset.id); else selected.add(row.dataset.id); }
  show();
});

// ---- acting on the selected rows, else on the focused one ----
function targets() {
  const some = rows().filter((row) => selected.has(row.dataset.id));
  return (some.length ? some : [focusedRow()]).filter((row) => row && !pending.has(row.dataset.id));
}
function actLater(message, targeted, request, undone) {
  const ids = targeted.map((row) => row.dataset.id);
  const focused = focusedRow() && ids.includes(focusedRow().dataset.id);
  const wereSelected = ids.filter((id) => selected.has(id));
  for (const id of ids) { pending.add(id); selected.delete(id); showProblem(id, ""); }
  const restore = () => { for (const id of ids) pending.delete(id); show(); };
  const onUndo = () => { for (const id of wereSelected) selected.add(id); undone?.(); restore(); };
  sendLater(message, request, { onUndo, onDone: (result) => finished(result, restore), onError: (error) => { restore(); for (const id of ids) showProblem(id, error.message); refresh(); } });
  show();
  if (focused) focusNext(ids);
}
function focusNext(ids) {
  if (!ids.length) return;
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
const path = (row, action) => `/console/queue/${encodeURIComponent(row.dataset.id)}/${action}`;

async function approve() {
  if (everything) { planThen("approve", allMatching(), targets()); return; }
  const all = targets();
  const some = all.filter((row) => row.querySelector("input[name=items]:not(:disabled)"));
  if (some.length < all.length) toast("Someone else has to approve what you wrote or edited");
  if (some.length) planThen("approve", seen(some), some);
}
const nameOf = (row) => { const text = row.querySelector("[data-open]").textContent.trim(); return text.length > 60 ? `${text.slice(0, 60)}…` : text; };

// ---- from the list: the mix is shown and confirmed, then sent after the delay with the versions that were seen ----
// INVARIANT: the list approves by plan alone, one row as many: what is not ordinary is left out (REV-13), or opened.
const WORDS = { approve: ["Approve", "Approving"], reject: ["Reject", "Rejecting"], assign: ["Assign to me:", "Assigning to you"] };
const planDialog = document.querySelector("dialog[data-plan-dialog]");
let planned = null, planning = false;
// The last value of a name counts: nothing in the address replaces what was chosen here.
const seen = (some) => [["items", some.map((row) => `${row.dataset.id}:${row.dataset.version}`).join(" ")]];
const allMatching = () => [...[...new URLSearchParams(location.search)].filter(([name]) => name !== "items"), ["all", "yes"], ...seen(rows())];
const counted = (count) => (count === 1 ? "one proposal" : `${count} proposals`);
// Returns null if another dialog was opened meanwhile: that one is answered first.
async function planOf(action, fields, dialog) {
  planning = true;
  const plan = await send("/console/queue/plan", [...fields, ["action", action]]).finally(() => { planning = false; });
  if (document.querySelector("dialog[open]")) return null;
  dialog.querySelector("[data-plan-place]").innerHTML = plan.html;
  for (const link of dialog.querySelectorAll("[data-left-out]")) {
    const row = rowOf(link.dataset.leftOut);
    if (row) { link.textContent = nameOf(row); link.className = "user-text"; }
  }
  const names = new Map([...list.querySelectorAll(".display-name")].map((name) => [name.parentElement.querySelector("code, .mono")?.textContent, name.textContent]));
  for (const subject of dialog.querySelectorAll("[data-subject]")) {
    const name = document.createElement("bdi");
    name.textContent = names.get(subject.dataset.subject) ?? "";
    if (name.textContent) subject.before(name, " ");
  }
  plan.count = plan.items ? plan.items.split(" ").length : 0;
  return plan;
}
// A mix that is not there yet cannot be confirmed, and the row that has the focus is not opened instead.
addEventListener("keydown", (event) => { if (planning && event.key === "Enter") event.preventDefault(); }, true);
async function planThen(action, fields, some) {
  let plan;
  try { plan = await planOf(action, fields, planDialog); } catch (error) { toast(error.message); return; }
  if (!plan) return;
  if (plan.open) { location.assign(plan.open); return; }
  planned = { action, plan, some };
  for (const title of planDialog.querySelectorAll("[data-plan-title]")) title.textContent = WORDS[action][0];
  planDialog.querySelector("[data-plan-count]").textContent = counted(plan.count);
  planDialog.querySelector("[data-confirm]").hidden = !plan.count;
  planDialog.returnValue = "cancel";
  planDialog.showModal();
  planDialog.querySelector(plan.count ? "[data-confirm]" : "[value=cancel]").focus();
}
planDialog?.addEventListener("close", () => {
  const { action, plan, some } = planned ?? {};
  planned = null;
  if (plan) afterPlan(action, plan, some, planDialog.returnValue === "confirmed", {});
});
function afterPlan(action, plan, some, confirmed, fields) {
  const showLeftOut = () => { for (const [id, message] of Object.entries(plan.left_out)) showProblem(id, message); };
  showLeftOut();
  // What was left out may have changed since the list was loaded.
  if (!confirmed) { if (Object.keys(plan.left_out).length) refresh(); return; }
  const ids = new Set(plan.items.split(" ").map((item) => item.split(":")[0]));
  const all = everything, dropped = Object.keys(plan.left_out).filter((id) => selected.delete(id));
  everything = false;
  const taken = some.filter((row) => ids.has(row.dataset.id));
  actLater(`${WORDS[action][1]} ${counted(plan.count)}${plan.count === 1 && taken.length ? `: ${nameOf(taken[0])}` : ""}`, taken, async (send) => {
    const result = await send(`/console/queue/${action}`, { items: plan.items, ...fields });
    if (result.memories) result.takeBack = () => takeBack(result.memories);
    return result;
  }, () => { for (const id of dropped) selected.add(id); everything = all; });
  showLeftOut();
}
async function takeBack(memories) {
  try { toast((await send("/console/queue/take-back", { memories })).notice); } catch (error) { toast(error.message, { seconds: 12 }); }
  refresh();
}
// One alone: no plan, with the version that the row shows.
function alone(row, action, fields, done) {
  const { id, version } = row.dataset, where = path(row, action);
  return async (send) => {
    try { await send(where, { ...fields, version }); } catch (error) { return { notice: error.message, failed: { [id]: error.message } }; }
    return { notice: `1 ${done}` };
  };
}
function assign() {
  const some = targets();
  if (everything || some.length > 1) planThen("assign", everything ? allMatching() : seen(some), some);
  else if (some.length) actLater("Assigning one proposal to you", some, alone(some[0], "assign", {}, "assigned to you"));
}
const dialog = document.querySelector("dialog[data-reject]");
let rejected = [], rejectPlan = null;
async function openReject() {
  if (!dialog || dialog.open) return;
  const some = targets();
  let plan = null;
  if (everything || some.length > 1) {
    try { plan = await planOf("reject", everything ? allMatching() : seen(some), dialog); } catch (error) { toast(error.message); return; }
    if (!plan) return;
  } else if (some.length) dialog.querySelector("[data-plan-place]").replaceChildren();
  else return;
  rejected = some;
  rejectPlan = plan;
  dialog.querySelector("[data-reject-count]").textContent = counted(rejectPlan ? rejectPlan.count : 1);
  const nothing = rejectPlan !== null && !rejectPlan.count;
  for (const part of dialog.querySelectorAll("[data-reject-reason], [value=reject]")) part.hidden = nothing;
  dialog.returnValue = "cancel";
  dialog.showModal();
  dialog.querySelector("input").value = "";
  dialog.querySelector(nothing ? "[value=cancel]" : "input").focus();
}
if (dialog) numberedReasons(dialog, (reason, input) => { input.value = reason; dialog.close("reject"); });
dialog?.addEventListener("close", () => {
  const { reason, note } = Object.fromEntries(new FormData(dialog.querySelector("form")));
  const confirmed = dialog.returnValue === "reject";
  if (rejectPlan) afterPlan("reject", rejectPlan, rejected, confirmed, { reason, note });
  else if (confirmed) actLater("Rejecting one proposal", rejected, alone(rejected[0], "reject", { reason, note }, "rejected"));
  if (confirmed) dialog.querySelector("textarea").value = "";
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
  const boxed = document.activeElement?.matches?.("input[name=items]");
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
    row?.querySelector(boxed ? "input[name=items]" : "[data-open]").focus({ preventScroll: true });
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
