// Alerts by the browser. Of all open pages one holds a stream, also while it is hidden, and shows what arrives.

const supported = "Notification" in window && "locks" in navigator;

function show({ title, body, path }) {
  const shown = new Notification(title, { body, tag: "muniment", icon: "/console/static/icon.svg" });
  shown.addEventListener("click", () => {
    shown.close();
    window.focus();
    if (/^\/console(\/|$)/.test(path)) location.assign(path);
  });
}

let following = false;
function follow() {
  if (following || !supported || Notification.permission !== "granted") return;
  following = true;
  // Held until the page goes; then another page gets it.
  navigator.locks.request("muniment-notices", () => new Promise((release) => {
    const source = new EventSource("/console/live");
    source.addEventListener("notice", (event) => show(JSON.parse(event.data)));
    addEventListener("pagehide", () => { source.close(); following = false; release(); }, { once: true });
  }));
}
follow();
addEventListener("pageshow", follow);

// ---- the time zones that the page Notices offers ----
const zones = document.getElementById("time-zones");
if (zones) {
  const here = new Intl.DateTimeFormat().resolvedOptions().timeZone;
  // The server knows it from the second page on.
  for (const input of document.querySelectorAll("[data-browser-zone]")) input.defaultValue = input.value = here;
  for (const place of document.querySelectorAll("[data-zone-here]")) place.textContent = here;
  const others = (Intl.supportedValuesOf?.("timeZone") ?? []).filter((name) => name.includes("/") && name !== here);
  zones.replaceChildren(...[here, "UTC", ...others].map((name) => new Option(name, name)));
}

// ---- the buttons of the page Notices ----
const box = document.querySelector("[data-notifications]");
if (box) {
  const ask = box.querySelector("[data-notifications-ask]");
  const test = box.querySelector("[data-notifications-test]");
  const state = box.querySelector("[data-notifications-state]");
  const draw = () => {
    const permission = supported ? Notification.permission : "unsupported";
    box.hidden = false;
    ask.hidden = permission !== "default";
    test.hidden = permission !== "granted";
    state.textContent = {
      granted: "Notifications are allowed in this browser.",
      denied: "Notifications are blocked for this site; allow them in the settings of the browser.",
      unsupported: "This browser shows no notifications here; they need https.",
    }[permission] ?? "";
  };
  // A browser asks only after a click.
  ask.addEventListener("click", async () => { await Notification.requestPermission(); draw(); follow(); });
  test.addEventListener("click", () => show({ title: "Muniment: test", body: "Alerts will appear here.", path: "/console/notices" }));
  draw();
}
