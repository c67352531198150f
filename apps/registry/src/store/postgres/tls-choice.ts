import type { ConnectionOptions } from 'node:tls'
import { type ClientConfig, DatabaseError } from 'pg'
import type { PostgresConfig } from '../../config/registry-config.ts'

export type Tls = false | ConnectionOptions

/** Options of connections, and the choice between an encrypted and a plain one where the mode leaves it open. */
export interface ConnectionPlan {
  /** With the choice that worked last. */
  readonly options: ClientConfig
  /** Opens a connection, and tries the other choice once if the server does not take the first. Rejects with the first error. */
  connect<T>(open: (options: ClientConfig) => Promise<T>): Promise<T>
}

/**
 * As libpq: `prefer` tries an encrypted connection first, `allow` a plain one. Unlike there, the choice that worked is kept for the next
 * connections, until the server no longer takes it.
 */
export function connectionPlan(options: ClientConfig, { sslMode }: Pick<PostgresConfig, 'sslMode'>): ConnectionPlan {
  const open = sslMode === 'prefer' || sslMode === 'allow'
  let current: ClientConfig = open ? { ...options, ssl: sslMode === 'prefer' ? UNCHECKED : false } : options
  return {
    get options() {
      return current
    },
    async connect(attempt) {
      const first = current
      try {
        return await attempt(first)
      } catch (error) {
        if (!open || !wantsOther(error)) throw error
        const second = { ...options, ssl: first.ssl === false ? UNCHECKED : false }
        const result = await attempt(second).catch(() => {
          throw error
        })
        current = second
        return result
      }
    },
  }
}

/** A mode that does not require encryption does not verify the server either. */
const UNCHECKED: ConnectionOptions = { rejectUnauthorized: false }

/** The server has no TLS, or its pg_hba.conf wants the other kind of connection. A wrong password stays wrong. */
function wantsOther(error: unknown): boolean {
  if (error instanceof DatabaseError) return error.code === '28000'
  const { message, code = '' } = error as NodeJS.ErrnoException
  return /\bSSL\b/.test(message) || /^(ERR_SSL|ERR_TLS|EPROTO)/.test(code)
}
