import { measurement, type Measurement, type Setting } from "./benchmark.js";
import { COLUMNS, withCaseFile } from "./case_file.js";
import { runScore } from "./command_run.js";

/** A metric that sleeps for 200 ms, of which nothing is known beforehand: 1,024 cases from the command line with default options. */
export async function waiting(setting: Setting): Promise<readonly Measurement[]> {
  const { root, python, log } = setting;
  const runs = await withCaseFile(CASES, async (cases) => {
    const args = ["--metric", "bench/metrics/waiting.py", "--python", python, "--cases", cases, ...COLUMNS];
    const all = [];
    for (let number = 1; number <= RUNS; number++) {
      const { summary, otherCores } = await runScore(args, { cwd: root });
      if (summary.results !== CASES || summary.errors > 0) throw new Error("not every case was scored");
      all.push({ seconds: summary.scoring_seconds, otherCores });
      log(
        `waiting: run ${number} of ${RUNS}: ${summary.scoring_seconds.toFixed(2)} s, ` +
          `${otherCores.toFixed(2)} cores busy with everything else`,
      );
    }
    return all;
  });
  return [
    measurement(
      "scoring 1,024 cases",
      "s",
      runs.map(({ seconds }) => seconds),
      TARGET,
    ),
    measurement(
      "busy with everything else",
      "cores",
      runs.map(({ otherCores }) => otherCores),
    ),
  ];
}

const CASES = 1024;
const RUNS = 3;
/** 64 at a time would take 3.2 s. */
const TARGET = { atMost: 4.5 } as const;
