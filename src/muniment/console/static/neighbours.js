// The proposals before and after one in the list that it was opened from, also beyond the page of the list that was seen.
const KEY = "muniment-queue";

export function rememberedList() {
  const found = JSON.parse(sessionStorage.getItem(KEY) ?? "null") ?? {};
  const back = found.back?.startsWith("/console/queue") ? found.back : "/console/queue";
  return { back, ids: found.ids ?? [], next: found.next ?? null };
}
export function rememberList(page, back) {
  keep({ back, ids: idsIn(page), next: nextIn(page) });
}

const idsIn = (page) => [...page.querySelectorAll("[data-live=list] [data-row][data-id]")].map((row) => row.dataset.id);
const nextIn = (page) => page.querySelector("[data-live=list] a[rel=next]")?.getAttribute("href") ?? null;
async function loaded(url) {
  const response = await fetch(url, { headers: { Accept: "text/html" } }).catch(() => null);
  return response?.ok ? new DOMParser().parseFromString(await response.text(), "text/html") : null;
}
function keep(list) {
  sessionStorage.setItem(KEY, JSON.stringify(list));
  return list;
}
// The list goes on with what its next page has.
async function loadMore(list) {
  const page = await loaded(list.next);
  if (!page) return list;
  const known = new Set(list.ids);
  return keep({ ...list, ids: [...list.ids, ...idsIn(page).filter((id) => !known.has(id))], next: nextIn(page) });
}
// A proposal that was opened from elsewhere, such as a notice: all that is open in the list comes after it.
async function loadAround(list, id) {
  const page = await loaded(list.back);
  if (!page) return list;
  return keep({ ...list, ids: [id, ...idsIn(page).filter((one) => one !== id)], next: nextIn(page) });
}

// The id of the next or the previous proposal; undefined at an end of the list.
export async function nextProposal(id, by) {
  let list = rememberedList();
  if (!list.ids.includes(id)) list = await loadAround(list, id);
  if (by > 0 && list.ids.at(-1) === id && list.next) list = await loadMore(list);
  const at = list.ids.indexOf(id);
  return at < 0 ? undefined : list.ids[at + by];
}

// The page of a proposal, fetched once, before it is wanted.
const pages = new Map();
export function prefetch(id) {
  if (!pages.has(id)) {
    if (pages.size > 5) pages.delete(pages.keys().next().value);
    const page = fetch(`/console/queue/${encodeURIComponent(id)}`, { headers: { Accept: "text/html", "X-Prefetch": "yes" } })
      .then((response) => (response.ok ? response.text() : null), () => null);
    pages.set(id, page);
  }
  const page = pages.get(id);
  page.then((text) => { if (text === null) pages.delete(id); });
  return page;
}
