import fc from "fast-check";
import { describe, expect, test } from "vitest";

import { StreamUsage } from "../../src/model/stream_usage.js";
import { completionEvents } from "../model_server/completion.js";

const usage = { prompt: 2006, cached: 1920, completion: 300, reasoning: 8 };
const request = { model: "gpt-4o-mini", messages: [], stream: true, stream_options: { include_usage: true } };
const step = { kind: "answer", text: 'He said "usage":{ and left. 🙂', usage } as const;
const EVENTS = completionEvents(request, step);
const STREAM = EVENTS.join("");
/** All events but that with the usage, the last but one. */
const WITHOUT_USAGE = EVENTS.filter((_, place) => place !== EVENTS.length - 2).join("");

function pass(stream: string, isUsageWanted: boolean, size = 7) {
  const tap = new StreamUsage(isUsageWanted);
  const bytes = Buffer.from(stream);
  const passed: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += size) passed.push(...tap.push(bytes.subarray(at, at + size)));
  passed.push(...tap.end());
  return { tap, text: Buffer.concat(passed).toString() };
}

const TOKENS = { promptTokens: 2006, cachedPromptTokens: 1920, completionTokens: 300, reasoningTokens: 8 };

describe("a stream on its way", () => {
  test("passes unchanged where the caller asked for the usage, and each chunk at once", () => {
    const { tap, text } = pass(STREAM, true);
    expect(text).toBe(STREAM);
    expect(tap.charge()).toMatchObject({ usage: { tokens: TOKENS }, answeredBy: "gpt-4o-mini" });
    const half = Buffer.from("data: {");
    expect(new StreamUsage(true).push(half)).toEqual([half]);
  });

  test("passes without the event for the usage alone where the caller did not ask", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: STREAM.length }), fc.constantFrom("\n", "\r\n", "\r"), (size, lineEnd) => {
        const end = (text: string) => text.replaceAll("\n", lineEnd);
        const { tap, text } = pass(end(STREAM), false, size);
        expect(text).toBe(end(WITHOUT_USAGE));
        expect(tap.charge().usage.tokens).toMatchObject(TOKENS);
      }),
    );
  });

  test("keeps an event that has the usage beside a choice", () => {
    const stream =
      'data: {"model":"m","choices":[{"delta":{"content":"x"}}],"usage":{"prompt_tokens":1,"completion_tokens":2}}\n\n';
    const { tap, text } = pass(stream, false);
    expect(text).toBe(stream);
    expect(tap.charge().usage.tokens).toMatchObject({ promptTokens: 1, completionTokens: 2 });
  });

  test("takes the last usage of several, which count up", () => {
    const event = (count: number) =>
      `data: {"model":"m","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":${count}}}\n\n`;
    expect(pass(event(1) + event(2), true).tap.charge().usage.tokens?.completionTokens).toBe(2);
  });

  test("leaves the usage out where the stream ends without the last blank line", () => {
    const stream = 'data: {"model":"m","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}';
    const { tap, text } = pass(stream, false);
    expect(text).toBe("");
    expect(tap.charge().usage.tokens?.promptTokens).toBe(1);
  });

  test("that is cut off has no usage, says so, and passes what came", () => {
    const half = STREAM.slice(0, STREAM.length / 2);
    const { tap, text } = pass(half, false);
    expect(text).toBe(half);
    expect(tap.charge().usage).toEqual({ tokens: undefined, reason: "the answer has no usage" });
  });

  test("tells of an error among its events", () => {
    const { tap, text } = pass('data: {"model":"m","choices":[]}\n\ndata: {"error":{"message":"upstream"}}\n\n', false);
    expect(tap.error).toEqual({ message: "upstream" });
    expect(text).toContain("upstream");
  });
});
