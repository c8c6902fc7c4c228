import { measurement, type Measurement, type Setting } from "./benchmark.js";
import { COLUMNS, withCaseFile } from "./case_file.js";
import { cpuBetween, runScore } from "./command_run.js";
import { startModelServer, type ServedCall } from "./model_server.js";

/** A metric that asks a model of 200 ms for each of 512 cases, from the command line with default options. */
export async function judge(setting: Setting): Promise<readonly Measurement[]> {
  const runs = await withCaseFile(CASES, (cases) => runAll(setting, cases));
  const samples = (figure: (run: JudgeRun) => number) => runs.map(figure);
  return [
    measurement(
      "scoring 512 cases",
      "s",
      samples(({ seconds }) => seconds),
      TARGETS.seconds,
    ),
    measurement(
      "CPU of the sidecar, which has just started",
      "ms/call",
      samples(({ sidecarMs }) => sidecarMs),
      TARGETS.sidecarCpu,
    ),
    measurement(
      "from the first call to 64 in flight",
      "ms",
      samples(({ fullMs }) => fullMs),
    ),
    measurement(
      "calls in flight, mean",
      "calls",
      samples(({ inFlight }) => inFlight),
    ),
    measurement(
      "busy with everything else",
      "cores",
      samples(({ otherCores }) => otherCores),
    ),
  ];
}

const CASES = 512;
const LATENCY_MS = 200;
/** As many workers as there are at most by default. */
const IN_FLIGHT = 64;
const RUNS = 5;
const IDEAL_SECONDS = ((CASES / IN_FLIGHT) * LATENCY_MS) / 1000;
const TARGETS = { seconds: { atMost: 1.2 * IDEAL_SECONDS }, sidecarCpu: { atMost: 1 } } as const;

interface JudgeRun {
  /** As the command sums up: from the first case sent to the last result. */
  readonly seconds: number;
  /** CPU time of the sidecar, a call, from the first call to the last. */
  readonly sidecarMs: number;
  /** From the first call until as many are in flight as can be. */
  readonly fullMs: number;
  /** Calls in flight, from the first to the last. */
  readonly inFlight: number;
  readonly otherCores: number;
}

async function runAll(setting: Setting, cases: string): Promise<readonly JudgeRun[]> {
  const runs: JudgeRun[] = [];
  for (let number = 1; number <= RUNS; number++) {
    const run = await runOnce(setting, cases);
    runs.push(run);
    const { seconds, sidecarMs, fullMs, inFlight, otherCores } = run;
    setting.log(
      `judge: run ${number} of ${RUNS}: ${seconds.toFixed(2)} s, ${sidecarMs.toFixed(2)} ms of sidecar CPU a call, ` +
        `${fullMs.toFixed(0)} ms until ${IN_FLIGHT} calls were in flight, ${inFlight.toFixed(1)} on average, ` +
        `${otherCores.toFixed(2)} cores busy with everything else`,
    );
  }
  return runs;
}

async function runOnce({ root, python }: Setting, cases: string): Promise<JudgeRun> {
  const server = await startModelServer(LATENCY_MS, root);
  try {
    const model = ["--metric-model", "gpt-4o-mini", "--model-base-url", server.url];
    const args = ["--metric", "bench/metrics/judge.py", "--python", python, "--cases", cases, ...COLUMNS, ...model];
    const { summary, sidecarCpu, otherCores } = await runScore(args, { cwd: root, helpers: [server.pid] });
    const calls = await server.calls();
    if (summary.results !== CASES || summary.errors > 0 || calls.length !== CASES) {
      throw new Error(
        `${CASES} cases had ${summary.results} results, ${summary.errors} errors and ${calls.length} calls`,
      );
    }
    const first = Math.min(...calls.map(({ arrivedAt }) => arrivedAt));
    const last = Math.max(...calls.map(({ endedAt }) => endedAt));
    const heldMs = calls.reduce((sum, { arrivedAt, endedAt }) => sum + endedAt - arrivedAt, 0);
    return {
      seconds: summary.scoring_seconds,
      sidecarMs: cpuBetween(sidecarCpu, first, last) / CASES,
      fullMs: fullAt(calls) - first,
      inFlight: heldMs / (last - first),
      otherCores,
    };
  } finally {
    await server.stop();
  }
}

/** When as many calls were in flight as can be for the first time; `NaN`: never. */
function fullAt(calls: readonly ServedCall[]): number {
  const steps = calls.flatMap(({ arrivedAt, endedAt }) => [
    { at: arrivedAt, step: 1 },
    { at: endedAt, step: -1 },
  ]);
  let inFlight = 0;
  for (const { at, step } of steps.sort((a, b) => a.at - b.at)) {
    inFlight += step;
    if (inFlight === IN_FLIGHT) return at;
  }
  return NaN;
}
