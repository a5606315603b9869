// What a page owes to whoever looks at it, with eyes or without: a list of what is wrong, empty if nothing is.
(what) => {
  const wrong = [];
  const all = (selector) => [...document.querySelectorAll(selector)];
  const shown = (el) => el.checkVisibility({ visibilityProperty: true });
  const called = (el) => `<${el.localName}${el.id ? ` #${el.id}` : ""}${el.className?.baseVal ?? el.className ? ` .${el.className.baseVal ?? el.className}` : ""}> ${(el.textContent ?? "").trim().slice(0, 40)}`;
  const words = (el) => (el.alt ?? "") + [...el.childNodes].map((one) =>
    one.nodeType === Node.TEXT_NODE ? one.data : one.nodeType !== Node.ELEMENT_NODE || one.getAttribute("aria-hidden") === "true" || one.hidden ? "" : words(one)).join("");
  const name = (el) => [
    ...(el.getAttribute("aria-labelledby") ?? "").split(/\s+/).filter(Boolean).map((id) => document.getElementById(id)?.textContent),
    el.getAttribute("aria-label"), ...[...(el.labels ?? [])].map(words), el.matches("input, select, textarea") ? "" : words(el), el.title,
  ].map((one) => (one ?? "").trim()).find(Boolean);
  const actors = "a[href], button, input:not([type=hidden]), select, textarea, summary";

  if (what === "words") { names(); structure(); }
  if (what === "colours") contrast();
  if (what === "layout") layout();
  return wrong;

  // ---- names ----
  function names() {
    for (const el of all(`${actors}, [role=button], dialog, progress`)) if (!name(el)) wrong.push(`has no name: ${called(el)}`);
    for (const el of all("img:not([alt])")) wrong.push(`has no alt: ${called(el)}`);
    for (const el of all("table")) if (!el.caption?.textContent.trim() && !name2(el) && !el.closest("dialog")) wrong.push(`a table without a name: ${called(el)}`);
    for (const el of all("table th:not([scope])")) wrong.push(`a heading of nothing: ${called(el)}`);
    for (const el of all("svg:not([aria-hidden=true])")) if (!name2(el) && !el.querySelector("title") && !el.closest("[aria-label], [aria-labelledby]")) wrong.push(`a drawing without a name: ${called(el)}`);
    for (const el of all("[tabindex='0']")) if (!name2(el) && !el.textContent.trim()) wrong.push(`takes the focus and has no name: ${called(el)}`);
  }
  function name2(el) { return el.getAttribute("aria-label")?.trim() || el.getAttribute("aria-labelledby"); }

  // ---- structure ----
  function structure() {
    if (!document.documentElement.lang) wrong.push("no language");
    if (!document.title.replace("· Muniment", "").trim()) wrong.push("no title");
    if (all("h1").filter(shown).length !== 1) wrong.push(`${all("h1").length} headings of the first level`);
    if (all("main").length !== 1) wrong.push("not one main");
    let level = 0;
    for (const el of all("h1, h2, h3, h4, h5, h6").filter((one) => shown(one) && !one.closest("dialog"))) {
      const next = Number(el.localName[1]);
      if (next > level + 1) wrong.push(`leaves a level out: ${called(el)} after ${level}`);
      level = next;
    }
    const ids = new Map();
    for (const el of all("[id]")) ids.set(el.id, (ids.get(el.id) ?? 0) + 1);
    for (const [id, times] of ids) if (times > 1) wrong.push(`${times} elements are #${id}`);
    for (const attribute of ["aria-labelledby", "aria-describedby", "aria-controls", "for", "list", "form"]) {
      for (const el of all(`[${attribute}]`)) for (const id of el.getAttribute(attribute).split(/\s+/).filter(Boolean)) if (!ids.has(id)) wrong.push(`${attribute}=${id} leads nowhere: ${called(el)}`);
    }
    const regions = new Set();
    for (const el of all("nav, [role=search]")) {
      const label = `${el.localName} ${name2(el) ?? ""}`;
      if (regions.has(label)) wrong.push(`two regions are ${label}`);
      regions.add(label);
    }
    for (const el of all("body > :not(header, nav, main, dialog, [role=status], script, .skip)")) wrong.push(`outside of every landmark: ${called(el)}`);
    for (const el of all("[style], [onclick], [onload], [onerror]")) wrong.push(`inline: ${called(el)}`);
  }

  // ---- contrast ----
  function contrast() {
    const parsed = (text) => { const [r, g, b, a = 1] = text.match(/[\d.]+/g)?.map(Number) ?? [0, 0, 0, 0]; return [r, g, b, a]; };
    const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a)];
    const light = (rgb) => { const [r, g, b] = rgb.map((c) => { c /= 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const between = (one, other) => { const [a, b] = [light(one), light(other)].sort((x, y) => y - x); return (a + 0.05) / (b + 0.05); };
    const behind = (el) => {
      const layers = [];
      for (let at = el; at; at = at.parentElement) {
        const colour = parsed(getComputedStyle(at).backgroundColor);
        if (colour[3]) layers.push(colour);
        if (colour[3] === 1) break;
      }
      return layers.reverse().reduce((below, colour) => over(colour, below), matchMedia("(prefers-color-scheme: dark)").matches ? [18, 18, 18] : [255, 255, 255]);
    };
    const opacity = (el) => { let made = 1; for (let at = el; at; at = at.parentElement) made *= Number(getComputedStyle(at).opacity); return made; };
    const judge = (el, style, label) => {
      const back = behind(el);
      const ink = parsed(el.ownerSVGElement ? style.fill : style.color);
      ink[3] *= opacity(el);
      const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
      const found = between(over(ink, back), back);
      if (found < (large ? 3 : 4.5)) wrong.push(`contrast ${found.toFixed(2)}${label}: ${called(el)}`);
    };
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const seen = new Set();
    for (let node = texts.nextNode(); node; node = texts.nextNode()) {
      const el = node.parentElement;
      if (!node.data.trim() || seen.has(el) || !shown(el) || el.closest(":disabled, .waiting, datalist, script, .sr, title")) continue;
      seen.add(el);
      judge(el, getComputedStyle(el), "");
    }
    for (const el of all("input, select, textarea").filter((one) => shown(one) && !one.disabled)) judge(el, getComputedStyle(el), " of what is typed");
    for (const el of all("[placeholder]").filter(shown)) judge(el, getComputedStyle(el, "::placeholder"), " of its placeholder");
    for (const el of all("td[data-th], .verdict").filter(shown)) if (getComputedStyle(el, "::before").content !== "none") judge(el, getComputedStyle(el, "::before"), " before it");
  }

  // ---- layout ----
  function layout() {
    const root = document.documentElement;
    if (root.scrollWidth > root.clientWidth) {
      wrong.push(`scrolls sideways: ${root.scrollWidth} in ${root.clientWidth}`);
      for (const el of all("body *").filter((one) => shown(one) && one.getBoundingClientRect().right > root.clientWidth + 1).slice(-4)) wrong.push(`  reaches out: ${called(el)}`);
    }
    // Each piece of what can be used, as far as it is to be seen in what it scrolls in.
    const pieces = [];
    // A bar that stays lies over what scrolls below it.
    const stays = (el) => { for (let at = el; at; at = at.parentElement) if (getComputedStyle(at).position === "fixed") return true; return false; };
    for (const el of all(actors).filter((one) => shown(one) && !one.closest("svg, dialog, .sr, .skip") && !stays(one))) {
      for (const rect of el.getClientRects()) {
        let [left, top, right, bottom] = [rect.left, rect.top, rect.right, rect.bottom];
        for (let at = el.parentElement; at; at = at.parentElement) {
          if (getComputedStyle(at).overflowX === "visible") continue;
          const box = at.getBoundingClientRect();
          [left, top, right, bottom] = [Math.max(left, box.left), Math.max(top, box.top), Math.min(right, box.right), Math.min(bottom, box.bottom)];
        }
        if (right - left > 1 && bottom - top > 1) pieces.push({ el, left, top, right, bottom });
      }
    }
    for (const [n, one] of pieces.entries()) for (const other of pieces.slice(n + 1)) {
      if (one.el === other.el || one.el.contains(other.el) || other.el.contains(one.el)) continue;
      const wide = Math.min(one.right, other.right) - Math.max(one.left, other.left), high = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
      if (wide > 2 && high > 2) wrong.push(`lies over another: ${called(one.el)} and ${called(other.el)} by ${wide.toFixed(0)} x ${high.toFixed(0)}`);
    }
  }
}
