import { describe, expect, test } from "vitest";
import { bootProgram, choosePython, loadDeath, startFailure } from "../../src/worker/interpreter.js";

describe("which Python", () => {
  test("the one that the user named comes first", () => {
    expect(choosePython("python3.12", { VIRTUAL_ENV: "/venv" })).toBe("python3.12");
  });

  test("then the active virtual environment's, then python3", () => {
    expect(choosePython(undefined, { VIRTUAL_ENV: "/venv" })).toBe("/venv/bin/python");
    expect(choosePython(undefined, { VIRTUAL_ENV: "" })).toBe("python3");
    expect(choosePython(undefined, {})).toBe("python3");
  });
});

test("the boot program is there, and checks the version first", () => {
  expect(bootProgram().indexOf("version_info")).toBeLessThan(bootProgram().indexOf("from skynet"));
});

describe("why it did not start", () => {
  const exit = { saidHello: false, spawnError: undefined, exitCode: undefined, signal: undefined, output: "" };

  test.each([
    [{ ...exit, spawnError: "ENOENT" }, /^the Python interpreter py was not found; /],
    [
      { ...exit, spawnError: "EACCES" },
      /^the Python interpreter py could not be started \(EACCES\); name another one with --python$/,
    ],
    [{ ...exit, exitCode: 97, output: "noise\nskynet-scorer needs Python 3.9\n" }, /^skynet-scorer needs Python 3.9$/],
    [
      { ...exit, exitCode: 98, output: "no such file" },
      /could not reach the sidecar's socket in its private folder: no such file$/,
    ],
    [
      { ...exit, exitCode: 1, output: "Traceback\nValueError: no\n" },
      /py exited with code 1 before it could load anything: ValueError: no; look whether it is Python 3\.9 or newer, or name another one with --python$/,
    ],
    [
      { ...exit, signal: "SIGKILL" },
      /py was killed by SIGKILL before it could load anything: it printed nothing; look whether/,
    ],
  ])("%#", (how, message) => {
    expect(startFailure("py", how)).toMatch(message);
  });

  test("a death over the load says how", () => {
    expect(loadDeath({ exitCode: undefined, signal: "SIGSEGV" })).toMatch(
      /^the Python interpreter was killed by SIGSEGV while it loaded the file; /,
    );
  });
});
