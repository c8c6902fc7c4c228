import { describe, expect, test } from "vitest";
import { encodeMessage, parseMessage, type ToPython } from "../../src/worker/messages.js";
import { payload, vectors } from "./vectors.js";

const TO_PYTHON = new Set(["configure", "environment", "model_answer", "start", "signal", "stop"]);

describe("vectors", () => {
  const all = vectors("message");

  test.each(all.filter(({ message }) => TO_PYTHON.has(String(message["type"]))))("writes $name", ({ message, hex }) => {
    expect(encodeMessage(message as ToPython).toString("hex")).toBe(hex);
  });

  test.each(all.filter(({ message }) => !TO_PYTHON.has(String(message["type"]))))("reads $name", ({ message, hex }) => {
    expect(parseMessage(payload(hex))).toEqual(message);
  });
});

test.each([
  ["not JSON", "nonsense", /^a message is not JSON: "nonsense"$/],
  ["no type", "{}", /^a message is not as agreed at type: .*: "\{\}"$/],
  ["an unknown type", '{"type":"dance"}', /^a message is not as agreed at type: /],
  ["a field of another kind", '{"type":"started","worker":"1","pid":2}', /^a message is not as agreed at worker: /],
  ["a missing field", '{"type":"ended","worker":1,"pid":2,"signal":9}', /^a message is not as agreed at exit_code: /],
])("%s is an error that says where", (_, text, message) => {
  expect(() => parseMessage(Buffer.from(text))).toThrow(message);
});

test("a message that is too long to show is cut", () => {
  expect(() => parseMessage(Buffer.from("x".repeat(10_000)))).toThrow(/^a message is not JSON: "x{200}"$/);
});
