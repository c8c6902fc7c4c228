import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpuMs, descendants, endedChildrenCpuMs, machineCpuMs } from "./processes.js";

/** What `skynet-scorer score --json` printed, as far as benchmarks read it. */
export interface Summary {
  readonly results: number;
  readonly errors: number;
  readonly scoring_seconds: number;
}

/** One run of the command line, from its start to its end. */
export interface CommandRun {
  readonly summary: Summary;
  /** CPU time of the sidecar that the command started, so far, in milliseconds, at a time since the epoch. */
  readonly sidecarCpu: readonly CpuSample[];
  /** How many cores everything else on the machine kept busy meanwhile. */
  readonly otherCores: number;
}

export interface CpuSample {
  readonly at: number;
  readonly cpuMs: number;
}

/** Scores a file of cases as a user does: default options, a sidecar of the command's own. `helpers`: processes that belong to the measurement. */
export async function runScore(
  args: readonly string[],
  { cwd, helpers = [] }: { readonly cwd: string; readonly helpers?: readonly number[] },
): Promise<CommandRun> {
  const beganAt = performance.now();
  const own = () =>
    helpers.reduce((sum, pid) => sum + cpuMs(pid), cpuMs(process.pid) + endedChildrenCpuMs(process.pid));
  const before = { own: own(), machine: machineCpuMs() };
  const child = spawn(process.execPath, ["dist/skynet-scorer.js", "score", "--json", ...args], {
    cwd,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const samples = sampleSidecar(child.pid ?? 0);
  let printed = "";
  let log = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (printed += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (log += text));
  const [code] = (await once(child, "close")) as [number | null];
  const sidecarCpu = samples.stop();
  if (code !== 0) throw new Error(`score ended with exit code ${code}:\n${log.slice(-LOG_CHARACTERS)}`);
  const summary = JSON.parse(printed) as Summary;
  // The command has waited for its sidecar, and that for all others: their time counts as this process's children's.
  const otherMs = machineCpuMs() - before.machine - (own() - before.own);
  return { summary, sidecarCpu, otherCores: Math.max(0, otherMs / (performance.now() - beganAt)) };
}

const LOG_CHARACTERS = 4096;
/** Often enough for the first and the last call to be told from what is before and after, seldom enough not to be in the way. */
const SAMPLE_EVERY_MS = 25;

/** Looks at the command's first child again and again, for as long as it is there. */
function sampleSidecar(command: number): { stop(): readonly CpuSample[] } {
  const samples: CpuSample[] = [];
  let sidecar: number | undefined;
  const timer = setInterval(() => {
    sidecar ??= descendants(command)[0];
    if (sidecar === undefined) return;
    try {
      samples.push({ at: performance.timeOrigin + performance.now(), cpuMs: cpuMs(sidecar) });
    } catch {
      // It has ended.
    }
  }, SAMPLE_EVERY_MS);
  return {
    stop: () => {
      clearInterval(timer);
      return samples;
    },
  };
}

/** CPU time between two moments: from the last sample before the one to the first after the other. */
export function cpuBetween(samples: readonly CpuSample[], from: number, to: number): number {
  const first = samples.findLast(({ at }) => at <= from) ?? samples[0];
  const last = samples.find(({ at }) => at >= to) ?? samples.at(-1);
  if (first === undefined || last === undefined) throw new Error("the sidecar was never seen");
  return last.cpuMs - first.cpuMs;
}
