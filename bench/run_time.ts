import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { measurement, type Measurement, type Setting } from "./benchmark.js";
import { withCaseFile } from "./case_file.js";
import { runScore } from "./command_run.js";

/** What is measured of runs that sleep for 300 ms: 50 of them from the command line with default options. */
export async function run_time(setting: Setting): Promise<readonly Measurement[]> {
  const rounds = await withCaseFile(CASES, async (cases, folder) => {
    const artifact = join(folder, "artifact.txt");
    writeFileSync(artifact, "Answer in one word.");
    const all: Round[] = [];
    for (let number = 1; number <= ROUNDS; number++) {
      const round = await runRound(setting, cases, artifact, join(folder, `results-${number}.jsonl`));
      all.push(round);
      const { low, median, high, otherCores } = round;
      setting.log(
        `run_time: round ${number} of ${ROUNDS}: 10 % ${low.toFixed(1)} ms, median ${median.toFixed(1)} ms, ` +
          `90 % ${high.toFixed(1)} ms, ${otherCores.toFixed(2)} cores busy with everything else`,
      );
    }
    return all;
  });
  const samples = (figure: (round: Round) => number) => rounds.map(figure);
  return [
    measurement(
      "a run of 300 ms, shortest of 50",
      "ms",
      samples(({ least }) => least),
      { atLeast: RUN_MS },
    ),
    measurement(
      "median of 50",
      "ms",
      samples(({ median }) => median),
    ),
    measurement(
      "90th percentile of 50",
      "ms",
      samples(({ high }) => high),
      { atMost: RUN_MS + TOLERANCE_MS },
    ),
    measurement(
      "busy with everything else",
      "cores",
      samples(({ otherCores }) => otherCores),
    ),
  ];
}

const CASES = 50;
const ROUNDS = 3;
const RUN_MS = 300;
const TOLERANCE_MS = 25;

interface Round {
  readonly least: number;
  readonly low: number;
  readonly median: number;
  readonly high: number;
  readonly otherCores: number;
}

async function runRound({ root, python }: Setting, cases: string, artifact: string, output: string): Promise<Round> {
  const code = ["--metric", "bench/metrics/accepting.py", "--run", "bench/metrics/sleeping_run.py", "--python", python];
  const given = ["--cases", cases, "--input-columns", "question", "--artifact", artifact, "--output", output];
  const { summary, otherCores } = await runScore([...code, ...given], { cwd: root });
  if (summary.results !== CASES || summary.errors > 0) throw new Error("not every case was run and scored");
  const times = readFileSync(output, "utf8")
    .trim()
    .split("\n")
    .map(runMs)
    .sort((a, b) => a - b);
  const at = (share: number) => times[Math.ceil(share * times.length) - 1] ?? NaN;
  return { least: times[0] ?? NaN, low: at(0.1), median: at(0.5), high: at(0.9), otherCores };
}

function runMs(line: string): number {
  const { observation } = JSON.parse(line) as { readonly observation?: { readonly run_ms?: number } };
  if (observation?.run_ms === undefined) throw new Error(`a result tells no run time: ${line}`);
  return observation.run_ms;
}
