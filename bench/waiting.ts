import { join } from "node:path";
import { measurement, type Measurement, type Setting } from "./benchmark.js";
import { encodeRequest } from "./cases.js";
import { ScoreClient } from "./client.js";
import { scanResults } from "./scan_results.js";
import { startServer } from "./server_process.js";

/** Cases of a metric that waits: how soon the sidecar has as many workers as the waiting asks for. */
export async function waiting(setting: Setting): Promise<readonly Measurement[]> {
  const seconds: number[] = [];
  for (let number = 1; number <= RUNS; number++) {
    const took = await scoreOnce(setting);
    seconds.push(took);
    setting.log(`waiting: run ${number} of ${RUNS}: ${took.toFixed(2)} s`);
  }
  const milliseconds = seconds.map((each) => each * 1000);
  const ideal = (CASES * WAIT_MS) / MAX_WORKERS;
  return [
    measurement(`${CASES.toLocaleString("en")} cases of ${WAIT_MS} ms`, "ms", milliseconds, TARGET),
    measurement(
      `over ${MAX_WORKERS} workers that never idle`,
      "times",
      milliseconds.map((each) => each / ideal),
    ),
  ];
}

const METRIC = join("test", "fixtures", "metrics", "sleeps_200_ms.py");
const WAIT_MS = 200;
const CASES = 1024;
const CASES_PER_MESSAGE = 256;
/** The default of `--max-workers`. */
const MAX_WORKERS = 64;
const RUNS = 3;
const TARGET = { atMost: 4500 } as const;

/** With a sidecar of its own each, since workers that stand already would flatter the next run. */
async function scoreOnce({ root, python }: Setting): Promise<number> {
  const command = ["dist/skynet-scorer.js", "serve", "--metric", METRIC, "--python", python];
  const server = await startServer(process.execPath, [...command, "--listen", "127.0.0.1:0"], root);
  const client = new ScoreClient(server.address);
  try {
    const seen = new Set<number>();
    const seconds = await client.stream(messages(), CASES_PER_MESSAGE, (response) =>
      scanResults(response, (index, value) => {
        if (value !== 1) throw new Error(`case ${index} has no score of 1`);
        seen.add(index);
      }),
    );
    if (seen.size !== CASES) throw new Error(`${CASES} cases were sent, and ${seen.size} have a result`);
    return seconds;
  } finally {
    client.close();
    await server.stop();
  }
}

function messages(): Buffer[] {
  const one = { id: "", input: {}, output: "fine", expected: {} };
  const message = encodeRequest(Array.from({ length: CASES_PER_MESSAGE }, () => one));
  return Array.from({ length: CASES / CASES_PER_MESSAGE }, () => message);
}
