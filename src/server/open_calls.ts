import { CallError } from "../services/errors.js";

/** Work is waited for in a drain. A watch (health, reflection) goes on for as long as its client likes, so it is ended. */
export type CallKind = "work" | "watch";

/** One call that is being served. */
export interface OpenCall {
  /** Aborted when the client left or the drain ended. */
  readonly signal: AbortSignal;
  /** The client left: the call's work has no taker. */
  readonly abandon: () => void;
  /** The call is over. */
  readonly end: () => void;
}

/** Who is being served, and whether anybody still may come in. */
export class OpenCalls {
  #state: "open" | "draining" = "open";
  readonly #calls = new Map<OpenCall, { readonly kind: CallKind; readonly controller: AbortController }>();
  readonly #waiting = new Set<() => void>();

  /** Lets a call in. Throws `shutting_down` in a drain. */
  begin(kind: CallKind): OpenCall {
    if (this.#state === "draining") throw new CallError("shutting_down", SHUTTING_DOWN);
    const controller = new AbortController();
    const call: OpenCall = {
      signal: controller.signal,
      abandon: () => {
        controller.abort(
          new CallError("cancelled", "the client cancelled the call, went away or ran past its deadline"),
        );
      },
      end: () => {
        this.#calls.delete(call);
        for (const check of this.#waiting) check();
      },
    };
    this.#calls.set(call, { kind, controller });
    return call;
  }

  /** Lets nobody in any more and ends the watches. */
  drain(): void {
    this.#state = "draining";
    this.#abort("watch");
  }

  /** Ends whatever still runs. */
  abort(): void {
    this.#abort("watch");
    this.#abort("work");
  }

  /** Resolves with true when nobody is being served, or with false after `timeoutMs`. */
  async idle(timeoutMs: number): Promise<boolean> {
    if (this.#calls.size === 0) return true;
    return await new Promise<boolean>((resolve) => {
      const done = (idle: boolean): void => {
        clearTimeout(timer);
        this.#waiting.delete(check);
        resolve(idle);
      };
      const check = (): void => {
        if (this.#calls.size === 0) done(true);
      };
      const timer = setTimeout(done, timeoutMs, false);
      this.#waiting.add(check);
    });
  }

  #abort(which: CallKind): void {
    for (const { kind, controller } of this.#calls.values()) {
      if (kind === which) controller.abort(new CallError("shutting_down", SHUTTING_DOWN));
    }
  }
}

const SHUTTING_DOWN = "the sidecar is shutting down; call another one, or this one again after its restart";
