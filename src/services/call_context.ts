/** What a service sees of the call that it serves, whatever the transport. */
export interface CallContext {
  /** Aborted when the client cancels, goes away or runs past its deadline, and when a drain ends. A service then ends soon. */
  readonly signal: AbortSignal;

  /** Sends the response's headers, with the fingerprint of the metric that serves the call. Before the first response. */
  sendFingerprint(fingerprint: string): void;
}

/** The header's name. */
export const FINGERPRINT_HEADER = "skynet-metric-fingerprint";
