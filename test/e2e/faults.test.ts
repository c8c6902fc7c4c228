import { create } from "@bufbuild/protobuf";
import { status, type StatusObject } from "@grpc/grpc-js";
import { join } from "node:path";
import { describe, expect } from "vitest";

import type { CaseResult } from "../../src/gen/skynet/scoring/v1/case_pb.js";
import { ScoreRequestSchema } from "../../src/gen/skynet/scoring/v1/score_service_pb.js";
import { type CaseInit, caseOf, casesOf, failed, json, plain, scored, sideInfo, tally, text } from "./cases.js";
import { statusBecomes, statusOf } from "./client.js";
import { runCommand } from "./command.js";
import { isAlive } from "./processes.js";
import { RawStream } from "./raw_stream.js";
import { fixture, test } from "./scenario.js";
import type { Sidecar } from "./sidecar.js";
import { until } from "./until.js";

/** One test a row of the design's table of faults: a fault costs the case that has it and no other. */
describe("a payload that is not a case", () => {
  test("costs that case, and tells where; the batch's other cases are scored", async ({ start }) => {
    const { client } = await start("exact_match.py");
    const good = caseOf("a", { q: 1 }, { label: "a" });
    const faulty: readonly [CaseInit, RegExp][] = [
      [{ ...good, input: text('{"q": 1') }, /`?input`?.*not JSON/],
      [{ ...good, output: text("{'a': 1}") }, /`?output`?.*not JSON/],
      [{ ...good, expected: text('{"label": "a"} trailing') }, /`?expected`?.*not JSON/],
      [{ ...good, input: json([1, 2]) }, /`?input`?.*(object|dict)/],
      [{ ...good, input: json(null) }, /`?input`?.*(object|dict)/],
      [{ ...good, expected: json("a") }, /`?expected`?.*(object|dict)/],
      [{ output: json("a") }, /no input/],
      [{ input: json({}) }, /no output/],
      [{ ...good, output: text("") }, /`?output`?.*not JSON/],
      [{ ...good, output: text('"a\u001eb"') }, /`?output`?.*not JSON/],
    ];

    const results = await client.score(faulty.flatMap(([item]) => [good, item]));

    expect(results.map(plain)).toEqual(
      faulty.flatMap(([, message], place) => [
        scored(2 * place, 1, "Correct."),
        failed(2 * place + 1, "INVALID_CASE", expect.stringMatching(message)),
      ]),
    );
  });
});

describe("a metric that raises", () => {
  test("costs the case, with type, message, file and line; the worker lives on", async ({ start }) => {
    const sidecar = await start({ metric: fixture("raises.py"), args: ["--workers", "1"] });
    const names = ["fine", "ValueError", "SystemExit", "KeyboardInterrupt", "fine"];

    const results = await sidecar.client.score(names.map((name) => caseOf(name, { name: "case 7" })));

    const fine = (index: number): unknown =>
      scored(index, 1, "Fine.", { sideInfo: expect.stringContaining("pid") as string });
    expect(results.map(plain)).toEqual([
      fine(0),
      failed(1, "METRIC_EXCEPTION", expect.stringMatching(/^ValueError: no label for case 7 .*raises\.py.*line 9/)),
      failed(2, "METRIC_EXCEPTION", expect.stringMatching(/^SystemExit: 3 .*raises\.py.*line 11/)),
      failed(3, "METRIC_EXCEPTION", expect.stringMatching(/^KeyboardInterrupt.*raises\.py.*line 13/)),
      fine(4),
    ]);
    expect(sideInfo(results[0])).toEqual(sideInfo(results[4]));
  });

  test("tells an engine no source, no path and no local variable; the log has the traceback", async ({ start }) => {
    const sidecar = await start("raises.py");

    const [result] = await sidecar.client.score([{ ...caseOf("ValueError", { name: "case 7" }), id: "seven" }]);

    const told = JSON.stringify(plain(only(result)));
    expect(told).not.toMatch(/raise ValueError|a local variable|fixtures|\/metrics/);
    const line = await sidecar.logged("the traceback", (entry) => entry["case"] === "seven");
    expect(line["traceback"]).toMatch(/Traceback \(most recent call last\):[^]*raise ValueError\(f"no label/);
  });

  test("has its message cut at 4 KB", async ({ start }) => {
    const { client } = await start("raises.py");

    const [result] = await client.score([caseOf("long")]);

    const { message } = errorOf(only(result));
    expect(Buffer.byteLength(message)).toBeLessThan(4096 + 512);
    expect(message).toMatch(/^ValueError: é{1500,}.*cut/);
  });
});

describe("a return value of another shape", () => {
  test("costs the case, and says what came and what was expected; the worker lives on", async ({ start }) => {
    const { client } = await start({ metric: fixture("returns_what_it_is_told.py"), args: ["--workers", "1"] });

    const results = await client.score([
      caseOf(""),
      caseOf("", { returns: "0.8" }),
      caseOf("", { returns: "(0.8, {'reason': 'no', 'scores': {}})" }),
      caseOf(""),
    ]);

    expect(results.slice(1, 3).map(plain)).toEqual([
      failed(1, "METRIC_RETURN_VALUE", expect.stringMatching(/float.*pair|pair.*float/)),
      failed(
        2,
        "METRIC_RETURN_VALUE",
        expect.stringContaining('the side info has no "feedback" string; it has the keys "reason", "scores"'),
      ),
    ]);
    expect(sideInfo(results[0])).toEqual(sideInfo(results[3]));
  });
});

describe("a metric that runs past its timeout", () => {
  test("costs the case at the deadline; its `finally` blocks run", async ({ start, workspace }) => {
    const { client } = await start({ metric: fixture("cleans_up.py"), args: ["--metric-timeout", "0.5"] });
    const files = ["one", "two", "three"];

    const results = await client.score(files.map((name) => caseOf("hang", { file: join(workspace.path, name) })));

    expect(results.map(plain)).toEqual(
      files.map((_, place) => failed(place, "METRIC_TIMEOUT", expect.stringContaining("its timeout of 0.5 s"))),
    );
    const took = results.map(({ timing }) => timing?.metricMs ?? 0);
    expect(Math.min(...took)).toBeGreaterThanOrEqual(500);
    // Of three, since the machine may stand still for a moment.
    expect(Math.min(...took)).toBeLessThan(750);
    await until("every `finally` block has run", () => files.every((name) => workspace.read(name) === "cleaned up"));
  });

  test("is killed with its whole group where it goes on regardless, and another worker takes over at once", async ({
    start,
    workspace,
  }) => {
    const file = join(workspace.path, "pids");
    const sidecar = await start({
      metric: fixture("ignores_interrupts.py"),
      args: ["--metric-timeout", "0.5", "--workers", "1"],
    });

    const results = await sidecar.client.score([caseOf("hang", { file }), ...casesOf(20, "fine")]);

    expect(tally(results)).toEqual({ METRIC_TIMEOUT: 1, SCORE: 20 });
    const pids = workspace.lines("pids").map(Number);
    expect(pids).toHaveLength(2);
    await until("the worker and its child are gone", () => !pids.some(isAlive), 5000);
  });
});

describe("a worker that dies", () => {
  test.for([
    ["os._exit(0)", "exited with code 0"],
    ["os._exit(3)", "exited with code 3"],
    ["segfault", "killed by SIGSEGV"],
    ["kill -9", "killed by SIGKILL"],
  ] as const)(
    "by %s costs the case in hand; no other is lost, and none is run twice",
    async ([how, words], { start, workspace }) => {
      const { client } = await start("dies.py");
      const input = { how, file: join(workspace.path, "calls") };
      const cases = Array.from({ length: 600 }, (_, place) =>
        caseOf(place % 200 === 99 ? "die" : "fine", { ...input, name: `case ${place}` }),
      );

      const results = await client.score(cases);

      expect(tally(results)).toEqual({ METRIC_CRASHED: 3, SCORE: 597 });
      for (const place of [99, 299, 499]) {
        expect(plain(only(results[place]))).toEqual(failed(place, "METRIC_CRASHED", expect.stringContaining(words)));
      }
      expect(workspace.lines("calls").sort()).toEqual(cases.map((_, place) => `case ${place}`).sort());
    },
  );
});

describe("a metric that does not load", () => {
  test.for([
    ["def score(input, output, expected=None:", /SyntaxError/],
    ["import no_such_module_anywhere", /ModuleNotFoundError: No module named 'no_such_module_anywhere'/],
    ["raise SystemExit(3)", /SystemExit: 3/],
    ["import os\nos._exit(5)", /code 5/],
    ["score = 3", /score/],
  ] as const)("fails new calls with the load error: %j", async ([source, reason], { start, workspace }) => {
    const { client, ready } = await start({ metric: workspace.write("metric.py", source) });

    expect(ready).toMatchObject({ metric_loaded: false, metric_error: expect.stringMatching(reason) as string });
    const failure = { code: "FAILED_PRECONDITION", details: expect.stringMatching(reason) as string };
    expect(await statusOf(client.score([caseOf("a")]))).toEqual(failure);
    expect(await statusOf(client.scoreBatch([caseOf("a")]))).toEqual(failure);
    expect(await client.health()).toBe("NOT_SERVING");
  });
});

describe("workers that die again and again", () => {
  test("settle each case, with a start for each, and score the good ones between", async ({ start, workspace }) => {
    const { client } = await start({ metric: fixture("dies.py"), args: ["--workers", "1"] });
    const input = { how: "os._exit(3)", file: join(workspace.path, "calls"), name: "x" };
    const begun = (): number => workspace.lines("calls").length;

    // A process dies with each, so each that begins is a start. How long a start waits is told by test/worker/backoff.test.ts.
    expect(tally(await client.score(casesOf(8, "die", "die", input)))).toEqual({ METRIC_CRASHED: 8 });
    expect(begun()).toBe(8);

    expect(tally(await client.score(casesOf(3, "fine", "fine", input)))).toEqual({ SCORE: 3 });
    expect(tally(await client.score(casesOf(2, "die", "die", input)))).toEqual({ METRIC_CRASHED: 2 });
    expect(begun()).toBe(13);
  });

  test("before they ever stand ready settle each case too", async ({ start }) => {
    const sidecar = await start({ metric: fixture("dies_after_fork.py"), args: ["--start-method", "fork"] });

    const results = await sidecar.client.score(casesOf(5, "fine"));

    expect(tally(results)).toEqual({ METRIC_CRASHED: 5 });
    expect(errorOf(only(results[0])).message).toMatch(/no process could be started.*code 7/);
    expect(await sidecar.client.health()).toBe("NOT_SERVING");
  });
});

describe("a client that goes away", () => {
  test.for(["cancels", "runs past its deadline", "disconnects"] as const)(
    "%s: its running cases are ended and its queued ones dropped; others notice nothing",
    async (how, { start, workspace }) => {
      const sidecar = await start({ metric: fixture("waits_for_file.py"), args: ["--workers", "2"] });
      const files = { began: join(workspace.path, "began"), go: join(workspace.path, "never") };

      const leave = await openCall(how, sidecar, casesOf(50, "wait", "wait", files));
      await until("both workers have a case that waits", () => workspace.lines("began").length === 2);
      const waiting = workspace.lines("began").map(Number);
      const others = sidecar.client.score(casesOf(500, "fine"));
      await leave();

      expect(tally(await others)).toEqual({ SCORE: 500 });
      await until("the workers with a case of the call are gone", () => !waiting.some(isAlive), 5000);
      expect(workspace.lines("began")).toHaveLength(2);
    },
  );
});

describe("results larger than one message may be", () => {
  test("come in several responses, none lost or cut", async ({ start }) => {
    const { client } = await start("talks_at_length.py");
    const lengths = Array.from({ length: 100 }, (_, place) => 10_000 * (place % 50));

    const { results, sizes } = await client.scoreCall(lengths.map((length) => caseOf(length)));

    expect(results.map(plain)).toEqual(lengths.map((length, place) => scored(place, 1, "x".repeat(length))));
    expect(Math.max(...sizes)).toBeLessThanOrEqual(DEFAULT_CLIENT_LIMIT);
  });

  test("where one alone is too large cost its case", async ({ start }) => {
    const { client } = await start({ metric: fixture("talks_at_length.py"), args: ["--max-message-bytes", "64KiB"] });

    const results = await client.score([caseOf(10), caseOf(100_000), caseOf(20)]);

    expect(results.map(plain)).toEqual([
      scored(0, 1, "x".repeat(10)),
      failed(1, "METRIC_RETURN_VALUE", expect.stringMatching(/\d{5,6}.*65,?536|65,?536.*\d{5,6}|100,?\d{3}/)),
      scored(2, 1, "x".repeat(20)),
    ]);
  });
});

describe("SIGTERM", () => {
  test("lets running cases finish, refuses new calls, and ends with 0", async ({ start, workspace }) => {
    const sidecar = await start("waits_for_file.py");
    const [began, go] = [join(workspace.path, "began"), join(workspace.path, "go")];
    const statuses = sidecar.client.watchHealth();
    await statusBecomes(statuses, "SERVING");
    const running = sidecar.client.score([caseOf("wait", { began, go })]);
    await until("the case runs", () => workspace.lines("began").length === 1);

    sidecar.signal("SIGTERM");

    await statusBecomes(statuses, "NOT_SERVING");
    expect(await statusOf(sidecar.client.score([caseOf("a")]))).toMatchObject({ code: "UNAVAILABLE" });
    workspace.write("go", "");
    expect((await running).map(plain)).toEqual([scored(0, 1, "Fine.")]);
    expect(await sidecar.exited()).toEqual([0, null]);
  });
});

describe("an option out of range", () => {
  test.for([
    [["--metric-timeout", "601"], /--metric-timeout.*601.*600/],
    [["--metric-timeout", "0"], /--metric-timeout.*0/],
    [["--workers", "0"], /--workers.*0.*1/],
    [["--listen", "127.0.0.1:65536"], /--listen.*65536/],
    [["--max-message-bytes", "12"], /--max-message-bytes.*12/],
    [["--start-method", "thread"], /--start-method.*thread.*fork/],
    [["--seed", "-1"], /--seed.*-1/],
  ] as const)("is an error before anything starts: %j", async ([args, message]) => {
    const { code, stdout, stderr } = await runCommand(["serve", "--metric", fixture("exact_match.py"), ...args]);

    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(message);
  });

  test("an unknown column too, with the nearest name", async ({ workspace }) => {
    const cases = workspace.write("cases.csv", "question,label,answer\n1,a,a\n");

    const outcome = await runCommand([
      ...["score", "--metric", fixture("exact_match.py"), "--cases", cases],
      ...["--prediction-column", "answer", "--output-columns", "lable"],
    ]);

    expect(outcome).toMatchObject({ code: 2, stderr: expect.stringMatching(/lable.*label/) as string });
  });
});

/** What gRPC clients take in one message where nobody told them otherwise. */
const DEFAULT_CLIENT_LIMIT = 4 * 1024 * 1024;

/** Opens a call that its client will leave; returns how it does, which resolves when the client has its status. */
async function openCall(how: string, sidecar: Sidecar, cases: readonly CaseInit[]): Promise<() => Promise<void>> {
  if (how === "disconnects") {
    const stream = RawStream.open(sidecar.address);
    await stream.send(cases);
    return () => {
      stream.disconnect();
      return Promise.resolve();
    };
  }
  const deadline = how === "cancels" ? undefined : new Date(Date.now() + 1000);
  const call = sidecar.client.openStream(deadline);
  // A call that failed also throws its status; here that is no error.
  call.on("error", () => undefined).on("data", () => undefined);
  const ended = new Promise<StatusObject>((resolve) => call.on("status", resolve));
  call.write(create(ScoreRequestSchema, { cases: [...cases] }));
  return async () => {
    if (how === "cancels") call.cancel();
    expect((await ended).code).toBe(how === "cancels" ? status.CANCELLED : status.DEADLINE_EXCEEDED);
  };
}

function only(result: CaseResult | undefined): CaseResult {
  if (result === undefined) throw new Error("there should be a result");
  return result;
}

function errorOf({ outcome }: CaseResult): { readonly message: string } {
  if (outcome.case !== "error") throw new Error(`expected an error, got ${String(outcome.case)}`);
  return outcome.value;
}
