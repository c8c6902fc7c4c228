import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Writes so many cases, each with a `question` and an `answer`, to a file that is there while `use` runs. */
export async function withCaseFile<T>(count: number, use: (path: string, folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "skynet-bench-"));
  try {
    const path = join(folder, "cases.jsonl");
    const lines = Array.from({ length: count }, (_, index) => {
      return `${JSON.stringify({ question: `What is ${index} + 1?`, answer: String(index + 1) })}\n`;
    });
    writeFileSync(path, lines.join(""));
    return await use(path, folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The columns of that file, as options. */
export const COLUMNS = ["--input-columns", "question", "--prediction-column", "answer"] as const;
