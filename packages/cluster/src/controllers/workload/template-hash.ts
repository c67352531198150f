/** The text that only a change of content changes: members in order, undefined ones left out. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  )
}

/** FNV-1a, 32 bits. */
export function fnv1a(bytes: Uint8Array, start = OFFSET): number {
  let hash = start
  for (const byte of bytes) hash = Math.imul(hash ^ byte, PRIME) >>> 0
  return hash
}

/** FNV-1, 32 bits: multiplies first. */
export function fnv1(bytes: Uint8Array, start = OFFSET): number {
  let hash = start
  for (const byte of bytes) hash = (Math.imul(hash, PRIME) ^ byte) >>> 0
  return hash
}

/** A number as a part of a name: no vowels and nothing that looks like one, so that no words come out. */
export function safeName(hash: number): string {
  return [...String(hash)].map((digit) => SAFE[digit.charCodeAt(0) % SAFE.length]).join('')
}

/** Of a pod template: the same on every start, another one after a collision. */
export function templateHash(template: unknown, collisionCount: number | undefined): string {
  const hash = fnv1a(Buffer.from(canonicalJson(template)))
  if (collisionCount === undefined) return safeName(hash)
  const count = Buffer.alloc(8)
  count.writeUInt32LE(collisionCount)
  return safeName(fnv1a(count, hash))
}

const OFFSET = 0x811c9dc5
const PRIME = 0x01000193
const SAFE = 'bcdfghjklmnpqrstvwxz2456789'
