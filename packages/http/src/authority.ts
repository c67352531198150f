/** A host with an optional port: what a Host header, an Origin and an allow-list entry have in common. */
export interface Authority {
  /** Lower case, without a trailing dot; an IPv6 address in brackets, in its canonical spelling. */
  readonly host: string
  /** '' when none was given. */
  readonly port: string
}

const NAME = /^[a-z0-9_]([a-z0-9._-]*[a-z0-9_])?$/
const NUMERIC_END = /(^|\.)([0-9]+|0x[0-9a-f]*)$/
const PORT = /^[0-9]{1,5}$/

/** Undefined for whatever is not exactly host[:port]: user-info, paths, spaces, escapes, zone ids, a second colon. */
export function parseAuthority(text: string): Authority | undefined {
  const bracketed = text.startsWith('[')
  const end = bracketed ? text.indexOf(']') + 1 : hostEnd(text)
  const rest = text.slice(end)
  const port = rest.startsWith(':') ? rest.slice(1) : ''
  if (end <= 0 || (rest !== '' && !rest.startsWith(':')) || !isPort(port)) return undefined
  const host = bracketed ? canonicalIPv6(text.slice(0, end)) : canonicalName(text.slice(0, end))
  return host === undefined ? undefined : { host, port }
}

/** 127.0.0.0/8, ::1 and localhost, as a parsed host or as an address to listen on. */
export function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || host === '::1' || /^127(\.[0-9]{1,3}){3}$/.test(host)
}

function hostEnd(text: string): number {
  const colon = text.indexOf(':')
  return colon < 0 ? text.length : colon
}

function isPort(port: string): boolean {
  return port === '' || (PORT.test(port) && Number(port) <= 65_535)
}

function canonicalName(text: string): string | undefined {
  const name = text.toLowerCase()
  const host = name.endsWith('.') ? name.slice(0, -1) : name
  if (!NAME.test(host) || host.length > 253 || host.includes('..')) return undefined
  // A name that ends in a number is an IPv4 address or nothing (WHATWG URL, "ends in a number checker"): clients would not agree on it.
  return NUMERIC_END.test(host) && URL.parse(`http://${host}/`)?.hostname !== host ? undefined : host
}

function canonicalIPv6(bracketed: string): string | undefined {
  if (!/^\[[0-9a-fA-F:.]+\]$/.test(bracketed)) return undefined
  return URL.parse(`http://${bracketed}/`)?.hostname
}
