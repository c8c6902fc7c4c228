import { spawn, type ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { basename } from "node:path";
import { BootOutput } from "./boot_output.js";
import type { Channel } from "./channel.js";
import { configure, templateEnvironment } from "./configure.js";
import { killMarked, killTree, MARK } from "./descendants.js";
import { PrivateFolder } from "./folder.js";
import { bootProgram, pythonFolder } from "./interpreter.js";
import type { FromPython, Hello, ToPython } from "./messages.js";
import { FileOutbox } from "./outbox.js";
import { Outputs } from "./outputs.js";
import { Reception } from "./reception.js";
import { signalName } from "./signals.js";
import { Sockets } from "./sockets.js";
import type { LaunchOptions, Template, TemplateEvents } from "./template.js";

/** A template that was told to stop kills its workers and leaves within milliseconds; after this it is killed. */
const STOP_GRACE_MS = 3_000;
/** After the process has ended, what it sent and printed is still on its way for a moment. */
const LAST_WORDS_MS = 500;

/** Starts a Python process as template. Throws where the private folder or its sockets cannot be made. */
export function launchTemplate(options: LaunchOptions, events: TemplateEvents): Template {
  return new TemplateProcess(options, events);
}

class TemplateProcess implements Template {
  readonly #folder = new PrivateFolder();
  readonly #sockets: Sockets;
  readonly #child: ChildProcess;
  readonly #bootOutput: BootOutput;
  readonly #outputs: Outputs;
  /** By which workers that have not connected yet will be known: run code could connect in their names. */
  readonly #secrets = new Map<number, string>();
  readonly #reception: Reception;
  readonly #over: Promise<void>;
  #channel: Channel | undefined;
  #channelClosed = (): void => undefined;
  #killTimer: NodeJS.Timeout | undefined;
  /** It listens: what it does at the user's file, it has done. */
  #listens = false;
  #stopping = false;
  #spawnError: string | undefined;

  constructor(
    private readonly options: LaunchOptions,
    private readonly events: TemplateEvents,
  ) {
    const { log } = options;
    const onLine = (worker: number, line: string): void => {
      events.output(worker, line);
    };
    this.#outputs = new Outputs(this.#folder, onLine, log);
    this.#reception = new Reception(log, (channel, hello) => this.#adopt(channel, hello));
    try {
      this.#sockets = new Sockets(this.#folder, (socket) => {
        this.#reception.receive(socket);
      });
    } catch (error) {
      this.#folder.remove();
      throw error;
    }
    try {
      this.#child = this.#spawn();
    } catch (error) {
      this.#sockets.hangUp();
      this.#folder.remove();
      throw error;
    }
    this.#bootOutput = new BootOutput(this.#child, (line) => {
      onLine(0, line);
    });
    this.#over = this.#watch();
  }

  start(worker: number): void {
    this.#outputs.expect(worker);
    const secret = randomBytes(16).toString("hex");
    this.#secrets.set(worker, secret);
    this.#send({ type: "start", worker, secret });
  }

  signal(worker: number, signal: number, group: boolean): void {
    this.#send({ type: "signal", worker, signal, group });
  }

  forget(worker: number): void {
    this.#secrets.delete(worker);
    this.#outputs.forget(worker);
    this.#folder.forget(worker);
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    // Before it has loaded it has no workers, and may be busy with the metric for as long as that likes.
    if (this.#listens) this.#send({ type: "stop" });
    else await this.#killAll();
    const timer = setTimeout(() => {
      this.options.log.warn(
        { pid: this.#child.pid },
        `the template did not stop within ${STOP_GRACE_MS} ms; it is killed`,
      );
      void this.#killAll();
    }, STOP_GRACE_MS);
    await this.#over;
    clearTimeout(timer);
  }

  get #mark(): string {
    return basename(this.#folder.path);
  }

  #spawn(): ChildProcess {
    // In a session of its own: Ctrl-C in a terminal reaches the sidecar alone, which then ends in good order.
    return spawn(this.options.python, ["-c", bootProgram(), pythonFolder(), this.#folder.path, "template", "0"], {
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
      env: templateEnvironment({ ...this.options.environment, [MARK]: this.#mark }),
    });
  }

  /** Resolves when the process has ended, all its last words were heard, and nothing of it is left. */
  async #watch(): Promise<void> {
    const child = this.#child;
    const closed = new Promise<void>((resolve) => (this.#channelClosed = resolve));
    const silent = new Promise<void>((resolve) => child.once("close", () => resolve()));
    await new Promise<void>((resolve) => {
      child.once("exit", () => resolve());
      child.once("error", (error: NodeJS.ErrnoException) => {
        // Told also for a signal that could not be sent; only without a process does it mean that there was none.
        if (child.pid !== undefined) return;
        this.#spawnError = error.code ?? error.message;
        resolve();
      });
    });
    if (this.#spawnError === undefined) {
      await within(LAST_WORDS_MS, this.#channel === undefined ? silent : Promise.all([silent, closed]));
    }
    // One that leaves in good order has seen to that itself.
    if (child.exitCode !== 0 || !this.#stopping) await killMarked(this.#mark);
    this.#killGroup();
    this.#cleanUp();
    this.events.gone({
      exitCode: child.exitCode ?? undefined,
      signal: child.signalCode ?? undefined,
      saidHello: this.#channel !== undefined,
      spawnError: this.#spawnError,
      output: this.#bootOutput.tail(),
    });
  }

  #cleanUp(): void {
    clearTimeout(this.#killTimer);
    this.#sockets.hangUp();
    this.#channel?.destroy();
    this.#reception.close();
    this.#bootOutput.end();
    this.#outputs.close();
    this.#folder.remove();
  }

  /** Where it still lives it is killed, with all that it has started. */
  async #killAll(): Promise<void> {
    const { pid, exitCode, signalCode } = this.#child;
    if (pid !== undefined && exitCode === null && signalCode === null) await killTree(pid);
  }

  /** It leads a process group, of which something may be left. */
  #killGroup(): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      // ESRCH: nothing is left of the group.
    }
  }

  #send(message: ToPython): void {
    this.#channel?.send(message);
  }

  #adopt(channel: Channel, hello: Hello): string | undefined {
    return hello.role === "template" ? this.#adoptTemplate(channel, hello) : this.#adoptWorker(channel, hello);
  }

  #adoptTemplate(channel: Channel, hello: Hello): string | undefined {
    if (this.#channel !== undefined || hello.pid !== this.#child.pid) {
      return `process ${hello.pid} said that it is the template`;
    }
    this.#channel = channel;
    channel.listen({
      message: (message) => {
        this.#message(message);
      },
      rows: () => {
        this.#broken("it sent rows");
      },
      closed: (problem) => {
        this.#channelClosed();
        this.#broken(problem ?? "it closed its connection");
      },
    });
    this.#outputs.open(0);
    channel.send(configure(this.options));
    this.events.hello(hello);
    return undefined;
  }

  #adoptWorker(channel: Channel, hello: Hello): string | undefined {
    const { worker, secret } = hello;
    if (this.#stopping) {
      // Its files may be gone, and it with them in a moment.
      channel.destroy();
      return undefined;
    }
    if (this.#secrets.get(worker) !== secret || !this.#outputs.isKnown(worker)) {
      return `process ${hello.pid} said that it is worker ${worker}, which is not expected`;
    }
    this.#secrets.delete(worker);
    this.#outputs.open(worker);
    let outbox;
    try {
      outbox = new FileOutbox(this.#folder.box(worker));
    } catch (error) {
      return `the outbox of worker ${worker} cannot be opened: ${String(error)}`;
    }
    if (this.options.startMethod === "spawn") channel.send(configure(this.options));
    this.events.connected(worker, { hello, receivedAt: performance.now(), channel, outbox });
    return undefined;
  }

  #message(message: FromPython): void {
    switch (message.type) {
      case "loaded":
        this.#listens = true;
        this.events.loaded(message.metric, message.fork_hazards);
        return;
      case "ready":
        this.#listens = true;
        this.events.ready();
        return;
      case "started":
        this.#outputs.open(message.worker);
        this.events.started(message.worker, message.pid);
        return;
      case "start_failed":
        this.events.startFailed(message.worker, message.error);
        return;
      case "ended":
        this.events.ended(message.worker, {
          exitCode: message.exit_code ?? undefined,
          signal: message.signal === null ? undefined : signalName(message.signal),
        });
        return;
      case "printed":
        this.events.printed(message);
        return;
      case "hello":
        this.#broken("it said hello twice");
        return;
      case "model_call":
        this.#broken("it asked for a model, which only workers do");
    }
  }

  /** A template that can no longer be talked to is of no use; one that is dying gets the time to say how. */
  #broken(why: string): void {
    if (this.#stopping) return;
    this.#killTimer ??= setTimeout(() => {
      this.options.log.warn({ pid: this.#child.pid }, `the template is killed: ${why}`);
      void this.#killAll();
    }, LAST_WORDS_MS);
  }
}

/** Where this process was held up for so long, what has arrived meanwhile is heard first. */
async function within(milliseconds: number, promise: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => (timer = setTimeout(() => setImmediate(resolve), milliseconds)));
  await Promise.race([promise, late]);
  clearTimeout(timer);
}
