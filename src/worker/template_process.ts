import { spawn, type ChildProcess } from "node:child_process";
import type { Socket } from "node:net";
import { SocketChannel, type Channel } from "./channel.js";
import { PrivateFolder } from "./folder.js";
import { bootProgram, pythonFolder } from "./interpreter.js";
import type { FromPython, Hello, ToPython } from "./messages.js";
import { FileOutbox, type Outbox } from "./outbox.js";
import { ProcessOutput } from "./output.js";
import { BootOutput } from "./boot_output.js";
import { signalName } from "./signals.js";
import { Sockets } from "./sockets.js";
import type { LaunchOptions, Template, TemplateEvents } from "./template.js";

/** A template that was told to stop kills its workers and leaves within milliseconds; after this it is killed. */
const STOP_GRACE_MS = 3_000;
/** A process that connects says hello at once. */
const HELLO_TIMEOUT_MS = 30_000;
/** After the process has ended, what it sent and printed is still on its way for a moment. */
const LAST_WORDS_MS = 500;

/** Thread pools of numerical libraries: workers share the cores already, and a process with threads cannot be forked. */
const ONE_THREAD = {
  OMP_NUM_THREADS: "1",
  OPENBLAS_NUM_THREADS: "1",
  MKL_NUM_THREADS: "1",
  VECLIB_MAXIMUM_THREADS: "1",
  NUMEXPR_NUM_THREADS: "1",
  RAYON_NUM_THREADS: "1",
  TOKENIZERS_PARALLELISM: "false",
};

/** Starts a Python process as template. Throws where the private folder or its sockets cannot be made. */
export function launchTemplate(options: LaunchOptions, events: TemplateEvents): Template {
  return new TemplateProcess(options, events);
}

class TemplateProcess implements Template {
  readonly #folder = new PrivateFolder();
  readonly #sockets: Sockets;
  readonly #child: ChildProcess;
  readonly #bootOutput: BootOutput;
  /** Of the template (0) and of the workers that were started and not forgotten; `undefined`: not opened yet. */
  readonly #outputs = new Map<number, ProcessOutput | undefined>([[0, undefined]]);
  readonly #helloTimers = new Set<NodeJS.Timeout>();
  readonly #over: Promise<void>;
  #channel: Channel | undefined;
  #channelClosed = (): void => undefined;
  #killTimer: NodeJS.Timeout | undefined;
  #isReady = false;
  #stopping = false;
  #spawnError: string | undefined;

  constructor(
    private readonly options: LaunchOptions,
    private readonly events: TemplateEvents,
  ) {
    try {
      this.#sockets = new Sockets(this.#folder, (socket) => {
        this.#accept(socket);
      });
    } catch (error) {
      this.#folder.remove();
      throw error;
    }
    this.#child = this.#spawn();
    this.#bootOutput = new BootOutput(this.#child, (line) => {
      this.events.output(0, line);
    });
    this.#over = this.#watch();
  }

  start(worker: number): void {
    this.#outputs.set(worker, undefined);
    this.#send({ type: "start", worker });
  }

  signal(worker: number, signal: number, group: boolean): void {
    this.#send({ type: "signal", worker, signal, group });
  }

  forget(worker: number): void {
    this.#outputs.get(worker)?.end();
    this.#outputs.delete(worker);
    this.#folder.forget(worker);
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    // Before it is ready it has no workers, and may be busy with the metric for as long as that likes.
    if (this.#isReady) this.#send({ type: "stop" });
    else this.#kill();
    const timer = setTimeout(() => {
      this.options.log.warn(
        { pid: this.#child.pid },
        `the template did not stop within ${STOP_GRACE_MS} ms; it is killed`,
      );
      this.#kill();
    }, STOP_GRACE_MS);
    await this.#over;
    clearTimeout(timer);
  }

  #spawn(): ChildProcess {
    const environment = Object.entries(process.env).filter(([name]) => !name.startsWith("SKYNET_SCORER_"));
    // In a session of its own: Ctrl-C in a terminal reaches the sidecar alone, which then ends in good order.
    return spawn(this.options.python, ["-c", bootProgram(), pythonFolder(), this.#folder.path, "template", "0"], {
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
      env: Object.fromEntries(environment),
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
    this.#kill();
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
    for (const timer of this.#helloTimers) clearTimeout(timer);
    this.#bootOutput.end();
    for (const output of this.#outputs.values()) output?.end();
    this.#folder.remove();
  }

  /** It leads a process group: what loading the metric has started goes with it. */
  #kill(): void {
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

  /** A process connected: its first message tells who it is. */
  #accept(socket: Socket): void {
    const channel = new SocketChannel(socket, this.options.log);
    const timer = setTimeout(() => {
      this.#refuse(channel, `a process connected and did not say hello within ${HELLO_TIMEOUT_MS} ms`);
    }, HELLO_TIMEOUT_MS);
    this.#helloTimers.add(timer);
    const settled = (): void => {
      clearTimeout(timer);
      this.#helloTimers.delete(timer);
    };
    channel.listen({
      message: (message) => {
        settled();
        if (message.type !== "hello") this.#refuse(channel, `a process began with ${message.type} instead of hello`);
        else if (message.role === "template") this.#adoptTemplate(channel, message);
        else this.#adoptWorker(channel, message);
      },
      rows: () => {
        this.#refuse(channel, "a process began with rows instead of hello");
      },
      closed: settled,
    });
  }

  #refuse(channel: Channel, why: string): void {
    this.options.log.warn({}, `${why}; it is disconnected`);
    channel.destroy();
  }

  #adoptTemplate(channel: Channel, hello: Hello): void {
    if (this.#channel !== undefined || hello.pid !== this.#child.pid) {
      this.#refuse(channel, `process ${hello.pid} said that it is the template`);
      return;
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
    this.#openOutput(0);
    const { metric, startMethod, maxRowBytes } = this.options;
    channel.send(configure(metric, startMethod, maxRowBytes));
    this.events.hello(hello);
  }

  #adoptWorker(channel: Channel, hello: Hello): void {
    const { worker } = hello;
    if (worker === 0 || !this.#outputs.has(worker)) {
      this.#refuse(channel, `process ${hello.pid} said that it is worker ${worker}, which is not expected`);
      return;
    }
    this.#openOutput(worker);
    const outbox = this.#openOutbox(worker);
    if (outbox === undefined) {
      channel.destroy();
      return;
    }
    const { metric, startMethod, maxRowBytes } = this.options;
    if (startMethod === "spawn") channel.send(configure(metric, startMethod, maxRowBytes));
    this.events.connected(worker, { hello, receivedAt: performance.now(), channel, outbox });
  }

  #message(message: FromPython): void {
    switch (message.type) {
      case "loaded":
        this.events.loaded(message.metric, message.fork_hazards);
        return;
      case "ready":
        this.#isReady = true;
        this.events.ready();
        return;
      case "started":
        this.#openOutput(message.worker);
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
    }
  }

  /** A template that can no longer be talked to is of no use; one that is dying gets the time to say how. */
  #broken(why: string): void {
    if (this.#stopping) return;
    this.#killTimer ??= setTimeout(() => {
      this.options.log.warn({ pid: this.#child.pid }, `the template is killed: ${why}`);
      this.#kill();
    }, LAST_WORDS_MS);
  }

  #openOutbox(worker: number): Outbox | undefined {
    try {
      return new FileOutbox(this.#folder.box(worker));
    } catch (error) {
      this.options.log.error({ err: error, worker }, "a worker's outbox cannot be opened; the worker is ended");
      return undefined;
    }
  }

  #openOutput(worker: number): void {
    if (this.#outputs.get(worker) !== undefined || !this.#outputs.has(worker)) return;
    try {
      const output = new ProcessOutput(this.#folder.output(worker), (line) => {
        this.events.output(worker, line);
      });
      this.#outputs.set(worker, output);
    } catch (error) {
      this.options.log.warn({ err: error, worker }, "what a Python process prints cannot be read");
    }
  }
}

function configure(metric: string, startMethod: "fork" | "spawn", maxRowBytes: number): ToPython {
  return {
    type: "configure",
    metric,
    start_method: startMethod,
    max_row_bytes: maxRowBytes,
    environment: ONE_THREAD,
  };
}

async function within(milliseconds: number, promise: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, milliseconds)));
  await Promise.race([promise, late]);
  clearTimeout(timer);
}
