import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect } from "vitest";

import { caseOf, casesOf, type CaseInit, failed, json, plain, scored, sideInfo, tally, text } from "./cases.js";
import { statusOf } from "./client.js";
import { type CommandOutcome, runCommand } from "./command.js";
import { bytesWritten } from "./processes.js";
import { fixture, test, type Workspace } from "./scenario.js";
import { readJsonLines } from "./shared.js";
import { until, within } from "./until.js";

/** Bugs of other projects that must not be ours, each for its whole kind. */
describe("Submersible/node-python-bridge 22: NaN from Python broke the reader", () => {
  test("a number that is not finite is its case's error, and the field is named", async ({ start }) => {
    const { client } = await start("returns_what_it_is_told.py");
    const numbers = ["float('nan')", "float('inf')", "float('-inf')", "__import__('decimal').Decimal('NaN')"];
    const returns = numbers.flatMap((number) => [
      `(${number}, {'feedback': 'x'})`,
      `(1, {'feedback': 'x', 'scores': {'fine': 1, 'broken': ${number}}})`,
    ]);

    const results = await client.score([...returns.map((value) => caseOf("", { returns: value })), caseOf("")]);

    expect(results.slice(0, -1).map(plain)).toEqual(
      returns.map((_, place) =>
        failed(
          place,
          "METRIC_RETURN_VALUE",
          expect.stringMatching(place % 2 === 0 ? /score.*(nan|inf)/i : /"broken".*(nan|inf)/i),
        ),
      ),
    );
    expect(results.at(-1)?.outcome.case).toBe("score");
  });

  test("in side info it arrives as a string, however deep", async ({ start }) => {
    const { client } = await start("returns_what_it_is_told.py");
    const returns = "(1, {'feedback': 'x', 'a': float('nan'), 'b': [float('inf'), {'c': float('-inf')}], 'd': 1.5})";

    const [result] = await client.score([caseOf("", { returns })]);

    expect(sideInfo(result)).toEqual({ a: "nan", b: ["inf", { c: "-inf" }], d: 1.5 });
  });

  test("in a case it is what Python wrote", async ({ start }) => {
    const { client } = await start("tells_what_it_got.py");

    const results = await client.score([{ input: text('{"a": NaN}'), output: text("[Infinity, -Infinity]") }]);

    expect(results.map(plain)).toEqual([scored(0, 1, '[{"a": NaN}, [Infinity, -Infinity], null]')]);
  });
});

describe("ag2ai/ag2 3190: an object with an async __call__ was never awaited", () => {
  test.for([
    [
      "an object with async __call__",
      "class S:\n    async def __call__(self, input, output, expected=None): return await verdict()\nscore = S()",
    ],
    [
      "a partial of an async function",
      "import functools\nasync def _s(x, input, output): return await verdict()\nscore = functools.partial(_s, 1)",
    ],
    ["a function that returns a coroutine", "def score(input, output, expected=None): return verdict()"],
    [
      "an async method",
      "class S:\n    async def score(self, input, output): return await verdict()\nscore = S().score",
    ],
    [
      "an object with __await__",
      "class W:\n    def __await__(self): return verdict().__await__()\ndef score(input, output): return W()",
    ],
    [
      "a task on the running loop",
      "async def score(input, output): return await asyncio.get_running_loop().create_task(verdict())",
    ],
  ] as const)("%s is awaited", async ([, source], { start, workspace }) => {
    const verdict =
      'import asyncio\nasync def verdict():\n    await asyncio.sleep(0)\n    return 1.0, {"feedback": "awaited"}\n';
    const { client } = await start({ metric: workspace.write("metric.py", `${verdict}${source}\n`) });

    const results = await client.score([caseOf("a"), caseOf("b")]);

    expect(results.map(plain)).toEqual([scored(0, 1, "awaited"), scored(1, 1, "awaited")]);
  });
});

describe("python/cpython 83934, comet-ml/opik 3155: a partial has a misleading signature, and no name", () => {
  test.for([
    [
      "a keyword bound in the middle",
      "def _s(input, output, strict, expected=None): return tell(expected)\nscore = functools.partial(_s, strict=True)",
    ],
    [
      "a positional value bound first",
      "def _s(strict, input, output, expected=None): return tell(expected)\nscore = functools.partial(_s, True)",
    ],
    [
      "a partial of a partial",
      "def _s(a, b, input, output, expected=None): return tell(expected)\nscore = functools.partial(functools.partial(_s, 1), 2)",
    ],
    [
      "an object that raises at every attribute",
      "class S:\n    def __call__(self, input, output, expected=None): return tell(expected)\n    def __getattr__(self, name): raise RuntimeError(name)\nscore = S()",
    ],
  ] as const)("%s: is called as it can be, and raises its own error", async ([, source], { start, workspace }) => {
    const tell =
      'import functools\ndef tell(expected):\n    if expected["label"] == "raise": raise KeyError("mine")\n    return 1.0, {"feedback": expected["label"]}\n';
    const { client } = await start({ metric: workspace.write("metric.py", `${tell}${source}\n`) });

    const results = await client.score([caseOf("a", {}, { label: "x" }), caseOf("a", {}, { label: "raise" })]);

    expect(results.map(plain)).toEqual([
      scored(0, 1, "x"),
      failed(1, "METRIC_EXCEPTION", expect.stringMatching(/^KeyError: 'mine' .*metric\.py.*line 3/)),
    ]);
  });

  test("one that cannot be called fails with its signature", async ({ start, workspace }) => {
    const source = "import functools\ndef _s(input, strict, output): ...\nscore = functools.partial(_s, strict=True)\n";
    const { client } = await start({ metric: workspace.write("metric.py", source) });

    const { code, details } = await statusOf(client.score([caseOf("a")]));

    expect({ code, details }).toEqual({
      code: "FAILED_PRECONDITION",
      details: expect.stringContaining("(input, *, strict=True, output)") as string,
    });
  });
});

describe("promptfoo/promptfoo 10928: persistent workers left requests that never settled", () => {
  test("crashes anywhere in a long run cost one case each, however many there are", async ({ start, workspace }) => {
    const { client } = await start({ metric: fixture("dies.py"), args: ["--workers", "1"] });
    const input = { how: "os._exit(3)", file: join(workspace.path, "calls"), name: "" };
    const cases = Array.from({ length: 1000 }, (_, place) => caseOf(place % 50 === 25 ? "die" : "fine", input));

    const results = await client.score(cases);

    expect(tally(results)).toEqual({ METRIC_CRASHED: 20, SCORE: 980 });
  });

  test("a process that overran gets nothing more", async ({ start, workspace }) => {
    const { client } = await start({
      metric: fixture("ignores_interrupts.py"),
      args: ["--workers", "1", "--metric-timeout", "0.3"],
    });

    const results = await client.score([
      caseOf("hang", { file: join(workspace.path, "pids") }),
      ...casesOf(50, "fine"),
    ]);

    expect(tally(results)).toEqual({ METRIC_TIMEOUT: 1, SCORE: 50 });
    const [overran] = workspace.lines("pids").map(Number);
    expect(results.slice(1).map((result) => sideInfo(result)["pid"])).not.toContain(overran);
  });

  test("an import error is told at once, as itself", async ({ start, workspace }) => {
    const { client, ready } = await start({ metric: workspace.write("metric.py", "import no_such_module_anywhere\n") });

    expect(ready["metric_error"]).toMatch(/^ModuleNotFoundError: No module named 'no_such_module_anywhere'/);
    await within("the refusal", statusOf(client.score([caseOf("a")])), 2000);
  });
});

describe("chroma-core/chroma-mcp 66: a banner broke the protocol on stdout", () => {
  test("whatever is printed, by whomever, is a log line", async ({ start, workspace }) => {
    const metric = workspace.write(
      "metric.py",
      [
        "import os, subprocess, sys",
        'print("banner at import")',
        'subprocess.run(["echo", "subprocess at import"])',
        "def score(input, output):",
        '    print("print in score")',
        '    print("error in score", file=sys.stderr)',
        '    print("straight to the original", file=sys.__stdout__, flush=True)',
        '    os.write(1, b"raw write\\n")',
        '    os.write(1, b"\\x09\\x00\\x00\\x00\\x01{}\\n")',
        '    subprocess.run("echo subprocess in score; echo its errors >&2", shell=True)',
        '    return 1.0, {"feedback": "Fine."}',
      ].join("\n"),
    );
    const sidecar = await start({ metric });

    expect((await sidecar.client.score([{ ...caseOf("a"), id: "one" }])).map(plain)).toEqual([
      scored(0, 1, "Fine.", { id: "one" }),
    ]);
    for (const printed of [
      "banner at import",
      "subprocess at import",
      "raw write",
      "{}",
      "subprocess in score",
      "its errors",
    ]) {
      await sidecar.printed(printed);
    }
    for (const printed of ["print in score", "error in score", "straight to the original"]) {
      expect(await sidecar.printed(printed)).toMatchObject({ case: "one", index: 0 });
    }
  });
});

describe("openai/codex-action 153: writing to a child that had just died ended the parent", () => {
  test("a worker that dies while 8 MB are being written to it costs no other case", async ({ start }) => {
    const sidecar = await start({ metric: fixture("measures_length.py"), args: ["--workers", "1"] });
    const large = caseOf("x".repeat(8_000_000));
    for (let round = 0; round < 3; round += 1) {
      const worker = await until("a worker stands", () => sidecar.workers()[0]);
      process.kill(worker.pid, "SIGSTOP");
      const before = bytesWritten(sidecar.pid);

      const call = sidecar.client.score([large, ...casesOf(20, "abc")]);
      // The worker reads nothing, so what was written stands in the socket, and the rest waits.
      await until("the sidecar writes to it", () => bytesWritten(sidecar.pid) - before > 100_000);
      process.kill(worker.pid, "SIGKILL");

      const results = await call;
      expect(tally(results.slice(1))).toEqual({ SCORE: 20 });
      // It never began, so another worker may have it.
      expect(tally(results.slice(0, 1))).toEqual({ SCORE: 1 });
    }
  });
});

describe("aegra/aegra 197: a dataclass in a file loaded by path failed", () => {
  test.for(["fork", "spawn"] as const)("metric.py is a real module, with %s", async (method, { start }) => {
    const { client } = await start({ metric: fixture("real_module/metric.py"), args: ["--start-method", method] });

    const results = await client.score([caseOf("a"), caseOf("b")]);

    expect(results.map((result) => Object.values(sideInfo(result)).filter((value) => value !== true))).toEqual(
      ["A", "B"].map((label) => [{ label, parent: { label: "root", parent: null, notes: [] }, notes: [] }]),
    );
  });
});

describe("openai/codex 33617: a line was split at U+2028", () => {
  const SEPARATORS = "a\u2028b\u2029c\u0085d\u000be\u000cf\u001cg";

  test("JSON Lines are split at line feeds alone, coming in and going out", async ({ workspace }) => {
    const raw = SEPARATORS.replace(/[\u000b\u000c\u001c]/g, "");
    const rows = [
      { text: raw, answer: `1${raw}` },
      { text: SEPARATORS, answer: `2${SEPARATORS}` },
    ];
    const cases = workspace.write("cases.jsonl", `${rows.map((row) => JSON.stringify(row)).join("\n")}\n`);

    const got = await scoreFile(workspace, cases, ["--prediction-column", "answer"]);

    expect(got).toEqual(rows.map(({ text: input, answer }) => [{ text: input }, answer, null]));
  });

  test("CSV keeps them within a cell", async ({ workspace }) => {
    const cases = workspace.write("cases.csv", `text,answer\r\n${SEPARATORS},1\r\n"two\r\nlines",2\r\n`);

    const got = await scoreFile(workspace, cases, ["--prediction-column", "answer"]);

    expect(got).toEqual([
      [{ text: SEPARATORS }, "1", null],
      [{ text: "two\r\nlines" }, "2", null],
    ]);
  });
});

describe("promptfoo/promptfoo 2230, 3069: a BOM hid the first column; a JSON cell gave a stack trace", () => {
  test.for([
    ["cases.csv", "\ufeffquestion,answer\n1,a\n", "1"],
    ["cases.jsonl", '\ufeff{"question": 1, "answer": "a"}\n', 1],
    ["cases.json", '\ufeff[{"question": 1, "answer": "a"}]', 1],
  ] as const)("one BOM is dropped: %s", async ([name, content, question], { workspace }) => {
    const got = await scoreFile(workspace, workspace.write(name, content), ["--prediction-column", "answer"]);

    expect(got).toEqual([[{ question }, "a", null]]);
  });

  test("a bad cell is told with file, line, column and how to quote it", async ({ workspace }) => {
    const cases = workspace.write("cases.csv", 'question,answer\n1,fine\n2,{"a": 1}\n');

    const { code, stderr } = await scoreCommand(cases, ["--prediction-column", "answer"]);

    expect(code).toBe(2);
    expect(stderr).toMatch(/cases\.csv:3: column "answer".*"\{""a"": 1\}"/);
    expect(stderr).not.toMatch(/ {4}at /);
  });
});

describe("lakehq/sail 1859: a long traceback overflowed the trailers", () => {
  const LONG = "'first line\\n' + 'é\\0\\n' * 350_000";

  test("a case's error of 1 MiB arrives in its result, cut with a mark", async ({ start, workspace }) => {
    const { client } = await start({
      metric: workspace.write("metric.py", `def score(input, output):\n    raise ValueError(${LONG})\n`),
    });

    const [result] = await client.score([caseOf("a")]);

    if (result?.outcome.case !== "error") throw new Error("expected an error");
    const { message } = result.outcome.value;
    expect(Buffer.byteLength(message)).toBeLessThanOrEqual(4096);
    expect(message).toMatch(/^ValueError: first line (é {2})+.*cut: 1400\d{3} bytes in all.*metric\.py, line 2/s);
  });

  test("a load error of 1 MiB is a short status", async ({ start, workspace }) => {
    const { client } = await start({ metric: workspace.write("metric.py", `raise ValueError(${LONG})\n`) });

    const { code, details } = await statusOf(client.score([caseOf("a")]));

    expect(code).toBe("FAILED_PRECONDITION");
    expect(details).toMatch(/ValueError: first line/);
    expect(encodeURI(details).length).toBeLessThanOrEqual(2048);
  });

  test("a return value of 1 MiB of the wrong shape is named, not quoted whole", async ({ start }) => {
    const { client } = await start("returns_what_it_is_told.py");

    const [result] = await client.score([caseOf("", { returns: "'x' * 2**20" })]);

    if (result?.outcome.case !== "error") throw new Error("expected an error");
    expect(Buffer.byteLength(result.outcome.value.message)).toBeLessThanOrEqual(4096);
  });
});

describe("UKGovernmentBEIS/inspect_ai 5525: a blank or misnamed target column scored a mute model 1.0", () => {
  test("missing, empty and null stay three things over gRPC", async ({ start }) => {
    const { client } = await start("tells_what_it_got.py");
    const cases: CaseInit[] = [
      { input: json({}), output: json("") },
      { input: json({}), output: json(null), expected: json(null) },
      { input: json({}), output: json(""), expected: json({}) },
      { input: json({}), output: json(""), expected: json({ label: null }) },
      { input: json({}), output: json(""), expected: json({ label: "" }) },
      { input: json({}) },
    ];

    const results = await client.score(cases);

    expect(results.slice(0, 5).map(plain)).toEqual(
      [
        '[{}, "", null]',
        "[{}, null, null]",
        '[{}, "", {}]',
        '[{}, "", {"label": null}]',
        '[{}, "", {"label": ""}]',
      ].map((got, place) => scored(place, 1, got)),
    );
    expect(results.slice(5).map(plain)).toEqual([failed(5, "INVALID_CASE", expect.stringContaining("no output"))]);
  });

  test("and from a file", async ({ workspace }) => {
    const rows = ['{"q": 1, "a": "", "label": ""}', '{"q": 2, "a": null, "label": null}', '{"q": 3, "a": "x"}'];

    const got = await scoreFile(workspace, workspace.write("cases.jsonl", rows.join("\n")), [
      ...["--prediction-column", "a", "--output-columns", "label"],
    ]);

    expect(got).toEqual([
      [{ q: 1 }, "", { label: "" }],
      [{ q: 2 }, null, { label: null }],
      [{ q: 3 }, "x", null],
    ]);
  });

  test("an unknown column is an error with the nearest name, before anything is scored", async ({ workspace }) => {
    const cases = workspace.write("cases.csv", "question,target,answer\n1,a,a\n");

    const outcome = await scoreCommand(cases, ["--prediction-column", "answer", "--output-columns", "tarket"]);

    expect(outcome).toMatchObject({ code: 2, stdout: "", stderr: expect.stringMatching(/tarket.*"target"/) as string });
  });

  test("the contract check warns where samples have no expected value", async ({ workspace }) => {
    const cases = workspace.write("cases.csv", "question,answer\n1,a\n");

    const { code, stdout } = await runCommand([
      ...["check", "--metric", fixture("tells_what_it_got.py"), "--cases", cases, "--prediction-column", "answer"],
    ]);

    expect(code).toBe(0);
    expect(stdout).toMatch(/! .*without an expected value/);
  });
});

describe("adaltas/node-csv 496: a column called __proto__ replaced the record's prototype", () => {
  const NAMES = ["__proto__", "constructor", "toString", "input", "expected", "id", "hasOwnProperty", "valueOf"];

  test.for(["csv", "jsonl", "json"] as const)(
    "such columns reach Python as plain keys: %s",
    async (format, { workspace }) => {
      const row = `{${NAMES.map((name, place) => `"${name}": "${place}"`).join(", ")}, "answer": "a"}`;
      const content = {
        csv: `${NAMES.join(",")},answer\n${NAMES.map((_, place) => place).join(",")},a\n`,
        jsonl: `${row}\n`,
        json: `[${row}]`,
      }[format];
      const cases = workspace.write(`cases.${format}`, content);
      const entries = NAMES.map((name, place) => [name, String(place)] as const);

      const inputs = await scoreFile(workspace, cases, ["--prediction-column", "answer"]);
      const expected = await scoreFile(workspace, cases, [
        ...[
          "--prediction-column",
          "answer",
          "--input-columns",
          "id",
          "--output-columns",
          NAMES.filter((name) => name !== "id").join(","),
        ],
      ]);

      expect(inputs).toEqual([[Object.fromEntries(entries), "a", null]]);
      expect(expected).toEqual([[{ id: "5" }, "a", Object.fromEntries(entries.filter(([name]) => name !== "id"))]]);
    },
  );

  test("a metric's scores may be called so too", async ({ start }) => {
    const { client } = await start("returns_what_it_is_told.py");

    const [result] = await client.score([
      caseOf("", { returns: "(1, {'feedback': 'x', 'scores': {'__proto__': 1, 'constructor': 0.5}, 'toString': 2})" }),
    ]);

    if (result?.outcome.case !== "score") throw new Error("expected a score");
    expect(Object.entries(result.outcome.value.scores).sort()).toEqual([
      ["__proto__", 1],
      ["constructor", 0.5],
    ]);
    expect(sideInfo(result)).toEqual({ toString: 2 });
  });

  test.for([
    ["question,,answer\n1,2,3\n", /column 2.*no name/],
    ["question,answer,answer\n1,2,3\n", /"answer"/],
  ] as const)("an empty or a double header is an error: %j", async ([content, message], { workspace }) => {
    const { code, stderr } = await scoreCommand(workspace.write("cases.csv", content), [
      "--prediction-column",
      "answer",
    ]);

    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(message) as string });
  });
});

describe("Liquid4All/ifstruct 3: an integer of 4,300 digits ended a batch of 2,000", () => {
  const HUGE = "9".repeat(5000);

  test("one that Python refuses is its case's error, and the other 1,999 are scored", async ({ start }) => {
    const { client } = await start("tells_what_it_got.py");
    const cases: CaseInit[] = casesOf(2000, 1).map((item, place) =>
      place === 777 ? { ...item, output: text(HUGE) } : item,
    );

    const results = await client.score(cases);

    expect(tally(results)).toEqual({ INVALID_CASE: 1, SCORE: 1999 });
    expect(results.slice(777, 778).map(plain)).toEqual([
      failed(777, "INVALID_CASE", expect.stringMatching(/output.*digits/), "case-777"),
    ]);
  });

  test("integers over 2^53 arrive exact, over gRPC and from a file", async ({ start, workspace }) => {
    const { client } = await start("tells_what_it_got.py");
    const [result] = await client.score([
      { input: text('{"n": 9007199254740993}'), output: text("-18446744073709551617") },
    ]);
    expect(result === undefined ? undefined : plain(result)).toEqual(
      scored(0, 1, '[{"n": 9007199254740993}, -18446744073709551617, null]'),
    );

    const cases = workspace.write(
      "cases.jsonl",
      '{"n": 9007199254740993, "a": 1.10, "label": 123456789012345678901234567890}\n',
    );
    await scoreFile(workspace, cases, ["--prediction-column", "a", "--output-columns", "label"]);
    expect(workspace.read("results.jsonl")).toContain(
      JSON.stringify('[{"n": 9007199254740993}, 1.1, {"label": 123456789012345678901234567890}]'),
    );
  });

  test("one that a metric returns is its case's error, or a string in its side info", async ({ start }) => {
    const { client } = await start("returns_what_it_is_told.py");
    const returns = [
      "(10**5000, {'feedback': 'x'})",
      "(1, {'feedback': 'x', 'n': 10**5000})",
      "(1, {'feedback': 'x', 'n': 2**64})",
    ];

    const results = await client.score([...returns.map((value) => caseOf("", { returns: value })), caseOf("")]);

    expect(results[0]?.outcome.case).toBe("error");
    expect(results[2]?.outcome).toMatchObject({
      case: "score",
      value: { sideInfoJson: expect.stringContaining("18446744073709551616") as string },
    });
    expect(results[3]?.outcome.case).toBe("score");
  });
});

function scoreCommand(cases: string, args: readonly string[]): Promise<CommandOutcome> {
  return runCommand(["score", "--metric", fixture("tells_what_it_got.py"), "--cases", cases, ...args]);
}

/** Scores a file and returns what the metric got for each case: input, output, expected. */
async function scoreFile(workspace: Workspace, cases: string, args: readonly string[]): Promise<unknown[]> {
  const output = join(workspace.path, "results.jsonl");
  const { code, stderr } = await scoreCommand(cases, [...args, "--output", output]);
  if (code !== 0 || !existsSync(output)) throw new Error(`score ended with exit code ${code}: ${stderr}`);
  expect(readFileSync(output).filter((byte) => byte === 0x0a)).toHaveLength(readJsonLines(output).length);
  return readJsonLines<{ score: { feedback: string } }>(output).map(
    ({ score }) => JSON.parse(score.feedback) as unknown,
  );
}
