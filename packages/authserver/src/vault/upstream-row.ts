import { isObject, type JsonObject } from '@thv/kernel/json'
import type { RecordCipher } from '@thv/store/redis/record-cipher'
import type { UpstreamKey, UpstreamLogin, UpstreamTokenSet } from '../upstream-tokens.ts'

/** Tokens of one user at one provider, as the store has them. Times are epoch milliseconds. */
export interface UpstreamRow {
  readonly subject: string
  readonly generation: string
  readonly accessToken: string
  readonly refreshToken?: string | undefined
  readonly idToken?: string | undefined
  readonly scope?: string | undefined
  /** When the access token was issued, by our clock. */
  readonly issuedAt: number
  readonly expiresAt?: number | undefined
}

/** A row that is neither used nor renewed for so long is forgotten. The lifetime of a refresh token is not known. */
const ROW_LIFE_MS = 30 * 24 * 3_600_000
/** Refreshed in the background from here on. */
const EARLY_SHARE = 0.8

export function rowId({ account, provider }: UpstreamKey): string {
  return `${account.length}:${account}:${provider}`
}

/** The row after a login. A provider that sends no refresh token the second time means that the first one stays good. */
export function rowOf({ subject, generation, tokens }: UpstreamLogin, before: UpstreamRow | undefined, now: number): UpstreamRow {
  const isSame = before?.subject === subject && before.generation === generation
  return withTokens({ subject, generation, refreshToken: isSame ? before.refreshToken : undefined }, tokens, now)
}

export function withTokens(
  row: Pick<UpstreamRow, 'subject' | 'generation' | 'refreshToken' | 'idToken'>,
  tokens: UpstreamTokenSet,
  now: number,
): UpstreamRow {
  const { accessToken, refreshToken = row.refreshToken, idToken = row.idToken, scope, expiresAt } = tokens
  return { subject: row.subject, generation: row.generation, accessToken, refreshToken, idToken, scope, issuedAt: now, expiresAt }
}

/** Follows the refresh token; where there is none, the access token is all that the row is good for. */
export function rowTtlMs({ refreshToken, expiresAt }: UpstreamRow, now: number): number {
  return refreshToken === undefined && expiresAt !== undefined ? Math.max(1, expiresAt - now) : ROW_LIFE_MS
}

export function isExpired({ expiresAt }: UpstreamRow, now: number): boolean {
  return expiresAt !== undefined && expiresAt <= now
}

/** When a refresh is due; Infinity where the provider does not say how long its tokens live. */
export function refreshAt({ issuedAt, expiresAt }: UpstreamRow): number {
  return expiresAt === undefined ? Number.POSITIVE_INFINITY : issuedAt + (expiresAt - issuedAt) * EARLY_SHARE
}

/** Bound to its place, so that a row of one user cannot be moved to another one. */
export function sealRow(row: UpstreamRow, id: string, cipher: RecordCipher): JsonObject {
  return { sealed: cipher.seal(JSON.stringify(row), place(id)).toString('base64') }
}

/** Undefined: sealed under a key that is gone, or damaged. The user has to log in again. */
export function openRow({ sealed }: JsonObject, id: string, cipher: RecordCipher): UpstreamRow | undefined {
  const text = typeof sealed === 'string' ? cipher.open(Buffer.from(sealed, 'base64'), place(id)) : undefined
  const value: unknown = text === undefined ? undefined : JSON.parse(text)
  return isObject(value) ? (value as unknown as UpstreamRow) : undefined
}

function place(id: string): string {
  return `upstream ${id}`
}
