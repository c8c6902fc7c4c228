import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const VENV = fileURLToPath(new URL("../.venv", import.meta.url));

/** For a shell in the repository's top folder. */
export const INSTALL_PYTHON_CLIENTS = ".venv/bin/python -m pip install --editable 'python[clients]'";

/** The interpreter that has the model clients of other projects, where it has them. */
export const PYTHON = join(VENV, "bin", "python");

/**
 * Whether the tests that need the Python packages openai, litellm and dspy are to run: where they are installed, and in CI
 * (SKYNET_ALL_TOOLS is 1), where they must be. They weigh half a gigabyte, which not every developer wants.
 */
export function hasPythonClients(): boolean {
  return process.env["SKYNET_ALL_TOOLS"] === "1" || NAMES.every(isInstalled);
}

const NAMES = ["openai", "litellm", "dspy"] as const;

function isInstalled(name: string): boolean {
  const libraries = join(VENV, "lib");
  return (
    existsSync(libraries) &&
    readdirSync(libraries).some((version) => existsSync(join(libraries, version, "site-packages", name)))
  );
}
