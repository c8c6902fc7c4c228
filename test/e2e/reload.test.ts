import { describe, expect } from "vitest";

import { caseOf, plain, scored, tally } from "./cases.js";
import { statusBecomes, statusOf } from "./client.js";
import { test, type Workspace } from "./scenario.js";
import type { Sidecar } from "./sidecar.js";
import { until } from "./until.js";

const BROKEN = "def score(input, output:\n";

describe.each([
  ["SIGHUP", [], (sidecar: Sidecar) => sidecar.signal("SIGHUP")],
  ["--watch", ["--watch"], () => undefined],
] as const)("with %s", (_, args, ask) => {
  test("a changed metric takes over, and the fingerprint tells", async ({ start, workspace }) => {
    const sidecar = await start({ metric: write(workspace, "first"), args });
    const before = await sidecar.client.scoreCall([caseOf("a")]);
    expect(before.fingerprint).toBe(sidecar.ready["metric_fingerprint"]);
    expect(before.results.map(plain)).toEqual([scored(0, 1, "first")]);

    write(workspace, "second");
    ask(sidecar);
    await until("the fingerprint changes", async () => (await describedFingerprint(sidecar)) !== before.fingerprint);

    const after = await sidecar.client.scoreCall([caseOf("a")]);
    expect(after.results.map(plain)).toEqual([scored(0, 1, "second")]);
    expect(after.fingerprint).toBe(await describedFingerprint(sidecar));
    expect(await sidecar.client.health()).toBe("SERVING");
  });

  test("a metric that no longer loads fails new calls, and recovers once it is mended", async ({
    start,
    workspace,
  }) => {
    const sidecar = await start({ metric: write(workspace, "first"), args });
    const statuses = sidecar.client.watchHealth();
    await statusBecomes(statuses, "SERVING");

    workspace.write("metric.py", BROKEN);
    ask(sidecar);
    await statusBecomes(statuses, "NOT_SERVING");
    expect(await statusOf(sidecar.client.score([caseOf("a")]))).toEqual({
      code: "FAILED_PRECONDITION",
      details: expect.stringMatching(/SyntaxError.*metric\.py.*line 1/) as string,
    });
    expect(await sidecar.client.describeMetric()).toMatchObject({
      loaded: false,
      fingerprint: "",
      loadError: expect.stringContaining("SyntaxError") as string,
    });

    write(workspace, "mended");
    ask(sidecar);
    await statusBecomes(statuses, "SERVING");
    expect((await sidecar.client.score([caseOf("a")])).map(plain)).toEqual([scored(0, 1, "mended")]);
    await statuses.return(undefined);
  });
});

describe("a reload", () => {
  test("leaves a call that has begun its metric", async ({ start, workspace }) => {
    const sidecar = await start({ metric: write(workspace, "first") });
    const call = sidecar.client.openScore();
    const first = await call.score([caseOf("a")]);

    write(workspace, "second");
    sidecar.signal("SIGHUP");
    await sidecar.logged("the reload", ({ msg }) => msg === "the metric was loaded again");
    const second = await call.score([caseOf("b")]);
    await call.end();

    expect([...first, ...second].map(plain)).toEqual([scored(0, 1, "first"), scored(1, 1, "first")]);
    expect((await sidecar.client.score([caseOf("c")])).map(plain)).toEqual([scored(0, 1, "second")]);
    await until("the first metric's template is gone", () => templates(sidecar) === 1);
  });

  test("also notices a changed sibling module", async ({ start, workspace }) => {
    workspace.write("words.py", 'WORD = "one"\n');
    const metric = workspace.write(
      "metric.py",
      'import words\n\ndef score(input, output):\n    return 1.0, {"feedback": words.WORD}\n',
    );
    const sidecar = await start({ metric });
    const before = await sidecar.client.scoreCall([caseOf("a")]);

    workspace.write("words.py", 'WORD = "two"\n');
    sidecar.signal("SIGHUP");
    await sidecar.logged("the reload", ({ msg }) => msg === "the metric was loaded again");

    const after = await sidecar.client.scoreCall([caseOf("a")]);
    expect([before, after].flatMap(({ results }) => results.map(plain))).toEqual([
      scored(0, 1, "one"),
      scored(0, 1, "two"),
    ]);
    expect(after.fingerprint).not.toBe(before.fingerprint);
  });

  test("that hangs leaves the current metric at work", async ({ start, workspace }) => {
    const sidecar = await start({ metric: write(workspace, "first"), args: ["--load-timeout", "2"] });

    workspace.write("metric.py", "import time\ntime.sleep(1000)\n");
    sidecar.signal("SIGHUP");
    await until("the second load runs", () => templates(sidecar) === 2);
    expect(tally(await sidecar.client.score([caseOf("a")]))).toEqual({ SCORE: 1 });

    await sidecar.logged("why it gave up", ({ msg }) => msg.includes("does not load"));
    expect(await statusOf(sidecar.client.score([caseOf("a")]))).toMatchObject({ code: "FAILED_PRECONDITION" });
  });
});

describe("SIGTERM", () => {
  test("ends cases that outlast --drain-timeout, and the process with 0", async ({ start, workspace }) => {
    const metric = workspace.write(
      "metric.py",
      `import pathlib, time\n\ndef score(input, output):\n    pathlib.Path(${JSON.stringify(`${workspace.path}/began`)}).touch()\n    time.sleep(1000)\n`,
    );
    const sidecar = await start({ metric, args: ["--drain-timeout", "0.5"] });
    const running = statusOf(sidecar.client.score([caseOf("a")]));
    await until("the case runs", () => workspace.exists("began"));

    sidecar.signal("SIGTERM");

    expect(await running).toMatchObject({ code: "UNAVAILABLE" });
    expect(await sidecar.exited()).toEqual([0, null]);
    await sidecar.nothingLeft(5000);
  });

  test("while a metric loads ends both", async ({ start, workspace }) => {
    const sidecar = await start({ metric: write(workspace, "first") });
    workspace.write("metric.py", "import time\ntime.sleep(1000)\n");
    sidecar.signal("SIGHUP");
    await until("the second load runs", () => templates(sidecar) === 2);

    sidecar.signal("SIGTERM");

    expect(await sidecar.exited()).toEqual([0, null]);
    await sidecar.nothingLeft(5000);
  });
});

/** Writes a metric that answers with a word, and returns its path. */
function write(workspace: Workspace, word: string): string {
  return workspace.write(
    "metric.py",
    `def score(input, output):\n    return 1.0, {"feedback": ${JSON.stringify(word)}}\n`,
  );
}

async function describedFingerprint(sidecar: Sidecar): Promise<string> {
  return (await sidecar.client.describeMetric()).fingerprint;
}

function templates(sidecar: Sidecar): number {
  return sidecar.processes().filter(({ parent, state }) => parent === sidecar.pid && state !== "Z").length;
}
