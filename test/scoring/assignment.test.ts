import { getMaxListeners } from "node:events";
import { expect, it } from "vitest";

import { Assignment } from "../../src/scoring/assignment.js";
import type { Call } from "../../src/scoring/call.js";

it("takes any number of model calls of one case for no leak", () => {
  const assignment = new Assignment({} as Call, [], 1, 0);
  expect(getMaxListeners(assignment.beginModelCall().signal)).toBe(0);
});
