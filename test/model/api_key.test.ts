import { inspect } from "node:util";
import { describe, expect, test } from "vitest";

import { ApiKey } from "../../src/model/api_key.js";

const SECRET = "sk-very-secret-1";

describe("the key", () => {
  test("is taken out of the environment, so that nothing started later has it", () => {
    const environment = { MY_KEY: ` ${SECRET}\n`, OTHER: "1" };
    const key = ApiKey.take("MY_KEY", environment);
    expect(environment).toEqual({ OTHER: "1" });
    expect(key.headers()).toEqual({ authorization: `Bearer ${SECRET}` });
  });

  test("cannot be seen where the object is shown", () => {
    const key = ApiKey.take("MY_KEY", { MY_KEY: SECRET });
    const shown = [
      inspect(key, { showHidden: true, depth: 9 }),
      JSON.stringify({ key }),
      String(key),
      Object.values(key).join(),
    ];
    expect(shown.join("\n")).not.toContain("secret");
    expect(shown[0]).toBe("[key from MY_KEY]");
  });

  test.each([undefined, "", "  "])("that is %j is none: calls carry no header", (value) => {
    const key = ApiKey.take("MY_KEY", value === undefined ? {} : { MY_KEY: value });
    expect([key.isSet, key.headers()]).toEqual([false, {}]);
  });

  test.each(["two words", "line\nend", "naïve"])(
    "that no header can hold is refused without being shown: %j",
    (value) => {
      const take = () => ApiKey.take("MY_KEY", { MY_KEY: value });
      expect(take).toThrow(/^the key in MY_KEY has characters that no key has/);
      expect(take).not.toThrow(value);
    },
  );

  test("is taken out of texts; a short word is no secret", () => {
    expect(ApiKey.take("K", { K: SECRET }).redact(`bad key ${SECRET}!`)).toBe("bad key [key]!");
    expect(ApiKey.take("K", { K: "none" }).redact("none such")).toBe("none such");
  });
});
