import { z } from "zod";
import { encodeFrame, FrameKind, ProtocolError } from "./frames.js";
import type { ModelReply } from "./types.js";

/** How workers come to be: forked from the template that loaded the metric, or started anew, each loading it. */
export type StartMethod = "fork" | "spawn";

/** What the sidecar tells Python. */
export type ToPython =
  | {
      readonly type: "configure";
      readonly kind: "metric" | "run";
      readonly file: string;
      readonly start_method: StartMethod;
      readonly max_row_bytes: number;
      readonly environment: Readonly<Record<string, string>>;
    }
  | { readonly type: "start"; readonly worker: number; readonly secret: string }
  | { readonly type: "environment"; readonly variables: Readonly<Record<string, string>> }
  | ({ readonly type: "model_answer"; readonly call: number } & ModelReply)
  | { readonly type: "signal"; readonly worker: number; readonly signal: number; readonly group: boolean }
  | { readonly type: "stop" };

const count = z.number().int().min(0);
const step = z.enum(["metric_file", "metric_function", "reward_spec", "run_file"]);

const metricReport = z.object({
  fingerprint: z.string(),
  file: z.string(),
  problems: z.array(z.object({ step, message: z.string(), traceback: z.string() })),
  arguments: z.union([z.literal(0), z.literal(2), z.literal(3)]),
  signature: z.string(),
  is_async: z.boolean(),
  warnings: z.array(z.object({ step, message: z.string() })),
  reward_spec_json: z.string(),
  reward_weights: z.object({ accuracy: z.number(), speed: z.number(), cost: z.number() }).nullable(),
  load_ms: z.number(),
});

const fromPython = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("hello"),
    role: z.enum(["template", "worker"]),
    worker: count,
    secret: z.string(),
    pid: count,
    python: z.string(),
    executable: z.string(),
    clock_ns: z.number(),
  }),
  z.object({ type: z.literal("loaded"), metric: metricReport, fork_hazards: z.array(z.string()) }),
  z.object({ type: z.literal("ready") }),
  z.object({ type: z.literal("started"), worker: count, pid: count }),
  z.object({ type: z.literal("start_failed"), worker: count, error: z.string() }),
  z.object({
    type: z.literal("ended"),
    worker: count,
    pid: count,
    exit_code: z.number().int().nullable(),
    signal: z.number().int().nullable(),
  }),
  z.object({
    type: z.literal("printed"),
    stream: z.enum(["stdout", "stderr"]),
    chunk: count.nullable(),
    case: count.nullable(),
    text: z.string(),
  }),
  z.object({
    type: z.literal("model_call"),
    call: count,
    chunk: count,
    case: count.nullable(),
    messages: z.array(z.unknown()),
    model: z.string().nullable(),
    temperature: z.number().nullable(),
    max_tokens: z.number().int().nullable(),
    response_format: z.unknown(),
    timeout_ms: z.number().nullable(),
  }),
]);

/** What Python tells the sidecar. */
export type FromPython = z.infer<typeof fromPython>;
export type Hello = Extract<FromPython, { type: "hello" }>;
export type ModelCallMessage = Extract<FromPython, { type: "model_call" }>;
export type PrintedMessage = Extract<FromPython, { type: "printed" }>;
export type MetricReport = z.infer<typeof metricReport>;

/** Reads a message frame's payload. Throws `ProtocolError`, with what is wrong with it. */
export function parseMessage(payload: Buffer): FromPython {
  let value: unknown;
  try {
    value = JSON.parse(payload.toString("utf8"));
  } catch {
    throw new ProtocolError(`a message is not JSON: ${start(payload)}`);
  }
  const result = fromPython.safeParse(value);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  throw new ProtocolError(
    `a message is not as agreed at ${issue?.path.join(".") ?? ""}: ${issue?.message ?? ""}: ${start(payload)}`,
  );
}

/** The whole frame of a message. */
export function encodeMessage(message: ToPython): Buffer {
  return encodeFrame(FrameKind.message, Buffer.from(JSON.stringify(message)));
}

function start(payload: Buffer): string {
  return JSON.stringify(payload.toString("utf8", 0, 200));
}
