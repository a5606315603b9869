// Memory and Why visible: the choice of what to explain, and the time slider.
import { localTimes } from "./console.js";

// ---- typing into a group selects its option ----
for (const choice of document.querySelectorAll("form[data-why] fieldset input[type=radio]")) {
  choice.closest("fieldset").addEventListener("input", (event) => {
    if (event.target.name !== "as_of" || document.querySelector("form[data-why] input[value=recall]").checked) choice.checked = true;
  });
}

// ---- the slider ----
const shown = document.querySelector("[data-shown]");
const format = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
let requests = 0;
async function show(url) {
  const request = ++requests;
  shown.setAttribute("aria-busy", "true");
  try {
    const response = await fetch(url, { headers: { Accept: "text/html" } });
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html").querySelector("[data-shown]");
    if (request !== requests) return;
    if (!response.ok || !fresh) { location.assign(url); return; }
    const focused = document.activeElement?.id;
    shown.replaceChildren(...fresh.childNodes);
    localTimes(shown);
    bindSlider();
    if (focused) document.getElementById(focused)?.focus();
    history.replaceState(null, "", url);
  } finally {
    if (request === requests) shown.removeAttribute("aria-busy");
  }
}
function bindSlider() {
  const form = document.querySelector("form[data-slider]");
  if (!form) return;
  const range = form.querySelector("input[type=range]");
  const output = form.querySelector("output");
  const ticks = [...form.querySelectorAll("datalist option")].map((one) => Number(one.value));
  const update = () => {
    const at = format.format(new Date(Number(range.value) * 1000));
    output.textContent = at;
    range.setAttribute("aria-valuetext", at);
  };
  range.setAttribute("aria-valuetext", format.format(new Date(Number(range.value) * 1000)));
  range.addEventListener("input", update);
  range.addEventListener("change", () => show(`${form.action}?${new URLSearchParams(new FormData(form))}`));
  range.addEventListener("keydown", (event) => {
    const here = Number(range.value);
    let to;
    if (event.key === "ArrowLeft" || event.key === "ArrowDown") to = ticks.findLast((tick) => tick < here - 1e-6);
    else if (event.key === "ArrowRight" || event.key === "ArrowUp") to = ticks.find((tick) => tick > here + 1e-6) ?? Number(range.max);
    else return;
    event.preventDefault();
    if (to === undefined || to === here) return;
    range.value = String(to);
    range.dispatchEvent(new Event("input"));
    range.dispatchEvent(new Event("change"));
  });
}
if (shown) bindSlider();
