import { stripVTControlCharacters } from "node:util";

import pc from "picocolors";

/** Colours for what goes to a terminal, or anywhere where `FORCE_COLOR` asks for them; none under `NO_COLOR`. */
function colorsFor(stream: NodeJS.WriteStream): boolean {
  const isWanted = stream.isTTY || Boolean(process.env["FORCE_COLOR"]);
  return isWanted && pc.isColorSupported;
}

export const stdoutColors = pc.createColors(colorsFor(process.stdout));
export const stderrHasColors = colorsFor(process.stderr);

/** Text of someone else's as one line: no line breaks, and nothing that would steer the terminal. */
export function oneLine(text: string): string {
  return stripVTControlCharacters(text)
    .replace(/[\p{Cc}\s\u200E\u200F\u202A-\u202E\u2066-\u2069]+/gu, " ")
    .trim();
}

/** Text of someone else's with its line breaks, and nothing else that would steer the terminal. */
export function severalLines(text: string): string[] {
  return stripVTControlCharacters(text)
    .split("\n")
    .map((line) => line.replaceAll("\t", "    ").replace(/[\p{Cc}\u200E\u200F\u202A-\u202E\u2066-\u2069]+/gu, ""));
}

/** The beginning of the text that fits so many columns, with a mark where it was cut. */
export function cutToWidth(text: string, width: number): string {
  let used = 0;
  let kept = "";
  let keptBeforeMark = "";
  for (const { segment } of new Intl.Segmenter("en").segment(text)) {
    used += widthOf(segment);
    if (used > width) return `${keptBeforeMark}…`;
    kept += segment;
    if (used < width) keptBeforeMark = kept;
  }
  return kept;
}

/** The beginning and the end of the text that fit so many columns, with a mark where the middle was cut out. */
export function cutMiddle(text: string, width: number): string {
  const segments = segmentsOf(text);
  if (widthOfAll(segments) <= width) return text;
  const room = Math.max(0, Math.floor((width - 1) / 2));
  let begin = segments.length;
  while (begin > 0 && widthOfAll(segments.slice(begin - 1)) <= room) begin -= 1;
  const end = segments.slice(begin);
  return cutToWidth(text, width - widthOfAll(end)) + end.join("");
}

function segmentsOf(text: string): string[] {
  return Array.from(new Intl.Segmenter("en").segment(text), ({ segment }) => segment);
}

function widthOfAll(segments: readonly string[]): number {
  return segments.reduce((sum, segment) => sum + widthOf(segment), 0);
}

/** Columns that a character takes: East Asian wide ones and emoji take two. */
function widthOf(segment: string): number {
  return WIDE.test(segment) ? 2 : 1;
}

const WIDE =
  /[\u1100-\u115F\u2E80-\u303E\u3041-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF00-\uFF60\uFFE0-\uFFE6]|\p{Emoji_Presentation}|[\u{20000}-\u{3FFFD}]/u;
