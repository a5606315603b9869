// Work that takes a while: how far it is, and its result in place, without leaving the page.
import { localTimes, toast } from "./console.js";

for (const form of document.querySelectorAll("form[data-running]")) form.addEventListener("submit", (event) => run(event, form));

async function run(event, form) {
  event.preventDefault();
  if (form.dataset.busy) return;
  form.dataset.busy = "yes";
  const buttons = [...form.querySelectorAll("button")];
  const shown = form.querySelector("[data-progress]");
  const bar = shown.querySelector("progress"), told = shown.querySelector("[data-told]");
  const began = Date.now();
  let far = "";
  const tell = () => { told.textContent = `${form.dataset.running}${far} (${Math.round((Date.now() - began) / 1000)} s)`; };
  const clock = setInterval(tell, 1000);
  for (const button of buttons) button.disabled = true;
  bar.removeAttribute("value");
  shown.hidden = false;
  tell();
  try {
    await follow(form, (line) => {
      if (line.problem) throw new Error(line.problem);
      if (line.page) return place(line.page);
      far = line.total ? `: ${line.done.toLocaleString()} of ${line.total.toLocaleString()}` : `: ${line.done.toLocaleString()}`;
      if (line.total) { bar.max = line.total; bar.value = line.done; }
      tell();
    });
  } catch (error) {
    toast(error.message);
  } finally {
    clearInterval(clock);
    shown.hidden = true;
    for (const button of buttons) button.disabled = false;
    delete form.dataset.busy;
  }
}

async function follow(form, onLine) {
  const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)), headers: { Accept: "application/x-ndjson" } });
  if (!answer.ok) throw new Error((await answer.json().catch(() => ({}))).detail ?? `the server answered ${answer.status}`);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "", placed = false;
  for (let { value, done } = await reader.read(); !done; { value, done } = await reader.read()) {
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines.filter(Boolean).map((text) => JSON.parse(text))) { onLine(line); placed ||= Boolean(line.page); }
  }
  if (!placed) throw new Error("it broke off before its end; try again");
}

function place(page) {
  const result = new DOMParser().parseFromString(page, "text/html").querySelector("[data-result]");
  const old = document.querySelector("[data-result]");
  if (!result || !old) return;
  old.replaceWith(document.adoptNode(result));
  localTimes(result);
  result.focus();
}
