/** How calls are tried again. */
export interface RetryPolicy {
  /** How often a call is tried again, at most. */
  readonly mostRetries: number;
  /** Before the first retry, without the jitter; doubles with each. */
  readonly firstDelayMs: number;
  readonly longestDelayMs: number;
}

/** Half a second, 1, 2, 4 and 8: a provider's hiccup is over by then, and an outage is told within 16 s. */
export const RETRY_POLICY: RetryPolicy = { mostRetries: 5, firstDelayMs: 500, longestDelayMs: 8000 };

/** Statuses that another try can mend. */
export function isRetriedStatus(status: number): boolean {
  return status === 408 || status === 409 || status === 429 || status >= 500;
}

/**
 * Milliseconds until the next try. `retries` have been made so far. What the provider asks for is kept, and a little more, so that calls
 * which were refused together do not come back together; without it the delay doubles, and takes between half of itself and all.
 */
export function retryDelayMs(retries: number, askedMs: number | undefined, policy: RetryPolicy): number {
  if (askedMs !== undefined) return askedMs * (1 + Math.random() * MOST_ADDED_TO_ASKED);
  const whole = Math.min(policy.firstDelayMs * 2 ** retries, policy.longestDelayMs);
  return whole * (0.5 + Math.random() / 2);
}

const MOST_ADDED_TO_ASKED = 0.1;

/** What `Retry-After` asks for, as seconds or as a date; `undefined` where it is absent or cannot be read. */
export function askedDelayMs(header: (name: string) => string | undefined): number | undefined {
  const milliseconds = decimal(header("retry-after-ms"));
  if (milliseconds !== undefined) return milliseconds;
  const asked = header("retry-after")?.trim();
  if (asked === undefined) return undefined;
  const seconds = decimal(asked);
  if (seconds !== undefined) return seconds * 1000;
  const date = Date.parse(asked);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now(header("date")));
}

/** By the provider's own clock where it tells, since ours may be off. */
function now(date: string | undefined): number {
  const told = date === undefined ? NaN : Date.parse(date);
  return Number.isNaN(told) ? Date.now() : told;
}

function decimal(text: string | undefined): number | undefined {
  return text !== undefined && /^\s*\d+(\.\d*)?\s*$/.test(text) ? Number(text) : undefined;
}
