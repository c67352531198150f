import type { Claims } from '@thv/catalog/sources/fetch/source-config'

/** The same text for the same claims, however they were spelled. */
export function claimsKey(claims: Claims | undefined): string {
  if (claims === undefined) return ''
  const names = Object.keys(claims).sort()
  return JSON.stringify(names.map((name) => [name, valuesOf(claims[name])]))
}

/** One value is the same as a list of it; a list of none is something else. */
function valuesOf(value: string | readonly string[] | undefined): readonly string[] {
  return typeof value === 'object' ? [...new Set(value)].sort() : [value ?? '']
}
