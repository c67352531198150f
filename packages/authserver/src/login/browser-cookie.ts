import { createHash, randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

export interface CookieOptions {
  readonly isSecure: boolean
  readonly maxAgeSeconds?: number
}

/** With the prefix that browsers take only from the host itself, over https (RFC 6265bis §4.1.3.2). */
export function cookieName(name: string, isSecure: boolean): string {
  return isSecure ? `__Host-${name}` : name
}

/** Ties everything that happens in a login to one browser. */
const BROWSER = 'thv_browser'
const BROWSER_SECONDS = 400 * 24 * 3_600
const ID = /^[\w-]{43}$/

export function readCookie(request: IncomingMessage, plainName: string, isSecure: boolean): string | undefined {
  const name = cookieName(plainName, isSecure)
  for (const part of (request.headers.cookie ?? '').split(';')) {
    const at = part.indexOf('=')
    if (at > 0 && part.slice(0, at).trim() === name) return part.slice(at + 1).trim()
  }
  return undefined
}

export function cookieLine(name: string, value: string, { isSecure, maxAgeSeconds }: CookieOptions): string {
  const age = maxAgeSeconds === undefined ? '' : `; Max-Age=${maxAgeSeconds}`
  return `${cookieName(name, isSecure)}=${value}; Path=/; HttpOnly; SameSite=Lax${isSecure ? '; Secure' : ''}${age}`
}

/** The id of this browser; with `setCookie` where it had none. */
export function browserOf(request: IncomingMessage, isSecure: boolean): { readonly id: string; readonly setCookie?: string } {
  const known = knownBrowser(request, isSecure)
  if (known !== undefined) return { id: known }
  const id = randomBytes(32).toString('base64url')
  return { id, setCookie: cookieLine(BROWSER, id, { isSecure, maxAgeSeconds: BROWSER_SECONDS }) }
}

/** Undefined: this browser was never here. */
export function knownBrowser(request: IncomingMessage, isSecure: boolean): string | undefined {
  const known = readCookie(request, BROWSER, isSecure)
  return known !== undefined && ID.test(known) ? known : undefined
}

/** The stored form of a browser id. */
export function browserHash(id: string): string {
  return createHash('sha256').update(id).digest('base64url')
}
