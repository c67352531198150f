const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]'])
const MAX_URI = 2_048
/** RFC 8252 §7.1: a private-use scheme is a reversed domain name. */
const PRIVATE_SCHEME = /^[a-z][a-z0-9+-]*(\.[a-z0-9+-]+)+:$/
/** Schemes that applications have claimed without a dot. A page must never be started by one of the browser's own. */
const KNOWN_SCHEMES = new Set(['cursor:', 'vscode:', 'vscode-insiders:', 'windsurf:', 'claude:', 'zed:', 'warp:'])

export type RedirectKind = 'https' | 'loopback' | 'private'

/** Undefined: must not be registered (RFC 9700 §2.1, RFC 8252 §7). */
export function redirectKind(text: string): RedirectKind | undefined {
  if (text.length > MAX_URI || /[\s\\*]|[^\x21-\x7e]/.test(text) || text.includes('#')) return undefined
  const url = URL.parse(text)
  if (url === null || url.username !== '' || url.password !== '' || /^[a-z][a-z0-9+.-]*:\/\/[^/?]*@/i.test(text)) return undefined
  if (/%2e/i.test(text) || hasDots(text)) return undefined
  if (url.protocol === 'https:') return url.hostname === '' ? undefined : 'https'
  if (url.protocol === 'http:') return LOOPBACK.has(url.hostname) && isSpelled(text, url) ? 'loopback' : undefined
  return PRIVATE_SCHEME.test(url.protocol) || KNOWN_SCHEMES.has(url.protocol) ? 'private' : undefined
}

/** Other spellings, such as 127.1 or LOCALHOST, are what the parser makes of them and not what a client compares with. */
function isSpelled(text: string, url: URL): boolean {
  return text.startsWith(`http://${url.host}`)
}

function hasDots(text: string): boolean {
  const [path = ''] = text.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?]*/i, '').split('?')
  return path.split('/').some((segment) => segment === '.' || segment === '..')
}

/** A redirect URI without what a client may choose for each login: the port of a loopback address. */
export function withoutLoopbackPort(text: string): string {
  const url = URL.parse(text)
  if (url === null || url.protocol !== 'http:' || !LOOPBACK.has(url.hostname)) return text
  url.port = ''
  return url.href
}
