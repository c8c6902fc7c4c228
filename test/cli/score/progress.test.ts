import { describe, expect, it } from "vitest";

import { progressLine } from "../../../src/cli/score/progress.js";
import { Tally } from "../../../src/cli/score/tally.js";
import { CaseErrorCode } from "../../../src/gen/skynet/scoring/v1/case_pb.js";
import { failed, judged, observed, scored } from "./results.js";

const RATE = { perSecond: () => 1234.4 };

function tally(): Tally {
  const some = new Tally();
  some.add(scored(0, 0.5));
  some.add(failed(1, CaseErrorCode.INVALID_CASE));
  return some;
}

describe("the line", () => {
  it("says how many are done, how fast, the mean and the errors", () => {
    expect(progressLine(tally(), 4000, RATE, 200)).toBe(
      `${"░".repeat(40)} 2/4,000  1,234 cases/s  mean 0.5000  1 error`,
    );
    expect(progressLine(tally(), 4, RATE, 200)).toContain(`${"█".repeat(20)}${"░".repeat(20)} 2/4 `);
  });

  it("has no mean before the first score", () => {
    expect(progressLine(undefined, 4, RATE, 200)).toContain("0/4  1,234 cases/s  mean –  0 errors");
  });

  it("fits any terminal, with a bar where there is room", () => {
    for (let width = 1; width < 120; width += 1) {
      const line = progressLine(tally(), 4000, RATE, width);
      expect(line.length).toBeLessThan(Math.max(width, 2));
    }
    expect(progressLine(tally(), 4000, RATE, 60)).toMatch(/^░+ 2\/4,000/);
    expect(progressLine(tally(), 4000, RATE, 20)).toBe("2/4,000  1,234/s  …");
  });

  it("tells the median run and what runs and the judge cost, apart, in as many words as there is room for", () => {
    const line = (width: number): string => progressLine(measured(), 4000, RATE, width);
    const numbers = "4/4,000  1,234 cases/s  mean 0.8750  0 errors";
    expect(line(200)).toBe(`${"░".repeat(40)} ${numbers}  run 312 ms  runs $0.0124  judge ≥$0.0312`);
    expect(line(100)).toBe(`${"░".repeat(11)} ${numbers}  run 312 ms  runs $0.0124  judge ≥$0.0312`);
    expect(line(80)).toBe("4/4,000  1,234/s  mean 0.8750  0 errors  run 312 ms $0.0124  judge ≥$0.0312");
  });

  it("does not call unknown what costs nothing, nor nothing what is unknown", () => {
    const some = new Tally();
    some.add(observed(0, { runMs: 1.25, costUsd: 0 }));
    some.add(judged(1, { calls: 1 }));
    expect(progressLine(some, 4, RATE, 200)).toMatch(/0 errors {2}run 1\.3 ms {2}judge \$\?$/);
    some.add(judged(2, { calls: 1, costUsd: 0.00004 }));
    expect(progressLine(some, 4, RATE, 200)).toMatch(/judge ≥\$0\.00004$/);
  });
});

function measured(): Tally {
  const some = new Tally();
  some.add(observed(0, { runMs: 311.7, costUsd: 0.0124, usage: { calls: 1 } }));
  some.add(judged(1, { calls: 1, costUsd: 0.0312 }));
  some.add(judged(2, { calls: 1 }));
  some.add(scored(3, 0.5));
  return some;
}
