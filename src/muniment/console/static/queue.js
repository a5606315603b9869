// The queue: the keyboard, deeds that can be undone, and the list as it changes.
import { key, live, localTimes, relativeTimes, toast } from "./console.js";
import { hold } from "./held.js";

const list = document.querySelector("[data-live=list]");
const chosen = new Set();
const away = new Map();
let before = null;

const rows = () => [...list.querySelectorAll("tr[data-row]")];
const rowOf = (id) => list.querySelector(`tr[data-id="${CSS.escape(id)}"]`);
const here = () => document.activeElement?.closest?.("tr[data-row]") ?? null;
const reviews = () => list.querySelector("[data-bulk]") !== null || document.querySelector("dialog[data-reject]") !== null;

// ---- moving ----
function move(by) {
  const all = rows();
  if (!all.length) return;
  const at = here() ? all.indexOf(here()) + by : by > 0 ? 0 : all.length - 1;
  const row = all[Math.max(0, Math.min(all.length - 1, at))];
  row.querySelector("[data-open]").focus();
  row.scrollIntoView({ block: "nearest" });
}
key("j", () => move(1));
key("k", () => move(-1));
key("/", () => document.querySelector("[data-filter]").focus());
for (const [letter, form] of [["e", "edit"], ["o", "override"]]) {
  key(letter, () => { const row = here(); if (row && reviews()) location.assign(`${row.querySelector("[data-open]").href}#${form}`); });
}

// ---- choosing ----
function show() {
  for (const row of rows()) {
    const box = row.querySelector("input[name=proposal_id]");
    if (box) box.checked = chosen.has(row.dataset.id);
    row.classList.toggle("chosen", chosen.has(row.dataset.id));
    row.classList.toggle("waiting", away.has(row.dataset.id));
  }
  const bulk = list.querySelector("[data-bulk]");
  if (!bulk) return;
  const count = chosen.size;
  bulk.querySelector("[data-selected-count]").textContent = count ? `${count} chosen` : "Choose all";
  const all = bulk.querySelector("[data-select-all]");
  all.hidden = false;
  all.checked = count > 0 && count === choosable().length;
  all.indeterminate = count > 0 && !all.checked;
  bulk.querySelector("[data-approve]").disabled = !count;
  for (const button of bulk.querySelectorAll("[data-reject-open], [data-assign]")) { button.hidden = false; button.disabled = !count; }
}
const choosable = () => rows().filter((row) => !away.has(row.dataset.id) && row.querySelector("input[name=proposal_id]:not(:disabled)"));
function choose(id, wanted) {
  if (wanted) chosen.add(id); else chosen.delete(id);
  show();
}
list.addEventListener("change", (event) => {
  if (event.target.matches("[data-select-all]")) {
    for (const row of choosable()) { if (event.target.checked) chosen.add(row.dataset.id); else chosen.delete(row.dataset.id); }
    show();
  } else if (event.target.matches("input[name=proposal_id]")) choose(event.target.value, event.target.checked);
});
key("x", () => { const row = here(); if (row?.querySelector("input[name=proposal_id]:not(:disabled)")) choose(row.dataset.id, !chosen.has(row.dataset.id)); });

// ---- acting: on what is chosen, else on the row that has the focus ----
function targets() {
  const some = rows().filter((row) => chosen.has(row.dataset.id));
  return (some.length ? some : [here()]).filter((row) => row && !away.has(row.dataset.id));
}
function later(said, targeted, act) {
  const ids = targeted.map((row) => row.dataset.id);
  const focused = here() && ids.includes(here().dataset.id);
  const were = ids.filter((id) => chosen.has(id));
  for (const id of ids) { away.set(id, true); chosen.delete(id); complain(id, ""); }
  const back = () => { for (const id of ids) away.delete(id); show(); };
  const undone = () => { for (const id of were) chosen.add(id); back(); };
  hold(said, act, { undone, done: (told) => settled(ids, told, back), failed: (error) => { back(); for (const id of ids) complain(id, error.message); refresh(); } });
  show();
  if (focused) step(ids);
}
function step(ids) {
  const next = rows().find((row) => !away.has(row.dataset.id) && row.rowIndex > rowOf(ids[0]).rowIndex);
  next?.querySelector("[data-open]").focus();
}
async function settled(ids, told, back) {
  back();
  await refresh();
  for (const [id, message] of Object.entries(told?.failed ?? {})) complain(id, message);
}
function complain(id, message) {
  const place = rowOf(id)?.querySelector("[data-row-problem]");
  if (place) { place.textContent = message; place.hidden = !message; }
}
const things = (some) => (some.length === 1 ? "one proposal" : `${some.length} proposals`);
const path = (row, deed) => `/console/queue/${encodeURIComponent(row.dataset.id)}/${deed}`;

function approve() {
  const all = targets();
  const some = all.filter((row) => row.querySelector("input[name=proposal_id]:not(:disabled)"));
  if (some.length < all.length) toast("Somebody else has to approve what you wrote or edited");
  if (!some.length) return;
  const read = some.map((row) => [row.dataset.id, path(row, "approve"), row.dataset.version]);
  later(`Approving ${things(some)}`, some, (send) => (read.length === 1
    ? send(read[0][1], { version: read[0][2] })
    : send("/console/queue/approve", read.map(([id]) => ["proposal_id", id]))));
}
// One after the other: whoever was first with one of them does not stop the rest.
function each(some, deed, fields, said) {
  const read = some.map((row) => [row.dataset.id, path(row, deed), row.dataset.version]);
  return async (send) => {
    const failed = {};
    await Promise.all(read.map(async ([id, where, version]) => {
      try { await send(where, { ...fields, version }); } catch (error) { failed[id] = error.message; }
    }));
    const count = read.length - Object.keys(failed).length;
    return { said: [count && `${count} ${said}`, ...new Set(Object.values(failed))].filter(Boolean).join("; "), failed };
  };
}
function assign() {
  const some = targets();
  if (some.length) later(`Assigning ${things(some)} to you`, some, each(some, "assign", {}, "assigned to you"));
}
const dialog = document.querySelector("dialog[data-reject]");
let rejected = [];
function openReject() {
  rejected = targets();
  if (!rejected.length || !dialog) return;
  dialog.querySelector("[data-reject-count]").textContent = things(rejected);
  dialog.returnValue = "cancel";
  dialog.showModal();
  dialog.querySelector("input").select();
}
dialog?.addEventListener("close", () => {
  if (dialog.returnValue !== "reject") return;
  const { reason, note } = Object.fromEntries(new FormData(dialog.querySelector("form")));
  later(`Rejecting ${things(rejected)}`, rejected, each(rejected, "reject", { reason, note }, "rejected"));
  dialog.querySelector("textarea").value = "";
});
if (reviews()) {
  key("a", approve);
  key("r", openReject);
  key("s", assign);
}
document.addEventListener("submit", (event) => { if (event.target.id === "bulk") { event.preventDefault(); approve(); } });
list.addEventListener("click", (event) => {
  if (event.target.closest("[data-reject-open]")) openReject();
  if (event.target.closest("[data-assign]")) assign();
});

// ---- as it changes: the same page again, what is chosen and where the focus is kept ----
let asking = null;
function refresh() {
  asking ??= fetched().finally(() => { asking = null; });
  return asking;
}
async function fetched() {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } }).catch(() => null);
  if (!answer?.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (!fresh.querySelector("[data-live=list]")) { location.reload(); return; }
  const focused = here()?.dataset.id, at = here() ? rows().indexOf(here()) : -1;
  const boxed = document.activeElement?.matches?.("input[name=proposal_id]");
  const troubles = new Map(rows().map((row) => [row.dataset.id, row.querySelector("[data-row-problem]").textContent]));
  for (const part of document.querySelectorAll("[data-live]")) part.replaceChildren(...fresh.querySelector(`[data-live=${part.dataset.live}]`).childNodes);
  const there = new Set(rows().map((row) => row.dataset.id));
  for (const id of [...chosen]) if (!there.has(id)) chosen.delete(id);
  for (const [id, message] of troubles) if (message) complain(id, message);
  localTimes(list);
  relativeTimes(list);
  show();
  keep();
  if (focused) {
    const row = rowOf(focused) ?? rows()[Math.min(at, rows().length - 1)];
    row?.querySelector(boxed ? "input[name=proposal_id]" : "[data-open]").focus({ preventScroll: true });
  }
}
live(({ seq, open }) => {
  const first = before === null;
  const shown = document.querySelector("[data-open-total]")?.dataset.openTotal;
  if (first ? String(open) !== shown : seq !== before) refresh();
  before = seq;
});

// ---- for the page of one: what comes before and after it, and the way back ----
function keep() {
  sessionStorage.setItem("muniment-queue", JSON.stringify({ back: location.pathname + location.search, ids: rows().map((row) => row.dataset.id) }));
}
keep();
show();
