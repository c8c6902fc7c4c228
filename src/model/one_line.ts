/** A text of somebody else's as part of a message: one line, no control characters, at most `most` characters. */
export function oneLine(text: string, most = MOST_CHARACTERS): string {
  const line = text
    .slice(0, most * 4)
    .replace(BLANKS, " ")
    .trim();
  return line.length <= most ? line : `${line.slice(0, most - 1)}…`;
}

const MOST_CHARACTERS = 500;
/** Whitespace, control characters, and what starts a new line or turns the direction of writing. */
const BLANKS = /[\s\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu;
