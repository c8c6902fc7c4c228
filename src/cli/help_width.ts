/** Columns that help takes on a terminal of so many; `undefined`: there is no terminal. */
export function helpWidth(columns: number | undefined): number {
  return Math.max(LEAST_WIDTH, Math.min(MOST_WIDTH, columns ?? USUAL_WIDTH));
}

/**
 * Breaks a text between words so that no line is wider than `width`. Of lines that follow each other, those that begin without a blank
 * are one paragraph; `  $ command` is a command, whose lines end in a backslash where they are broken; `  term  words` keeps its words
 * below each other; any other line that begins with a blank stands as it is.
 */
export function wrapHelp(text: string, width: number): string {
  return joinLines(text.split("\n"))
    .flatMap((line) => wrapLine(line, width))
    .join("\n");
}

function joinLines(lines: readonly string[]): string[] {
  const joined: string[] = [];
  for (const line of lines) {
    const last = joined.at(-1);
    const goesOn = last !== undefined && (last.endsWith(" \\") || (isProse(last) && isProse(line)));
    if (goesOn) joined[joined.length - 1] = `${last.replace(/ \\$/, "")} ${line.trimStart()}`;
    else joined.push(line);
  }
  return joined;
}

function isProse(line: string): boolean {
  return /^\S/.test(line) && !/^[A-Z][a-z]+( [a-z]+)*:$/.test(line);
}

function wrapLine(line: string, width: number): string[] {
  if (line.startsWith("  $ ")) return wrapWords(line, width, "      ", " \\");
  const term = /^ {2}\S+(?:,? \S+)* {2,}(?=\S)/.exec(line)?.[0];
  if (term !== undefined) return wrapWords(line, width, " ".repeat(term.length), "");
  return isProse(line) ? wrapWords(line, width, "", "") : [line];
}

function wrapWords(line: string, width: number, indent: string, lineEnd: string): string[] {
  const lines: string[] = [];
  let current = "";
  // An option and its value stay together, and so do the blanks that set a term apart.
  for (const piece of line.match(/\s*(?:--\S+ (?!-)\S+|\S+)/g) ?? []) {
    if (current !== "" && current.length + piece.length + lineEnd.length > width) {
      lines.push(current + lineEnd);
      current = indent + piece.trimStart();
    } else current += piece;
  }
  return [...lines, current];
}

const USUAL_WIDTH = 80;
const MOST_WIDTH = 100;
/** Narrower ones are broken by the terminal. */
const LEAST_WIDTH = 40;
