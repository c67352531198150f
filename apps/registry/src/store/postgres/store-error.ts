import { errorMessage, isThvError, ThvError } from '@thv/kernel/errors'
import { DatabaseError } from 'pg'
import { SERVER_ROLE } from './server-role.ts'

/** SQLSTATEs that say: nothing was done, and the same again may succeed. */
const RETRYABLE = new Set(['40001', '40P01'])

export function isRetryable(error: unknown): boolean {
  return error instanceof DatabaseError && RETRYABLE.has(error.code ?? '')
}

/**
 * Whether the connection is as good as before. One to a server that is shutting down, or that has become a standby, is not: a new one
 * may lead to another server.
 */
export function keepsConnection(error: unknown): boolean {
  return error instanceof DatabaseError && !/^(08|25006|57P)/.test(error.code ?? '')
}

/** Mistakes of our own are not to be taken for a database that is away. */
export function isBug(error: unknown): boolean {
  return error instanceof TypeError || error instanceof RangeError || error instanceof SyntaxError || error instanceof ReferenceError
}

/** An error of PostgreSQL or of the connection, as an error of ours. */
export function storeError(error: unknown): ThvError {
  if (isThvError(error)) return error
  const cause = { cause: error }
  if (error instanceof Error && /client password must be a/.test(error.message))
    return new ThvError(
      'store_unavailable',
      'the database wants a password, and neither the configuration nor a pgpass file has one',
      cause,
    )
  if (!(error instanceof DatabaseError)) return new ThvError('store_unavailable', 'PostgreSQL does not answer', cause)
  const code = error.code ?? ''
  if (code === '42P01' || code === '42703')
    return new ThvError('store_schema', 'the database lacks a table or column that this program needs; run `migrate up`', cause)
  if (code === '42501')
    return new ThvError(
      'store_unavailable',
      `a database user lacks a right: that of the server must be a member of ${SERVER_ROLE}, that of migrations may make tables; \`migrate up\` tells what is missing`,
      cause,
    )
  if (code === '55P03') return new ThvError('store_unavailable', 'somebody else has been writing for too long', cause)
  if (code === '25006') return new ThvError('store_unavailable', 'the database is read-only at the moment', cause)
  if (code === '53100' || code === '58030') return new ThvError('store_unavailable', 'the disk of the database is full or broken', cause)
  if (code.startsWith('53')) return new ThvError('store_unavailable', 'the database has no connection, memory or lock left', cause)
  if (code.startsWith('28')) return new ThvError('store_unavailable', 'the database does not let us in', cause)
  if (code.startsWith('22')) return new ThvError('bad_request', 'the database cannot keep this text', cause)
  return new ThvError('store_unavailable', `PostgreSQL answered with SQLSTATE ${code}`, cause)
}

/** For a log line. */
export function storeMessage(error: unknown): string {
  return errorMessage(storeError(error))
}
