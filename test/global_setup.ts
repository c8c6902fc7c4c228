import { hasShared, sharedFile } from "./e2e/shared.js";
import { installCommand, isWanted, OPTIONAL_PROGRAMS } from "./optional_programs.js";

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
  if (hasShared()) return programs;
  return [
    ...programs,
    `Left out: tests that need the contract's vectors or GSM8K. To run them, set SKYNET_SHARED: there is no ${sharedFile()}.`,
  ];
}
