import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // Many tests start real processes: a bound on a hang, far from what any of them takes.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    pool: "forks",
    // The contract's vectors and the data for the larger tests lie beside the clone.
    env: { SKYNET_SHARED: process.env["SKYNET_SHARED"] ?? fileURLToPath(new URL("../shared", import.meta.url)) },
  },
});
