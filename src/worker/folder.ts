import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A unix socket's path must be shorter than this on macOS; Linux allows four more. */
const SOCKET_PATH_LIMIT = 104;
/** The longest name in the folder, with room: `w4294967295.out`. */
const LONGEST_NAME = 16;

/** A folder of the sidecar's own, for the sockets and files that it shares with its Python processes; mode 0700. */
export class PrivateFolder {
  readonly path: string;

  constructor(parent: string = tmpdir()) {
    const name = "skynet-";
    const length = Buffer.byteLength(join(parent, `${name}XXXXXX`)) + 1 + LONGEST_NAME;
    this.path = mkdtempSync(join(length < SOCKET_PATH_LIMIT ? parent : "/tmp", name));
  }

  file(name: string): string {
    return join(this.path, name);
  }

  /** A worker's outbox. */
  box(worker: number): string {
    return this.file(`w${worker}.box`);
  }

  /** The FIFO that is a worker's descriptors 1 and 2; worker 0 is the template. */
  output(worker: number): string {
    return this.file(worker === 0 ? "t.out" : `w${worker}.out`);
  }

  /** Removes what a worker that has ended has left. */
  forget(worker: number): void {
    rmSync(this.box(worker), { force: true });
    rmSync(this.output(worker), { force: true });
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}
