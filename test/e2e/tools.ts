import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

import { ROOT } from "./command.js";

/** Where a Go program comes from, for whoever does not have it. */
const INSTALL = {
  grpcurl: "GOBIN=$PWD/.tools/bin go install github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.4",
  "grpc-health-probe": "GOBIN=$PWD/.tools/bin go install github.com/grpc-ecosystem/grpc-health-probe@v0.4.63",
} as const;

/** The path of an unmodified Go program: in the folder SKYNET_TOOLS, in .tools/bin, or on the PATH. */
export function findTool(name: keyof typeof INSTALL): string {
  const given = process.env["SKYNET_TOOLS"];
  const folders = [
    ...(given === undefined ? [] : [given]),
    join(ROOT, ".tools", "bin"),
    ...(process.env["PATH"] ?? "").split(delimiter),
  ];
  const found = folders.map((folder) => join(folder, name)).find(isExecutable);
  if (found === undefined) throw new Error(`${name} is needed and not there; install it: ${INSTALL[name]}`);
  return found;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
