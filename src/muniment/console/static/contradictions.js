// Contradictions: keyboard shortcuts and live updates of the list.
import { key, live, localTimes } from "./console.js";

const list = document.querySelector("[data-live=list]");
const picks = () => [...list.querySelectorAll("[data-pick]")];

function move(by) {
  const all = picks();
  const at = all.findIndex((one) => one.getAttribute("aria-current"));
  const next = all[at + by];
  if (next) location.assign(next.href);
}
if (list) {
  key("j", () => move(1));
  key("k", () => move(-1));
}

// After a form that was refused the address is that of its action, which cannot be read.
const address = location.href.replace(/\/resolve$/, "");
async function refresh() {
  const response = await fetch(address, { headers: { Accept: "text/html" } }).catch(() => null);
  if (!response?.ok) return;
  const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
  const one = document.querySelector("[data-contradiction]");
  const again = one && fresh.querySelector(`[data-contradiction="${CSS.escape(one.dataset.contradiction)}"]`);
  if (one?.dataset.open === "yes" && again?.dataset.open !== "yes") one.querySelector("[data-changed]").hidden = false;
  const part = fresh.querySelector("[data-live=list]");
  if (list && part && !list.contains(document.activeElement)) { list.replaceChildren(...part.childNodes); localTimes(list); }
  if (!list && part) location.assign(address);
}
let lastSeq = null;
live(({ seq }) => { if (lastSeq !== null && seq !== lastSeq) refresh(); lastSeq = seq; });
