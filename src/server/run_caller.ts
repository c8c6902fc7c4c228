import { readdir, readFile, readlink } from "node:fs/promises";
import type { Socket } from "node:net";

/** Whether a connection comes from a process or one that it has started. */
export type IsCalledBy = (socket: Socket, pid: number) => Promise<boolean>;

/**
 * Looks in /proc whose end of the connection is whose, so that a run which gives its token away pays for nobody else. Where there is no
 * /proc the token has to do.
 */
export const isCalledBy: IsCalledBy = async (socket, pid) => {
  if (process.platform !== "linux") return true;
  const { remotePort, localPort } = socket;
  if (remotePort === undefined || localPort === undefined) return false;
  const inodes = await inodesOf(pid, remotePort, localPort);
  if (inodes.size === 0) return false;
  // Seldom more than the run itself, and its children come only where it does not have it.
  for (const generation = [pid]; generation.length > 0;) {
    const member = generation.shift() ?? 0;
    if (await holds(member, inodes)) return true;
    generation.push(...(await childrenOf(member)));
  }
  return false;
};

/** The caller's ends of connections between two ports, as `socket:[…]`; by address they are all this machine's. */
async function inodesOf(pid: number, callerPort: number, ownPort: number): Promise<ReadonlySet<string>> {
  const ends = [portText(callerPort), portText(ownPort)];
  const tables = await Promise.all(["tcp", "tcp6"].map((name) => read(`/proc/${pid}/net/${name}`)));
  const rows = tables.flatMap((table) => table.split("\n").map((row) => row.trim().split(/\s+/)));
  const matching = rows.filter(
    ([, local, remote]) => local?.endsWith(ends[0] ?? "") && remote?.endsWith(ends[1] ?? ""),
  );
  return new Set(matching.map((fields) => `socket:[${fields[9] ?? ""}]`));
}

function portText(port: number): string {
  return `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
}

async function holds(pid: number, inodes: ReadonlySet<string>): Promise<boolean> {
  const folder = `/proc/${pid}/fd`;
  const descriptors = await readdir(folder).catch(() => []);
  const links = await Promise.all(descriptors.map((name) => readlink(`${folder}/${name}`).catch(() => "")));
  return links.some((link) => inodes.has(link));
}

async function childrenOf(pid: number): Promise<number[]> {
  const threads = await readdir(`/proc/${pid}/task`).catch(() => []);
  const lists = await Promise.all(threads.map((thread) => read(`/proc/${pid}/task/${thread}/children`)));
  return lists.flatMap((list) =>
    list
      .split(" ")
      .filter((child) => child !== "")
      .map(Number),
  );
}

/** Empty where the process is gone. */
function read(path: string): Promise<string> {
  return readFile(path, "latin1").catch(() => "");
}
