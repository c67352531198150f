import type { Lookup } from './lookup.ts'

/** Says what is missing and what to do, or nothing when the Secret has the key. Never says what is in it. */
export function missingSecretKey(lookup: Pick<Lookup, 'secret'>, ref: { name: string; key: string }, field: string): string | undefined {
  const secret = lookup.secret(ref.name)
  if (secret === undefined) return `${field} names Secret ${ref.name}, which does not exist: create it with the key ${ref.key}`
  if (!secret.keys.has(ref.key)) return `${field} names key ${ref.key}, which Secret ${ref.name} does not have: add it`
  return undefined
}
