import { randomUUID } from 'node:crypto'
import { isObject } from './json-rpc.ts'
import { NEWEST_LEGACY_VERSION } from './versions.ts'
import { type Rejection, reject } from './wire-errors.ts'

/** A client of the handshake era, as it described itself. */
export interface LegacyClient {
  readonly capabilities: unknown
  /** Negotiated. */
  readonly version: string
}

/** Whether a client with these capabilities shows links to its user. Elicitation without a mode means forms alone. */
export function opensLinks(capabilities: unknown): boolean {
  const elicitation = isObject(capabilities) ? capabilities['elicitation'] : undefined
  return isObject(elicitation) && isObject(elicitation['url'])
}

/** The rejection for a client of the handshake era: with links, where it knows them (MCP 2025-11-25, URL elicitation required error). */
export function withLinks(rejection: Rejection, { capabilities, version }: LegacyClient): Rejection {
  const { links = [], detail } = rejection
  if (links.length === 0 || version < NEWEST_LEGACY_VERSION || !opensLinks(capabilities)) return rejection
  const elicitations = links.map(({ url, message }) => ({ mode: 'url', elicitationId: randomUUID(), url, message }))
  const data = { elicitations }
  // The detail is about one login.
  const isWhole = detail !== undefined && links.length === 1
  return reject('url_elicitation_required', { inBand: true, data, ...(isWhole && { detail }) })
}
