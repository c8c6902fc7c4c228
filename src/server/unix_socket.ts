import { existsSync, lstatSync, unlinkSync } from "node:fs";
import { connect, type Server } from "node:net";
import { dirname } from "node:path";

import { ListenError } from "./listen_address.js";

/** Binds a server to a unix socket that only this user can open. A socket that nobody serves any more is taken over. */
export async function bindUnixSocket(server: Server, path: string): Promise<void> {
  try {
    await bind(server, path);
  } catch (reason) {
    if (!(reason instanceof Error && "code" in reason && reason.code === "EADDRINUSE")) throw explained(path, reason);
    await removeStale(path);
    await bind(server, path);
  }
}

async function bind(server: Server, path: string): Promise<void> {
  // `listen` binds at once, so that the mask holds for the socket alone; a `chmod` afterwards would leave a gap.
  const mask = process.umask(0o177);
  try {
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(path, () => {
        server.off("error", reject);
        resolve();
      });
      process.umask(mask);
    });
  } finally {
    process.umask(mask);
  }
}

/** A process that was killed leaves its socket behind. Anything else that stands there is not ours to remove. */
async function removeStale(path: string): Promise<void> {
  if (!lstatSync(path).isSocket()) {
    throw new ListenError(`cannot listen on unix:${path}: a file that is not a socket stands there; give another path`);
  }
  if (await isServed(path)) {
    throw new ListenError(
      `cannot listen on unix:${path}: another process listens there; stop it, or give another path`,
    );
  }
  unlinkSync(path);
}

function isServed(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(path);
    const tell = (served: boolean): void => {
      probe.destroy();
      resolve(served);
    };
    probe.once("connect", () => {
      tell(true);
    });
    // Only a refusal says that nobody listens; a full queue or a denied permission does not.
    probe.once("error", (reason: NodeJS.ErrnoException) => {
      tell(reason.code !== "ECONNREFUSED" && reason.code !== "ENOENT");
    });
  });
}

function explained(path: string, reason: unknown): ListenError {
  const folder = dirname(path);
  // The system calls a missing folder a denied permission.
  if (!existsSync(folder)) {
    return new ListenError(
      `cannot listen on unix:${path}: there is no folder ${folder}; make it, or give another path`,
    );
  }
  const why = reason instanceof Error ? reason.message : String(reason);
  return new ListenError(
    `cannot listen on unix:${path}: ${why}; give a path in a folder that exists and can be written`,
  );
}
