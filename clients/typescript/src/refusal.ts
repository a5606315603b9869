/** What a gate refused is an answer, not an error. */

import type { Refusal } from "./generated/types.js";

/** Whether a gate refused what was proposed, corrected or edited: then `gate` and `reason` say why. */
export function isRefusal(answer: object): answer is Refusal {
  return "gate" in answer;
}
