import { ApiKey } from "../../src/model/api_key.js";
import type { ModelProvider, ProviderReply, ProviderRequest } from "../../src/model/provider.js";

/** What the fake answers to one request: a reply, an error to reject with, or nothing until the call is aborted. */
export type FakeReply =
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body: string }
  | Error
  | "hang";

/** A provider in process, without sockets, so that time can be simulated. */
export class FakeProvider implements ModelProvider {
  readonly baseUrl = "https://api.openai.com/v1";
  readonly key = ApiKey.take("FAKE_KEY", { FAKE_KEY: "sk-fake-0123456789" });
  /** When each request came, on the clock of `performance.now()`, and its parsed body. */
  readonly requests: { readonly at: number; readonly body: Record<string, unknown> }[] = [];

  /** The replies are given one after the other; the last one stays. */
  constructor(private readonly replies: readonly FakeReply[]) {}

  async send({ body, signal }: ProviderRequest): Promise<ProviderReply> {
    const text = typeof body === "string" ? body : "{}";
    this.requests.push({ at: performance.now(), body: JSON.parse(text) as Record<string, unknown> });
    const reply = this.replies[Math.min(this.requests.length, this.replies.length) - 1] ?? "hang";
    if (reply === "hang") {
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
    }
    if (reply instanceof Error) throw reply;
    await Promise.resolve();
    return {
      status: reply.status,
      header: (name) => reply.headers?.[name],
      body: (async function* () {
        await Promise.resolve();
        yield Buffer.from(reply.body);
      })(),
    };
  }
}

/** A reply with a whole chat completion. */
export function completed(fields: object = {}): FakeReply {
  const body = {
    model: "gpt-4o-mini-2024-07-18",
    choices: [{ message: { role: "assistant", content: "PASS" }, finish_reason: "stop" }],
    usage: { prompt_tokens: 1000, completion_tokens: 100, total_tokens: 1100 },
    ...fields,
  };
  return { status: 200, headers: { "x-request-id": "req_1" }, body: JSON.stringify(body) };
}

/** A reply with an error in OpenAI's format. */
export function failed(status: number, error: object = {}, headers: Readonly<Record<string, string>> = {}): FakeReply {
  return { status, headers, body: JSON.stringify({ error: { message: `status ${status}`, ...error } }) };
}
