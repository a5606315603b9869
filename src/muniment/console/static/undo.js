// Actions that are sent after a few seconds, so that they can be undone. Leaving the page sends them at once.
import { key, send, toast } from "./console.js";

const SECONDS = 5;
const pending = [];

export function sendLater(message, request, { onUndo, onDone, onError } = {}) {
  const action = { request, onUndo, onDone, onError };
  action.closeToast = toast(message, { seconds: SECONDS, undo: () => undo(action) });
  action.timer = setTimeout(() => submit(action), SECONDS * 1000);
  pending.push(action);
}

function remove(action) {
  const index = pending.indexOf(action);
  if (index < 0) return false;
  pending.splice(index, 1);
  clearTimeout(action.timer);
  action.closeToast();
  return true;
}

function undo(action = pending.at(-1)) {
  if (!action || !remove(action)) return;
  action.onUndo?.();
  toast("Undone");
}

async function submit(action) {
  if (!remove(action)) return;
  try {
    const result = await action.request(send);
    if (result?.notice) toast(result.notice);
    await action.onDone?.(result);
  } catch (error) {
    toast(error.message, { seconds: 12 });
    action.onError?.(error);
  }
}

key("u", () => undo());
// INVARIANT: an action is sent unless it is undone. `send` outlives the page.
addEventListener("pagehide", () => { for (const action of [...pending]) submit(action); });
