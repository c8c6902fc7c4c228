// Measures against the targets: `npm run bench`, or `npm run bench -- NAME… [--check]`. See docs/performance.md.
import "./node_version.mjs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "./build.mjs";
import { root } from "./command.mjs";
import { setUpNode, setUpPython } from "./setup.mjs";

await setUpNode();
const python = await setUpPython();
await build();
const { build: bundle } = await import("esbuild");
// Packages stay outside: only the sidecar's own start is measured, and its bundle is the real one.
const folder = join(root, "node_modules", ".cache", "skynet-scorer", "bench");
await bundle({
  absWorkingDir: root,
  entryPoints: { main: "bench/main.ts", echo_server: "bench/peers/echo_server.ts" },
  outdir: folder,
  outExtension: { ".js": ".mjs" },
  bundle: true,
  packages: "external",
  platform: "node",
  format: "esm",
  target: "node20.4",
  logLevel: "warning",
});
const { main } = await import(pathToFileURL(join(folder, "main.mjs")).href);
try {
  await main({ root, python, programs: folder }, process.argv.slice(2));
} catch (error) {
  console.error(`bench: ${error.message}`);
  process.exitCode = 1;
}
