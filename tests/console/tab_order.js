// From stop to stop by the Tab key: `begin` says how often to press it, `end` what was not reached or cannot be seen.
(what) => {
  const called = (el) => `<${el.localName}${el.id ? ` #${el.id}` : ""}> ${(el.getAttribute("aria-label") ?? el.name ?? "") || (el.textContent ?? "").trim().slice(0, 40)}`;
  const stops = () => [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")].filter((el) =>
    el.checkVisibility({ visibilityProperty: true }) && !el.disabled && el.tabIndex >= 0 && !el.closest("dialog:not([open])"));
  if (what === "begin") {
    const met = (window.__met = { stops: new Set(), unseen: new Set() });
    document.activeElement?.blur();
    getSelection().removeAllRanges();
    met.listen = (event) => {
      const el = event.target, style = getComputedStyle(el);
      met.stops.add(el);
      const inner = el.ownerSVGElement ? el.querySelector("rect, text") : null;
      const outlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
      if (!outlined && !(inner && getComputedStyle(inner).stroke !== "none") && el.matches(":focus-visible")) met.unseen.add(el);
      const box = el.getBoundingClientRect();
      if (box.right < 1 || box.bottom < 1 || box.left > innerWidth || box.top > innerHeight) met.unseen.add(el);
    };
    document.addEventListener("focusin", met.listen);
    // Fields for a moment have a stop for each part of it.
    return stops().length + 8 * document.querySelectorAll("input[type=datetime-local]").length + 6;
  }
  const met = window.__met;
  document.removeEventListener("focusin", met.listen);
  const groups = new Set([...met.stops].filter((el) => el.type === "radio").map((el) => el.name));
  const missed = stops().filter((el) => !met.stops.has(el) && !(el.type === "radio" && groups.has(el.name)));
  return [...missed.map((el) => `Tab does not reach ${called(el)}`), ...[...met.unseen].map((el) => `its focus is not to be seen: ${called(el)}`)];
}
