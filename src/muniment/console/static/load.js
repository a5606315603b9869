// A file to load is put into the field, so that one sees it before it is sent.
import { toast } from "./console.js";

// The server takes a form of four megabytes, in which some characters are longer.
const MOST = 3 * 1024 * 1024;

function offer() {
  const place = document.querySelector("[data-from-file]");
  if (place) place.hidden = false;
}
document.addEventListener("change", async (event) => {
  const file = event.target.matches("[data-from-file] input") ? event.target.files[0] : null;
  if (!file) return;
  if (file.size > MOST) { toast("The file is larger than 3 MB: load it in parts.", { seconds: 12 }); event.target.value = ""; return; }
  const text = event.target.form.querySelector("textarea");
  try { text.value = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer()); } catch { toast("The file is not UTF-8: save it as “CSV UTF-8”.", { seconds: 12 }); event.target.value = ""; return; }
  text.focus();
});
new MutationObserver(offer).observe(document.querySelector("main"), { childList: true });
offer();
