import type { RunConfig } from '@thv/runconfig/run-config'
import { runtimeError } from '../runtime-errors.ts'

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
const INSTALLER = /^(?:npm_config_|uv_(?:cache_dir|default_index|index|index_url|extra_index_url|offline|python|tool_dir|no_config)$)/i

export function inheritedEnvironment(env: Env): Record<string, string> {
  return pick(env, (name) => INHERITED.has(name) || name.startsWith('LC_'))
}

export function installerEnvironment(env: Env): Record<string, string> {
  return { ...inheritedEnvironment(env), ...pick(env, (name) => INSTALLER.test(name)) }
}

/** Inherited < env_vars < secrets < what the transport demands: a server that listened elsewhere would never be found. */
export function serverEnvironment(config: RunConfig, env: Env, port: number | undefined): Record<string, string> {
  return { ...inheritedEnvironment(env), ...config.env_vars, ...secretVariables(config, env), ...transportVariables(config, port) }
}

function transportVariables({ transport }: RunConfig, port: number | undefined): Record<string, string> {
  if (port === undefined) return { MCP_TRANSPORT: transport }
  return { MCP_TRANSPORT: transport, MCP_PORT: String(port), FASTMCP_PORT: String(port), MCP_HOST: '127.0.0.1' }
}

/** `NAME,target=VARIABLE`: the value comes from our own environment, as with the original's environment provider. */
function secretVariables({ secrets }: RunConfig, env: Env): Record<string, string> {
  return Object.fromEntries(
    secrets.map((reference) => {
      const [name = '', target = ''] = reference.split(',target=')
      const source = `TOOLHIVE_SECRET_${name}`
      const value = env[source]
      if (value === undefined)
        throw runtimeError('runtime_unsuitable', `secrets: the variable ${source}, which holds the value of ${target}, is not set`)
      return [target, value]
    }),
  )
}

function pick(env: Env, wanted: (name: string) => boolean): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined && wanted(entry[0])))
}
