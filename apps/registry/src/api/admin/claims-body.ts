import type { ObjectReader } from '@thv/catalog/object-reader'
import type { Claims } from '@thv/catalog/sources/fetch/source-config'

/** The member `claims` of a body. */
export function readClaims(reader: ObjectReader, rule: { readonly required?: boolean } = {}): Claims | undefined {
  const claims = reader.child('claims', rule, (map) => {
    for (const [name, value] of Object.entries(map.object)) {
      const list = Array.isArray(value) ? value : [value]
      if (list.length === 0 || list.some((item) => typeof item !== 'string')) map.problem(name, 'must be a string or a list of strings')
    }
  })
  return claims as Claims | undefined
}

/** The same claims, whichever order they are written in. */
export function sameClaims(a: Claims | undefined, b: Claims | undefined): boolean {
  return canonical(a) === canonical(b)
}

function canonical(claims: Claims = {}): string {
  const entries = Object.entries(claims).map(
    ([name, value]) => [name, typeof value === 'string' ? [value] : [...new Set(value)].sort()] as const,
  )
  return JSON.stringify(entries.sort(([a], [b]) => (a < b ? -1 : 1)))
}
