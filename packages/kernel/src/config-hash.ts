import { createHash } from 'node:crypto'

/**
 * The same for the same JSON, whatever the order of its members; members that are undefined count as absent. For telling whether
 * something changed, not for keeping secrets: whatever is hashed can be guessed at, so never hash one.
 */
export function configHash(value: unknown): string {
  return createHash('sha256').update(canonicalJson(value)).digest('hex').slice(0, HASH_LENGTH)
}

const HASH_LENGTH = 16

/** JSON with the members of every object in the order of their names. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) => (isPlainObject(member) ? sorted(member) : member)) ?? 'null'
}

function sorted(object: Readonly<Record<string, unknown>>): Record<string, unknown> {
  // Without a prototype: a member called __proto__ is a member like any other.
  const result: Record<string, unknown> = Object.create(null)
  for (const key of Object.keys(object).sort()) result[key] = object[key]
  return result
}

function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
