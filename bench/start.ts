import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "csv-parse/sync";
import { measurement, type Measurement, type Setting } from "./benchmark.js";
import { encodeRequest } from "./cases.js";
import { ScoreClient } from "./client.js";
import { cpuMs, descendants, endedChildrenCpuMs } from "./processes.js";
import { scanResults } from "./scan_results.js";
import { startServer } from "./server_process.js";

/** From the sidecar's start, with default options and the example's metric, to the first score that a client holds. */
export async function start(setting: Setting): Promise<readonly Measurement[]> {
  const runs: FirstScore[] = [];
  const request = firstTicket(setting.root);
  for (let number = 1; number <= RUNS; number++) {
    const run = await startOnce(setting, request);
    runs.push(run);
    setting.log(`start: run ${number} of ${RUNS}: ${run.wallMs.toFixed(0)} ms, ${run.cpuMs.toFixed(0)} ms of CPU`);
  }
  return [
    measurement(
      "start to the first line",
      "ms",
      runs.map(({ readyMs }) => readyMs),
    ),
    measurement(
      "start to the first score",
      "ms",
      runs.map(({ wallMs }) => wallMs),
      TARGETS.wall,
    ),
    measurement(
      "CPU to the first score, all processes",
      "ms",
      runs.map((run) => run.cpuMs),
      TARGETS.cpu,
    ),
  ];
}

const EXAMPLE = "examples/support-tickets";
const RUNS = 5;
const TARGETS = { wall: { atMost: 1000 }, cpu: { atMost: 700 } } as const;

interface FirstScore {
  readonly readyMs: number;
  readonly wallMs: number;
  /** Node, the template, the workers, and whatever they started and waited for. */
  readonly cpuMs: number;
}

async function startOnce({ root }: Setting, request: Buffer): Promise<FirstScore> {
  const began = performance.now();
  const metric = join(EXAMPLE, "metric.py");
  const command = ["dist/skynet-scorer.js", "serve", "--metric", metric, "--listen", "127.0.0.1:0"];
  const server = await startServer(process.execPath, command, root);
  const readyMs = performance.now() - began;
  const client = new ScoreClient(server.address);
  try {
    let first: FirstScore | undefined;
    await client.stream([request], 1, (response) => {
      const wallMs = performance.now() - began;
      first = { readyMs, wallMs, cpuMs: treeCpuMs(server.pid) };
      return scanResults(response, requireScore);
    });
    if (first === undefined) throw new Error("the sidecar ended the stream without a result");
    return first;
  } finally {
    client.close();
    await server.stop();
  }
}

/** The example's first ticket, as one encoded request. */
function firstTicket(root: string): Buffer {
  const text = readFileSync(join(root, EXAMPLE, "tickets.csv"), "utf8");
  const [ticket] = parse<Record<string, string>>(text, { columns: true, bom: true, to: 1 });
  if (ticket === undefined) throw new Error(`${EXAMPLE}/tickets.csv holds no ticket`);
  const { id = "", prediction, subject, message, category, priority } = ticket;
  return encodeRequest([{ id, input: { subject, message }, output: prediction, expected: { category, priority } }]);
}

function requireScore(_: number, value: number | undefined): void {
  if (value === undefined) throw new Error("the example's metric could not score the example's first ticket");
}

function treeCpuMs(pid: number): number {
  const all = [pid, ...descendants(pid)];
  return all.reduce((sum, each) => sum + cpuMs(each) + endedChildrenCpuMs(each), 0);
}
