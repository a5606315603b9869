// A form whose content the gates check while it is typed. `ask` sends the fields and returns the result as HTML.
const PAUSE_MS = 400;

export function checkWhileTyping(form, ask) {
  const place = form.querySelector("[data-check-place]");
  let timer, requests = 0;
  const check = async () => {
    clearTimeout(timer);
    const request = ++requests;
    place.setAttribute("aria-busy", "true");
    let html;
    try { ({ html } = await ask()); } catch (error) {
      const problem = document.createElement("p");
      problem.className = "problem";
      problem.textContent = error.message;
      html = problem.outerHTML;
    }
    if (request !== requests) return;
    place.innerHTML = html;
    place.removeAttribute("aria-busy");
  };
  form.addEventListener("input", ({ target }) => { if (target.name !== "note") { clearTimeout(timer); timer = setTimeout(check, PAUSE_MS); } });
  form.querySelector("[data-check-button]").addEventListener("click", (event) => { event.preventDefault(); check(); });
  // Typed before this script ran, or filled in by the browser: no event told of it.
  if ([...form.elements].some(({ name, value, defaultValue }) => name !== "note" && defaultValue !== undefined && value !== defaultValue)) check();
}
