import { ThvError } from '@thv/kernel/errors'

export interface ServerUrl {
  readonly origin: string
  /** Path before every request path, without a slash at the end; empty for nearly every server. */
  readonly prefix: string
  readonly mayCarryCredentials: boolean
}

/** Takes a server address apart. The address itself is not in the message: it may hold a password, which is one reason to refuse it. */
export function vetServer(server: string): ServerUrl {
  const url = URL.canParse(server) ? new URL(server) : undefined
  if (url === undefined || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
    throw new ThvError('kubeconfig_invalid', 'the server address is not an http(s) URL')
  }
  if (url.username !== '' || url.password !== '') throw new ThvError('kubeconfig_invalid', 'the server address holds credentials')
  if (url.search !== '' || url.hash !== '') throw new ThvError('kubeconfig_invalid', 'the server address holds a query or fragment')
  return {
    origin: url.origin,
    prefix: url.pathname.replace(/\/+$/, ''),
    mayCarryCredentials: url.protocol === 'https:' || isLoopback(url.hostname),
  }
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname)
}
