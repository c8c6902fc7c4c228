import { describe, expect, test } from "vitest";

import { refusedParameter } from "../../src/model/refused_parameters.js";

const SENT = ["temperature", "max_tokens", "response_format"] as const;
const error = (fields: object) => JSON.stringify({ error: fields });

describe("a parameter that the model does not support", () => {
  test.each([
    [
      "OpenAI's value",
      error({
        message:
          "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported.",
        param: "temperature",
        code: "unsupported_value",
      }),
      "temperature",
    ],
    [
      "OpenAI's parameter, with another one proposed",
      error({
        message:
          "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        param: "max_tokens",
        code: "unsupported_parameter",
      }),
      "max_tokens",
    ],
    ["a part of one", error({ message: "not supported", param: "response_format.type" }), "response_format"],
    ["named in the message alone", error({ message: "`temperature` is deprecated for this model." }), "temperature"],
    ["with a curly apostrophe", error({ message: "This model doesn’t support response_format" }), "response_format"],
    ["in a validator's words", JSON.stringify({ detail: "Extra inputs are not permitted: max_tokens" }), "max_tokens"],
    ["an error that is a text", JSON.stringify({ error: "unknown parameter temperature" }), "temperature"],
    ["a wrong value", error({ message: "'temperature' must be at most 2", param: "temperature" }), undefined],
    ["a broken schema", error({ message: "Invalid schema for response_format", param: "response_format" }), undefined],
    [
      "something else",
      error({ message: "Images are not supported by this model, whatever the temperature", param: "messages" }),
      undefined,
    ],
    ["one that was not sent", error({ message: "top_p is not supported", param: "top_p" }), undefined],
    ["a longer name", error({ message: "my_temperature_x is not supported" }), undefined],
  ])("%s", (_, body, expected) => {
    expect(refusedParameter(400, body, SENT)).toBe(expected);
  });

  test("counts with status 400 or 422 only, and where it was sent", () => {
    const body = error({ message: "temperature is not supported", param: "temperature" });
    expect(refusedParameter(422, body, SENT)).toBe("temperature");
    expect(refusedParameter(500, body, SENT)).toBeUndefined();
    expect(refusedParameter(400, body, ["max_tokens"])).toBeUndefined();
  });
});
