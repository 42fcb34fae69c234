// Removes what an earlier build left: a file that has no source any more must not be packed.
import { rmSync } from "node:fs";

rmSync(new URL("../dist", import.meta.url), { recursive: true, force: true });
