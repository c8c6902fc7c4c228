import { z } from "zod";

/** Token counts as a provider reports them; `null`: the answer has no usage. */
const usage = z.union([
  z.null(),
  z.strictObject({
    prompt: z.int().min(0),
    cached: z.int().min(0).optional(),
    completion: z.int().min(0),
    reasoning: z.int().min(0).optional(),
  }),
]);

const timing = { latencyMs: z.number().min(0).optional(), headers: z.record(z.string(), z.string()).optional() };

/** What the server does with one request. */
export const stepSchema = z.discriminatedUnion("kind", [
  /** A chat completion, streamed where the request says so. */
  z.strictObject({
    kind: z.literal("answer"),
    text: z.string().optional(),
    usage: usage.optional(),
    /** The model that the answer names; absent: the request's. */
    model: z.string().optional(),
    finishReason: z.string().optional(),
    refusal: z.string().optional(),
    serviceTier: z.string().optional(),
    /** `choices` is empty. */
    noChoices: z.boolean().optional(),
    /** The line end of streamed events, `\n` where absent. */
    lineEnd: z.enum(["\n", "\r\n", "\r"]).optional(),
    ...timing,
  }),
  /** An error in OpenAI's format; with status 200 as well. */
  z.strictObject({
    kind: z.literal("error"),
    status: z.int().min(200).max(599),
    message: z.string(),
    type: z.string().optional(),
    code: z.union([z.string(), z.number(), z.null()]).optional(),
    param: z.union([z.string(), z.null()]).optional(),
    ...timing,
  }),
  /** Any body at all. */
  z.strictObject({ kind: z.literal("raw"), status: z.int(), contentType: z.string(), body: z.string(), ...timing }),
  /** Reads the request and never answers. */
  z.strictObject({ kind: z.literal("hang") }),
  /** Closes the connection without a word. */
  z.strictObject({ kind: z.literal("reset") }),
  /** Sends a status of success and half of the answer, streamed or not, and closes the connection. */
  z.strictObject({ kind: z.literal("cut"), ...timing }),
  /** Refuses the parameter by name while a request has it, else answers. */
  z.strictObject({ kind: z.literal("refuse_parameter"), parameter: z.string(), ...timing }),
]);

export type Step = z.infer<typeof stepSchema>;
export type AnswerStep = Extract<Step, { kind: "answer" }>;
export type ScriptedUsage = z.infer<typeof usage>;

/** Steps for the requests that match; the first rule that does counts. */
const rule = z.strictObject({
  /** The request's `model`; absent: any. */
  model: z.string().optional(),
  /** A part of the text of its messages; absent: any. */
  contains: z.string().optional(),
  /** Taken one a request; the last stays. */
  steps: z.array(stepSchema).min(1),
});

export const scriptSchema = z.strictObject({
  /** Taken one a request, before any rule. */
  queue: z.array(stepSchema).default([]),
  rules: z.array(rule).default([]),
  /** For whatever no rule matches. */
  otherwise: stepSchema.default({ kind: "answer" }),
  /** Waited before each answer that has no latency of its own, in milliseconds. */
  latencyMs: z.number().min(0).default(0),
  /** What `GET /v1/models` lists. */
  models: z.array(z.string()).default(["gpt-4o-mini"]),
});

export type Script = z.output<typeof scriptSchema>;
export type ScriptInput = z.input<typeof scriptSchema>;

/** Steps that a request can ask for by name: as its model, or in the header `x-model-server-step`. */
export const NAMED_STEPS: Readonly<Record<string, Step>> = {
  "step-rate-limited": {
    kind: "error",
    status: 429,
    message: "Rate limit reached",
    code: "rate_limit_exceeded",
    headers: { "retry-after": "1" },
  },
  "step-insufficient-quota": {
    kind: "error",
    status: 429,
    message: "You exceeded your current quota, please check your plan and billing details.",
    type: "insufficient_quota",
    code: "insufficient_quota",
  },
  "step-server-error": { kind: "error", status: 500, message: "The server had an error", type: "server_error" },
  "step-hang": { kind: "hang" },
  "step-reset": { kind: "reset" },
  "step-cut": { kind: "cut" },
  "step-no-usage": { kind: "answer", usage: null },
  "step-empty": { kind: "answer", text: "" },
  "step-no-choices": { kind: "answer", noChoices: true },
  "step-refusal": { kind: "answer", text: "", refusal: "I cannot help with that." },
  "step-length": { kind: "answer", text: "PASS, since the", finishReason: "length" },
  "step-error-in-answer": { kind: "error", status: 200, message: "The upstream model failed" },
  "step-html": {
    kind: "raw",
    status: 200,
    contentType: "text/html",
    body: "<!doctype html><html><head><title>Sign in</title></head><body>Welcome</body></html>",
  },
  "step-no-temperature": { kind: "refuse_parameter", parameter: "temperature" },
};
