/**
 * Everybody on the machine can read a process's arguments. Run code looks at those of its parents' too, and is not to find there where the
 * metric and the cases are: from here on they show the program's name alone.
 */
export function hideArguments(): void {
  process.title = "skynet-scorer";
}
