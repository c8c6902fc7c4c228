import { describe, expect, test } from "vitest";

import { askForUsage } from "../../src/model/stream_options.js";

describe("a caller's request", () => {
  test("is sent as it is where it does not stream, or asks for the usage itself", () => {
    const plain = '{"model": "m", "seed": 9007199254740993}';
    expect(askForUsage(plain)).toEqual({ body: plain, model: "m", isStream: false, isUsageWanted: false });
    const asking = '{"stream": true, "stream_options": {"include_usage": true}}';
    expect(askForUsage(asking)).toEqual({ body: asking, model: "", isStream: true, isUsageWanted: true });
  });

  test("that streams asks for the usage, and keeps all else to the digit", () => {
    const metered = askForUsage(' {"model":"m","stream":true,"seed":9007199254740993,"top_p":1.0}');
    expect(metered).toMatchObject({ model: "m", isStream: true, isUsageWanted: false });
    expect(metered?.body).toBe(
      ' {"stream_options":{"include_usage":true},"model":"m","stream":true,"seed":9007199254740993,"top_p":1.0}',
    );
  });

  test.each(['{"include_usage": false, "x": 1}', "null"])("with stream_options %s keeps the others", (options) => {
    const body = askForUsage(`{"stream": true, "stream_options": ${options}, "model": "m"}`)?.body ?? "";
    const expected = { ...(JSON.parse(options) as object | null), include_usage: true };
    expect(JSON.parse(body)).toEqual({ stream: true, stream_options: expected, model: "m" });
  });

  test.each(["", "[]", "null", '"text"', "{"])("that is no object is none: %j", (body) => {
    expect(askForUsage(body)).toBeUndefined();
  });
});
