import { hash } from 'node:crypto'
import type { Identity } from '@thv/auth/incoming/authenticator'

/** One text for one subject of one issuer, whatever they are called. Sessions and limits are keyed by it. */
export function principalOf({ issuer, subject }: Pick<Identity, 'issuer' | 'subject'>): string {
  return hash('sha256', JSON.stringify([issuer, subject]), 'base64url')
}
