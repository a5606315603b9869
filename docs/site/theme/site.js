// Search over the index that MkDocs writes, and a menu that is closed on a phone. No other site is contacted.
const base = document.currentScript.dataset.base;
const form = document.querySelector("[data-search]");
const input = form.querySelector("input");
const found = form.querySelector("[data-found]");
let pages;

if (matchMedia("(max-width: 48rem)").matches) document.querySelector("[data-menu]").open = false;
// A browser does not fetch files from a folder, so the search is hidden there.
if (location.protocol.startsWith("http")) form.hidden = false;

async function index() {
  pages ??= (await (await fetch(`${base}/search/search_index.json`)).json()).docs;
  return pages;
}

function score(page, words) {
  const title = page.title.toLowerCase();
  const text = page.text.toLowerCase();
  let sum = 0;
  for (const word of words) {
    const inTitle = title.includes(word);
    if (!inTitle && !text.includes(word)) return 0;
    sum += (inTitle ? 10 : 0) + Math.min(text.split(word).length - 1, 5);
  }
  return sum;
}

function shown(page) {
  const link = document.createElement("a");
  link.href = `${base}/${page.location}`;
  link.textContent = page.title;
  const place = document.createElement("small");
  place.textContent = page.location;
  link.append(place);
  return link;
}

async function look() {
  const words = input.value.toLowerCase().split(/\s+/).filter((word) => word.length > 1);
  found.hidden = words.length === 0;
  if (found.hidden) return;
  const scored = (await index()).map((page) => [score(page, words), page]).filter(([points]) => points > 0);
  scored.sort(([one], [other]) => other - one);
  found.replaceChildren(...(scored.length ? scored.slice(0, 12).map(([, page]) => shown(page)) : ["Nothing found."]));
}

input.addEventListener("input", look);
form.addEventListener("submit", (event) => { event.preventDefault(); found.querySelector("a")?.click(); });
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") found.hidden = true;
  if (event.key === "/" && document.activeElement === document.body) { event.preventDefault(); input.focus(); }
});
document.addEventListener("click", (event) => { if (!form.contains(event.target)) found.hidden = true; });

// A page in a frame says how high it is, so that nothing of it has to be scrolled to inside of the frame.
addEventListener("message", ({ source, data }) => {
  const frame = [...document.querySelectorAll("iframe")].find((one) => one.contentWindow === source);
  if (frame && Number.isInteger(data?.height)) frame.height = data.height;
});
