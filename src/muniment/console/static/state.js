// State and correct: what is typed is checked by the gates before it is saved.
import { checkWhileTyping } from "./check.js";
import { fieldsOf, send } from "./console.js";

const form = document.querySelector("[data-state-form]");
checkWhileTyping(form, () => {
  const typed = fieldsOf(form);
  return typed.value?.trim() || typed.text?.trim() ? send("/console/state/check", typed) : { html: "" };
});
