import type { Clock } from '@thv/kernel/clock'
import { isObject } from '@thv/kernel/json'
import type { ServerSecrets } from '../keys/server-secrets.ts'

/** The accepted metadata of a registration (RFC 7591 §2). */
export interface RegisteredClient {
  readonly redirect_uris: readonly string[]
  readonly client_name?: string | undefined
  readonly grant_types: readonly string[]
  readonly token_endpoint_auth_method: string
  readonly scope: string
}

export interface SealedClients {
  seal(client: RegisteredClient): { readonly clientId: string; readonly issuedAt: number }
  /** Undefined: not an id of this server, altered, sealed with a secret that was removed, or too old. */
  open(clientId: string): RegisteredClient | undefined
  /** Of a client that has one. */
  secretOf(clientId: string): string
}

const PREFIX = 'c1.'
const PLACE = 'client'
const LIFE_SECONDS = 365 * 24 * 3_600
/** More than any registration that is accepted can become. */
const MAX_ID = 8_192

/** Registrations are not stored: the id of a client is its metadata, sealed. They survive restarts, and a flood of them takes no memory. */
export function createSealedClients(secrets: ServerSecrets, clock: Clock): SealedClients {
  const cipher = secrets.cipher('client ids')
  return {
    seal({ redirect_uris: r, client_name: n, grant_types: g, token_endpoint_auth_method: m, scope: s }) {
      const issuedAt = Math.floor(clock.now() / 1_000)
      const text = JSON.stringify({ r, n, g: g.includes('refresh_token') ? 1 : 0, m, s, t: issuedAt })
      return { clientId: PREFIX + cipher.seal(text, PLACE).toString('base64url'), issuedAt }
    },
    open(clientId) {
      if (!clientId.startsWith(PREFIX) || clientId.length > MAX_ID) return undefined
      const encoded = clientId.slice(PREFIX.length)
      const bytes = Buffer.from(encoded, 'base64url')
      // One spelling for each id: another one would be another client to everything that compares texts.
      const text = bytes.toString('base64url') === encoded ? cipher.open(bytes, PLACE) : undefined
      const value: unknown = text === undefined ? undefined : JSON.parse(text)
      if (!isObject(value) || Number(value['t']) + LIFE_SECONDS < clock.now() / 1_000) return undefined
      const { r, n, g, m, s } = value as { r: string[]; n?: string; g: number; m: string; s: string }
      const grants = g === 1 ? ['authorization_code', 'refresh_token'] : ['authorization_code']
      return { redirect_uris: r, client_name: n, grant_types: grants, token_endpoint_auth_method: m, scope: s }
    },
    secretOf: (clientId) => secrets.sign('client secrets', clientId),
  }
}
