import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

import { valuesOf } from "../../src/model/initial_environment.js";

describe("a variable of the environment that a process was started with", () => {
  it("is found by its whole name, as often as it is there", () => {
    const environment = Buffer.from("MY_KEY=no\0KEY=one\0XKEY=KEY=no\0KEY=\0EMPTY\0KEY=two=2");
    const found = valuesOf("KEY", environment).map(({ from, to }) => environment.toString("utf8", from, to));
    expect(found).toEqual(["one", "two=2"]);
    expect(valuesOf("KEY", new Uint8Array())).toEqual([]);
  });

  it.runIf(process.platform === "linux")("is gone from /proc once it was blanked, and no other is", () => {
    const module = fileURLToPath(new URL("../../src/model/initial_environment.ts", import.meta.url));
    const program = `
      import { readFileSync } from "node:fs";
      import { createServer } from "vite";
      const server = await createServer({ configFile: false, logLevel: "silent", server: { middlewareMode: true, ws: false } });
      const { blankInitialVariable } = await server.ssrLoadModule(${JSON.stringify(module)});
      process.title = "another title";
      const done = blankInitialVariable("SECRET_KEY");
      const seen = readFileSync("/proc/self/environ", "latin1").split("\\0").filter((entry) => /SECRET|BESIDE/.test(entry));
      console.log(JSON.stringify({ done, seen, beside: process.env.BESIDE }));
      await server.close();`;
    const env = { ...process.env, BEFORE_BESIDE: "1", SECRET_KEY: "sk-secret", BESIDE: "untouched" };
    const child = spawnSync(process.execPath, ["--input-type=module", "-e", program], { env, encoding: "utf8" });
    expect(child.stderr).toBe("");
    const { done, seen, beside } = JSON.parse(child.stdout) as { done: boolean; seen: string[]; beside: string };
    expect(done).toBe(true);
    expect(beside).toBe("untouched");
    expect(seen.filter((entry) => entry !== "").sort()).toEqual(["BEFORE_BESIDE=1", "BESIDE=untouched", "SECRET_KEY="]);
  });
});
