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

const GATEWAY_HOST = "127.0.0.1";
