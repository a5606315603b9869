/** Removes what the compiler made, so that nothing of a file that is gone gets into the package. */

import { rmSync } from "node:fs";

for (const name of ["dist", "build"]) {
  rmSync(new URL(`../${name}`, import.meta.url), { recursive: true, force: true });
}
