import { describe, expect, it } from "vitest";

import { gatewayVariables, pastProxies, withoutSecrets } from "../../src/scoring/run_environment.js";

it("tells a run where models are and as whom it asks, also to clients that read the older name", () => {
  expect(gatewayVariables("http://127.0.0.1:1/v1", "sk-1")).toEqual({
    OPENAI_BASE_URL: "http://127.0.0.1:1/v1",
    OPENAI_API_BASE: "http://127.0.0.1:1/v1",
    OPENAI_API_KEY: "sk-1",
  });
});

it("keeps the gateway's address away from proxies, and what was kept away before", () => {
  const list = (inherited: NodeJS.ProcessEnv, changed = {}) => pastProxies(inherited, changed)["NO_PROXY"];
  expect(list({})).toBe("127.0.0.1");
  expect(list({ NO_PROXY: "example.org", no_proxy: "internal" })).toBe("internal,example.org,127.0.0.1");
  expect(list({ NO_PROXY: "example.org" }, { NO_PROXY: undefined })).toBe("127.0.0.1");
  expect(pastProxies({}, {})).toEqual({ no_proxy: "127.0.0.1", NO_PROXY: "127.0.0.1" });
});

describe("what a run does not inherit", () => {
  it.each([
    "ANTHROPIC_API_KEY",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AZURE_OPENAI_APIKEY",
    "HF_TOKEN",
    "PGPASSWORD",
    "PASSWORD",
    "SSH_AUTH_SOCK",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "my_api_key",
  ])("%s", (name) => {
    expect(withoutSecrets({ [name]: "s" })).toEqual({ [name]: undefined });
  });

  it.each(["PATH", "TOKENIZERS_PARALLELISM", "KEYBOARD", "SSL_CERT_FILE", "LANG", "AUTHOR", "PASSIVE"])(
    "but %s it does",
    (name) => {
      expect(withoutSecrets({ [name]: "x" })).toEqual({});
    },
  );
});
