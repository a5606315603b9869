// Actions that are sent after a few seconds, so that they can be undone. Leaving the page sends them at once.
import { key, losesByLeaving, send, toast } from "./console.js";

const SECONDS = 5;
const pending = [], inFlight = new Set();
let leaving = false;

// One quiet line names the latest action that can be undone; those before it wait behind it.
function showLatest() {
  for (const action of pending) action.closeToast?.();
  const latest = pending.at(-1);
  if (!latest) return;
  const left = Math.max(1, (latest.until - Date.now()) / 1000);
  latest.closeToast = toast(latest.message + (pending.length > 1 ? ` (${pending.length} waiting)` : ""), { seconds: left, undo: () => undo(latest) });
}

export function sendLater(message, request, { onUndo, onDone, onError, quiet } = {}) {
  const action = { message, request, onUndo, onDone, onError, quiet, until: Date.now() + SECONDS * 1000 };
  action.timer = setTimeout(() => submit(action), SECONDS * 1000);
  pending.push(action);
  showLatest();
}

function remove(action) {
  const index = pending.indexOf(action);
  if (index < 0) return false;
  pending.splice(index, 1);
  clearTimeout(action.timer);
  action.closeToast?.();
  return true;
}

function undo(action = pending.at(-1)) {
  if (!action || !remove(action)) return;
  action.onUndo?.();
  toast("Undone");
  showLatest();
}

async function sendAndShow(action) {
  try {
    const result = await action.request(send);
    if (result?.notice && !(action.quiet?.() && result.usual)) toast(result.notice, result.takeBack ? { seconds: 30, undo: result.takeBack, undoText: "Take back" } : {});
    return result;
  } catch (error) {
    toast(error.message, { seconds: 12 });
    throw error;
  }
}

async function submit(action) {
  if (!remove(action)) return;
  // What many decisions at once take is waited for here; a single one is not, since the next item is there.
  let closeBusy = null;
  const busy = action.quiet ? 0 : setTimeout(() => { closeBusy = toast(`${action.message}: being sent…`, { seconds: 600 }); }, 1000);
  const answer = sendAndShow(action);
  inFlight.add(answer);
  try {
    const result = await answer.finally(() => inFlight.delete(answer));
    await action.onDone?.(result);
  } catch (error) {
    action.onError?.(error);
  } finally {
    clearTimeout(busy);
    closeBusy?.();
  }
}

// Resolves once every action that is being sent has its answer, and shows it.
export const allAnswered = () => Promise.allSettled(inFlight);

// Whether another page is being opened: an answer that comes before it leads nowhere else.
export const isLeaving = () => leaving;

key("u", () => undo());
// INVARIANT: an action is sent unless it is undone. What is too large to outlive the page is sent while the browser asks
// whether to leave, and until it has arrived.
function submitAll() { for (const action of [...pending]) submit(action); }
addEventListener("beforeunload", (event) => {
  leaving = true;
  // A download begins like this too, and the page stays.
  setTimeout(() => { leaving = false; }, SECONDS * 1000);
  submitAll();
  if (losesByLeaving()) event.preventDefault();
});
addEventListener("pagehide", submitAll);
