import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * The folder that holds `package.json`, `python/` and `proto/`: the same from a source file, from the bundle and from an
 * installed package.
 */
export function packageRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, "python", "skynet", "_worker"))) {
    const parent = dirname(folder);
    if (parent === folder) throw new Error("skynet-scorer is not installed whole: the folder python/skynet is missing");
    folder = parent;
  }
  return folder;
}
