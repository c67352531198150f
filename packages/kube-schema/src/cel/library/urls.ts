import { type Library, RuleError } from './define.ts'

class CelUrl {
  readonly scheme: string
  readonly authority: string
  readonly path: string
  readonly query: string

  constructor(scheme: string, authority: string, rest: { path: string; query: string }) {
    this.scheme = scheme
    this.authority = authority
    this.path = rest.path
    this.query = rest.query
  }
}

export const urls: Library = {
  types: { 'kubernetes.URL': CelUrl },
  functions: {
    'url(string): kubernetes.URL': (text: string) => {
      const parsed = parseUrl(text)
      if (!parsed) throw new RuleError(`URL parse error during conversion from string: parse "${text}": invalid URI for request`)
      return parsed
    },
    'isURL(string): bool': (text: string) => parseUrl(text) !== undefined,
    'kubernetes.URL.getScheme(): string': (url: CelUrl) => url.scheme,
    'kubernetes.URL.getHost(): string': (url: CelUrl) => url.authority.replace(/^.*@/, ''),
    'kubernetes.URL.getHostname(): string': (url: CelUrl) => hostAndPort(url).host,
    'kubernetes.URL.getPort(): string': (url: CelUrl) => hostAndPort(url).port,
    'kubernetes.URL.getEscapedPath(): string': (url: CelUrl) => url.path,
    'kubernetes.URL.getQuery(): map<string, list<string>>': (url: CelUrl) => {
      const query = new Map<string, string[]>()
      for (const [key, value] of new URLSearchParams(url.query)) query.set(key, [...(query.get(key) ?? []), value])
      return query
    },
  },
}

/** Go's url.ParseRequestURI, as far as rules can see it. */
function parseUrl(text: string): CelUrl | undefined {
  if (/[\p{Cc} ]/u.test(text) || /%(?![0-9A-Fa-f]{2})/.test(text)) return undefined
  const match = /^(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?:\/\/([^/?]*))?([^?]*)(?:\?(.*))?$/.exec(text)
  if (!match) return undefined
  const [, scheme = '', authority = '', path = '', query = ''] = match
  if (scheme === '' && !text.startsWith('/')) return undefined
  if (!/^(?:[^@[\]]*@)?(?:\[[0-9A-Fa-f:.%]+\]|[^:[\]@]*)(?::\d*)?$/.test(authority)) return undefined
  return new CelUrl(scheme.toLowerCase(), authority, { path, query })
}

function hostAndPort(url: CelUrl): { host: string; port: string } {
  const [, host = '', port = ''] = /^(?:.*@)?(\[[^\]]*\]|[^:]*)(?::(\d*))?$/.exec(url.authority) ?? []
  return { host: host.replace(/^\[|\]$/g, ''), port }
}
