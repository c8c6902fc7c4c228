/** Why a call was ended before it had an answer. */
export type LimitReason = "timeout" | "aborted";

/**
 * The one signal that ends a call: the caller's own, or the deadline, whichever comes first. `release` must be called when the call is
 * over, since the caller's signal may live far longer.
 */
export class CallLimit {
  /** How long the call had from its beginning, in milliseconds. */
  readonly spanMs: number;
  readonly #controller = new AbortController();
  readonly #timer: NodeJS.Timeout | undefined;
  readonly #onAbort = () => this.#end("aborted");
  #reason: LimitReason | undefined;

  constructor(
    private readonly outer: AbortSignal | undefined,
    /** On the clock of `performance.now()`; may be infinite. */
    private readonly deadlineAt: number,
  ) {
    if (outer?.aborted === true) this.#end("aborted");
    outer?.addEventListener("abort", this.#onAbort, { once: true });
    this.spanMs = this.leftMs();
    if (this.spanMs <= 0) this.#end("timeout");
    else if (this.spanMs <= LONGEST_TIMER_MS) this.#timer = setTimeout(() => this.#end("timeout"), this.spanMs);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** `undefined` while the call may go on. */
  endedBy(): LimitReason | undefined {
    return this.#reason;
  }

  leftMs(): number {
    return this.deadlineAt - performance.now();
  }

  /** Resolves after that time, or at once when the call is ended. */
  async sleep(ms: number): Promise<void> {
    const { signal } = this;
    if (signal.aborted) return;
    await new Promise<void>((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", wake);
        resolve();
      };
      const timer = setTimeout(wake, ms);
      signal.addEventListener("abort", wake);
    });
  }

  release(): void {
    clearTimeout(this.#timer);
    this.outer?.removeEventListener("abort", this.#onAbort);
  }

  #end(reason: LimitReason): void {
    this.#reason ??= reason;
    this.#controller.abort();
  }
}

/** What `setTimeout` can hold; a longer limit is none. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
