import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** How long what was sent SIGKILL may take to be gone; the system may hold a process for longer, and nobody waits for that. */
const END_MS = 2_000;
const LOOK_AGAIN_MS = 5;

/** The variable that everything below a template has, unless it was started with an environment of its own. */
export const MARK = "SKYNET_PROCESSES_OF";

/**
 * Kills a template that may be busy with the user's file, and all that it has started, whatever group or session that is in. Resolves when all
 * of it is dead. Where the system has no /proc, only its group is killed.
 *
 * It is stopped first, so that nothing new comes: what loses its parent becomes its child, and what ends below it is not reaped, so that an id
 * keeps its meaning.
 */
export async function killTree(leader: number): Promise<void> {
  if (process.platform === "linux") {
    send(leader, "SIGSTOP");
    await killUntilNone(() => (isStopped(leader) ? livingChildren(leader) : undefined));
  }
  send(-leader, "SIGKILL");
}

/** Kills everything that has the mark: what a template that died has left below no one of ours. */
export async function killMarked(mark: string): Promise<void> {
  if (process.platform !== "linux") return;
  const variable = `${MARK}=${mark}`;
  await killUntilNone(() => processes().filter((pid) => hasVariable(pid, variable) && isAlive(pid)));
}

/** `find` gives `undefined` where it cannot tell yet. */
async function killUntilNone(find: () => readonly number[] | undefined): Promise<void> {
  const deadline = performance.now() + END_MS;
  while (performance.now() < deadline) {
    const found = find();
    if (found?.length === 0) return;
    for (const pid of found ?? []) send(pid, "SIGKILL");
    await sleep(LOOK_AGAIN_MS);
  }
}

function livingChildren(parent: number): number[] {
  return processes().filter((pid) => {
    const status = readStatus(pid);
    return status?.parent === parent && isLiving(status.state);
  });
}

/** Whether it starts nothing any more: stopped, or dead. */
function isStopped(pid: number): boolean {
  const state = readStatus(pid)?.state;
  return state === undefined || state === "T" || state === "t" || !isLiving(state);
}

function isAlive(pid: number): boolean {
  const state = readStatus(pid)?.state;
  return state !== undefined && isLiving(state);
}

function isLiving(state: string): boolean {
  return state !== "Z" && state !== "X";
}

function processes(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

function hasVariable(pid: number, variable: string): boolean {
  return read(`/proc/${pid}/environ`).split("\0").includes(variable);
}

function readStatus(pid: number): { readonly state: string; readonly parent: number } | undefined {
  const stat = read(`/proc/${pid}/stat`);
  if (stat === "") return undefined;
  // The command's name stands in brackets and may hold blanks and brackets itself.
  const [state = "", parent = ""] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return { state, parent: Number(parent) };
}

/** Empty where the process is gone, or is somebody else's. */
function read(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // ESRCH: it is gone. EPERM: it has taken another user's id.
  }
}
