// Bundles the sidecar and its command line into one file, dist/skynet-scorer.js: `node scripts/build.mjs`.
// One file starts in less than half the time of many, and the package installs no dependencies.
import "./node_version.mjs";
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { isMain, root } from "./command.mjs";
import { digest } from "./digest.mjs";
import { setUpNode } from "./setup.mjs";
import { thirdPartyNotices } from "./third_party_notices.mjs";

/** Builds where the bundle is missing or older than what it is made from. The npm packages must be installed. */
export async function build() {
  const wanted = digest(SOURCES.map((path) => join(root, path)));
  if (isUpToDate(wanted)) return;
  const { build: bundle } = await import("esbuild");
  mkdirSync(dirname(BUNDLE), { recursive: true });
  const { metafile } = await bundle({
    absWorkingDir: root,
    entryPoints: ["src/cli/main.ts"],
    outfile: `${BUNDLE}.new`,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20.4",
    banner: { js: BANNER },
    // Reading the bundle is a good part of the start: blanks go, while names and lines stay, for stack traces and profiles.
    minifyWhitespace: true,
    lineLimit: 160,
    plugins: [leaveOut],
    legalComments: "none",
    metafile: true,
    logLevel: "warning",
  });
  chmodSync(`${BUNDLE}.new`, 0o755);
  writeFileSync(NOTICES, thirdPartyNotices(Object.keys(metafile.inputs)));
  // Whoever starts the bundle at this moment finds the old one or the new one, whole.
  renameSync(`${BUNDLE}.new`, BUNDLE);
  mkdirSync(dirname(STAMP), { recursive: true });
  writeFileSync(STAMP, wanted);
  console.log(`build: dist/skynet-scorer.js, ${Math.round(readFileSync(BUNDLE).length / 1024)} KiB`);
}

/**
 * Leaves out of the bundle what the sidecar never calls, a quarter of it: zod's error messages in other languages, and the loader of .proto files
 * behind two gRPC services that it does not offer.
 */
const leaveOut = {
  name: "leave-out",
  setup({ onResolve, onLoad }) {
    const namespace = "left-out";
    onResolve({ filter: /\/locales\/index\.js$/ }, ({ path, importer }) =>
      importer.includes("/zod/") ? { path, namespace } : undefined,
    );
    onResolve({ filter: /^@grpc\/proto-loader$/ }, ({ path }) => ({ path, namespace }));
    onLoad({ filter: /.*/, namespace }, () => ({ contents: "export {};" }));
  },
};

const BUNDLE = join(root, "dist", "skynet-scorer.js");
const NOTICES = join(root, "dist", "THIRD_PARTY_NOTICES.txt");
const STAMP = join(root, "node_modules", ".cache", "skynet-scorer", "build");
const SOURCES = [
  "src",
  "package.json",
  "package-lock.json",
  "tsconfig.json",
  "scripts/build.mjs",
  "scripts/third_party_notices.mjs",
];

/** CommonJS packages inside an ES module still want their three words. */
const BANNER = `#!/usr/bin/env node
import { createRequire as __createRequire } from "node:module";
import { dirname as __directoryOf } from "node:path";
import { fileURLToPath as __pathOf } from "node:url";
const require = __createRequire(import.meta.url);
const __filename = __pathOf(import.meta.url);
const __dirname = __directoryOf(__filename);`;

function isUpToDate(wanted) {
  return [BUNDLE, NOTICES, STAMP].every(existsSync) && readFileSync(STAMP, "utf8") === wanted;
}

if (isMain(import.meta.url)) {
  if (process.argv.includes("--force")) rmSync(STAMP, { force: true });
  await setUpNode();
  await build();
}
