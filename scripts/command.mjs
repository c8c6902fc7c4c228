import { spawn, spawnSync } from "node:child_process";
import { constants } from "node:os";
import { fileURLToPath } from "node:url";

/** The repository's top folder, where every command here runs. */
export const root = fileURLToPath(new URL("..", import.meta.url));

/** Runs a command with this process's own output; resolves with its exit code, 128 + n after signal n, 127 where it is missing. */
export function run(command, args, { env = {} } = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: root, stdio: "inherit", env: { ...process.env, ...env } });
    // Ctrl-C reaches the whole foreground group: wait for the child to end in its own way.
    const ignore = () => undefined;
    process.on("SIGINT", ignore);
    const end = (code) => {
      process.off("SIGINT", ignore);
      resolve(code);
    };
    child.on("error", (error) => {
      console.error(`cannot start ${command}: ${error.message}`);
      end(127);
    });
    child.on("close", (code, signal) => end(code ?? 128 + (constants.signals[signal] ?? 0)));
  });
}

/** Runs a command and ends this process with its exit code where that is not 0. */
export async function must(command, args, options) {
  const code = await run(command, args, options);
  if (code === 0) return;
  console.error(`failed with exit code ${code}: ${[command, ...args].join(" ")}`);
  process.exit(code);
}

/** What a command prints on standard output, trimmed; `undefined` where it fails or is missing. */
export function output(command, args) {
  const { status, stdout } = spawnSync(command, args, {
    cwd: root,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
  return status === 0 ? stdout.trim() : undefined;
}

/** Whether the module at `url` is the script that Node was started with. */
export function isMain(url) {
  return process.argv[1] === fileURLToPath(url);
}
