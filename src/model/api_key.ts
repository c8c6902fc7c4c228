import { inspect } from "node:util";

import { forgetVariable } from "./initial_environment.js";

/** The provider's key, in the one place that holds it: printing, logging or encoding this object shows no key. */
export class ApiKey {
  readonly #value: string | undefined;

  private constructor(
    /** The environment variable that it comes from. */
    readonly variable: string,
    value: string | undefined,
  ) {
    this.#value = value;
  }

  /**
   * Takes the key out of the environment, so that no process started from now on inherits it, nor finds it in /proc. A variable that is
   * not set, or blank, gives no key: calls are sent without one, which a model server on this machine may allow.
   */
  static take(variable: string, environment: NodeJS.ProcessEnv): ApiKey {
    const value = environment[variable]?.trim();
    if (environment === process.env) forgetVariable(variable);
    else Reflect.deleteProperty(environment, variable);
    if (value === undefined || value === "") return new ApiKey(variable, undefined);
    if (!/^[\x21-\x7e]+$/.test(value)) {
      throw new Error(
        `the key in ${variable} has characters that no key has (blanks, line ends or non-ASCII): set it again`,
      );
    }
    return new ApiKey(variable, value);
  }

  get isSet(): boolean {
    return this.#value !== undefined;
  }

  /** The header that carries it; none where there is no key. */
  headers(): Readonly<Record<string, string>> {
    return this.#value === undefined ? {} : { authorization: `Bearer ${this.#value}` };
  }

  /** The text without the key, which some providers repeat in their errors. */
  redact(text: string): string {
    const value = this.#value;
    return value === undefined || value.length < SHORTEST_SECRET ? text : text.replaceAll(value, "[key]");
  }

  /** The same for bytes of UTF-8; they are copied only where the key is in them. */
  redactBytes(bytes: Uint8Array): Uint8Array {
    const value = this.#value;
    if (value === undefined || value.length < SHORTEST_SECRET) return bytes;
    const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    return view.includes(value, 0, "latin1") ? Buffer.from(this.redact(view.toString("latin1")), "latin1") : bytes;
  }

  toJSON(): string {
    return this.toString();
  }

  toString(): string {
    return this.isSet ? `[key from ${this.variable}]` : `[no key in ${this.variable}]`;
  }

  [inspect.custom](): string {
    return this.toString();
  }
}

/** Shorter ones are words that local model servers ask for, such as "none": no secret, and part of honest messages. */
const SHORTEST_SECRET = 8;
