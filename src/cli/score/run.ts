import { performance } from "node:perf_hooks";

import { CaseErrorCode, type CaseResult } from "../../gen/skynet/scoring/v1/case_pb.js";
import type { CaseSet } from "../cases/read_cases.js";
import type { SidecarClient } from "../client.js";
import { CommandError } from "../exit.js";
import type { Progress } from "./progress.js";
import type { ResultsFile } from "./results_file.js";
import { Tally } from "./tally.js";

/** How a run ended; the first reason wins. */
export type RunEnd =
  | { readonly kind: "complete" }
  | { readonly kind: "too many errors" }
  | { readonly kind: "interrupted" }
  | { readonly kind: "failed"; readonly error: Error };

export interface RunOutcome {
  readonly tally: Tally;
  readonly end: RunEnd;
  /** From the first case sent to the last result. */
  readonly scoringMs: number;
}

export interface RunParts {
  readonly client: Pick<SidecarClient, "score">;
  readonly cases: CaseSet;
  readonly progress: Progress;
  readonly file: ResultsFile | undefined;
  readonly maxErrors: number | undefined;
  /** Aborted: the user wants the run to end. */
  readonly signal: AbortSignal;
}

/** Sends every case and takes every result. Never throws: what went wrong is how the run ended, beside what it has. */
export async function runCases(parts: RunParts): Promise<RunOutcome> {
  const { client, cases, progress, file, maxErrors, signal } = parts;
  const tally = new Tally();
  const expected = new Expected(cases.lines.length);
  const stop = new AbortController();
  const interrupt = (): void => {
    stop.abort();
  };
  signal.addEventListener("abort", interrupt, { once: true });
  if (signal.aborted) stop.abort();
  const beganAt = performance.now();
  let lastAt = beganAt;
  let end: RunEnd = { kind: "complete" };
  try {
    for await (const { results } of client.score(cases.requests, stop.signal)) {
      lastAt = performance.now();
      for (const result of results) {
        expected.take(result);
        inWordsOfOptions(result, cases);
        tally.add(result);
      }
      progress.update(tally);
      await file?.add(results);
      if (maxErrors !== undefined && tally.errorCount >= maxErrors && tally.results < cases.lines.length) {
        end = { kind: "too many errors" };
        break;
      }
    }
    if (end.kind === "complete") expected.checkComplete();
  } catch (error) {
    end = signal.aborted ? { kind: "interrupted" } : { kind: "failed", error: toError(error) };
  } finally {
    signal.removeEventListener("abort", interrupt);
    progress.stop();
  }
  try {
    await file?.close();
  } catch (error) {
    if (end.kind !== "failed") end = { kind: "failed", error: toError(error) };
  }
  return { tally, end, scoringMs: lastAt - beganAt };
}

/** The sidecar tells of a case without an output what a request should have had; who wrote the file named a column. */
function inWordsOfOptions({ outcome, index }: CaseResult, { gaps }: CaseSet): void {
  if (outcome.case !== "error" || outcome.value.code !== CaseErrorCode.INVALID_CASE) return;
  outcome.value.message = gaps.whyNoOutput(index) ?? outcome.value.message;
}

/** Holds the sidecar to its word: each case has exactly one result. */
class Expected {
  readonly #has: Uint8Array;
  #missing: number;

  constructor(count: number) {
    this.#has = new Uint8Array(count);
    this.#missing = count;
  }

  take({ index }: CaseResult): void {
    const has = this.#has[index];
    if (has === undefined)
      throw new CommandError(`the sidecar sent a result for case ${String(index)}, which was never sent`);
    if (has === 1) throw new CommandError(`the sidecar sent a second result for case ${String(index)}`);
    this.#has[index] = 1;
    this.#missing -= 1;
  }

  checkComplete(): void {
    if (this.#missing > 0)
      throw new CommandError(`the sidecar ended the call without a result for ${String(this.#missing)} cases`);
  }
}

function toError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
