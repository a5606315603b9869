// Actions that are sent after a few seconds, so that they can be undone. Leaving the page sends them at once.
import { key, send, toast } from "./console.js";

const SECONDS = 5;
const pending = [];

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

async function submit(action) {
  if (!remove(action)) return;
  try {
    const result = await action.request(send);
    if (result?.notice && !(action.quiet?.() && result.usual)) toast(result.notice, result.takeBack ? { seconds: 30, undo: result.takeBack, undoText: "Take back" } : {});
    await action.onDone?.(result);
  } catch (error) {
    toast(error.message, { seconds: 12 });
    action.onError?.(error);
  }
}

key("u", () => undo());
// INVARIANT: an action is sent unless it is undone. `send` outlives the page.
addEventListener("pagehide", () => { for (const action of [...pending]) submit(action); });
