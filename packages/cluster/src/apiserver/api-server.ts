import { randomBytes } from 'node:crypto'
import type { Exchange } from '@thv/http/exchange'
import type { HttpLimits } from '@thv/http/http-limits'
import { sendBytes } from '@thv/http/respond'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { isThvError } from '@thv/kernel/errors'
import { ObjectStore } from '../store/object-store.ts'
import { createCertificate } from '../tls/certificate.ts'
import type { ApiEnv } from './api-call.ts'
import { ensureNamespaces } from './bootstrap.ts'
import { handleRequest } from './handle-request.ts'
import { KindRegistry } from './kind-registry.ts'
import { type KindSchemas, kindSchemas } from './kind-schemas.ts'
import { failure, StatusError } from './status-error.ts'
import { TlsFront } from './tls-front.ts'
import { Tokens, type User } from './tokens.ts'

export interface ApiServerOptions {
  /** Where objects survive; in memory when absent. */
  readonly folder?: string
  /** A loopback address. */
  readonly host?: string
  /** 0 takes a free one. */
  readonly port?: number
  readonly clock?: Clock
  readonly limits?: Partial<HttpLimits>
  readonly history?: { readonly maxChanges?: number; readonly maxBytes?: number }
  readonly schemas?: KindSchemas
  /** Tokens besides the administrator's. */
  readonly users?: Readonly<Record<string, User>>
  /** Told of surprises only: what a client does wrong is answered. */
  readonly onError?: (error: unknown) => void
}

/** A Kubernetes-compatible API server on loopback. */
export interface EmbeddedApiServer extends AsyncDisposable {
  readonly url: string
  readonly caPem: string
  /** Of system:masters. */
  readonly adminToken: string
  readonly store: ObjectStore
  close(): Promise<void>
}

const CERTIFICATE_DAYS = 365

/** Rejects with `data_folder_in_use`, `data_folder_failed` or `listen_failed`. */
export async function startApiServer(options: ApiServerOptions = {}): Promise<EmbeddedApiServer> {
  const { host = '127.0.0.1', port = 0, clock = systemClock, onError = () => undefined } = options
  const store = new ObjectStore({
    ...(options.folder === undefined ? {} : { folder: options.folder }),
    ...(options.history === undefined ? {} : { history: options.history }),
  })
  try {
    const env: ApiEnv = { store, registry: new KindRegistry(store, options.schemas ?? kindSchemas), clock }
    ensureNamespaces(env)
    const ca = createCertificate({ commonName: 'thv authority', ca: true, notAfter: afterDays(clock, CERTIFICATE_DAYS) })
    const hosts = [host, '127.0.0.1', 'localhost', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc']
    const certificate = createCertificate({
      commonName: 'thv-apiserver',
      hosts: [...new Set(hosts)],
      issuer: ca,
      notAfter: afterDays(clock, CERTIFICATE_DAYS),
    })
    const tokens = new Tokens()
    const adminToken = randomBytes(24).toString('base64url')
    tokens.add(adminToken, { name: 'admin', groups: ['system:masters'] })
    for (const [token, user] of Object.entries(options.users ?? {})) tokens.add(token, user)
    const front = new TlsFront({
      certificate,
      clock,
      onError,
      ...(options.limits === undefined ? {} : { limits: options.limits }),
      handler: (exchange) => handleRequest(exchange, { ...env, tokens }).catch((error: unknown) => answerError(exchange, error, onError)),
    })
    const bound = await front.listen(host, port)
    const close = async () => {
      await front.close()
      store.close()
    }
    return { url: `https://${host}:${bound}`, caPem: ca.certPem, adminToken, store, close, [Symbol.asyncDispose]: close }
  } catch (error) {
    store.close()
    throw error
  }
}

function answerError(exchange: Exchange, error: unknown, onError: (error: unknown) => void): void {
  const status = error instanceof StatusError ? error.init : { code: 500, reason: 'InternalError', message: 'Internal error occurred' }
  const gone = exchange.aborted && isThvError(error, 'aborted')
  if (!(error instanceof StatusError) && !gone) onError(error)
  if (exchange.begun) exchange.destroy(error)
  else sendBytes(exchange, status.code, { type: 'application/json', body: Buffer.from(JSON.stringify(failure(status))) })
}

function afterDays(clock: Clock, days: number): Date {
  return new Date(clock.now() + days * 86_400_000)
}
