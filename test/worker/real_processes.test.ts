import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { encodeFrame, FrameKind } from "../../src/worker/frames.js";
import type { PoolOptions, Printed, Worker } from "../../src/worker/types.js";
import { caseOf, fixture, isAlive, openDescriptors, pythonProcesses, RealPool, text, until } from "./real_pool.js";

let folder: string;
let descriptors: number | undefined;
let opened: RealPool[];
let pids: Set<number>;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "skynet-test-"));
  descriptors = openDescriptors();
  opened = [];
  pids = new Set();
});

/** Whatever happened, closing leaves no process, no descriptor and no folder. */
afterEach(async () => {
  for (const pool of opened) await pool.close();
  rmSync(folder, { recursive: true });
  await until(() => pythonProcesses().length === 0, "all templates to be reaped");
  await until(() => ![...pids].some(isAlive), "all workers to be gone");
  await until(() => openDescriptors() === descriptors, "all descriptors to be closed");
});

async function open(metric: string, options: Partial<PoolOptions> = {}): Promise<RealPool> {
  const pool = await RealPool.open(metric.startsWith("/") ? metric : fixture(metric), options);
  opened.push(pool);
  const { onIdle } = pool.listener;
  pool.listener.onIdle = (worker) => {
    pids.add(worker.pid);
    onIdle(worker);
  };
  return pool;
}

function metricFile(source: string): string {
  const path = join(folder, "metric.py");
  writeFileSync(path, source);
  return path;
}

describe("scoring", () => {
  test.each(["fork", "spawn"] as const)("with %s, chunk after chunk", async (startMethod) => {
    const pool = await open("exact_match.py", { startMethod });
    expect(pool.metric).toMatchObject({
      problems: [],
      arguments: 3,
      signature: "(input, output, expected=None)",
      startMethod,
    });
    const worker = await pool.startOne();
    const expected = { label: "a" };
    for (let chunk = 0; chunk < 3; chunk++) {
      const rows = await pool.score(worker, [
        caseOf("a", {}, expected),
        caseOf("b", {}, expected),
        caseOf("a", {}, expected),
      ]);
      expect(rows.map(({ position, kind, value, text: feedback }) => [position, kind, value, text(feedback)])).toEqual([
        [0, "score", 1, "Correct."],
        [1, "score", 0, "Expected 'a', got 'b'."],
        [2, "score", 1, "Correct."],
      ]);
    }
    expect(worker.privateBytes()).toBeGreaterThan(10_000);
  });

  test("8 MB of payload arrive and a large result comes back", async () => {
    const pool = await open("returns_what_it_is_told.py");
    const worker = await pool.startOne();
    const large = "x".repeat(8_000_000);
    const [row] = await pool.score(worker, [
      caseOf(large, { returns: '(len(output), {"feedback": output[:3000000]})' }),
    ]);
    expect(row).toMatchObject({ kind: "score", value: 8_000_000 });
    expect(row?.text.length).toBe(3_000_000);
  });

  test("64 workers score at once", async () => {
    const pool = await open("exact_match.py");
    const workers = await pool.start(64);
    const results = await Promise.all(workers.map((worker) => pool.score(worker, [caseOf("a", {}, { label: "a" })])));
    expect(results.flat()).toHaveLength(64);
  });

  test("a recalled chunk ends early, and the rest is not scored", async () => {
    const pool = await open("waits_for_file.py");
    const worker = await pool.startOne();
    const input = { began: join(folder, "began"), go: join(folder, "go") };
    const scored = pool.score(worker, [caseOf("a"), caseOf("wait", input), caseOf("b"), caseOf("c")]);
    await until(() => existsSync(input.began), "the case to begin");
    worker.recall();
    writeFileSync(input.go, "");
    expect((await scored).map(({ position }) => position)).toEqual([0, 1]);
    expect((await pool.score(worker, [caseOf("a"), caseOf("b")])).map(({ position }) => position)).toEqual([0, 1]);
  });
});

describe("a worker that dies", () => {
  test.each([
    ["os._exit(0)", { exitCode: 0, signal: undefined }],
    ["os._exit(3)", { exitCode: 3, signal: undefined }],
    ["segfault", { exitCode: undefined, signal: "SIGSEGV" }],
    ["kill -9", { exitCode: undefined, signal: "SIGKILL" }],
  ])("by %s costs the case in hand alone", async (how, exit) => {
    const pool = await open("dies.py");
    const worker = await pool.startOne();
    const { pid } = worker;
    const input = { how, file: join(folder, "calls"), name: "n" };
    worker.run([caseOf("a", input), caseOf("b", input), caseOf("die", input), caseOf("c", input)]);
    await pool.listener.until(() => pool.listener.deaths.length === 1, "the death");
    expect(pool.listener.positions).toEqual([0, 1]);
    expect(pool.listener.deaths).toEqual([{ worker, death: { pid, ...exit, position: 2 } }]);
    expect(worker.state).toBe("ended");
    const replacement = await pool.nextIdle();
    expect(await pool.score(replacement, [caseOf("c", input)])).toHaveLength(1);
  });

  test("between two cases has none in hand", async () => {
    const pool = await open("exact_match.py");
    const worker = await pool.startOne();
    process.kill(worker.pid, "SIGKILL");
    await pool.listener.until(() => pool.listener.deaths.length === 1, "the death");
    expect(pool.listener.deaths[0]?.death).toEqual({
      pid: worker.pid,
      exitCode: undefined,
      signal: "SIGKILL",
      position: undefined,
    });
    await pool.nextIdle();
  });

  test("while 8 MB are written to it harms nobody else", async () => {
    const pool = await open("exact_match.py");
    const worker = await pool.startOne();
    process.kill(worker.pid, "SIGSTOP");
    worker.run([caseOf("x".repeat(8_000_000), {}, { label: "a" })]);
    process.kill(worker.pid, "SIGKILL");
    await pool.listener.until(() => pool.listener.deaths.length === 1, "the death");
    expect(pool.listener.deaths[0]?.death).toMatchObject({ signal: "SIGKILL", position: undefined });
    expect(await pool.score(await pool.nextIdle(), [caseOf("a", {}, { label: "a" })])).toHaveLength(1);
  });

  test("of having closed every descriptor is killed and replaced", async () => {
    const pool = await open("closes_everything.py");
    const worker = await pool.startOne();
    worker.run([caseOf("a"), caseOf("hang")]);
    await pool.listener.until(() => pool.listener.deaths.length === 1, "the death");
    expect(pool.listener.positions).toEqual([0]);
    expect(pool.listener.deaths[0]?.death.position).toBe(1);
    await pool.nextIdle();
  });

  test("with spawn has its place taken by the spare", async () => {
    const pool = await open("dies.py", { startMethod: "spawn" });
    const worker = await pool.startOne();
    worker.run([caseOf("die", { how: "segfault", file: join(folder, "calls"), name: "n" })]);
    await pool.listener.until(() => pool.listener.deaths.length === 1, "the death");
    expect(pool.listener.deaths[0]?.death).toMatchObject({ signal: "SIGSEGV", position: 0 });
    expect((await pool.nextIdle()).number).toBe(2);
  });

  test("whose process left another one with its connection is dead all the same", async () => {
    const metric = metricFile(
      [
        "import os, subprocess",
        "def score(input, output):",
        "    descriptors = [int(name) for name in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + name)]",
        "    child = subprocess.Popen(['sleep', '1000'], start_new_session=True, pass_fds=descriptors)",
        "    with open(input['file'], 'w') as file:",
        "        file.write(str(child.pid))",
        "    os._exit(5)",
      ].join("\n"),
    );
    const pool = await open(metric);
    const worker = await pool.startOne();
    const file = join(folder, "child");
    worker.run([caseOf("a", { file })]);
    await pool.listener.until(() => pool.listener.deaths.length === 1, "the death");
    expect(pool.listener.deaths[0]?.death).toMatchObject({ exitCode: 5, position: 0 });
    pids.add(Number(readFileSync(file, "utf8")));
  });
});

describe("a metric that does not return", () => {
  /** Runs a good case and one that hangs; resolves when the latter is in hand. */
  async function hang(pool: RealPool, before = [caseOf("a")], after = [caseOf("b")]): Promise<Worker> {
    const worker = await pool.startOne();
    const startedAt = performance.now();
    worker.run([...before, caseOf("hang"), ...after]);
    await until(() => worker.look().position === before.length, "the case that hangs");
    expect(pool.listener.positions).toEqual(before.map((_, position) => position));
    const { beganAt } = worker.look();
    expect(beganAt).toBeGreaterThanOrEqual(startedAt);
    expect(beganAt).toBeLessThanOrEqual(performance.now());
    return worker;
  }

  test.each(["loops_forever.py", "sleeps_forever.py", "backtracks_forever.py"])(
    "%s is ended, and replaced at once",
    async (metric) => {
      const pool = await open(metric);
      const worker = await hang(pool);
      worker.end("timeout");
      const replacement = await pool.nextIdle();
      expect(replacement.number).toBe(2);
      expect(await pool.score(replacement, [caseOf("b")])).toHaveLength(1);
      await until(() => worker.state === "ended" && !isAlive(worker.pid), "its end");
      expect(pool.listener.deaths).toEqual([]);
    },
  );

  test("gets its finally blocks run", async () => {
    const pool = await open("cleans_up.py");
    const worker = await pool.startOne();
    const file = join(folder, "cleaned");
    worker.run([caseOf("a", { file })]);
    await until(() => worker.look().position === 0, "the case");
    worker.end("cancelled");
    await until(() => worker.state === "ended", "its end");
    expect(readFileSync(file, "utf8")).toBe("cleaned up");
  });

  test("and ignores interrupts is killed with its children", async () => {
    const pool = await open("ignores_interrupts.py");
    const worker = await pool.startOne();
    const file = join(folder, "pids");
    worker.run([caseOf("hang", { file })]);
    await until(() => existsSync(file) && readFileSync(file, "utf8").split("\n").length === 3, "its child");
    worker.end("timeout");
    await until(() => worker.state === "ended", "its end");
    const found = readFileSync(file, "utf8").trim().split("\n").map(Number);
    await until(() => !found.some(isAlive), "the group's end");
  });

  test("uses CPU time, its children's included, where it computes", async () => {
    const computing = await hang(await open("loops_forever.py"), [], []);
    await until(() => (computing.cpuTimes()?.cpuMs ?? 0) > 50, "its CPU time");
    const child = await hang(await open("burns_in_child.py"), [], []);
    await until(() => (child.cpuTimes()?.cpuMs ?? 0) > 100, "its child's CPU time");
    const sleeping = await hang(await open("sleeps_forever.py"), [], []);
    await until(() => performance.now() - sleeping.look().beganAt > 100, "it to have slept for a while");
    expect(sleeping.cpuTimes()?.cpuMs).toBeLessThan(50);
  });
});

describe("loading", () => {
  test.each([
    ["syntax_error.py", /SyntaxError/],
    ["exits_at_load.py", /SystemExit/],
    ["dies_at_load.py", /was killed by SIGKILL while it loaded the file/],
    ["not_there.py", /not_there\.py/],
  ])("%s is a problem of the metric file, and leaves nothing", async (metric, message) => {
    for (const startMethod of ["fork", "spawn"] as const) {
      const pool = await open(metric, { startMethod });
      expect(pool.hasPool).toBe(false);
      expect(pool.metric.problems.map(({ step }) => step)).toEqual(["metric_file"]);
      expect(pool.metric.problems[0]?.message).toMatch(message);
    }
  });

  test.each(["fork", "spawn"] as const)("with %s is given up after its timeout", async (startMethod) => {
    const pool = await open("hangs_at_load.py", { startMethod, loadTimeoutMs: 500 });
    expect(pool.metric.problems[0]?.message).toMatch(/^hangs_at_load\.py did not load within 0\.5 s; /);
    // No template had to be asked twice.
    expect(pool.log.warnings).toEqual([]);
  });

  test.each(["starts_thread_at_load.py", "opens_socket_at_load.py"])("%s must not be forked", async (metric) => {
    const pool = await open(metric);
    expect(pool.metric.startMethod).toBe("spawn");
    expect(pool.metric.startMethodReason).not.toBe("");
    const workers = await pool.start(2);
    const rows = await Promise.all(workers.map((worker) => pool.score(worker, [caseOf(7), caseOf(8)])));
    expect(rows.flat().filter(({ kind }) => kind === "score")).toHaveLength(4);
  });

  test("an open data file must not be shared by forks, unless the user says so", async () => {
    const metric = join(folder, "opens_data_file_at_load.py");
    copyFileSync(fixture("opens_data_file_at_load.py"), metric);
    writeFileSync(join(folder, "rows.txt"), "0000\n0001\n");
    const spawned = await open(metric);
    expect(spawned.metric).toMatchObject({
      startMethod: "spawn",
      startMethodReason: expect.stringContaining("rows.txt") as string,
    });
    const forked = await open(metric, { startMethod: "fork" });
    expect(forked.metric).toMatchObject({ startMethod: "fork", startMethodReason: "" });
    expect(forked.log.lines.filter((line) => line.startsWith("warn workers fork, as asked"))).toHaveLength(1);
    expect(await forked.score(await forked.startOne(), [caseOf(1)])).toHaveLength(1);
  });

  test("beside a json.py, with a sibling and dataclasses", async () => {
    for (const startMethod of ["fork", "spawn"] as const) {
      const pool = await open("real_module/metric.py", { startMethod });
      const [row] = await pool.score(await pool.startOne(), [caseOf("loud")]);
      expect(row?.kind).toBe("score");
    }
  });

  test("an interpreter that is not there, cannot be started, or is too old", async () => {
    const notThere = await open("exact_match.py", { python: "/no/such/python" });
    expect(notThere.metric.problems[0]?.message).toBe(
      "the Python interpreter /no/such/python was not found; install Python 3.9 or newer, activate its virtual environment, or name one with --python",
    );
    const notExecutable = await open("exact_match.py", { python: fixture("exact_match.py") });
    expect(notExecutable.metric.problems[0]?.message).toMatch(
      /could not be started \(EACCES\); name another one with --python$/,
    );
    const old = join(folder, "python2");
    writeFileSync(old, "#!/bin/sh\necho 'skynet-scorer needs Python 3.9 or newer, and this is 2.7' >&2\nexit 97\n");
    chmodSync(old, 0o755);
    const tooOld = await open("exact_match.py", { python: old });
    expect(tooOld.metric.problems[0]?.message).toBe("skynet-scorer needs Python 3.9 or newer, and this is 2.7");
    const other = join(folder, "other");
    writeFileSync(other, "#!/bin/sh\n(sleep 0.1; echo 'I am no Python') &\nexit 1\n");
    chmodSync(other, 0o755);
    const noPython = await open("exact_match.py", { python: other });
    expect(noPython.metric.problems[0]?.message).toBe(
      `the Python interpreter ${other} exited with code 1 before it could load anything: I am no Python`,
    );
  });
});

describe("what is printed", () => {
  test("megabytes by every way there is arrive as lines, and scores stay right", async () => {
    const pool = await open("prints_megabytes.py");
    const worker = await pool.startOne();
    const rows = await pool.score(worker, [caseOf("one"), caseOf("two")]);
    expect(rows.map(({ text: feedback }) => text(feedback))).toEqual(["Fine, one.", "Fine, two."]);
    const found = (line: Partial<Printed>): boolean =>
      pool.printed.some(({ worker: number, stream, text: part }) =>
        isDeepStrictEqual({ worker: number, stream, text: part }, line),
      );
    const lines: Partial<Printed>[] = [
      { worker: 0, stream: "stdout", text: "printed while loading" },
      { worker: 0, stream: "output", text: "written while loading" },
      { worker: 1, stream: "output", text: "written by one" },
      { worker: 1, stream: "output", text: "written by two" },
    ];
    await until(() => lines.every(found), "what was printed");
    const printed = pool.printed
      .filter(({ stream, position }) => stream === "stdout" && position === 1)
      .map(({ text: part }) => part);
    expect(printed.join("\n")).toContain("printed by two");
    expect(
      printed
        .join("\n")
        .split("\n")
        .filter((line) => line === "m".repeat(99)),
    ).toHaveLength(10_000);
  });

  test.each(["closes_descriptors.py", "forks.py"])("%s: scores stay right", async (metric) => {
    const pool = await open(metric);
    const rows = await pool.score(await pool.startOne(), [caseOf(1), caseOf(2), caseOf(3)]);
    expect(rows.map(({ text: feedback }) => text(feedback))).toEqual(["Fine, 1.", "Fine, 2.", "Fine, 3."]);
  });

  test("the last words of a worker that dies are heard", async () => {
    const metric = metricFile(
      'import os\ndef score(input, output):\n    os.write(2, b"last words\\n\\xff no end")\n    os._exit(1)\n',
    );
    const pool = await open(metric);
    (await pool.startOne()).run([caseOf("a")]);
    await pool.listener.until(() => pool.listener.deaths.length === 1, "the death");
    expect(pool.printed.map(({ stream, text: line, chunk }) => [stream, line, chunk])).toEqual([
      ["output", "last words", 1],
      ["output", "\ufffd no end", 1],
    ]);
  });
});

describe("the template", () => {
  test("is killed: its workers die with it, and all start anew", async () => {
    const pool = await open("sleeps_forever.py");
    const [first, second] = await pool.start(2);
    first?.run([caseOf("hang")]);
    await until(() => first?.look().position === 0, "the case");
    const path = privateFolder();
    const [template] = pythonProcesses();
    process.kill(Number(template), "SIGKILL");
    await pool.listener.until(() => pool.listener.deaths.length === 2, "both deaths");
    const death = pool.listener.deaths.find(({ worker }) => worker === first)?.death;
    expect(death).toMatchObject({ signal: "SIGKILL", position: 0 });
    expect([first?.pid, second?.pid].some((pid) => isAlive(pid ?? 0))).toBe(false);
    expect(existsSync(path)).toBe(false);
    expect(await pool.score(await pool.nextIdle(), [caseOf("a")])).toHaveLength(1);
    expect(pool.listener.reasons).toEqual([]);
  });

  test("finds another metric when it starts anew: that is refused, until the file is as it was", async () => {
    const path = metricFile('def score(input, output):\n    return 1.0, {"feedback": "Fine."}\n');
    const source = readFileSync(path, "utf8");
    const pool = await open(path);
    await pool.startOne();
    writeFileSync(path, source.replace("1.0", "0.5"));
    process.kill(Number(pythonProcesses()[0]), "SIGKILL");
    await pool.listener.until(() => pool.listener.reasons.length > 0, "the refusal");
    expect(pool.listener.reasons[0]).toMatch(/^metric\.py or a module beside it has changed on disk/);
    writeFileSync(path, source);
    await pool.nextIdle();
  });

  test("stays out of the way of SKYNET_SCORER_ variables, and limits threads", async () => {
    process.env["SKYNET_SCORER_TOKEN"] = "secret";
    try {
      const metric = metricFile(
        'import os\ndef score(input, output):\n    return 1.0, {"feedback": str((os.getenv("SKYNET_SCORER_TOKEN"), os.getenv("OMP_NUM_THREADS")))}\n',
      );
      const pool = await open(metric);
      const [row] = await pool.score(await pool.startOne(), [caseOf("a")]);
      expect(text(row?.text ?? new Uint8Array(0))).toBe("(None, '1')");
    } finally {
      delete process.env["SKYNET_SCORER_TOKEN"];
    }
  });
});

describe("the private folder", () => {
  test("holds nothing of workers that are gone", async () => {
    const pool = await open("exact_match.py");
    const workers = await pool.start(2);
    const workerFiles = (): string[] =>
      readdirSync(privateFolder())
        .filter((name) => /^w\d/.test(name))
        .sort();
    expect(workerFiles()).toEqual(["w1.box", "w1.out", "w2.box", "w2.out"]);
    const [first] = workers.filter(({ number }) => number === 1);
    process.kill(first?.pid ?? 0, "SIGKILL");
    await pool.nextIdle();
    await pool.listener.until(() => pool.listener.deaths.length === 1, "the death");
    expect(workerFiles()).toEqual(["w2.box", "w2.out", "w3.box", "w3.out"]);
  });

  test.each([
    ["nonsense", Buffer.from("GET / HTTP/1.1\r\n\r\n")],
    ["another message", frame({ type: "ready" })],
    [
      "the template's name",
      frame({ type: "hello", role: "template", worker: 0, pid: 1, python: "3", executable: "", clock_ns: 1 }),
    ],
    [
      "an unknown worker's name",
      frame({ type: "hello", role: "worker", worker: 99, pid: 1, python: "3", executable: "", clock_ns: 1 }),
    ],
    [
      "a living worker's name",
      frame({ type: "hello", role: "worker", worker: 1, pid: 1, python: "3", executable: "", clock_ns: 1 }),
    ],
  ])("hangs up on a stranger that says %s", async (_, words) => {
    const pool = await open("exact_match.py");
    const worker = await pool.startOne();
    const stranger = new Socket().connect(join(privateFolder(), "s"));
    const closed = new Promise((resolve) =>
      stranger
        .on("error", () => undefined)
        .on("close", resolve)
        .resume(),
    );
    stranger.write(words);
    await closed;
    expect(await pool.score(worker, [caseOf("a", {}, { label: "a" })])).toHaveLength(1);
  });

  test("is gone after closing, whatever was in hand", async () => {
    const pool = await open("ignores_interrupts.py");
    const path = privateFolder();
    const workers = await pool.start(3);
    const files = workers.map((worker, place) => {
      const file = join(folder, `pids${place}`);
      worker.run([caseOf("hang", { file })]);
      return file;
    });
    await until(
      () => files.every((file) => existsSync(file) && readFileSync(file, "utf8").split("\n").length === 3),
      "the cases",
    );
    await pool.close();
    expect(pool.pool.workers.size).toBe(0);
    expect(pool.listener.deaths).toEqual([]);
    expect(workers.some(({ pid }) => isAlive(pid))).toBe(false);
    expect(existsSync(path)).toBe(false);
  });
});

/** The folder that the sidecar shares with its processes: it stands in the template's arguments. */
function privateFolder(): string {
  const arguments_ = readFileSync(`/proc/${pythonProcesses()[0]}/cmdline`, "utf8").split("\0");
  const path = arguments_[arguments_.indexOf("template") - 1];
  if (path === undefined) throw new Error("no template runs");
  return path;
}

function frame(message: object): Buffer {
  return encodeFrame(FrameKind.message, Buffer.from(JSON.stringify(message)));
}
