import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { measurement, type Measurement, type Setting } from "./benchmark.js";
import { makeCases, type CasePool } from "./cases.js";
import { ScoreClient } from "./client.js";
import { cpuMs, descendants, machineCpuMs } from "./processes.js";
import { ResultCheck, type StreamResults } from "./result_check.js";
import { startServer, type ServerProcess } from "./server_process.js";

/** The sidecar against a plain Python grpcio server with the same metric: cases a second, and CPU time a case. */
export async function throughput(setting: Setting): Promise<readonly Measurement[]> {
  const pool = makeCases(POOL_MESSAGES, CASES_PER_MESSAGE);
  const pairs = await withContender("the grpcio server", setting.python, peerArguments(), setting, (peer) =>
    withContender("the sidecar", process.execPath, sidecarArguments(setting), setting, (sidecar) =>
      runPairs(peer, sidecar, pool, setting),
    ),
  );
  return measurements(pairs, bareCallMicroseconds(setting, pool));
}

const METRIC = "bench/metric.py";
const WORKERS = 2;
const CASES_PER_MESSAGE = 256;
/** 8,192 different cases. */
const POOL_MESSAGES = 32;
const PAIRS = 5;
/** Long enough for the scheduler's noise to even out, short enough that ten runs stay a quarter of a minute. */
const RUN_SECONDS = 1.2;
/** Both sides' just-in-time compilers and the sidecar's running mean of the metric's time settle within this. */
const WARM_UP_SECONDS = 1;

const TARGETS = {
  ratio: { atLeast: 2.5 },
  sidecarCpu: { atMost: 10 },
  workerCpu: { atMost: 6 },
} as const;

/** A server and a client of its own. */
interface Contender {
  readonly name: string;
  readonly server: ServerProcess;
  readonly client: ScoreClient;
}

/** What one timed stream came to. */
interface Run extends StreamResults {
  readonly casesPerSecond: number;
  /** CPU microseconds a case. */
  readonly cpu: { readonly server: number; readonly workers: number; readonly client: number };
  /** How many cores everything else on the machine kept busy. */
  readonly otherCores: number;
}

function peerArguments(): readonly string[] {
  return ["bench/peers/grpcio_server.py", "--metric", METRIC, "--workers", String(WORKERS)];
}

function sidecarArguments({ python }: Setting): readonly string[] {
  const metric = ["--metric", METRIC, "--python", python];
  return ["dist/skynet-scorer.js", "serve", ...metric, "--workers", String(WORKERS), "--listen", "127.0.0.1:0"];
}

async function withContender<Found>(
  name: string,
  command: string,
  args: readonly string[],
  { root }: Setting,
  use: (contender: Contender) => Promise<Found>,
): Promise<Found> {
  const server = await startServer(command, args, root);
  const client = new ScoreClient(server.address);
  try {
    return await use({ name, server, client });
  } finally {
    client.close();
    await server.stop();
  }
}

interface Pair {
  readonly peer: Run;
  readonly sidecar: Run;
}

async function runPairs(peer: Contender, sidecar: Contender, pool: CasePool, { log }: Setting): Promise<Pair[]> {
  const peerCycles = await warmUp(peer, pool);
  const sidecarCycles = await warmUp(sidecar, pool);
  const pairs: Pair[] = [];
  for (let number = 1; number <= PAIRS; number++) {
    const pair = { peer: await run(peer, pool, peerCycles), sidecar: await run(sidecar, pool, sidecarCycles) };
    requireSameAnswers(pair);
    pairs.push(pair);
    const [slow, fast] = [pair.peer, pair.sidecar].map(({ casesPerSecond }) => casesPerSecond.toFixed(0));
    log(`throughput: pair ${number} of ${PAIRS}: grpcio ${slow} cases/s, sidecar ${fast} cases/s`);
  }
  return pairs;
}

/** Returns how often the pool goes into a run. */
async function warmUp(contender: Contender, pool: CasePool): Promise<number> {
  let cycles = 1;
  for (;;) {
    const { casesPerSecond, cases } = await run(contender, pool, cycles);
    const wanted = Math.max(1, Math.round((casesPerSecond * RUN_SECONDS) / pool.scores.length));
    if (cases / casesPerSecond >= WARM_UP_SECONDS) return wanted;
    cycles = Math.max(cycles + 1, wanted);
  }
}

async function run({ name, client, server }: Contender, pool: CasePool, cycles: number): Promise<Run> {
  const check = new ResultCheck(pool, cycles);
  const workers = descendants(server.pid);
  const before = readCpu(server.pid, workers);
  const seconds = await client
    .stream(repeat(pool.messages, cycles), pool.casesPerMessage, (response) => check.take(response))
    .catch((error: unknown) => {
      const reason = error instanceof Error ? error.message : String(error);
      throw new Error(`${name} broke off after ${check.taken} of ${cycles * pool.scores.length} results: ${reason}`);
    });
  const after = readCpu(server.pid, workers);
  const results = check.finish();
  const others = (time: CpuTimes) => time.machine - time.server - time.workers - time.client;
  const perCase = (from: number, to: number) => ((to - from) * 1000) / results.cases;
  return {
    ...results,
    casesPerSecond: results.cases / seconds,
    cpu: {
      server: perCase(before.server, after.server),
      workers: perCase(before.workers, after.workers),
      client: perCase(before.client, after.client),
    },
    otherCores: Math.max(0, others(after) - others(before)) / (seconds * 1000),
  };
}

/** Milliseconds since each began. */
interface CpuTimes {
  readonly server: number;
  readonly workers: number;
  readonly client: number;
  readonly machine: number;
}

function readCpu(server: number, workers: readonly number[]): CpuTimes {
  return {
    server: cpuMs(server),
    workers: workers.reduce((sum, worker) => sum + cpuMs(worker), 0),
    client: cpuMs(process.pid),
    machine: machineCpuMs(),
  };
}

function* repeat<Item>(items: readonly Item[], times: number): Iterable<Item> {
  for (let time = 0; time < times; time++) yield* items;
}

function requireSameAnswers({ peer, sidecar }: Pair): void {
  if (peer.meanScore === sidecar.meanScore && peer.meanFeedbackBytes === sidecar.meanFeedbackBytes) return;
  const [one, other] = [peer, sidecar].map(
    (run) => `mean score ${run.meanScore}, feedback ${run.meanFeedbackBytes} bytes`,
  );
  throw new Error(`the two servers answer differently: grpcio ${one}; sidecar ${other}`);
}

/** CPU microseconds of the metric's call alone, one a pass. */
function bareCallMicroseconds({ root, python }: Setting, pool: CasePool): readonly number[] {
  const printed = execFileSync(python, [join(root, "bench/bare_call.py"), join(root, METRIC)], {
    input: pool.jsonLines,
  });
  return (JSON.parse(printed.toString()) as { readonly cpu_us: readonly number[] }).cpu_us;
}

function measurements(pairs: readonly Pair[], bareCall: readonly number[]): readonly Measurement[] {
  const ofPeer = (figure: (run: Run) => number) => pairs.map(({ peer }) => figure(peer));
  const ofSidecar = (figure: (run: Run) => number) => pairs.map(({ sidecar }) => figure(sidecar));
  const rate = ({ casesPerSecond }: Run) => casesPerSecond;
  const ratios = pairs.map(({ peer, sidecar }) => sidecar.casesPerSecond / peer.casesPerSecond);
  const bare = measurement("CPU of the bare call", "µs/case", bareCall);
  const beyond = ofSidecar(({ cpu }) => cpu.workers - bare.value);
  const others = [...ofPeer(({ otherCores }) => otherCores), ...ofSidecar(({ otherCores }) => otherCores)];
  return [
    measurement("grpcio server", "cases/s", ofPeer(rate)),
    measurement("sidecar", "cases/s", ofSidecar(rate)),
    measurement("sidecar over grpcio server", "times", ratios, TARGETS.ratio),
    measurement(
      "CPU of the sidecar process",
      "µs/case",
      ofSidecar(({ cpu }) => cpu.server),
      TARGETS.sidecarCpu,
    ),
    measurement("CPU of the workers beyond the bare call", "µs/case", beyond, TARGETS.workerCpu),
    bare,
    measurement(
      "CPU of the grpcio server",
      "µs/case",
      ofPeer(({ cpu }) => cpu.server + cpu.workers),
    ),
    measurement(
      "CPU of the client, of the sidecar",
      "µs/case",
      ofSidecar(({ cpu }) => cpu.client),
    ),
    measurement(
      "CPU of the client, of the grpcio server",
      "µs/case",
      ofPeer(({ cpu }) => cpu.client),
    ),
    measurement("busy with everything else", "cores", others),
  ];
}
