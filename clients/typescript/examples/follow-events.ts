/** Follow what happens to the memories of a tenant; Ctrl+C ends it. Give the last position to go on from there. */

import { Client, itemsOf } from "muniment";

const auditor = new Client({ key: process.env["AUDITOR_KEY"] });
const stop = new AbortController();
process.once("SIGINT", () => {
  stop.abort();
});

try {
  for await (const { position, event } of auditor.followEvents({ position: process.argv[2], signal: stop.signal })) {
    for (const data of itemsOf(event)) console.log(position, event.type, JSON.stringify(data));
  }
} catch (error) {
  if (!stop.signal.aborted) throw error;
}
