import { createHash } from 'node:crypto'

/** The same person at the same provider is the same account, on every replica and after every restart. */
export function accountOf(issuer: string, provider: string, subject: string): string {
  const hash = createHash('sha256')
    .update(JSON.stringify([issuer, provider, subject]))
    .digest()
  const hex = hash.toString('hex')
  const variant = ((Number.parseInt(hex.slice(16, 17), 16) & 0x3) | 0x8).toString(16)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}
