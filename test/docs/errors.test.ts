import { Code } from "@connectrpc/connect";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

import { EXIT } from "../../src/cli/exit.js";
import { CaseErrorCodeSchema } from "../../src/gen/skynet/scoring/v1/case_pb.js";
import { STATUS_OF } from "../../src/services/errors.js";

const page = readFileSync("docs/errors.md", "utf8");

describe("docs/errors.md has each", () => {
  it("code of a case's error, and no other", () => {
    const codes = CaseErrorCodeSchema.values.map(({ name }) => name);
    expect(rows("A case's error")).toEqual(codes.filter((name) => name !== "CASE_ERROR_CODE_UNSPECIFIED"));
    expect([...new Set(page.match(/CASE_ERROR_CODE_\w+/g))].sort()).toEqual([...codes].sort());
  });

  it("status that a service gives to a call", () => {
    const statuses = Object.values(STATUS_OF).map(statusName);
    expect(rows("The status of a call")).toEqual(expect.arrayContaining(statuses));
  });

  it("status that the transports give to a call, and no other", () => {
    const fromServices = new Set(Object.values(STATUS_OF).map(statusName));
    const others = rows("The status of a call").filter((status) => !fromServices.has(status));
    expect(others).toEqual(["OK", "DEADLINE_EXCEEDED"]);
  });

  it("kind of failure of a model call, and no other", () => {
    const source = readFileSync("src/model/call_error.ts", "utf8");
    const union = /type ModelCallErrorKind =(.*?)\n\n/s.exec(source)?.[1] ?? "";
    const kinds = [...union.matchAll(/\| "(\w+)"/g)].map(([, kind]) => kind);
    expect(kinds).toContain("no_model");
    expect(rows("When a model call fails")).toEqual(kinds);
  });

  it("exit code of the command, and no other", () => {
    expect(rows("The exit codes of `skynet-scorer`").map(Number)).toEqual(Object.values(EXIT));
  });
});

/** The first cell, in code style, of each row of the table under a heading. */
function rows(heading: string): string[] {
  const section = page.split(/^## /m).find((text) => text.startsWith(`${heading}\n`));
  return [...(section ?? "").matchAll(/^\| `(\w+)`/gm)].map(([, cell = ""]) => cell);
}

/** 9 → "FAILED_PRECONDITION" */
function statusName(code: number): string {
  const name = Code[code] ?? "";
  return (name === "Canceled" ? "Cancelled" : name).replace(/(?!^)[A-Z]/g, "_$&").toUpperCase();
}
