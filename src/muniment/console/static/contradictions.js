// Contradictions: the keyboard, and the list as it changes.
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

async function refresh() {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } }).catch(() => null);
  if (!answer?.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  const one = document.querySelector("[data-contradiction]");
  const again = one && fresh.querySelector(`[data-contradiction="${CSS.escape(one.dataset.contradiction)}"]`);
  if (one?.dataset.open === "yes" && again?.dataset.open !== "yes") one.querySelector("[data-changed]").hidden = false;
  const part = fresh.querySelector("[data-live=list]");
  if (list && part && !list.contains(document.activeElement)) { list.replaceChildren(...part.childNodes); localTimes(list); }
  if (!list && part) location.reload();
}
let before = null;
live(({ seq }) => { if (before !== null && seq !== before) refresh(); before = seq; });
