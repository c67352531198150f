import type { RegistryConfig } from '../config/registry-config.ts'
import type { Served } from './serve.ts'

/** Lines for people who start a server by hand. */
export function startLines(
  { address, internalAddress, config }: Pick<Served, 'address' | 'internalAddress' | 'config'>,
  file: string | undefined,
): string[] {
  const url = reachable(address.url)
  const first = config.registries[0]?.name ?? ''
  const authorization = config.auth.mode === 'oauth' ? '-H "Authorization: Bearer $TOKEN" ' : ''
  return [
    `${config.registryName ?? 'MCP registry'} is served at ${url}`,
    `  configuration  ${file ?? 'none: the bundled catalog, and a place to publish'}`,
    `  registries     ${config.registries.map(({ name, sources }) => `${name} (${sources.join(', ')})`).join('; ')}`,
    `  access         ${accessText(config)}`,
    `  store          ${storeText(config)}`,
    ...(internalAddress ? [`  probes         ${reachable(internalAddress.url)}/readiness`] : []),
    `  ask            curl ${authorization}'${url}/registry/${first}/v0.1/servers?limit=5'`,
    `  search         curl ${authorization}'${url}/registry/${first}/v0.1/x/dev.toolhive/search?q=files'`,
  ]
}

function accessText({ auth }: RegistryConfig): string {
  if (auth.mode === 'oauth') return `tokens of ${auth.oauth?.providers.map(({ name }) => name).join(', ')}`
  return auth.writeTokenFile === undefined ? 'anonymous' : `anonymous; writing needs the token in ${auth.writeTokenFile}`
}

export function storeText({ storage }: RegistryConfig): string {
  if (storage.kind === 'postgres') return `PostgreSQL ${storage.database} at ${storage.host}:${storage.port}`
  return storage.path ?? 'memory: what is published is lost at the end'
}

/** All addresses of a machine are no address to call. */
function reachable(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')
}
