// State and correct: what is typed is checked by the gates before it is saved.
import { send } from "./console.js";

const form = document.querySelector("[data-state-form]"), place = form.querySelector("[data-check-place]");
const fields = () => Object.fromEntries([...new FormData(form)].filter(([name]) => name !== "form_token"));
let timer, requests = 0;
async function check() {
  const request = ++requests, typed = fields();
  if (!typed.value?.trim() && !typed.text?.trim()) return;
  place.setAttribute("aria-busy", "true");
  let html;
  try { ({ html } = await send("/console/state/check", typed)); } catch (error) {
    const problem = document.createElement("p");
    problem.className = "warning";
    problem.textContent = error.message;
    html = problem.outerHTML;
  }
  if (request !== requests) return;
  place.innerHTML = html;
  place.removeAttribute("aria-busy");
}
form.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(check, 400); });
form.querySelector("[data-check-button]").addEventListener("click", (event) => { event.preventDefault(); clearTimeout(timer); check(); });
