import { join } from "node:path";
import { measurement, type Measurement, type Setting } from "./benchmark.js";
import { makeCases } from "./cases.js";
import { ScoreClient } from "./client.js";
import { cpuMs } from "./processes.js";
import { startServer } from "./server_process.js";

/** grpc-js alone: a server that answers every message with bytes made beforehand. What is left of the throughput's time is ours. */
export async function transport({ root, programs, log }: Setting): Promise<readonly Measurement[]> {
  const { messages, casesPerMessage } = makeCases(1, CASES_PER_MESSAGE);
  const server = await startServer(process.execPath, [join(programs, "echo_server.mjs"), RESPONSE_BYTES], root);
  const client = new ScoreClient(server.address);
  try {
    const runs: Run[] = [];
    for (let number = 0; number <= RUNS; number++) {
      const sent = Array.from({ length: MESSAGES }, () => messages).flat();
      const before = cpuMs(server.pid);
      const seconds = await client.stream(sent, casesPerMessage, () => casesPerMessage);
      const perMessage = (ms: number) => (ms * 1000) / MESSAGES;
      runs.push({ wall: perMessage(seconds * 1000), cpu: perMessage(cpuMs(server.pid) - before) });
    }
    // The first one warms up.
    const timed = runs.slice(1);
    log(`transport: ${RUNS} runs of ${MESSAGES} messages`);
    return [
      measurement(
        "grpc-js stream, empty server",
        "µs/message",
        timed.map(({ wall }) => wall),
      ),
      measurement(
        "CPU of the empty server",
        "µs/message",
        timed.map(({ cpu }) => cpu),
      ),
      measurement(
        "CPU of the empty server, 256 a message",
        "µs/case",
        timed.map(({ cpu }) => cpu / casesPerMessage),
      ),
    ];
  } finally {
    client.close();
    await server.stop();
  }
}

interface Run {
  readonly wall: number;
  readonly cpu: number;
}

const CASES_PER_MESSAGE = 256;
const MESSAGES = 3000;
const RUNS = 5;
/** About what 256 results with a short feedback and their timing take. */
const RESPONSE_BYTES = "16000";
