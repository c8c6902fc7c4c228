import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as wait } from "node:timers/promises";

import { completion, completionEvents, promptText, type ChatRequest } from "./completion.js";
import { NAMED_STEPS, scriptSchema, stepSchema, type Script, type ScriptInput, type Step } from "./step.js";

/** A request as the server saw it. */
export interface RecordedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
  /** When it came, in milliseconds since the epoch. */
  readonly arrivedAt: number;
  /** When its answer was sent, or its client left; absent before. */
  endedAt?: number;
  /** The client left before it had its whole answer. */
  isAborted: boolean;
}

/**
 * An OpenAI-compatible model server with scripted answers and faults, on this machine alone. What a request gets is decided by, in this order: its
 * header `x-model-server-step` (a step's name, or a step as JSON), its model where that is a step's name, the queue, the first rule that matches, and what the
 * script says otherwise.
 */
export class ModelServer {
  readonly requests: RecordedRequest[] = [];
  #script: Script;
  readonly #places = new Map<object, number>();
  readonly #changes = new Set<() => void>();
  readonly #server: Server;
  /** Connections made so far. */
  connections = 0;

  constructor(script: ScriptInput = {}) {
    this.#script = scriptSchema.parse(script);
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch((error: unknown) => {
        if (response.headersSent) response.destroy();
        else sendJson(response, 400, errorBody(`the model server cannot serve this: ${String(error)}`));
      });
    });
    // Judges pause; a test's client must not meet a connection that is just being closed.
    this.#server.keepAliveTimeout = 60_000;
    this.#server.on("connection", () => (this.connections += 1));
  }

  /** Port 0: any that is free. */
  async listen(port = 0): Promise<void> {
    this.#server.listen(port, "127.0.0.1");
    await once(this.#server, "listening");
  }

  /** The base URL for clients, ending in `/v1`. */
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  /** Replaces the script, and forgets the requests so far. */
  script(script: ScriptInput): void {
    this.#script = scriptSchema.parse(script);
    this.#places.clear();
    this.requests.length = 0;
  }

  /** The requests' bodies, parsed. */
  chats(): ChatRequest[] {
    return this.requests.filter(({ method }) => method === "POST").map(({ body }) => JSON.parse(body) as ChatRequest);
  }

  /** Resolves once the condition holds; it is looked at whenever a request comes, ends or is aborted. */
  async until(condition: (server: this) => boolean): Promise<void> {
    while (!condition(this)) {
      await new Promise<void>((resolve) => {
        const look = () => {
          this.#changes.delete(look);
          resolve();
        };
        this.#changes.add(look);
      });
    }
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "", url = "", headers } = request;
    const arrivedAt = now();
    const body = await bodyOf(request);
    const recorded: RecordedRequest = { method, path: url, headers, body, arrivedAt, isAborted: false };
    if (url.startsWith("/control/")) {
      this.#control(recorded, response);
      return;
    }
    this.requests.push(recorded);
    response.on("close", () => {
      recorded.isAborted = !response.writableEnded;
      recorded.endedAt = now();
      this.#changed();
    });
    this.#changed();
    await this.#route(recorded, response);
  }

  async #route({ method, path, headers, body }: RecordedRequest, response: ServerResponse): Promise<void> {
    const place = path.split("?")[0] ?? "";
    if (method === "GET" && place.endsWith("/models")) {
      const data = this.#script.models.map((id) => ({
        id,
        object: "model",
        created: 1_700_000_000,
        owned_by: "scripted",
      }));
      sendJson(response, 200, { object: "list", data });
      return;
    }
    if (method !== "POST" || !place.endsWith("/chat/completions")) {
      sendJson(response, 404, errorBody(`Unknown request URL: ${method} ${path}`));
      return;
    }
    const chat = JSON.parse(body) as ChatRequest;
    const step = this.#stepFor(chat, headers["x-model-server-step"]);
    const latencyMs = ("latencyMs" in step ? step.latencyMs : undefined) ?? this.#script.latencyMs;
    if (latencyMs > 0) await wait(latencyMs);
    if (!response.destroyed) perform(step, chat, response);
  }

  #stepFor(chat: ChatRequest, asked: string | string[] | undefined): Step {
    if (typeof asked === "string") return NAMED_STEPS[asked] ?? stepSchema.parse(JSON.parse(asked));
    const named = NAMED_STEPS[chat.model ?? ""];
    if (named !== undefined) return named;
    const { queue, rules, otherwise } = this.#script;
    const queued = queue.shift();
    if (queued !== undefined) return queued;
    const text = promptText(chat);
    const rule = rules.find(
      ({ model, contains }) => (model === undefined || model === chat.model) && text.includes(contains ?? ""),
    );
    if (rule === undefined) return otherwise;
    const place = this.#places.get(rule) ?? 0;
    this.#places.set(rule, place + 1);
    return rule.steps[Math.min(place, rule.steps.length - 1)] ?? otherwise;
  }

  /** For programs in another language: `GET /control/requests`, and `PUT /control/script` with a script. */
  #control({ method, path, body }: RecordedRequest, response: ServerResponse): void {
    if (method === "GET" && path === "/control/requests") {
      sendJson(response, 200, this.requests);
    } else if (method === "PUT" && path === "/control/script") {
      this.script(JSON.parse(body) as ScriptInput);
      sendJson(response, 200, {});
    } else {
      sendJson(
        response,
        404,
        errorBody(`no ${method} ${path}: there are GET /control/requests and PUT /control/script`),
      );
    }
  }

  #changed(): void {
    for (const look of this.#changes) look();
  }
}

function perform(step: Step, chat: ChatRequest, response: ServerResponse): void {
  response.setHeader("x-request-id", "req_scripted");
  for (const [name, value] of Object.entries(("headers" in step ? step.headers : undefined) ?? {})) {
    response.setHeader(name, value);
  }
  switch (step.kind) {
    case "answer":
      if (chat.stream === true) sendEvents(response, completionEvents(chat, step));
      else sendJson(response, 200, completion(chat, step));
      return;
    case "error":
      sendJson(response, step.status, errorBody(step.message, step));
      return;
    case "raw":
      response.writeHead(step.status, { "content-type": step.contentType });
      response.end(step.body);
      return;
    case "hang":
      return;
    case "reset":
      response.socket?.resetAndDestroy();
      return;
    case "cut":
      sendHalf(chat, response);
      return;
    case "refuse_parameter":
      if (step.parameter in chat) sendJson(response, 400, refusal(step.parameter));
      else perform({ kind: "answer" }, chat, response);
  }
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

function sendEvents(response: ServerResponse, events: readonly string[]): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const event of events) response.write(event);
  response.end();
}

function sendHalf(chat: ChatRequest, response: ServerResponse): void {
  const step = { kind: "answer" } as const;
  const isStream = chat.stream === true;
  const whole = isStream ? completionEvents(chat, step).join("") : JSON.stringify(completion(chat, step));
  response.writeHead(200, { "content-type": isStream ? "text/event-stream" : "application/json" });
  response.write(whole.slice(0, whole.length / 2), () => response.socket?.destroy());
}

function refusal(parameter: string): object {
  const message = `Unsupported value: '${parameter}' does not support this value with this model.`;
  return errorBody(message, { type: "invalid_request_error", code: "unsupported_value", param: parameter });
}

interface ErrorFields {
  readonly type?: string | undefined;
  readonly code?: string | number | null | undefined;
  readonly param?: string | null | undefined;
}

function errorBody(message: string, { type, code, param }: ErrorFields = {}): object {
  return { error: { message, type: type ?? "invalid_request_error", param: param ?? null, code: code ?? null } };
}

/** Milliseconds since the epoch, with fractions. */
function now(): number {
  return performance.timeOrigin + performance.now();
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}
