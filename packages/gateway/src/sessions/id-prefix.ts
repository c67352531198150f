import { randomBytes } from 'node:crypto'

/** Begins every id that one object gives out, so that ids of another, or of an earlier process, are never taken for its own. */
export function mintMark(): string {
  return randomBytes(6).toString('base64url')
}
