import { once } from "node:events";
import { cpSync } from "node:fs";
import { join } from "node:path";
import { describe, expect } from "vitest";

import { caseOf, plain, scored, sideInfo, tally } from "./cases.js";
import { runCommand, runProgram, startCommand } from "./command.js";
import { isAlive } from "./processes.js";
import { fixture, test, type Workspace } from "./scenario.js";
import { until } from "./until.js";

/** Whatever a metric does to its process, its scores stay right, and what it prints is logged. */
describe.each([
  ["the caller's locale", {}],
  ["LC_ALL=C", { LC_ALL: "C", LANG: "C", LANGUAGE: "" }],
])("under %s, a metric that", (_, env) => {
  test.for([
    ["closes descriptors 0 to 2", "closes_descriptors.py"],
    ["forks, its child running on into the worker's code", "forks.py"],
    ["starts threads", "starts_threads.py"],
    ["has a thread when it has loaded", "starts_thread_at_load.py"],
    ["uses signal.alarm", "uses_alarm.py"],
    ["opens a socket while loading", "opens_socket_at_load.py"],
  ] as const)("%s scores right", async ([, metric], { start }) => {
    const { client } = await start({ metric: fixture(metric), env });
    const numbers = Array.from({ length: 300 }, (__, place) => place);

    const results = await client.score(numbers.map((number) => caseOf(number)));

    expect(results.map(plain)).toEqual(numbers.map((number) => scored(number, 1, `Fine, ${number}.`)));
  });

  test("opens a data file while loading scores right", async ({ start, workspace }) => {
    const metric = copyMetric("opens_data_file_at_load.py", workspace);
    const rows = Array.from({ length: 1000 }, (__, row) => String(row).padStart(4, "0"));
    workspace.write("rows.txt", rows.map((row) => `${row}\n`).join(""));
    const sidecar = await start({ metric, env, args: ["--workers", "4"] });

    const results = await sidecar.client.score(rows.map((__, row) => caseOf(row)));

    expect(results.map(plain)).toEqual(rows.map((__, row) => scored(row, 1, `Fine, ${row}.`)));
    await sidecar.logged("why workers do not fork", ({ msg }) => /do not fork.*rows\.txt/.test(msg));
  });

  test("opens a sqlite file while loading scores right", async ({ start, workspace }) => {
    const metric = copyMetric("opens_sqlite_at_load.py", workspace);
    expect((await runProgram("python3", ["-c", MAKE_DATABASE, join(workspace.path, "rows.sqlite")])).code).toBe(0);
    const { client } = await start({ metric, env, args: ["--workers", "4"] });
    const rows = Array.from({ length: 200 }, (__, row) => row);

    const results = await client.score(rows.map((row) => caseOf(row)));

    expect(results.map(plain)).toEqual(rows.map((row) => scored(row, 1, `Fine, ${row * 7}.`)));
  });

  test("leaves a process in the background with its descriptors scores right, and leaves nothing in the end", async ({
    start,
  }) => {
    const sidecar = await start({ metric: fixture("leaves_background_process.py"), env });

    const results = await sidecar.client.score(Array.from({ length: 20 }, (__, place) => caseOf(place)));

    expect(tally(results)).toEqual({ SCORE: 20 });
    const left = results.map((result) => Number(sideInfo(result)["pid"]));
    expect(left.every(isAlive)).toBe(true);
    await sidecar.stop();
    await until("what it left is gone", () => !left.some(isAlive));
  });

  test("prints megabytes scores right, and what it printed is logged", async ({ start }) => {
    const sidecar = await start({ metric: fixture("prints_megabytes.py"), env, args: ["--workers", "1"] });

    const results = await sidecar.client.score(
      ["é", "✓", "three"].map((name, place) => ({ ...caseOf(name), id: `number-${place}` })),
    );

    expect(results.map(plain)).toEqual(
      ["é", "✓", "three"].map((name, place) => scored(place, 1, `Fine, ${name}.`, { id: `number-${place}` })),
    );
    expect(await sidecar.printed("printed while loading")).toMatchObject({ stream: "stdout", worker: 0 });
    expect(await sidecar.printed("written while loading")).toMatchObject({ stream: "output", worker: 0 });
    expect(await sidecar.printed("printed by ✓")).toMatchObject({ stream: "stdout", case: "number-1", index: 1 });
    expect(await sidecar.printed("written by three")).toMatchObject({ stream: "output" });
    expect(await sidecar.printed("m".repeat(99))).toMatchObject({ case: expect.stringMatching(/^number-/) as string });
  });

  test("prints megabytes scores right where nobody reads the log", async ({ workspace }) => {
    const cases = workspace.write(
      "cases.jsonl",
      Array.from({ length: 20 }, (__, number) => `{"n": ${number}}\n`).join(""),
    );
    const child = startCommand(
      ["serve", "--metric", fixture("prints_megabytes.py"), "--listen", `unix:${join(workspace.path, "s")}`],
      { env },
    );
    try {
      await once(child.stdout ?? child, "data");
      const { code, stdout } = await runCommand([
        ...["score", "--connect", `unix:${join(workspace.path, "s")}`, "--cases", cases],
        ...["--prediction-column", "n", "--json"],
      ]);
      expect({ code, ...(JSON.parse(stdout) as object) }).toMatchObject({ code: 0, scored: 20, score: { mean: 1 } });
    } finally {
      child.kill("SIGKILL");
      await once(child, "exit");
    }
  });

  test("needs to be a real module, and stands beside a file json.py, scores right", async ({ start }) => {
    const { client } = await start({ metric: fixture("real_module/metric.py"), env });

    const results = await client.score(["é", "b"].map((name) => caseOf(name)));

    expect(tally(results)).toEqual({ SCORE: 2 });
    expect(results.map(sideInfo)).toEqual(
      ["É", "B"].map((label) => ({
        dataclass: { label, parent: { label: "root", parent: null, notes: [] }, notes: [] },
        ...{ hint: true, name: true, file: true, module: true, sibling: true },
      })),
    );
  });
});

/** Into a folder where it finds, and may leave, files of its own. */
function copyMetric(name: string, workspace: Workspace): string {
  const path = join(workspace.path, "metric.py");
  cpSync(fixture(name), path);
  return path;
}

const MAKE_DATABASE = `
import sqlite3, sys
database = sqlite3.connect(sys.argv[1])
database.execute("pragma journal_mode = wal")
database.execute("create table rows (id integer primary key, value integer)")
database.execute("create table calls (id integer)")
database.executemany("insert into rows values (?, ?)", [(number, number * 7) for number in range(200)])
database.commit()
database.close()
`;
