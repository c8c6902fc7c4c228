import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { openPool } from "../../src/worker/pool.js";
import type { OpenedPool, Pool, PoolOptions, Printed } from "../../src/worker/types.js";
import { KILL_GRACE_MS } from "../../src/worker/worker_process.js";
import { chunkCase, FakeTemplates, REPORT, type FakeWorkerProcess } from "./fake_template.js";
import { RecordingListener, RecordingLog } from "./recording_listener.js";

let templates: FakeTemplates;
let listener: RecordingListener;
let log: RecordingLog;
let printed: Printed[];

beforeEach(() => {
  vi.useFakeTimers();
  templates = new FakeTemplates();
  listener = new RecordingListener();
  log = new RecordingLog();
  printed = [];
});

afterEach(() => {
  const left = vi.getTimerCount();
  vi.clearAllTimers();
  vi.useRealTimers();
  expect(left, "timers that are left").toBe(0);
});

const OPTIONS: PoolOptions = {
  kind: "metric",
  file: "/somewhere/metric.py",
  environment: {},
  python: "/usr/bin/python3",
  startMethod: "auto",
  loadTimeoutMs: 10_000,
  maxRowBytes: 1_000_000,
  printed: (line) => printed.push(line),
};

async function open(options: Partial<PoolOptions> = {}): Promise<OpenedPool> {
  const opening = openPool({ ...OPTIONS, ...options }, listener, log, templates.launch);
  await vi.advanceTimersByTimeAsync(1_000);
  return opening;
}

async function openWith(workers: number, options: Partial<PoolOptions> = {}): Promise<Pool> {
  const { pool } = await open(options);
  if (pool === undefined) throw new Error("the metric did not load");
  pool.want(workers);
  await vi.advanceTimersByTimeAsync(50);
  return pool;
}

async function close(pool: Pool | undefined): Promise<void> {
  if (pool === undefined) throw new Error("there is no pool");
  const closing = pool.close();
  await vi.advanceTimersByTimeAsync(2_000);
  await closing;
}

/** The living fake processes, in the order of their start. */
function processes(): FakeWorkerProcess[] {
  return templates.templates
    .flatMap(({ workers }) => [...workers.values()])
    .filter(({ isEnded, isClosed }) => !isEnded && !isClosed);
}

function firstProcess(): FakeWorkerProcess {
  const [process] = processes();
  if (process === undefined) throw new Error("no worker lives");
  return process;
}

function idleWorker() {
  const worker = listener.idled.at(-1);
  if (worker === undefined) throw new Error("no worker is idle");
  return worker;
}

describe.runIf(process.platform === "linux")("loading", () => {
  test("a metric that loads is described, and no worker runs before one is wanted", async () => {
    const { metric, pool } = await open();
    expect(metric).toMatchObject({
      fingerprint: "f1",
      problems: [],
      pythonVersion: "3.11.7",
      startMethod: "fork",
      startMethodReason: "",
    });
    expect(pool?.workers.size).toBe(0);
    expect(processes()).toHaveLength(0);
    expect(log.lines).toEqual(["info metric.py is run by Python 3.11.7"]);
    await close(pool);
  });

  test("a metric with problems has no pool, and nothing is left running", async () => {
    const problem = { step: "metric_file", message: "SyntaxError: no", traceback: "" } as const;
    templates.behaviour.report = { ...REPORT, problems: [problem] };
    const { metric, pool } = await open();
    expect(metric.problems).toEqual([problem]);
    expect(pool).toBeUndefined();
    expect(templates.current.isGone).toBe(true);
  });

  test("a sidecar that cannot even make its folder is a problem of the metric file", async () => {
    templates.onLaunch = () => {
      throw Object.assign(new Error("ENOSPC: no space left on device, mkdtemp '/tmp/skynet-'"), { code: "ENOSPC" });
    };
    const { metric, pool } = await open();
    expect(pool).toBeUndefined();
    expect(metric.problems[0]?.message).toBe("no Python process can be started (ENOSPC); look at the sidecar's log");
  });

  test("an interpreter that is not there is a problem of the metric file", async () => {
    templates.behaviour.template = "not_found";
    const { metric, pool } = await open({ python: "/no/python" });
    expect(pool).toBeUndefined();
    expect(metric.problems).toEqual([
      {
        step: "metric_file",
        message:
          "the Python interpreter /no/python was not found; install Python 3.9 or newer, activate its virtual environment, or name one with --python",
        traceback: "",
      },
    ]);
  });

  test("an interpreter that dies over the load is a problem of the metric file", async () => {
    templates.behaviour.template = "dies";
    const { metric } = await open();
    expect(metric.problems[0]?.message).toBe(
      "the Python interpreter exited with code 3 while it loaded the file; look at what the file does when it is imported",
    );
  });

  test("a load past its timeout is given up", async () => {
    templates.behaviour.loadMs = 60_000;
    const opening = openPool(OPTIONS, listener, log, templates.launch);
    await vi.advanceTimersByTimeAsync(10_002);
    const { metric, pool } = await opening;
    expect(pool).toBeUndefined();
    expect(metric.problems[0]?.message).toBe(
      "metric.py did not load within 10 s; make what it does at import faster, or give --load-timeout more seconds",
    );
    expect(templates.current.isGone).toBe(true);
  });

  test.each(["fork", "spawn"] as const)(
    "a load with %s that is no longer wanted is given up at once",
    async (startMethod) => {
      templates.behaviour.loadMs = 60_000;
      const stop = new AbortController();
      const opening = openPool({ ...OPTIONS, startMethod, stopLoading: stop.signal }, listener, log, templates.launch);
      await vi.advanceTimersByTimeAsync(100);
      stop.abort();
      await vi.advanceTimersByTimeAsync(0);
      const { metric, pool } = await opening;
      expect(pool).toBeUndefined();
      expect(metric.problems[0]?.message).toBe("its load was given up, since the sidecar stops");
      expect(templates.current.isGone).toBe(true);
    },
  );

  test("a metric that must not be forked is spawned, and the reason is told", async () => {
    templates.behaviour.hazards = ["it has 3 threads", "it opened /data.bin"];
    const { metric, pool } = await open();
    expect(templates.templates.map(({ options }) => options.startMethod)).toEqual(["fork", "spawn"]);
    expect(templates.templates[0]?.isGone).toBe(true);
    expect(metric).toMatchObject({ startMethod: "spawn", startMethodReason: "it has 3 threads; it opened /data.bin" });
    await close(pool);
  });

  test("with hazards a template that cannot be replaced is a problem of the metric file", async () => {
    templates.behaviour.hazards = ["it has 3 threads"];
    let launches = 0;
    templates.onLaunch = () => {
      if (++launches > 1) throw Object.assign(new Error("EMFILE: too many open files"), { code: "EMFILE" });
    };
    const { metric, pool } = await open();
    expect(pool).toBeUndefined();
    expect(metric.problems[0]?.message).toBe("no Python process can be started (EMFILE); look at the sidecar's log");
    expect(templates.current.isGone).toBe(true);
  });

  test("fork as asked for goes on in spite of hazards, with a warning", async () => {
    templates.behaviour.hazards = ["it has 3 threads"];
    const { metric, pool } = await open({ startMethod: "fork" });
    expect(metric).toMatchObject({ startMethod: "fork", startMethodReason: "" });
    expect(log.lines).toContain(
      "warn workers fork, as asked, though that is not safe with this file: it has 3 threads",
    );
    await close(pool);
  });

  test("with spawn the first worker's death while it loads is a problem", async () => {
    templates.behaviour.worker = "dies";
    const { metric, pool } = await open({ startMethod: "spawn" });
    expect(pool).toBeUndefined();
    expect(metric.problems[0]?.message).toMatch(/exited with code 1 while it loaded the file/);
    expect(templates.current.startedAt).toHaveLength(1);
  });

  test("with spawn a load past its timeout is given up", async () => {
    templates.behaviour.loadMs = 60_000;
    const opening = openPool({ ...OPTIONS, startMethod: "spawn" }, listener, log, templates.launch);
    await vi.advanceTimersByTimeAsync(12_000);
    const { metric } = await opening;
    expect(metric.problems[0]?.message).toMatch(/^metric.py did not load within 10 s; /);
  });
});

describe.runIf(process.platform === "linux")("keeping workers alive", () => {
  test("as many as wanted start, and each is told idle", async () => {
    const pool = await openWith(3);
    expect(pool.workers.size).toBe(3);
    expect(listener.idled.map(({ number, state }) => [number, state])).toEqual([
      [1, "idle"],
      [2, "idle"],
      [3, "idle"],
    ]);
    pool.want(1);
    expect(pool.workers.size).toBe(3);
    await close(pool);
    expect(pool.workers.size).toBe(0);
    expect(templates.current.forgotten.sort()).toEqual([1, 2, 3]);
  });

  test("a death is told after its last rows, with the case in hand, and replaced at once", async () => {
    const pool = await openWith(1);
    const worker = idleWorker();
    worker.run([chunkCase(), chunkCase(), chunkCase()]);
    const process = firstProcess();
    process.answer([0], false);
    process.leave([0, 1], 2);
    process.die({ signal: "SIGSEGV" });
    expect(listener.positions).toEqual([0, 1]);
    expect(listener.deaths).toEqual([
      { worker, death: { pid: process.pid, exitCode: undefined, signal: "SIGSEGV", position: 2 } },
    ]);
    expect(worker.state).toBe("ended");
    expect(process.isOutboxClosed).toBe(true);
    await vi.advanceTimersByTimeAsync(5);
    expect(idleWorker().number).toBe(2);
    await close(pool);
  });

  test("a case whose row has arrived is not in hand any more", async () => {
    const pool = await openWith(1);
    idleWorker().run([chunkCase()]);
    firstProcess().answer([0], false);
    firstProcess().leave([], 0);
    firstProcess().die({ exitCode: 0 });
    expect(listener.deaths[0]?.death.position).toBeUndefined();
    await close(pool);
  });

  test("deaths without a success in between back off; the first success ends that", async () => {
    const pool = await openWith(1);
    const waits: number[] = [];
    for (let death = 0; death < 7; death++) {
      const starts = templates.current.startedAt.length;
      firstProcess().die({ exitCode: 1 });
      const diedAt = performance.now();
      while (templates.current.startedAt.length === starts) await vi.advanceTimersByTimeAsync(1);
      waits.push(Math.round((templates.current.startedAt.at(-1) ?? 0) - diedAt));
      await vi.advanceTimersByTimeAsync(2);
    }
    expect(waits).toEqual([0, 10, 20, 40, 80, 160, 320]);
    idleWorker().run([chunkCase()]);
    firstProcess().answer([0], true);
    firstProcess().die({ exitCode: 1 });
    await vi.advanceTimersByTimeAsync(5);
    expect(processes()).toHaveLength(1);
    await close(pool);
  });

  test("a row that is saved from a dead worker's outbox is a success too", async () => {
    const pool = await openWith(1);
    for (let death = 0; death < 20; death++) {
      idleWorker().run([chunkCase(), chunkCase()]);
      firstProcess().leave([0], 1);
      firstProcess().die({ exitCode: 1 });
      await vi.advanceTimersByTimeAsync(5);
    }
    expect(listener.idled).toHaveLength(21);
    await close(pool);
  });

  test("many workers that are killed at one stroke are one failure", async () => {
    const pool = await openWith(64);
    for (const process of processes()) process.die({ signal: "SIGKILL" });
    await vi.advanceTimersByTimeAsync(5);
    expect(processes()).toHaveLength(64);
    await close(pool);
  });

  test("starts that fail while others work back off all the same, with one attempt and one warning a time", async () => {
    const pool = await openWith(2);
    templates.behaviour.worker = "start_failed";
    const { startedAt } = templates.current;
    pool.want(64);
    for (let chunk = 0; chunk < 1_000; chunk++) {
      const [worker] = pool.workers;
      if (worker?.state === "idle") worker.run([chunkCase()]);
      await vi.advanceTimersByTimeAsync(5);
      firstProcess().answer([0], true);
      pool.want(64);
    }
    // 62 at once, then one each after 0, 10, 20, ... 2,560 ms.
    expect(startedAt.length - 2).toBeGreaterThan(62 + 8);
    expect(startedAt.length - 2).toBeLessThan(62 + 12);
    expect(log.warnings).toEqual(["warn a start failed: a worker could not be started: no more processes"]);
    expect(listener.reasons).toEqual([]);

    await vi.advanceTimersByTimeAsync(30_000);
    expect(log.warnings[1]).toMatch(
      /^warn a start failed: a worker could not be started: no more processes \(and \d+ times more in the last \d+ s\)$/,
    );
    templates.behaviour.worker = "ready";
    await vi.advanceTimersByTimeAsync(30_000);
    expect(processes()).toHaveLength(64);
    await close(pool);
  });

  test("starts that fail again and again are told to those who wait, once nobody lives", async () => {
    const pool = await openWith(1);
    templates.behaviour.worker = "start_failed";
    firstProcess().die({ exitCode: 1 });
    await vi.advanceTimersByTimeAsync(200);
    expect(listener.reasons[0]).toBe("a worker could not be started: no more processes");
    templates.behaviour.worker = "ready";
    await vi.advanceTimersByTimeAsync(1_000);
    expect(processes()).toHaveLength(1);
    await close(pool);
  });

  test("a worker that dies before it is ready is a failed start, told with how it died", async () => {
    const pool = await openWith(1);
    templates.behaviour.worker = "dies";
    firstProcess().die({ exitCode: 0 });
    await vi.advanceTimersByTimeAsync(3_000);
    expect(listener.reasons[0]).toBe("a worker exited with code 1 before it was ready");
    await close(pool);
  });

  test("a worker that does not get ready is killed and replaced", async () => {
    templates.behaviour.worker = "hangs";
    const pool = await openWith(1);
    templates.behaviour.worker = "ready";
    await vi.advanceTimersByTimeAsync(10_100);
    expect(listener.idled.map(({ number }) => number)).toEqual([2]);
    await close(pool);
  });

  test("with spawn a spare stands ready: it takes a dead worker's place at once", async () => {
    templates.behaviour.loadMs = 3_000;
    const opening = openPool({ ...OPTIONS, startMethod: "spawn" }, listener, log, templates.launch);
    await vi.advanceTimersByTimeAsync(4_000);
    const { pool } = await opening;
    pool?.want(1);
    await vi.advanceTimersByTimeAsync(0);
    expect(listener.idled.map(({ number }) => number)).toEqual([1]);
    await vi.advanceTimersByTimeAsync(4_000);
    expect(processes()).toHaveLength(2);
    expect(pool?.workers.size).toBe(1);
    firstProcess().die({ exitCode: 1 });
    await vi.advanceTimersByTimeAsync(0);
    expect(listener.idled.map(({ number }) => number)).toEqual([1, 2]);
    await close(pool);
  });

  test("a spare that dies is replaced without a word", async () => {
    const pool = await openWith(1, { startMethod: "spawn" });
    processes()[1]?.die({ exitCode: 1 });
    await vi.advanceTimersByTimeAsync(50);
    expect(processes()).toHaveLength(2);
    expect([listener.deaths, listener.reasons, listener.idled.length]).toEqual([[], [], 1]);
    await close(pool);
  });

  test("a sidecar that cannot start any process says so, and goes on trying", async () => {
    const pool = await openWith(1);
    let tries = 0;
    templates.onLaunch = () => {
      if (++tries <= 5) throw Object.assign(new Error("EMFILE: too many open files"), { code: "EMFILE" });
    };
    templates.current.kill();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(listener.reasons[0]).toBe("no Python process can be started (EMFILE); look at the sidecar's log");
    expect(tries).toBe(6);
    expect(processes()).toHaveLength(1);
    await close(pool);
  });

  test("the template is killed: its workers are dead, and all start anew", async () => {
    const pool = await openWith(2);
    idleWorker().run([chunkCase()]);
    processes()[1]?.leave([], 0);
    templates.current.kill();
    expect(listener.deaths.map(({ death }) => [death.signal, death.position])).toEqual([
      ["SIGKILL", undefined],
      ["SIGKILL", 0],
    ]);
    await vi.advanceTimersByTimeAsync(100);
    expect(templates.templates).toHaveLength(2);
    expect(processes()).toHaveLength(2);
    expect(listener.reasons).toEqual([]);
    await close(pool);
  });

  test("the template is killed while its workers start: that is no failed start of theirs", async () => {
    templates.behaviour.worker = "hangs";
    const pool = await openWith(8);
    templates.behaviour.worker = "ready";
    templates.current.kill();
    await vi.advanceTimersByTimeAsync(2_000);
    expect(processes()).toHaveLength(8);
    expect(listener.reasons).toEqual([]);
    expect(log.warnings).toEqual([
      "warn the process that starts workers was killed by SIGKILL; it is started again, and its workers with it",
    ]);
    await close(pool);
  });

  test("closing while workers start does not wait for them", async () => {
    templates.behaviour.worker = "hangs";
    const pool = await openWith(8);
    const closing = pool.close();
    await vi.advanceTimersByTimeAsync(0);
    await closing;
    expect(templates.current.forgotten).toHaveLength(8);
  });

  test("a metric that changed on disk is refused until it is reloaded", async () => {
    const pool = await openWith(1);
    templates.behaviour.report = { ...REPORT, fingerprint: "f2" };
    templates.current.kill();
    await vi.advanceTimersByTimeAsync(100);
    expect(listener.reasons[0]).toBe(
      "metric.py or a module beside it has changed on disk since it was loaded; reload the metric to score with what is there now",
    );
    templates.behaviour.report = REPORT;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(processes()).toHaveLength(1);
    await close(pool);
  });

  test("with spawn a worker that loaded something else is refused", async () => {
    const pool = await openWith(1, { startMethod: "spawn" });
    templates.behaviour.report = { ...REPORT, fingerprint: "f2" };
    firstProcess().die({ exitCode: 1 });
    await vi.advanceTimersByTimeAsync(50);
    // The spare had loaded the same.
    expect(pool.workers.size).toBe(1);
    expect(listener.reasons).toEqual([]);
    firstProcess().die({ exitCode: 1 });
    await vi.advanceTimersByTimeAsync(1_000);
    expect(listener.reasons[0]).toMatch(/changed on disk/);
    await close(pool);
  });

  test("closing while it still loads leaves nothing", async () => {
    templates.behaviour.loadMs = 5_000;
    const opening = openPool(OPTIONS, listener, log, templates.launch);
    await vi.advanceTimersByTimeAsync(5_100);
    const { pool } = await opening;
    pool?.want(4);
    await close(pool);
    expect(templates.current.isGone).toBe(true);
    expect(processes()).toHaveLength(0);
    expect(listener.deaths).toEqual([]);
  });
});

describe.runIf(process.platform === "linux")("ending a worker", () => {
  test("a timeout: SIGINT, a replacement at once, after the grace SIGKILL to the group, and silence", async () => {
    const pool = await openWith(1);
    const worker = idleWorker();
    worker.run([chunkCase(), chunkCase()]);
    const process = firstProcess();
    worker.end("timeout");
    expect(worker.state).toBe("ending");
    expect(process.signals).toEqual([{ signal: 2, group: false }]);
    process.answer([0], false);
    process.print("in finally\n");
    await vi.advanceTimersByTimeAsync(5);
    expect(idleWorker().number).toBe(2);
    await vi.advanceTimersByTimeAsync(KILL_GRACE_MS);
    expect(process.signals).toEqual([
      { signal: 2, group: false },
      { signal: 9, group: true },
    ]);
    expect(worker.state).toBe("ended");
    expect(listener.told).toEqual([]);
    expect(listener.deaths).toEqual([]);
    expect(printed).toEqual([{ worker: 1, stream: "stdout", text: "in finally", chunk: 1, position: 0 }]);
    await close(pool);
  });

  test("the first reason wins: a crash after the timeout is not told", async () => {
    const pool = await openWith(1);
    const worker = idleWorker();
    worker.run([chunkCase()]);
    worker.end("timeout");
    worker.end("closed");
    firstProcess().die({ signal: "SIGSEGV" });
    expect(worker.state).toBe("ended");
    expect(listener.deaths).toEqual([]);
    await close(pool);
  });

  test("an idle worker is let go without a signal", async () => {
    const pool = await openWith(2);
    pool.want(1);
    const worker = idleWorker();
    worker.end("surplus");
    const process = processes()[1];
    expect(process?.signals).toEqual([]);
    process?.die({ exitCode: 0 });
    await vi.advanceTimersByTimeAsync(100);
    expect(pool.workers.size).toBe(1);
    expect(processes()).toHaveLength(1);
    await close(pool);
  });

  test("a busy one that nobody needs any more is killed at once", async () => {
    const pool = await openWith(1);
    const worker = idleWorker();
    const process = firstProcess();
    worker.run([chunkCase()]);
    worker.end("surplus");
    expect(process.signals).toEqual([{ signal: 9, group: true }]);
    await close(pool);
  });

  test("runs that kill their processes, one after the other, hold up no further run", async () => {
    const pool = await openWith(1, { kind: "run" });
    for (let run = 1; run <= 20; run++) {
      idleWorker().run([chunkCase()]);
      firstProcess().die({ exitCode: 1 });
      await vi.advanceTimersByTimeAsync(5);
      expect(listener.deaths).toHaveLength(run);
    }
    await close(pool);
  });

  test("a starting worker is killed", async () => {
    templates.behaviour.worker = "hangs";
    const pool = await openWith(1);
    const [worker] = pool.workers;
    const process = firstProcess();
    pool.want(0);
    worker?.end("surplus");
    expect(process.signals).toEqual([{ signal: 9, group: true }]);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(worker?.state).toBe("ended");
    await close(pool);
  });
});

describe.runIf(process.platform === "linux")("what a worker says", () => {
  test("rows from the connection and from the outbox: each position once", async () => {
    const pool = await openWith(1);
    const worker = idleWorker();
    const process = firstProcess();
    worker.run([chunkCase(), chunkCase(), chunkCase()]);
    process.leave([0, 1], 2);
    expect(worker.look().position).toBe(2);
    expect(listener.told[0]?.usage).toBeUndefined();
    process.answer([0, 1, 2], true);
    expect(listener.positions).toEqual([0, 1, 2]);
    expect(worker.state).toBe("idle");
    expect(listener.idled).toHaveLength(2);
    // What stands in the outbox is of the chunk before.
    worker.run([chunkCase()]);
    expect(worker.look().position).toBeUndefined();
    expect(listener.positions).toEqual([0, 1, 2]);
    process.answer([0], true);
    await close(pool);
  });

  test("a recalled chunk ends with fewer rows; chunk numbers leave out those with a low byte of 0", async () => {
    const pool = await openWith(1);
    const worker = idleWorker();
    const process = firstProcess();
    const numbers: number[] = [];
    for (let chunk = 0; chunk < 257; chunk++) {
      numbers.push(worker.run([chunkCase(), chunkCase()]));
      worker.recall();
      process.answer([0], true);
    }
    expect(numbers.slice(253)).toEqual([254, 255, 257, 258]);
    expect(process.recalls).toEqual(numbers);
    worker.recall();
    expect(process.recalls).toHaveLength(257);
    await close(pool);
  });

  test("takes one more chunk while it has one in hand, and goes on with that", async () => {
    const pool = await openWith(1);
    const worker = idleWorker();
    const process = firstProcess();
    expect(worker.canQueue).toBe(false);
    const first = worker.run([chunkCase()]);
    expect(worker.canQueue).toBe(true);
    const second = worker.run([chunkCase(), chunkCase()]);
    expect(worker.canQueue).toBe(false);
    expect(() => worker.run([chunkCase()])).toThrow("cannot take a chunk");
    worker.recall();
    process.answer([0], true, first);
    expect(worker.state).toBe("busy");
    expect(worker.canQueue).toBe(true);
    worker.recall();
    process.answer([0, 1], true, second);
    expect(worker.state).toBe("idle");
    expect(listener.positions).toEqual([0, 0, 1]);
    expect(process.recalls).toEqual([first, second]);
    await close(pool);
  });

  test("ending it while its rows are told leaves it ending", async () => {
    const pool = await openWith(1);
    const worker = idleWorker();
    worker.run([chunkCase()]);
    listener.onRows = () => {
      worker.end("cancelled");
    };
    firstProcess().answer([0], true);
    expect(worker.state).toBe("ending");
    expect(listener.idled).toHaveLength(1);
    await close(pool);
  });

  test("rows that cannot be are a breach: the worker is killed and its death told", async () => {
    const pool = await openWith(1);
    const worker = idleWorker();
    worker.run([chunkCase()]);
    firstProcess().answer([5], false);
    expect(listener.deaths).toHaveLength(1);
    expect(log.lines).toContain("error worker 1 is killed: it sent a row at position 5 of a chunk of 1 cases");
    await close(pool);
  });

  test("a worker that lives on without its connection is killed after a moment", async () => {
    const pool = await openWith(1);
    idleWorker().run([chunkCase()]);
    const process = firstProcess();
    process.disconnect();
    expect(listener.deaths).toHaveLength(0);
    await vi.advanceTimersByTimeAsync(501);
    expect(process.signals).toEqual([{ signal: 9, group: true }]);
    expect(listener.deaths).toHaveLength(1);
    await close(pool);
  });

  test("what a worker sent before it died counts, though its death was heard of first", async () => {
    const pool = await openWith(1);
    const worker = idleWorker();
    worker.run([chunkCase(), chunkCase(), chunkCase()]);
    const process = firstProcess();
    process.leave([], 2);
    process.reap({ exitCode: 3 });
    expect(worker.state).toBe("ending");
    process.answer([0, 1], false);
    process.disconnect();
    expect(listener.positions).toEqual([0, 1]);
    expect(listener.deaths.map(({ death }) => [death.exitCode, death.position])).toEqual([[3, 2]]);
    await close(pool);
  });

  test("a chunk that was finished before the worker died is whole, though its death was heard of first", async () => {
    const pool = await openWith(1);
    idleWorker().run([chunkCase()]);
    const process = firstProcess();
    process.reap({ exitCode: 0 });
    process.answer([0], true);
    process.disconnect();
    expect(listener.positions).toEqual([0]);
    expect(listener.idled).toHaveLength(1);
    expect(listener.deaths[0]?.death.position).toBeUndefined();
    await close(pool);
  });

  test("with spawn a metric's problems are told, though its process was heard of first to be gone", async () => {
    templates.behaviour.worker = "hangs";
    const opening = openPool({ ...OPTIONS, startMethod: "spawn" }, listener, log, templates.launch);
    await vi.advanceTimersByTimeAsync(10);
    const process = firstProcess();
    process.connect();
    process.reap({ exitCode: 0 });
    process.load({ ...REPORT, problems: [{ step: "metric_function", message: "no score", traceback: "" }] });
    process.disconnect();
    const { metric } = await opening;
    expect(metric.problems.map(({ message }) => message)).toEqual(["no score"]);
  });

  test("a worker whose connection somebody else holds is dead all the same", async () => {
    const pool = await openWith(1);
    idleWorker().run([chunkCase()]);
    firstProcess().reap({ exitCode: 7 });
    expect(listener.deaths).toHaveLength(0);
    await vi.advanceTimersByTimeAsync(501);
    expect(listener.deaths[0]?.death.exitCode).toBe(7);
    await close(pool);
  });

  test("lines from descriptors 1 and 2 come with the worker and its chunk", async () => {
    const pool = await openWith(1);
    templates.current.events.output(0, "at load");
    templates.current.events.output(1, "before");
    const chunk = idleWorker().run([chunkCase()]);
    templates.current.events.output(1, "during");
    expect(printed).toEqual([
      { worker: 0, stream: "output", text: "at load", chunk: undefined, position: undefined },
      { worker: 1, stream: "output", text: "before", chunk: undefined, position: undefined },
      { worker: 1, stream: "output", text: "during", chunk, position: undefined },
    ]);
    await close(pool);
  });
});
