import { createHash } from 'node:crypto'
import type { Claims } from '@thv/catalog/sources/fetch/source-config'

/** Of a token. */
export interface HeldClaims {
  readonly [name: string]: unknown
}

/**
 * Differ from token to token of the same person. Gates do not know them, so that all tokens of one person see the same
 * (see `claimsKey`): an entry that requires one of these is hidden from all.
 */
const OF_ONE_TOKEN: ReadonlySet<string> = new Set([
  'jti',
  'sid',
  'nonce',
  'at_hash',
  'c_hash',
  's_hash',
  'uti',
  'rh',
  'aio',
  'session_state',
])

/** Reading: each claim of the thing is held with one of its values; an empty list asks for the claim alone. No claims: hidden. */
export function covers(held: HeldClaims, claims: Claims | undefined): boolean {
  return gate(held, claims, (values, has) => values.length === 0 || values.some(has))
}

/** Writing: each claim of the thing is held with all of its values. */
export function coversAll(held: HeldClaims, claims: Claims | undefined): boolean {
  return gate(held, claims, (values, has) => values.every(has))
}

/** One claim set of a role. Unlike in a gate, an empty list is a mistake that must not open a door: it never matches. */
export function matchesRole(held: HeldClaims, claims: Claims): boolean {
  return gate(held, claims, (values, has) => values.some(has))
}

/** Equal for callers whom every gate treats alike. */
export function claimsKey(held: HeldClaims): string {
  const relevant = Object.keys(held)
    .sort()
    .flatMap((name) => {
      const values = heldValues(held, name)
      return values === undefined ? [] : [[name, [...new Set(values)].sort()]]
    })
  return createHash('sha256').update(JSON.stringify(relevant)).digest('base64url')
}

function gate(
  held: HeldClaims,
  claims: Claims | undefined,
  isMet: (values: readonly string[], has: (value: string) => boolean) => boolean,
): boolean {
  const wanted = Object.entries(claims ?? {})
  return (
    wanted.length > 0 &&
    wanted.every(([name, value]) => {
      const values = textsOf(value)
      const own = heldValues(held, name)
      return values !== undefined && own !== undefined && isMet(values, (text) => own.includes(text))
    })
  )
}

function heldValues(held: HeldClaims, name: string): readonly string[] | undefined {
  return Object.hasOwn(held, name) && !OF_ONE_TOKEN.has(name) ? textsOf(held[name]) : undefined
}

/** Undefined for what is neither a text nor a list of texts: it can neither open a gate nor be opened. */
function textsOf(value: unknown): readonly string[] | undefined {
  if (typeof value === 'string') return [value]
  return Array.isArray(value) && value.every((one) => typeof one === 'string') ? value : undefined
}
