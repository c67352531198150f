import { readFile } from 'node:fs/promises'
import { Socket } from 'node:net'
import { checkServerIdentity } from 'node:tls'
import { errorMessage, ThvError } from '@thv/kernel/errors'
import { type ClientConfig, types } from 'pg'
import type { PostgresConfig } from '../../config/registry-config.ts'
import { lookupPgpass } from './pgpass.ts'
import { type ConnectionPlan, connectionPlan, type Tls } from './tls-choice.ts'

export interface PostgresLimits {
  /** Until a connection is there, also while all are in use. */
  readonly connectMs: number
  /** Of one statement, on the server. */
  readonly statementMs: number
  /** Until an answer comes: what a server that has gone silent costs. Above `statementMs`. */
  readonly answerMs: number
  /** Until a row that somebody else changes is free. */
  readonly lockMs: number
  /** Between two statements of a transaction: a process that stands still must not keep the others waiting for long. */
  readonly pauseMs: number
}

export const DEFAULT_LIMITS: PostgresLimits = { connectMs: 5000, statementMs: 30_000, answerMs: 35_000, lockMs: 20_000, pauseMs: 15_000 }

export interface Login {
  readonly user: string
  readonly password?: string | undefined
}

export interface ConnectionContext {
  readonly limits: PostgresLimits
  readonly warn: (message: string) => void
  /** Every socket that is opened, so that closing need not wait for a server that is silent. */
  readonly sockets: Set<Socket>
}

export async function connectionOptions(config: PostgresConfig, login: Login, context: ConnectionContext): Promise<ConnectionPlan> {
  const { limits, warn, sockets } = context
  const { host, port, database } = config
  const options: ClientConfig = {
    host,
    port,
    database,
    user: login.user,
    // Asked at every connect, so that a password file may change. The empty one lets the server say what it misses.
    password: async () => login.password ?? (await lookupPgpass({ host, port, database, user: login.user }, { warn })) ?? '',
    ssl: await sslOptions(config),
    application_name: 'thv-registry-api',
    keepAlive: true,
    connectionTimeoutMillis: limits.connectMs,
    statement_timeout: limits.statementMs,
    lock_timeout: limits.lockMs,
    query_timeout: limits.answerMs,
    idle_in_transaction_session_timeout: limits.pauseMs,
    stream: () => trackedSocket(sockets),
    // Counters come as numbers: none of ours gets near 2^53.
    types: { getTypeParser: (oid, format) => (oid === types.builtins.INT8 ? Number : types.getTypeParser(oid, format)) },
  }
  return connectionPlan(options, config)
}

/** The migration user has a password of its own unless it is the same user. */
export function migrationLogin(config: PostgresConfig): Login {
  const user = config.migrationUser ?? config.user
  return { user, password: config.migrationPassword ?? (user === config.user ? config.password : undefined) }
}

/**
 * As libpq has it: `require` encrypts and trusts any server, unless a root certificate is given; `verify-ca` checks the chain;
 * `verify-full` the name too. Without a root certificate the verifying modes trust the authorities that Node trusts.
 */
async function sslOptions(config: PostgresConfig): Promise<Tls> {
  const { sslMode, sslRootCert, host } = config
  // `prefer` and `allow` choose when they connect.
  if (sslMode === 'disable' || sslMode === 'prefer' || sslMode === 'allow') return false
  const ca = sslRootCert === undefined ? {} : { ca: await readRootCert(sslRootCert) }
  if (sslMode === 'verify-full') return { ...ca, checkServerIdentity: (_name, certificate) => checkServerIdentity(host, certificate) }
  if (sslMode === 'require' && sslRootCert === undefined) return { rejectUnauthorized: false }
  return { ...ca, checkServerIdentity: () => undefined }
}

async function readRootCert(path: string): Promise<string> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    throw new ThvError('registry_config_invalid', `database.sslRootCert cannot be read: ${errorMessage(error)}`, { cause: error })
  }
  if (!text.includes('-----BEGIN'))
    throw new ThvError('registry_config_invalid', `database.sslRootCert ${path} holds no certificate in PEM form`)
  return text
}

function trackedSocket(sockets: Set<Socket>): Socket {
  const socket = new Socket()
  sockets.add(socket)
  socket.once('close', () => sockets.delete(socket))
  return socket
}
