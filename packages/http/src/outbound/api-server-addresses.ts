import { isLoopbackHost, parseAuthority } from '../authority.ts'

export interface ApiServerLocation {
  readonly env: Readonly<Record<string, string | undefined>>
  /** URL of the API server that the process itself talks to, as its kubeconfig says. */
  readonly server?: string | undefined
}

/**
 * The addresses of the Kubernetes API server as far as the process knows them, for `AddressPolicy.blockedAddresses`. On loopback, which
 * others share, only with the port.
 */
export function apiServerAddresses({ env, server }: ApiServerLocation): string[] {
  const host = env['KUBERNETES_SERVICE_HOST']
  const port = env['KUBERNETES_SERVICE_PORT']
  const urls = [host && `https://${host.includes(':') ? `[${host}]` : host}${port ? `:${port}` : ''}`, server]
  return [...new Set(urls.flatMap((url) => (url ? addressOf(url) : [])))]
}

function addressOf(text: string): string[] {
  const url = URL.parse(text)
  const authority = url === null ? undefined : parseAuthority(url.hostname)
  if (url === null || authority === undefined) return []
  if (!isLoopbackHost(authority.host)) return [authority.host]
  return [`${authority.host}:${url.port || (url.protocol === 'https:' ? '443' : '80')}`]
}
