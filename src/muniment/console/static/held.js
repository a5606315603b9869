// Deeds that wait a few seconds before they are sent, so that they can be undone. Leaving the page sends them at once.
import { key, send, toast } from "./console.js";

const SECONDS = 5;
const waiting = [];

export function hold(said, act, { undone, done, failed } = {}) {
  const deed = { act, done, failed, undone };
  deed.close = toast(said, { seconds: SECONDS, undo: () => undo(deed) });
  deed.timer = setTimeout(() => go(deed), SECONDS * 1000);
  waiting.push(deed);
  return deed;
}

function take(deed) {
  const place = waiting.indexOf(deed);
  if (place < 0) return false;
  waiting.splice(place, 1);
  clearTimeout(deed.timer);
  deed.close();
  return true;
}

function undo(deed = waiting.at(-1)) {
  if (!deed || !take(deed)) return;
  deed.undone?.();
  toast("Undone: nothing was sent");
}

async function go(deed) {
  if (!take(deed)) return;
  try {
    const told = await deed.act(send);
    if (told?.said) toast(told.said);
    await deed.done?.(told);
  } catch (error) {
    toast(error.message, { seconds: 12 });
    deed.failed?.(error);
  }
}

key("u", () => undo());
// INVARIANT: what somebody has decided is sent, unless they undo it. `send` outlives the page.
addEventListener("pagehide", () => { for (const deed of [...waiting]) go(deed); });
