import { Meter, type MeteredUsage } from "../model/meter.js";

/** Counts the model calls of one case or of one run, and knows which of them have no answer yet. */
export class CallMeter {
  /** Counts the calls that ended. */
  readonly meter: Meter;
  #inFlight = 0;

  /** `total` counts them too. `what` they belong to is named where its end comes before theirs: "run", "metric". */
  constructor(
    total: Meter,
    private readonly what: string,
  ) {
    this.meter = new Meter(total);
  }

  /** A call begins; what is returned is to be called when it has been counted. */
  begin(): () => void {
    let isInFlight = true;
    this.#inFlight += 1;
    return () => {
      if (isInFlight) this.#inFlight -= 1;
      isInFlight = false;
    };
  }

  /** What all calls used. One that is in flight may be billed, and nobody can tell how much: the cost is not known then. */
  usage(): MeteredUsage {
    const usage = this.meter.usage();
    const inFlight = this.#inFlight;
    if (inFlight === 0) return usage;
    return {
      ...usage,
      calls: usage.calls + inFlight,
      callsOfUnknownCost: usage.callsOfUnknownCost + inFlight,
      cost: { usd: undefined, reason: `a model call was still in flight when the ${this.what} ended` },
    };
  }
}
