import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";

import type { SidecarClient } from "../../../src/cli/client.js";
import type { Progress } from "../../../src/cli/score/progress.js";
import { type RunOutcome, type RunParts, runCases } from "../../../src/cli/score/run.js";
import { CaseErrorCode, type CaseResult } from "../../../src/gen/skynet/scoring/v1/case_pb.js";
import { type ScoreResponse, ScoreResponseSchema } from "../../../src/gen/skynet/scoring/v1/score_service_pb.js";
import { NO_GAPS, failed, scored } from "./results.js";

/** What the run saw of the call that it made. */
interface Seen {
  isOver: boolean;
  hasStoppedProgress: boolean;
}

/** Runs three cases against a sidecar that answers so. */
async function run(
  answer: (signal: AbortSignal) => AsyncGenerator<CaseResult[]>,
  rest: Partial<RunParts> = {},
): Promise<RunOutcome & { seen: Seen }> {
  const seen: Seen = { isOver: false, hasStoppedProgress: false };
  async function* score(_requests: unknown, signal: AbortSignal): AsyncGenerator<ScoreResponse> {
    try {
      for await (const results of answer(signal)) yield create(ScoreResponseSchema, { results });
    } finally {
      seen.isOver = true;
    }
  }
  const client: Pick<SidecarClient, "score"> = { score };
  const progress: Progress = {
    update: () => undefined,
    writeLine: () => undefined,
    stop: () => (seen.hasStoppedProgress = true),
  };
  const outcome = await runCases({
    client,
    cases: { name: "cases.csv", requests: [], lines: [2, 3, 4], unit: "line", gaps: NO_GAPS },
    progress,
    file: undefined,
    maxErrors: undefined,
    signal: new AbortController().signal,
    ...rest,
  });
  return { ...outcome, seen };
}

async function* all(...responses: CaseResult[][]): AsyncGenerator<CaseResult[]> {
  await Promise.resolve();
  yield* responses;
}

describe("a run", () => {
  it("is complete with a result for each case, in any order", async () => {
    const { end, tally, seen } = await run(() =>
      all([scored(2, 0)], [scored(0, 1), failed(1, CaseErrorCode.INVALID_CASE)]),
    );
    expect(end).toEqual({ kind: "complete" });
    expect([tally.results, tally.errorCount]).toEqual([3, 1]);
    expect(seen).toEqual({ isOver: true, hasStoppedProgress: true });
  });

  it("stops at so many errors, and ends the call", async () => {
    const crash = (index: number): CaseResult => failed(index, CaseErrorCode.METRIC_CRASHED);
    const { end, tally, seen } = await run(() => all([crash(0)], [crash(1)], [scored(2, 1)]), { maxErrors: 2 });
    expect(end).toEqual({ kind: "too many errors" });
    expect([tally.results, seen.isOver]).toEqual([2, true]);
  });

  it("is complete where the last of so many errors is the last case", async () => {
    const { end } = await run(() => all([scored(0, 1), scored(1, 1)], [failed(2, CaseErrorCode.INVALID_CASE)]), {
      maxErrors: 1,
    });
    expect(end).toEqual({ kind: "complete" });
  });

  it("keeps what it has when it is interrupted", async () => {
    const interrupt = new AbortController();
    const { end, tally } = await run(
      async function* (signal) {
        yield [scored(1, 1)];
        interrupt.abort();
        await Promise.resolve();
        signal.throwIfAborted();
      },
      { signal: interrupt.signal },
    );
    expect(end).toEqual({ kind: "interrupted" });
    expect(tally.results).toBe(1);
  });

  it("keeps what it has when the call fails", async () => {
    const failure = new Error("the connection broke");
    const { end, tally } = await run(async function* () {
      yield [scored(1, 1)];
      await Promise.reject(failure);
    });
    expect(end).toEqual({ kind: "failed", error: failure });
    expect(tally.results).toBe(1);
  });
});

describe("a sidecar that breaks its word", () => {
  it.each([
    ["a result too few", [scored(0, 1), scored(2, 1)], "the sidecar ended the call without a result for 1 cases"],
    ["a second result", [scored(0, 1), scored(0, 1)], "the sidecar sent a second result for case 0"],
    ["a result of no case", [scored(3, 1)], "the sidecar sent a result for case 3, which was never sent"],
  ])("is told of %s", async (_what, results, message) => {
    const { end } = await run(() => all(results));
    expect(end).toMatchObject({ kind: "failed", error: { message } });
  });
});
