import type { ApiKey } from "./api_key.js";
import { directRequests } from "./direct_requests.js";
import { proxyFor } from "./proxy.js";

/** OpenAI's own address, used where no other is given. */
export const DEFAULT_BASE_URL = "https://api.openai.com/v1";

/** Something that answers requests of the OpenAI API: the model provider, or a fake one in a test. */
export interface ModelProvider {
  /** Where requests go, such as `https://api.openai.com/v1`; it has no password in it, and can be shown. */
  readonly baseUrl: string;
  readonly key: ApiKey;

  /**
   * Resolves with the status and headers as soon as they are there; the body must be read to its end or left by `break`.
   * Rejects with `ConnectionError`, or with whatever `signal` was aborted with. So does reading the body.
   */
  send(request: ProviderRequest): Promise<ProviderReply>;
}

/** One HTTP request to the provider; its headers, the key among them, are the provider's own business. */
export interface ProviderRequest {
  readonly method: "GET" | "POST";
  /** Below the base URL, such as `chat/completions`. */
  readonly path: string;
  /** JSON; absent for GET. */
  readonly body?: string | Uint8Array;
  readonly signal: AbortSignal;
}

/** The provider's answer, whatever its status. Its body has to be read or cancelled. */
export interface ProviderReply {
  readonly status: number;
  /** The value of a header by its name in lower case; several of one name are joined by commas. */
  header(name: string): string | undefined;
  readonly body: AsyncIterable<Uint8Array>;
  /** The same at once, where the client can tell it for less; `undefined` where it has more bytes than that. */
  readonly whole?: (mostBytes: number) => Promise<Uint8Array | undefined>;
}

/** The connection to the provider could not be made, or broke. */
export class ConnectionError extends Error {
  override readonly name = "ConnectionError";

  constructor(
    message: string,
    /** Whether another try can help. */
    readonly isRetried: boolean,
  ) {
    super(message);
  }
}

/** Where the provider is, and the key for it. */
export interface ProviderOptions {
  readonly baseUrl: string;
  readonly key: ApiKey;
  /** Where the proxy's variables are read from. */
  readonly environment: NodeJS.ProcessEnv;
}

/** Opens the way to a provider; connections are made when the first call needs them. Throws where the base URL or the proxy is wrong. */
export function openProvider({ baseUrl, key, environment }: ProviderOptions): HttpProvider {
  const url = parseBaseUrl(baseUrl);
  return new HttpProvider(url, key, proxyFor(url, environment));
}

/** A request on its way out. */
export interface WireRequest {
  readonly method: "GET" | "POST";
  /** With the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array | undefined;
  readonly signal: AbortSignal;
}

/** The head of an answer, and its body to be read. */
export interface WireReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: AsyncIterable<Uint8Array>;
  readonly whole?: ProviderReply["whole"];
}

/** The connections to one provider. */
export interface Requests {
  /** Rejects with whatever the client that is used for it throws. There is no limit of time but the signal's: models may think for minutes. */
  send(request: WireRequest): Promise<WireReply>;
  /** Ends all connections; requests in flight fail. */
  close(): Promise<void>;
}

/** A provider over HTTP. */
export class HttpProvider implements ModelProvider {
  readonly baseUrl: string;
  readonly #paths = new Map<string, string>();
  #requests: Promise<Requests> | undefined;

  constructor(
    private readonly url: URL,
    readonly key: ApiKey,
    private readonly proxy: URL | undefined,
  ) {
    this.baseUrl = url.href;
  }

  async send({ method, path, body, signal }: ProviderRequest): Promise<ProviderReply> {
    const requests = await this.#open();
    const headers: Record<string, string> = {
      accept: "application/json, text/event-stream",
      "user-agent": "skynet-scorer",
      ...this.key.headers(),
    };
    if (body !== undefined) {
      headers["content-type"] = "application/json";
      headers["content-length"] = String(Buffer.byteLength(body));
    }
    try {
      const reply = await requests.send({ method, path: this.#pathOf(path), headers, body, signal });
      const { status, whole } = reply;
      return {
        status,
        header: (name) => joined(reply.headers[name]),
        body: this.#chunks(reply.body, signal),
        ...(whole === undefined ? {} : { whole: (mostBytes) => this.#whole(whole(mostBytes), signal) }),
      };
    } catch (error) {
      throw this.#toConnectionError(error, signal);
    }
  }

  /** Does what the first call would otherwise wait for. */
  async warmUp(): Promise<void> {
    await this.#open();
  }

  /** Ends all connections; calls in flight fail. */
  async close(): Promise<void> {
    await (await this.#requests)?.close();
  }

  #open(): Promise<Requests> {
    return (this.#requests ??= this.#load());
  }

  async #load(): Promise<Requests> {
    if (this.proxy === undefined) return directRequests(this.url);
    // Loading its client takes some 80 ms of CPU, which only those who have a proxy spend.
    const { proxiedRequests } = await import("./proxied_requests.js");
    return proxiedRequests(this.url, this.proxy);
  }

  /** A query in the base URL, such as `?api-version=…`, stays behind the path. */
  #pathOf(path: string): string {
    const known = this.#paths.get(path);
    if (known !== undefined) return known;
    const whole = `${this.url.pathname.replace(/\/+$/, "")}/${path}${this.url.search}`;
    this.#paths.set(path, whole);
    return whole;
  }

  async *#chunks(body: AsyncIterable<Uint8Array>, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    try {
      yield* body;
    } catch (error) {
      throw this.#toConnectionError(error, signal);
    }
  }

  async #whole(read: Promise<Uint8Array | undefined>, signal: AbortSignal): Promise<Uint8Array | undefined> {
    try {
      return await read;
    } catch (error) {
      throw this.#toConnectionError(error, signal);
    }
  }

  #toConnectionError(error: unknown, signal: AbortSignal): unknown {
    if (signal.aborted) return signal.reason;
    const code = codeOf(error);
    const through = this.proxy === undefined ? "" : ` through the proxy ${this.proxy.host}`;
    const refusal = this.proxy === undefined ? undefined : refusalOfProxy(error);
    if (refusal !== undefined) {
      const message = `no connection to ${this.url.origin}${through}, which answered HTTP ${refusal}`;
      return new ConnectionError(message, refusal >= 500);
    }
    const what = `no connection to ${this.url.origin}${through}: ${WORDS[code] ?? (code === "" ? "it failed" : code)}`;
    if (!CERTIFICATE_CODE.test(code)) return new ConnectionError(what, true);
    return new ConnectionError(`${what}; name the authority that signed it with NODE_EXTRA_CA_CERTS=FILE`, false);
  }
}

/** Throws where the text is no address for a provider. */
function parseBaseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw new Error(`the model's base URL ${JSON.stringify(text)} is none: expected one such as ${DEFAULT_BASE_URL}`);
  }
  if (url.username !== "" || url.password !== "") {
    throw new Error("the model's base URL has a user or password in it: give the key by --model-api-key-env instead");
  }
  url.hash = "";
  return url;
}

function joined(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value.join(", ") : value;
}

/** The code that says most: that of the first cause, where there are several. */
function codeOf(error: unknown): string {
  if (error instanceof AggregateError) return codeOf(error.errors[0]);
  if (!(error instanceof Error)) return "";
  const { code, cause } = error as Error & { code?: unknown };
  if (typeof code === "string" && code !== "UND_ERR_ABORTED") return code;
  return cause === undefined ? error.name : codeOf(cause);
}

/** The status with which a proxy refused. The HTTP client tells it in its message alone. */
function refusalOfProxy(error: unknown): number | undefined {
  const status = error instanceof Error ? /^Proxy .*\((\d{3})\)/.exec(error.message)?.[1] : undefined;
  return status === undefined ? undefined : Number(status);
}

const CERTIFICATE_CODE = /CERT|SELF_SIGNED|UNABLE_TO_(GET|VERIFY)/;

const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nobody listens there (ECONNREFUSED)",
  ENOTFOUND: "the host is not known (ENOTFOUND)",
  EAI_AGAIN: "the host's name could not be looked up (EAI_AGAIN)",
  ECONNRESET: "it was reset (ECONNRESET)",
  UND_ERR_SOCKET: "it was closed by the other side",
  UND_ERR_CONNECT_TIMEOUT: "it could not be made within 10 s",
};
