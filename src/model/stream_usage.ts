import { readCharge, type Charge } from "./chat_answer.js";
import { asArray, asObject, parseJson, type JsonObject } from "./json_fields.js";
import { eventData, SseEvents } from "./sse_events.js";

/**
 * Listens to a streamed chat completion on its way to a caller, for what it bills by. The events pass unchanged; where the caller did not ask
 * for the usage, the one event that carries nothing else is left out.
 */
export class StreamUsage {
  readonly #events = new SseEvents();
  #isLeftOut = false;
  #seen: Record<string, unknown> = {};

  constructor(
    /** Whether the caller's own request has `stream_options.include_usage`. */
    private readonly isUsageWanted: boolean,
  ) {}

  /** The bytes of this chunk, and of those before it, that can be passed on now. */
  push(chunk: Uint8Array): readonly Uint8Array[] {
    const events = this.#events.push(chunk);
    const passed = events.filter((event) => {
      // A line feed alone goes the way of the event that it ends.
      if (event.length > 1) this.#isLeftOut = this.#isUsageAlone(event);
      return !this.#isLeftOut;
    });
    // Nothing is held back from a caller who gets everything anyway.
    return this.isUsageWanted ? [chunk] : passed;
  }

  /** What is left to pass on when the provider's stream has ended. */
  end(): readonly Uint8Array[] {
    const rest = this.#events.rest();
    if (rest.length === 0) return [];
    const isLeftOut = this.#isUsageAlone(rest);
    return this.isUsageWanted || isLeftOut ? [] : [rest];
  }

  /** What the provider bills by, as far as it has told; its reason says where it has not. */
  charge(): Charge {
    return readCharge(this.#seen);
  }

  /** The provider's own word for why the stream ended badly: an `error` event. */
  get error(): JsonObject | undefined {
    return asObject(this.#seen["error"]);
  }

  #isUsageAlone(event: Uint8Array): boolean {
    // Most events are a few letters of text: those are passed without being parsed, but for the first.
    if (this.#seen["model"] !== undefined && !INTERESTING.test(latin1(event))) return false;
    const chunk = asObject(parseJson(eventData(event)));
    if (chunk === undefined) return false;
    for (const name of ["model", "service_tier", "error"]) {
      if (chunk[name] !== undefined && chunk[name] !== null) this.#seen[name] = chunk[name];
    }
    const usage = asObject(chunk["usage"]) ?? asObject(asObject(chunk["x_groq"])?.["usage"]);
    if (usage === undefined) return false;
    this.#seen["usage"] = usage;
    return asArray(chunk["choices"])?.length === 0;
  }
}

/** Within a JSON text the quotes of such a key would be escaped, so only a key can match. */
const INTERESTING = /"usage"\s*:\s*\{|"error"\s*:\s*["{]/;

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
}
