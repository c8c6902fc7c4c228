import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";

import { ModelServer } from "./server.js";
import { scriptSchema } from "./step.js";

const HELP = `usage: node test/model_server/run.mjs [--port N] [--script FILE] [--latency MS] [--stop-with-stdin]

An OpenAI-compatible model server with scripted answers and faults, on 127.0.0.1. It prints one line of JSON, {"url": …}, when it is ready.
What a script may hold: test/model_server/step.ts.`;

/** Runs the server until SIGTERM or SIGINT, or until standard input ends where that was asked for. */
export async function main(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      port: { type: "string", default: "0" },
      script: { type: "string" },
      latency: { type: "string" },
      "stop-with-stdin": { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) {
    console.log(HELP);
    return;
  }
  const script = scriptSchema.parse(values.script === undefined ? {} : JSON.parse(readFileSync(values.script, "utf8")));
  const latencyMs = values.latency === undefined ? script.latencyMs : Number(values.latency);
  const server = new ModelServer({ ...script, latencyMs });
  await server.listen(Number(values.port));
  console.log(JSON.stringify({ url: server.url }));
  const stop = () => void server.close();
  process.once("SIGTERM", stop).once("SIGINT", stop);
  if (values["stop-with-stdin"]) process.stdin.resume().once("end", stop);
}
