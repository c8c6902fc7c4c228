import { beforeEach, describe, expect, it } from "vitest";

import type { Call, Pending } from "../../src/scoring/call.js";
import { Turns } from "../../src/scoring/turns.js";

/** What `Turns` looks at of a call. */
class FakeCall {
  readonly queue: Pending[] = [];
  mayRun = true;
  isOver = false;

  constructor(
    readonly name: string,
    cases: number,
  ) {
    for (let place = 0; place < cases; place++) this.queue.push(pending(`${name}${place}`));
  }
}

function pending(id: string): Pending {
  const item = { id, index: 0, input: undefined, output: undefined, expected: undefined, observationId: "" };
  return { item, bytes: 0, arrivedAt: 0, lostStarts: 0, output: undefined, observed: undefined, isRun: false };
}

const asCall = (call: FakeCall): Call => call as unknown as Call;
const nameOf = (call: Call | undefined): string | undefined => (call as unknown as FakeCall | undefined)?.name;
let turns: Turns;

beforeEach(() => {
  turns = new Turns((call) => call.queue);
});

describe("turns", () => {
  it("go round, one call after the other", () => {
    const [a, b] = [new FakeCall("a", 3), new FakeCall("b", 1)];
    turns.join(asCall(a));
    turns.join(asCall(b));
    const order: (string | undefined)[] = [];
    for (let call = turns.next(); call !== undefined; call = turns.next()) {
      order.push(nameOf(call));
      call.queue.shift();
      turns.join(call);
    }
    expect(order).toEqual(["a", "b", "a", "a"]);
  });

  it("are taken once by each call, and not by one that has nothing waiting", () => {
    const [a, empty] = [new FakeCall("a", 2), new FakeCall("empty", 0)];
    turns.join(asCall(a));
    turns.join(asCall(a));
    turns.join(asCall(empty));
    expect(turns.cases).toBe(2);
    expect([nameOf(turns.next()), turns.next()]).toEqual(["a", undefined]);
  });

  it("pass over a call whose consumer does not keep up, which keeps its place", () => {
    const [a, b] = [new FakeCall("a", 1), new FakeCall("b", 1)];
    turns.join(asCall(a));
    turns.join(asCall(b));
    a.mayRun = false;
    expect(nameOf(turns.next())).toBe("b");
    expect(turns.next()).toBeUndefined();
    a.mayRun = true;
    expect(nameOf(turns.next())).toBe("a");
  });

  it("begin with what came back, in its order, unless the call is over", () => {
    const [a, b] = [new FakeCall("a", 1), new FakeCall("b", 1)];
    turns.join(asCall(a));
    turns.giveBack(asCall(b), [pending("x"), pending("y")]);
    expect(b.queue.map(({ item }) => item.id)).toEqual(["x", "y", "b0"]);
    expect(nameOf(turns.next())).toBe("b");
    a.isOver = true;
    turns.giveBack(asCall(a), [pending("z")]);
    expect(a.queue).toHaveLength(1);
  });

  it("end for a call that leaves, with what it had waiting", () => {
    const [a, b] = [new FakeCall("a", 2), new FakeCall("b", 1)];
    turns.join(asCall(a));
    turns.join(asCall(b));
    turns.leave(asCall(a));
    expect([a.queue.length, turns.cases, nameOf(turns.next())]).toEqual([0, 1, "b"]);
  });

  it("give every waiting case out at once where nobody can serve them", () => {
    const [a, b] = [new FakeCall("a", 2), new FakeCall("b", 1)];
    turns.join(asCall(a));
    turns.join(asCall(b));
    b.mayRun = false;
    const drained = [...turns.drain()].map(([call, { item }]) => [nameOf(call), item.id]);
    expect(drained).toEqual([
      ["a", "a0"],
      ["a", "a1"],
      ["b", "b0"],
    ]);
    expect([turns.cases, turns.next()]).toEqual([0, undefined]);
  });
});
