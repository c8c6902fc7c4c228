import { describe, expect, it } from "vitest";

import { UsageError } from "../../src/cli/exit.js";
import { OPTION_SPECS, type OptionName } from "../../src/cli/option_specs.js";
import { flagOf, readOptions, variableOf, withoutVariables } from "../../src/cli/options.js";

const NAMES = Object.keys(OPTION_SPECS) as OptionName[];

/** The value of one option, given as an argument. */
function valueOf(name: OptionName, ...texts: string[]): unknown {
  return readOptions(NAMES, new Map([[name, texts]]), {}).values[name];
}

function failureOf(read: () => unknown): string {
  try {
    read();
  } catch (error) {
    if (error instanceof UsageError) return error.message;
    throw error;
  }
  throw new Error("nothing was refused");
}

describe("where a value comes from", () => {
  const given = new Map<OptionName, readonly string[]>([["workers", ["3"]]]);

  it("an argument wins over a variable, and that over the default", () => {
    const environment = { SKYNET_SCORER_WORKERS: "5", SKYNET_SCORER_MAX_WORKERS: "6" };
    const { values, origins } = readOptions(NAMES, given, environment);
    expect([values.workers, values.maxWorkers, values.metricTimeout]).toEqual([3, 6, 60_000]);
    expect([
      origins.get("workers"),
      origins.get("maxWorkers"),
      origins.get("metricTimeout"),
      origins.get("seed"),
    ]).toEqual(["argument", "variable", "default", undefined]);
  });

  it("an empty variable counts as not set", () => {
    expect(readOptions(NAMES, new Map(), { SKYNET_SCORER_MAX_WORKERS: "" }).values.maxWorkers).toBe(64);
  });

  it("a variable of another command is no error, a misspelt one is", () => {
    expect(readOptions(["metric"], new Map(), { SKYNET_SCORER_OUTPUT: "x" }).values.metric).toBeUndefined();
    expect(failureOf(() => readOptions(NAMES, new Map(), { SKYNET_SCORER_WORKER: "1" }))).toBe(
      "SKYNET_SCORER_WORKER: there is no such variable; the nearest is SKYNET_SCORER_WORKERS",
    );
  });

  it("a variable that is like no other is told with the list of all", () => {
    expect(failureOf(() => readOptions(NAMES, new Map(), { SKYNET_SCORER_PORT: "1" }))).toMatch(
      /^SKYNET_SCORER_PORT: there is no such variable; there are: SKYNET_SCORER_ and one of ARTIFACT, .*LISTEN, .*WORKERS$/,
    );
  });

  it("an option is told as it was given", () => {
    const read = readOptions(NAMES, given, { SKYNET_SCORER_OUTPUT: "x" });
    expect([read.asGiven("workers"), read.asGiven("output")]).toEqual(["--workers 3", "SKYNET_SCORER_OUTPUT=x"]);
  });

  it("what was given can be passed on, what was not is left to the other's defaults", () => {
    const read = readOptions(NAMES, given, { SKYNET_SCORER_METRIC_TIMEOUT: "1.5" });
    expect(read.arguments(NAMES)).toEqual(["--workers=3", "--metric-timeout=1.5"].sort((a, b) => order(a) - order(b)));
  });

  it("no variable of this program reaches another command of it", () => {
    expect(withoutVariables({ SKYNET_SCORER_METRIC: "x", PATH: "y" })).toEqual({ PATH: "y" });
  });

  it("every option has a variable of its name", () => {
    expect(variableOf("metricTimeout")).toBe("SKYNET_SCORER_METRIC_TIMEOUT");
    expect(new Set(NAMES.map(variableOf)).size).toBe(NAMES.length);
  });
});

describe("values", () => {
  it.each<[OptionName, string, unknown]>([
    ["metricTimeout", "0.25", 250],
    ["metricTimeout", "600", 600_000],
    ["drainTimeout", "0", 0],
    ["maxMessageBytes", "64MiB", 64 * 1024 * 1024],
    ["maxMessageBytes", "1.5 mib", 1.5 * 1024 * 1024],
    ["maxMessageBytes", "2MB", 2_000_000],
    ["maxMessageBytes", "500000", 500_000],
    ["seed", "18446744073709551615", 18446744073709551615n],
    ["workers", "1024", 1024],
    ["watch", "true", true],
    ["watch", "0", false],
    ["connect", "[::1]:50051", "[::1]:50051"],
    ["connect", "unix:/tmp/s.sock", "unix:/tmp/s.sock"],
    ["inputColumns", 'a, b c ,"d,e"," f"', ["a", "b c", "d,e", " f"]],
  ])("%s takes %s", (name, text, value) => {
    expect(valueOf(name, text)).toEqual(value);
  });

  it("lists may be given in several pieces, and of other options the last counts", () => {
    expect(valueOf("listen", "localhost:0", "unix:/a,127.0.0.1:1")).toEqual(["localhost:0", "unix:/a", "127.0.0.1:1"]);
    expect(valueOf("outputColumns", "a,b", "c")).toEqual(["a", "b", "c"]);
    expect(valueOf("workers", "1", "2")).toBe(2);
  });

  it.each<[OptionName, string]>([
    ["metricTimeout", "0"],
    ["metricTimeout", "600.1"],
    ["metricTimeout", "1e2"],
    ["metricTimeout", "ten"],
    ["loadTimeout", "3601"],
    ["drainTimeout", "-1"],
    ["workers", "0"],
    ["workers", "1.5"],
    ["workers", "1025"],
    ["maxWorkers", ""],
    ["seed", "18446744073709551616"],
    ["seed", "-1"],
    ["maxMessageBytes", "1KB"],
    ["maxMessageBytes", "2GiB"],
    ["maxMessageBytes", "64 furlongs"],
    ["startMethod", "Fork"],
    ["logLevel", "loud"],
    ["listen", "localhost"],
    ["listen", "localhost:65536"],
    ["listen", "::1:50051"],
    ["listen", "unix:"],
    ["listen", `unix:/${"x".repeat(103)}`],
    ["connect", "localhost:0"],
    ["batchSize", "0"],
    ["maxErrors", "0"],
    ["inputColumns", "a,,b"],
    ["inputColumns", 'a"'],
    ["predictionColumn", ""],
    ["watch", "maybe"],
  ])("%s refuses %j, naming the option, the value and what is expected", (name, text) => {
    const expected = `: expected ${OPTION_SPECS[name].expected}`;
    expect(failureOf(() => valueOf(name, text))).toBe(`${flagOf(name)} ${text === "" ? '""' : text}${expected}`);
    if (text === "") return;
    expect(failureOf(() => readOptions(NAMES, new Map(), { [variableOf(name)]: text }))).toBe(
      `${variableOf(name)}=${text}${expected}`,
    );
  });
});

describe("a file", () => {
  it.each([
    ["/nowhere/metric.py", "there is no such file"],
    ["/", "it is a folder"],
    ["/dev/null/metric.py", "there is no such file"],
    ["~/metric.py", "there is no such file; the shell has not replaced ~: write the whole path"],
  ])("%s is refused with why", (path, why) => {
    expect(failureOf(() => valueOf("metric", path))).toBe(`--metric ${path}: ${why}`);
  });
});

/** Arguments come in the order of the options. */
function order(argument: string): number {
  return NAMES.findIndex((name) => argument.startsWith(`${flagOf(name)}=`));
}
