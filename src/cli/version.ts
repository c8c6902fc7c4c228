import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";

import { packageRoot } from "../package_root.js";

/** This release, from package.json. */
export function packageVersion(): string {
  return z.object({ version: z.string() }).parse(JSON.parse(readFileSync(join(packageRoot(), "package.json"), "utf8")))
    .version;
}
