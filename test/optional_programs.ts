import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * Programs that a developer may not have. Tests that need one are left out where it is missing, unless SKYNET_ALL_TOOLS
 * is 1, as in CI: then it must be there.
 */
const SOURCES = {
  grpcurl: "github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.4",
  "grpc-health-probe": "github.com/grpc-ecosystem/grpc-health-probe@v0.4.63",
} as const;

type OptionalProgram = keyof typeof SOURCES;

export const OPTIONAL_PROGRAMS = Object.keys(SOURCES) as readonly OptionalProgram[];

/** For a shell in the repository's top folder. Needs Go. */
export function installCommand(name: OptionalProgram): string {
  return `GOBIN=$PWD/.tools/bin go install ${SOURCES[name]}`;
}

/** Whether the tests that need a program are to run. */
export function isWanted(name: OptionalProgram): boolean {
  return process.env["SKYNET_ALL_TOOLS"] === "1" || findProgram(name) !== undefined;
}

/** The path of a program. Throws where it is missing, with how to install it. */
export function programPath(name: OptionalProgram): string {
  const found = findProgram(name);
  if (found === undefined) throw new Error(`${name} is needed and not there; install it: ${installCommand(name)}`);
  return found;
}

/** In the folder SKYNET_TOOLS, in .tools/bin, or on the PATH. */
function findProgram(name: OptionalProgram): string | undefined {
  const given = process.env["SKYNET_TOOLS"];
  const own = fileURLToPath(new URL("../.tools/bin", import.meta.url));
  const folders = [...(given === undefined ? [] : [given]), own, ...(process.env["PATH"] ?? "").split(delimiter)];
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
