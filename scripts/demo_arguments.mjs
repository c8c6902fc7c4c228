import { join } from "node:path";

const example = join("examples", "support-tickets");

/** What the demo gives to the command, in the repository's top folder. */
export const demoArguments = [
  "score",
  ...["--metric", join(example, "metric.py")],
  ...["--cases", join(example, "tickets.csv")],
  ...["--id-column", "id"],
  ...["--input-columns", "subject,message"],
  ...["--output-columns", "category,priority"],
  ...["--prediction-column", "prediction"],
];
