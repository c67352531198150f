export type Env = Readonly<Record<string, string | undefined>>

/** The server is somebody else's program: it gets what a program needs to run here, and nothing that this process was trusted with. */
const INHERITED = new Set(
  [
    ['PATH', 'HOME', 'USER', 'LOGNAME', 'TMPDIR', 'TMP', 'TEMP', 'TZ', 'LANG', 'LANGUAGE'],
    ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY', 'http_proxy', 'https_proxy', 'all_proxy', 'no_proxy'],
    ['SSL_CERT_FILE', 'SSL_CERT_DIR', 'NODE_EXTRA_CA_CERTS'],
  ].flat(),
)

/** Where packages come from. For installers only: some hold credentials. */
const INSTALLER =
  /^(?:npm_config_|pip_|uv_(?:cache_dir|config_file|default_index|index|index_url|extra_index_url|native_tls|offline|python|tool_dir|no_config)$|xdg_config_home$)/i

export function inheritedEnvironment(env: Env): Record<string, string> {
  return pick(env, (name) => INHERITED.has(name) || name.startsWith('LC_'))
}

export function installerEnvironment(env: Env): Record<string, string> {
  return { ...inheritedEnvironment(env), ...pick(env, (name) => INSTALLER.test(name)) }
}

function pick(env: Env, wanted: (name: string) => boolean): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined && wanted(entry[0])))
}
