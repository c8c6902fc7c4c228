// Runs the scripted model server from its TypeScript: `node test/model_server/run.mjs --help`.
import { build } from "esbuild";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const cache = join(root, "node_modules", ".cache");
mkdirSync(cache, { recursive: true });
// A folder of its own, as several may be started at the same time.
const folder = mkdtempSync(join(cache, "model_server-"));
const outfile = join(folder, "main.mjs");
try {
  await build({
    absWorkingDir: root,
    entryPoints: ["test/model_server/main.ts"],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20.4",
    logLevel: "warning",
  });
  const { main } = await import(pathToFileURL(outfile).href);
  await main(process.argv.slice(2));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
