import { readFileSync } from "node:fs";
import { beforeAll, describe, expect } from "vitest";

import { json, plain, tally } from "./cases.js";
import { runCommand } from "./command.js";
import { observationOf, outputOf, runFixture, runMsOf, runOf, TOLD_RUNS } from "./run_cases.js";
import { fixture, test, type Workspace } from "./scenario.js";
import { ModelServer } from "../model_server/server.js";

const KEY = "sk-the-provider-s-own-key-0123456789";
const EXPECTED = "the-expected-value-0123456789";
const SOURCE_MARK = "a_line_of_the_metric_0123456789";
const METRIC_FOLDER = "where_the_metric_is_0123456789";
const MEASURED = fixture("tells_what_was_measured.py");

let provider: ModelServer;
beforeAll(async () => {
  provider = new ModelServer();
  await provider.listen();
  return () => provider.close();
});

/** With a key, under a name of its own and under the usual one. */
function models(): { readonly args: readonly string[]; readonly env: Readonly<Record<string, string>> } {
  const args = ["--model-base-url", provider.url, "--metric-model", "gpt-4o-mini", "--model-api-key-env", "MY_KEY"];
  return { args, env: { MY_KEY: KEY, OPENAI_API_KEY: "" } };
}

function secretMetric(workspace: Workspace): string {
  const source = `def score(input, output, expected):\n    ${SOURCE_MARK} = expected["label"]\n    return 1.0, {"feedback": ${SOURCE_MARK}}\n`;
  return workspace.write(`${METRIC_FOLDER}/metric.py`, source);
}

/** The places, by their headings, where a text stands in what run code has read. */
function placesOf(text: string, read: string): string[] {
  const sections = read.split(/\n=== (.+) ===\n/);
  return sections.filter((_, at) => at % 2 === 1 && sections[at + 1]?.includes(text) === true);
}

describe.runIf(process.platform === "linux")("run code that looks around", () => {
  test("finds no key, expected value, metric or token of others, below a sidecar", async ({ start, workspace }) => {
    const { args, env } = models();
    const options = [...args, "--run", runFixture("looks_around.py")];
    const sidecar = await start({ metric: secretMetric(workspace), args: options, env });
    const engine = sidecar.client.observe();
    const began = await engine.begin();
    const dump = `${workspace.path}/dump`;

    const [result] = await sidecar.client.score(
      [{ input: json({ of: "input-of-the-run" }), expected: json({ label: EXPECTED }) }],
      { artifact: json(dump) },
    );

    expect(result && plain(result)).toMatchObject({ score: { feedback: EXPECTED } });
    const read = readFileSync(dump, "latin1");
    // It has looked everywhere, and what it may know it has found.
    expect(outputOf(result)).toEqual(
      expect.arrayContaining(["environment", "/proc/self/environ", "cmdline of parent 2", "environ of parent 2"]),
    );
    expect(placesOf("sk-skynet-", read)).toContain("environment");
    expect(placesOf("input-of-the-run", read).some((place) => place.startsWith("memory"))).toBe(true);
    for (const secret of [KEY, EXPECTED, SOURCE_MARK, METRIC_FOLDER, began.gatewayToken]) {
      expect([secret, placesOf(secret, read)]).toEqual([secret, []]);
    }
    await engine.end();
  });

  test("finds none below the command either, and does not learn where that was started", async ({ workspace }) => {
    const { args, env } = models();
    const metric = secretMetric(workspace);
    workspace.write(`${METRIC_FOLDER}/cases.csv`, `of,label\ninput,${EXPECTED}\n`);
    const dump = workspace.path + "/dump";
    workspace.write(`${METRIC_FOLDER}/artifact.txt`, dump);
    const cwd = `${workspace.path}/${METRIC_FOLDER}`;
    const cases = ["--cases", "cases.csv", "--output-columns", "label", "--artifact", `${cwd}/artifact.txt`];
    const run = ["--metric", metric, "--run", runFixture("looks_around.py")];

    const outcome = await runCommand(["score", ...run, ...cases, ...args], {
      cwd,
      env: { ...env, PWD: cwd, OLDPWD: cwd },
    });

    expect(outcome).toMatchObject({ code: 0, stderr: "" });
    const read = readFileSync(dump, "latin1");
    for (const secret of [KEY, EXPECTED, SOURCE_MARK]) expect([secret, placesOf(secret, read)]).toEqual([secret, []]);
    expect(placesOf("OLDPWD", read)).toContain("environ of parent 3");
    // The sidecar and the command keep in their environments what their shell told them; only those have it.
    const told = placesOf(METRIC_FOLDER, read).filter((place) => !place.startsWith("memory"));
    expect(told.filter((place) => !/^environ of parent [23]$/.test(place))).toEqual([]);
  });
});

describe("what run code does to itself changes nothing that is measured", () => {
  const PATCHES = `import time
sleep = time.sleep
for name in ("time", "perf_counter", "monotonic", "process_time", "thread_time"):
    setattr(time, name, lambda: 0.0)
    setattr(time, name + "_ns", lambda: 0)
`;

  test.for([
    ["before it sleeps", `${PATCHES}sleep(0.3)\noutput = 1`],
    [
      "in the worker's own modules",
      `${PATCHES}import sys\nfor module in list(sys.modules.values()):\n    for name in ("time", "monotonic", "monotonic_ns", "perf_counter"):\n        if hasattr(module, name):\n            try: setattr(module, name, lambda: 0)\n            except Exception: pass\nsleep(0.3)\noutput = 1`,
    ],
    [
      "in the worker's objects",
      `${PATCHES}import gc\nfor found in gc.get_objects():\n    if type(found).__name__ == "RunWorker":\n        found._clock = lambda: 0\n        found._usage = type("U", (), {"start": lambda s: 0, "read": lambda s: (0, 0)})()\nsleep(0.3)\noutput = 1`,
    ],
  ] as const)("clocks that it patches %s", async ([, code], { start }) => {
    const { client } = await start({ metric: MEASURED, args: TOLD_RUNS });

    const results = await client.score([runOf(code), runOf("import time; time.sleep(0.3); output = 1")], {
      artifact: json(""),
    });

    expect(Object.keys(tally(results.slice(0, 1)))).toEqual([expect.stringMatching(/^(SCORE|RUN_CRASHED)$/)]);
    expect(tally(results.slice(1))).toEqual({ SCORE: 1 });
    for (const result of results) expect(runMsOf(result)).toBeGreaterThanOrEqual(300);
  });

  test("an environment that it edits, and answers that it caches", async ({ start }) => {
    const code = `import builtins, json, os, sys
seen = [name in os.environ for name in ("ANSWER", "LD_PRELOAD")] + [hasattr(builtins, "ANSWER"), "answers" in sys.modules, os.path.exists("answer")]
seen.append(os.environ["OPENAI_BASE_URL"].startswith("http://127.0.0.1:"))
seen.append(len(run_cache) if (run_cache := getattr(json, "cache", None)) else 0)
os.environ.update(ANSWER="1", LD_PRELOAD="/nothing.so", OPENAI_BASE_URL="http://192.0.2.1/v1", OPENAI_API_KEY="stolen")
builtins.ANSWER = 1
sys.modules["answers"] = sys
json.cache = {"answer": 1}
open("answer", "w").close()
import tempfile
open(os.path.join(tempfile.gettempdir(), "answer"), "w").close()
output = seen`;
    const { client } = await start({ metric: MEASURED, args: [...TOLD_RUNS, "--max-runs", "1"] });

    const results = await client.score(
      Array.from({ length: 4 }, () => runOf(code)),
      { artifact: json("") },
    );

    expect(results.map(outputOf)).toEqual(Array(4).fill([false, false, false, false, false, true, 0]));
  });
});

describe("frames that run code forges", () => {
  /** Rows that say: the output is "forged", and the run took no time; a score of 99; messages of all kinds. */
  const FORGE = `import json, os, struct
from skynet._worker.frames import ROWS, MESSAGE, CHUNK, encode_frame
from skynet._worker.rows import ROWS_HEAD, encode_row
def rows(kind, value, text):
    row = encode_row(0, kind, value, 0.0, (text, b"", b""))
    return encode_frame(ROWS, ROWS_HEAD.pack(1, 1, True, 0, 0, 0), row)
def message(**fields):
    return encode_frame(MESSAGE, json.dumps(fields).encode())
def everywhere(data):
    for name in os.listdir("/proc/self/fd"):
        try:
            os.set_blocking(int(name), False)
            os.write(int(name), data)
        except OSError:
            pass
`;

  test.for([
    ["a score", "rows(0, 99.0, b'forged')"],
    ["an error", "rows(2, 0.0, b'forged')"],
    ["an output that is not JSON", "rows(4, 0.0, b'{forged')"],
    [
      "a model call",
      "message(type='model_call', call=1, chunk=1, case=0, messages=[], model=None, temperature=None, max_tokens=None, response_format=None, timeout_ms=None)",
    ],
    ["the end of another worker", "message(type='ended', worker=1, pid=1, exit_code=0, signal=None)"],
    ["a second greeting", "message(type='hello', role='worker', worker=1, pid=1, python='3', clock_ns=0)"],
    ["that it is ready again", "message(type='ready')"],
    ["no frame", "b'\\xff' * 64"],
    ["half a frame", "rows(4, 0.0, b'1')[:-1]"],
  ] as const)("%s: one case ends in a RUN_ code, or in its own output", async ([, forged], { start }) => {
    const { client } = await start({ metric: MEASURED, args: TOLD_RUNS });
    const forger = runOf(`${FORGE}everywhere(${forged})\nimport time; time.sleep(0.2)\noutput = "own"`);
    const honest = runOf("import time; time.sleep(0.1); output = 'honest'");

    const results = await client.score([honest, forger, honest], { artifact: json("") });

    const [before, result, after] = results;
    for (const other of [before, after]) {
      expect(outputOf(other)).toBe("honest");
      expect(runMsOf(other)).toBeGreaterThanOrEqual(100);
    }
    if (result?.outcome.case === "score") {
      expect(outputOf(result)).toBe("own");
      expect(runMsOf(result)).toBeGreaterThanOrEqual(200);
    } else {
      expect(Object.keys(tally(result === undefined ? [] : [result]))).toEqual([expect.stringMatching(/^RUN_/)]);
    }
    expect((await client.score([runOf("output = 1")], { artifact: json("") })).map(outputOf)).toEqual([1]);
  });

  test("in the name of other workers, over connections of its own, change no other case", async ({ start }) => {
    const { client } = await start({ metric: MEASURED, args: [...TOLD_RUNS, "--max-runs", "3"] });
    const imposter = runOf(`${FORGE}import glob, socket, threading, time
folder = open("/proc/self/cmdline").read().split("\\0")[4]
def serve(connection):
    """Says of whatever run it is given that it is over already."""
    try:
        connection.sendall(message(type="ready"))
        if connection.recv(65536):
            connection.sendall(rows(4, 0.0, b'"forged"'))
            time.sleep(1)
    except OSError:
        pass
connections = []
deadline = time.monotonic() + 1.5
while time.monotonic() < deadline:
    newest = max(int(os.path.basename(box)[1:-4]) for box in glob.glob(folder + "/w*.box"))
    for number in (newest, newest + 1, newest + 2):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(2)
        connection.connect(folder + "/s")
        connection.sendall(message(type="hello", role="worker", worker=number, secret="", pid=os.getpid(), python="3.11.0", clock_ns=0))
        connections.append(connection)
        threading.Thread(target=serve, args=(connection,), daemon=True).start()
output = "own"`);
    const honest = runOf("import time; time.sleep(0.05); output = 'honest'");

    const results = await client.score([imposter, ...Array.from({ length: 60 }, () => honest)], { artifact: json("") });

    const others = results.slice(1);
    expect(others.map(outputOf)).toEqual(others.map(() => "honest"));
    for (const other of others) expect(runMsOf(other)).toBeGreaterThanOrEqual(50);
  });
});

describe("another run's token", () => {
  const CALL = `import json, os, urllib.request, urllib.error
def call(token):
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps({"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "hello"}]}).encode(), {"authorization": "Bearer " + token, "content-type": "application/json"})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return [error.code, json.load(error)["error"]["code"]]
`;

  test("of a run that goes on buys nothing, and costs that one nothing", async ({ start, workspace }) => {
    const { args, env } = models();
    const { client } = await start({ metric: MEASURED, args: [...TOLD_RUNS, ...args, "--max-runs", "2"], env });
    const [token, used] = [`${workspace.path}/token`, `${workspace.path}/used`].map((path) => JSON.stringify(path));
    const wait = (file: string) => `import os, time
deadline = time.monotonic() + 10
while not os.path.exists(${file}) and time.monotonic() < deadline: time.sleep(0.01)
`;
    const victim = runOf(`import os
open(${token} + ".part", "w").write(os.environ["OPENAI_API_KEY"])
os.rename(${token} + ".part", ${token})
${wait(used ?? "")}output = "done"`);
    const thief = runOf(`${CALL}${wait(token ?? "")}
output = [call(open(${token}).read()) for _ in range(3)] + [call(os.environ["OPENAI_API_KEY"])]
open(${used}, "w").close()`);

    const results = await client.score([victim, thief], { artifact: json("") });

    expect(results.map(outputOf)).toEqual([
      "done",
      [[401, "invalid_api_key"], [401, "invalid_api_key"], [401, "invalid_api_key"], 200],
    ]);
    expect(observationOf(results[0])).toMatchObject({ costUsd: 0 });
    expect(observationOf(results[0]).usage?.calls ?? 0).toBe(0);
    expect(observationOf(results[1]).usage?.calls).toBe(1);
    expect(observationOf(results[1]).costUsd).toBeGreaterThan(0);
  });

  test("of a run that is over buys nothing", async ({ start, workspace }) => {
    const { args, env } = models();
    const { client } = await start({ metric: MEASURED, args: [...TOLD_RUNS, ...args, "--max-runs", "1"], env });
    const file = JSON.stringify(`${workspace.path}/token`);
    const code = `${CALL}output = call(open(${file}).read()) if os.path.exists(${file}) else None
open(${file}, "w").write(os.environ["OPENAI_API_KEY"])`;

    const results = await client.score([runOf(code), runOf(code), runOf(code)], { artifact: json("") });

    expect(results.map(outputOf)).toEqual([null, [401, "invalid_api_key"], [401, "invalid_api_key"]]);
    for (const result of results) expect(observationOf(result)).toMatchObject({ costUsd: 0 });
  });

  test("is the run's own in the programs that it starts", async ({ start }) => {
    const { args, env } = models();
    const { client } = await start({ metric: MEASURED, args: [...TOLD_RUNS, ...args], env });
    const child = `import subprocess, sys
program = ${JSON.stringify(`${CALL}print(json.dumps(call(os.environ["OPENAI_API_KEY"])))`)}
direct = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout
through_a_shell = subprocess.run(["sh", "-c", 'true; setsid "$0" -c "$1"', sys.executable, program], capture_output=True, text=True).stdout
output = [direct.strip(), through_a_shell.strip()]`;

    const [result] = await client.score([runOf(child)], { artifact: json("") });

    expect(outputOf(result)).toEqual(["200", "200"]);
    expect(observationOf(result).usage?.calls).toBe(2);
  });
});
