import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { ModelServer } from "./server.js";
import { NAMED_STEPS } from "./step.js";

const server = new ModelServer();
beforeEach(async () => {
  server.script({});
  await server.listen();
});
afterEach(() => server.close());

interface Completion {
  readonly choices: readonly { readonly message: { readonly content: string } }[];
}

function post(body: object, headers: Readonly<Record<string, string>> = {}, url = server.url): Promise<Response> {
  return fetch(`${url}/chat/completions`, { method: "POST", body: JSON.stringify(body), headers });
}

async function textOf(response: Promise<Response>): Promise<string | undefined> {
  return ((await (await response).json()) as Completion).choices[0]?.message.content;
}

const chat = (text: string, model = "m") => ({ model, messages: [{ role: "user", content: text }] });

describe("the scripted model server", () => {
  test("takes the queue first, then the first rule that matches, then what the script says otherwise", async () => {
    const answer = (text: string) => ({ kind: "answer", text }) as const;
    server.script({
      queue: [answer("queued")],
      rules: [
        { contains: "cat", steps: [answer("first cat"), answer("later cat")] },
        { model: "special", steps: [answer("special")] },
      ],
      otherwise: answer("otherwise"),
    });
    const texts: (string | undefined)[] = [];
    for (const body of [
      chat("cat"),
      chat("cat"),
      chat("cat"),
      chat("cat", "special"),
      chat("dog", "special"),
      chat("dog"),
    ]) {
      texts.push(await textOf(post(body)));
    }
    expect(texts).toEqual(["queued", "first cat", "later cat", "later cat", "special", "otherwise"]);
  });

  test("takes a step from a request's header, by name or as JSON", async () => {
    expect((await post(chat("a"), { "x-model-server-step": "step-server-error" })).status).toBe(500);
    const step = JSON.stringify({ kind: "answer", text: "from the header" });
    expect(await textOf(post(chat("a"), { "x-model-server-step": step }))).toBe("from the header");
    expect((await post(chat("a"), { "x-model-server-step": "unheard of" })).status).toBe(400);
  });

  test("streams, with the usage where it was asked for", async () => {
    const stream = async (options: object) => (await post({ ...chat("a"), stream: true, ...options })).text();
    const asked = await stream({ stream_options: { include_usage: true } });
    expect(asked.split("\n\n").slice(-3)[0]).toMatch(/"choices":\[\],"usage":\{"prompt_tokens":1,/);
    expect(asked).toMatch(/data: \[DONE\]\n\n$/);
    expect(await stream({})).not.toContain("usage");
  });

  test("lists its models", async () => {
    const models = (await (await fetch(`${server.url}/models`)).json()) as { data: { id: string }[] };
    expect(models.data.map(({ id }) => id)).toEqual(["gpt-4o-mini"]);
  });

  test.each(["step-reset", "step-cut"])("%s breaks the connection", async (step) => {
    await expect(post(chat("a", step)).then((response) => response.text())).rejects.toThrow();
  });

  test("every named step that answers does so", async () => {
    const statuses = await Promise.all(
      Object.keys(NAMED_STEPS)
        .filter((name) => !["step-hang", "step-reset", "step-cut"].includes(name))
        .map(async (name) => `${name} ${(await post({ ...chat("a", name), temperature: 1 })).status}`),
    );
    expect(statuses.filter((status) => !status.endsWith(" 200"))).toEqual([
      "step-rate-limited 429",
      "step-insufficient-quota 429",
      "step-server-error 500",
      "step-no-temperature 400",
    ]);
  });
});

test("it runs as a program, with a script from a file, and tells what it was asked", async () => {
  const folder = mkdtempSync(join(tmpdir(), "skynet-model-server-"));
  const script = join(folder, "script.json");
  writeFileSync(script, JSON.stringify({ otherwise: { kind: "answer", text: "from the file" } }));
  const program = fileURLToPath(new URL("run.mjs", import.meta.url));
  const args = [program, "--script", script, "--stop-with-stdin"];
  const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
  try {
    const [line] = (await once(child.stdout, "data")) as [Buffer];
    const { url } = JSON.parse(line.toString()) as { url: string };
    expect(await textOf(post(chat("hello"), {}, url))).toBe("from the file");
    const control = url.replace("/v1", "/control");
    const requests = (await (await fetch(`${control}/requests`)).json()) as { body: string }[];
    expect(requests.map(({ body }) => JSON.parse(body) as unknown)).toEqual([chat("hello")]);
    const body = JSON.stringify({ otherwise: { kind: "answer", text: "from the control" } });
    await fetch(`${control}/script`, { method: "PUT", body });
    expect(await textOf(post(chat("hello"), {}, url))).toBe("from the control");
    const ended = once(child, "exit");
    child.stdin.end();
    expect(await ended).toEqual([0, null]);
  } finally {
    child.kill();
    rmSync(folder, { recursive: true });
  }
});
