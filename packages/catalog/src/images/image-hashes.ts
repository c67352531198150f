import { createHash } from 'node:crypto'
import { parseImageReference } from './image-reference.ts'

/*
 * Images as hashes of their normalized references: a list of them can be compared with, and tells nothing to a reader who may not see the
 * entries. Tags must be equal; a digest counts only where both sides have one.
 */

/** Hashes under which a registry lists an image. None for a text that is no image reference. */
export function listedHashes(image: string): string[] {
  const reference = parseImageReference(image)
  if (reference === undefined) return []
  const { tagged, digest } = reference
  if (digest === undefined) return [hash(`any ${tagged}`)]
  return [hash(`digest ${tagged}@${digest}`), ...(hasTag(tagged) ? [hash(`tag ${tagged}`)] : [])]
}

/** Whether a list of such hashes has this image. */
export function isListed(image: string, hashes: ReadonlySet<string>): boolean {
  const reference = parseImageReference(image)
  if (reference === undefined) return false
  const { tagged, digest } = reference
  if (hashes.has(hash(`any ${tagged}`))) return true
  return hashes.has(hash(digest === undefined ? `tag ${tagged}` : `digest ${tagged}@${digest}`))
}

function hasTag(tagged: string): boolean {
  return tagged.lastIndexOf(':') > tagged.lastIndexOf('/')
}

/** 128 bits: short, and too many to find another image with the same hash. */
const HASH_BYTES = 16

function hash(text: string): string {
  return createHash('sha256').update(text).digest().subarray(0, HASH_BYTES).toString('base64url')
}
