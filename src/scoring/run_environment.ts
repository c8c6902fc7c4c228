/** Where a run reaches models, and as whom. Older clients read the second name for the address. */
export function gatewayVariables(url: string, token: string): Readonly<Record<string, string>> {
  return { OPENAI_BASE_URL: url, OPENAI_API_BASE: url, OPENAI_API_KEY: token };
}

/** Run code reaches the gateway, which is on this machine, past any proxy that `inherited` or `changed` names. */
export function pastProxies(
  inherited: NodeJS.ProcessEnv,
  changed: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string>> {
  const given = { ...inherited, ...changed };
  const hosts = [given["no_proxy"], given["NO_PROXY"], GATEWAY_HOST].filter(
    (list) => list !== undefined && list !== "",
  );
  const list = [...new Set(hosts)].join(",");
  return { no_proxy: list, NO_PROXY: list };
}

/** Takes every variable out whose name says that it holds a secret: run code reaches models through the gateway, and nobody else as us. */
export function withoutSecrets(inherited: NodeJS.ProcessEnv): Readonly<Record<string, undefined>> {
  const names = Object.keys(inherited).filter((name) => SECRET_NAME.test(name));
  return Object.fromEntries(names.map((name) => [name, undefined]));
}

/** Whole words between underscores: `AWS_SECRET_ACCESS_KEY`, `HF_TOKEN`, `SSH_AUTH_SOCK`, and not `TOKENIZERS_PARALLELISM`. */
const SECRET_NAME =
  /(^|_)(API|ACCESS|PRIVATE)?(KEYS?|SECRETS?|TOKENS?|PASS|(PG|DB)?PASSWORDS?|PASSWD|CREDENTIALS?|CREDS|AUTH)($|_)/i;
const GATEWAY_HOST = "127.0.0.1";
