// The proposals before and after one in the list that it was opened from, also beyond the page of the list that was seen.
const KEY = "muniment-queue";

export function rememberedList() {
  const found = JSON.parse(sessionStorage.getItem(KEY) ?? "null") ?? {};
  const back = found.back?.startsWith("/console/queue") ? found.back : "/console/queue";
  return { back, ids: found.ids ?? [], next: found.next ?? null };
}
export function rememberList(page, back) {
  const ids = [...page.querySelectorAll("[data-live=list] [data-row][data-id]")].map((row) => row.dataset.id);
  const next = page.querySelector("[data-live=list] a[rel=next]")?.getAttribute("href") ?? null;
  sessionStorage.setItem(KEY, JSON.stringify({ back, ids, next }));
}

async function loadMore(list, id) {
  const url = list.ids.includes(id) ? list.next : list.back;
  if (!url) return list;
  const response = await fetch(url, { headers: { Accept: "text/html" } }).catch(() => null);
  if (!response?.ok) return list;
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const known = new Set(list.ids);
  const ids = [...page.querySelectorAll("[data-live=list] [data-row][data-id]")].map((row) => row.dataset.id).filter((one) => !known.has(one));
  const more = { back: list.back, ids: list.ids.includes(id) ? [...list.ids, ...ids] : [id, ...ids.filter((one) => one !== id)], next: page.querySelector("[data-live=list] a[rel=next]")?.getAttribute("href") ?? null };
  sessionStorage.setItem(KEY, JSON.stringify(more));
  return more;
}

// The id of the next or the previous proposal; undefined at an end of the list.
export async function nextProposal(id, by) {
  let list = rememberedList();
  if (by > 0 && (list.ids.length ? list.ids.at(-1) === id && list.next : false)) list = await loadMore(list, id);
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
