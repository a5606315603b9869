// Second look: judge by keys.
import { key } from "./console.js";

for (const [letter, would] of [["a", "approve"], ["r", "reject"]]) key(letter, () => document.querySelector(`button[name=would][value=${would}]:not(:disabled)`)?.click());
