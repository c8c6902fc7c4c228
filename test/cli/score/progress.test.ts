import { describe, expect, it } from "vitest";

import { progressLine } from "../../../src/cli/score/progress.js";
import { Tally } from "../../../src/cli/score/tally.js";
import { CaseErrorCode } from "../../../src/gen/skynet/scoring/v1/case_pb.js";
import { failed, scored } from "./results.js";

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
    expect(progressLine(tally(), 4000, RATE, 20)).toBe("2/4,000  1,234 cas…");
  });
});
