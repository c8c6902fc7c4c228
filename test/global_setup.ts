import { hasShared, sharedFile } from "./e2e/shared.js";
import { installCommand, isWanted, OPTIONAL_PROGRAMS } from "./optional_programs.js";
import { hasPythonClients, INSTALL_PYTHON_CLIENTS } from "./python_clients.js";

/** Run once, before all tests; what it returns is run after all, where its words are not lost among theirs. */
export default function setup(): () => void {
  return () => {
    for (const line of leftOut()) console.log(line);
  };
}

function leftOut(): string[] {
  const programs = OPTIONAL_PROGRAMS.filter((name) => !isWanted(name)).map(
    (name) => `Left out: tests that need ${name}. To run them, install it: ${installCommand(name)}`,
  );
  const clients = hasPythonClients()
    ? []
    : [`Left out: tests of Python's model clients. To run them: ${INSTALL_PYTHON_CLIENTS}`];
  if (hasShared()) return [...programs, ...clients];
  return [
    ...programs,
    ...clients,
    `Left out: tests that need the contract's vectors or GSM8K. To run them, set SKYNET_SHARED: there is no ${sharedFile()}.`,
  ];
}
