/** What the command's exit codes mean; `--help` says the same. */
export const EXIT = {
  /** Everything that was asked for was done. */
  ok: 0,
  /** A case ended in an error, a check failed, or the sidecar could not do its work. */
  failed: 1,
  /** An option, a variable or a case file is not right; nothing was started. */
  usage: 2,
  /** A signal ended the run early. */
  interrupted: 130,
} as const;

/** Ends the command with one line on standard error. */
export class CommandError extends Error {
  override readonly name: string = "CommandError";

  constructor(
    message: string,
    readonly exitCode: number = EXIT.failed,
  ) {
    super(message);
  }
}

/** What the user gave is not right: an option, a variable, a case file. */
export class UsageError extends CommandError {
  override readonly name = "UsageError";

  constructor(message: string) {
    super(message, EXIT.usage);
  }
}
