import { expect, it, vi } from "vitest";

import { Assignment } from "../../src/scoring/assignment.js";
import { Call } from "../../src/scoring/call.js";

it("takes any number of model calls of one case for no leak", () => {
  const warned = vi.spyOn(process, "emitWarning").mockImplementation(() => undefined);
  const assignment = new Assignment(Object.create(Call.prototype) as Call, [], 1, 0);
  for (let call = 0; call < 20; call++) assignment.beginModelCall().signal.addEventListener("abort", vi.fn());
  expect(warned).not.toHaveBeenCalled();
  warned.mockRestore();
});
