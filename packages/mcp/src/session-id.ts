import { randomBytes } from 'node:crypto'

/** More than any server is known to use; bounds what a client can make us look up. */
const MAX_LENGTH = 256

/** 192 bits from the system's generator, in letters, digits, `-` and `_`. An id is no proof of identity: it is bound to its principal. */
export function mintSessionId(): string {
  return randomBytes(24).toString('base64url')
}

/** Visible ASCII only. What is not valid cannot be one of ours and need not be looked up. */
export function isValidSessionId(id: unknown): id is string {
  return typeof id === 'string' && id.length <= MAX_LENGTH && /^[\x21-\x7e]+$/.test(id)
}
