/** What `--help` says beyond the options. */

export const PROGRAM_HELP = `
A metric is a Python file with a function

  def score(input, output, expected=None):
      return 1.0, {"feedback": "Correct."}

Examples:
  $ skynet-scorer check --metric metric.py --cases cases.csv --prediction-column answer
  $ skynet-scorer score --metric metric.py --cases cases.csv --prediction-column answer --output-columns label
  $ skynet-scorer serve --metric metric.py

Every option can be given as a variable too: --metric-timeout is SKYNET_SCORER_METRIC_TIMEOUT. An option wins
over its variable. Lists take commas: SKYNET_SCORER_LISTEN=localhost:50051,unix:/tmp/scorer.sock
`;

export const EXIT_HELP = `
Exit codes:
  0    done, and nothing was wrong
  1    a case ended in an error, a check failed, or the sidecar could not do its work
  2    an option, a variable or the case file is not right; nothing was started
  130  a signal ended it early
`;

export const SERVE_HELP = `
The first line on standard output is one JSON object: the addresses that were bound, the process id, the metric's
fingerprint and whether it is loaded. Logs go to standard error.

Signals:
  SIGTERM, SIGINT  stop; running cases may finish (--drain-timeout). A second one ends it at once.
  SIGHUP           load the metric again; calls that run keep the one they began with.

Models: llm() in the metric, and run code through the sidecar's gateway, reach the provider with the key that the
sidecar alone holds; the sidecar measures what they use and cost. docs/models.md and docs/runs.md have the rest.

Examples:
  $ skynet-scorer serve --metric metric.py
  $ skynet-scorer serve --metric metric.py --listen unix:/tmp/scorer.sock --watch
  $ OPENAI_API_KEY=… skynet-scorer serve --metric judge.py --metric-model gpt-4o-mini --max-cost 5
  $ skynet-scorer serve --metric metric.py --run run.py
  $ grpcurl -plaintext localhost:50051 list
`;

export const CHECK_HELP = `
The metric is tried on the first three cases; with --run and --artifact the artifact is run on them first. Without
--cases score is never called: what needs cases is skipped, and exit code 0 then says no more than that the file
loads and defines a score that can be called.

Examples:
  $ skynet-scorer check --metric metric.py
  $ skynet-scorer check --metric metric.py --cases cases.csv --prediction-column answer --output-columns label
  $ skynet-scorer check --metric metric.py --run run.py --artifact prompt.txt --cases cases.csv --output-columns label
`;

export const SCORE_HELP = `
Columns: a name is a column of the file, or a dotted path into nested JSON (answer.text); its whole text is then the
key that the metric sees. Without --input-columns the input is every column that no other option names; a path takes
the whole column that it leads into out of the input, so that nothing beside a prediction gives it away. In a CSV
file every cell is text, as it stands. A JSON file holds an array of objects, or an object with one called cases:
{"cases": [...]}.

Of cases that end in an error the log has the first of each kind with its traceback; --log-level debug has all.

Outputs: --prediction-column names those that the file has; --run and --artifact make them, and Skynet measures how
long each run took and what its model calls cost.

Examples:
  $ skynet-scorer score --metric metric.py --cases cases.csv --prediction-column answer --output-columns label
  $ skynet-scorer score --metric metric.py --cases runs.jsonl --prediction-column model.answer \\
      --input-columns question,context --output-columns gold --id-column id --output results.jsonl
  $ OPENAI_API_KEY=… skynet-scorer score --metric judge.py --cases cases.csv --prediction-column answer \\
      --metric-model gpt-4o-mini --max-cost 5
  $ skynet-scorer score --metric metric.py --run run.py --artifact prompt.txt --cases cases.csv --output-columns label
  $ cat cases.jsonl | skynet-scorer score --connect localhost:50051 --cases - --prediction-column answer --json
`;
