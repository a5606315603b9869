// Long work: shows its progress, then its result, without leaving the page.
import { localTimes, toast } from "./console.js";

document.addEventListener("submit", (event) => { if (event.target.matches("form[data-progress-title]")) run(event, event.target); });

async function run(event, form) {
  event.preventDefault();
  if (form.dataset.busy) return;
  form.dataset.busy = "yes";
  const buttons = [...form.querySelectorAll("button")];
  const shown = form.querySelector("[data-progress]");
  const bar = shown.querySelector("progress"), text = shown.querySelector("[data-progress-text]");
  const started = Date.now();
  let count = "";
  const update = () => { text.textContent = `${form.dataset.progressTitle}${count} (${Math.round((Date.now() - started) / 1000)} s)`; };
  const clock = setInterval(update, 1000);
  for (const button of buttons) button.disabled = true;
  bar.removeAttribute("value");
  shown.hidden = false;
  update();
  try {
    await follow(form, (line) => {
      if (line.problem) throw new Error(line.problem);
      if (line.page) return showResult(line.page);
      count = line.total ? `: ${line.done.toLocaleString()} of ${line.total.toLocaleString()}` : `: ${line.done.toLocaleString()}`;
      if (line.total) { bar.max = line.total; bar.value = line.done; }
      update();
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
  const response = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)), headers: { Accept: "application/x-ndjson" } });
  if (!response.ok) throw new Error((await response.json().catch(() => ({}))).detail ?? `the server returned ${response.status}`);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "", complete = false;
  for (let { value, done } = await reader.read(); !done; { value, done } = await reader.read()) {
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines.filter(Boolean).map((text) => JSON.parse(text))) { onLine(line); complete ||= Boolean(line.page); }
  }
  if (!complete) throw new Error("the connection was lost before it finished; try again");
}

function showResult(page) {
  const result = new DOMParser().parseFromString(page, "text/html").querySelector("[data-result]");
  const old = document.querySelector("[data-result]");
  if (!result || !old) return;
  old.replaceWith(document.adoptNode(result));
  localTimes(result);
  result.focus();
}
