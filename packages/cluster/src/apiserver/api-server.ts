import type { Exchange } from '@thv/http/server/exchange'
import type { HttpLimits } from '@thv/http/server/http-limits'
import { sendBytes } from '@thv/http/server/respond'
import { type Clock, systemClock, type Timer } from '@thv/kernel/clock'
import { errorMessage, isThvError } from '@thv/kernel/errors'
import { ObjectStore } from '../store/object-store.ts'
import { AccountTokens } from './accounts/account-tokens.ts'
import { createTokenKey } from './accounts/token-key.ts'
import { ensureNamespaces, ensureServerService } from './bootstrap.ts'
import { handleRequest } from './handle-request.ts'
import { encodeAnswer } from './http/answer-encoding.ts'
import { headerOf } from './http/read-input.ts'
import type { ApiEnv } from './http/request-context.ts'
import { TlsFront } from './http/tls-server.ts'
import { Tokens, type User } from './http/tokens.ts'
import { openIdentity, type ServerIdentity } from './identity/server-identity.ts'
import type { PodStreams } from './kinds/pod/pod-streams.ts'
import { failure, StatusError, type StatusInit } from './objects/status-error.ts'
import { KindRegistry } from './registry/kind-registry.ts'
import { type KindSchemas, kindSchemas } from './registry/kind-schemas.ts'

export interface ApiServerOptions {
  /** Where objects, keys, tokens and the port survive; without it all of them are new at every start. */
  readonly folder?: string
  /** A loopback address. */
  readonly host?: string
  /** Without one, or with 0, that of the last start if it is free, else any free one. */
  readonly port?: number
  /** Services get their addresses from it. A CIDR; 127.96.0.0/17 unless told otherwise. */
  readonly serviceRange?: string
  readonly clock?: Clock
  readonly limits?: Partial<HttpLimits>
  readonly history?: { readonly maxChanges?: number; readonly maxBytes?: number }
  readonly schemas?: KindSchemas
  /** Tokens besides the administrator's. */
  readonly users?: Readonly<Record<string, User>>
  /** The page at `/metrics`, in the text format of Prometheus. Without it there is none. */
  readonly metricsPage?: (() => string) | undefined
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
  /** The source of logs and attach from now on. Without one these are rejected. */
  servePods(streams: PodStreams | undefined): void
  close(): Promise<void>
}

const SERVICE_RANGE = '127.96.0.0/17'
const HOSTS = [
  '127.0.0.1',
  'localhost',
  'kubernetes',
  'kubernetes.default',
  'kubernetes.default.svc',
  'kubernetes.default.svc.cluster.local',
]

/** Rejects with `data_folder_in_use`, `data_folder_failed` or `listen_failed`. */
export async function startApiServer(options: ApiServerOptions = {}): Promise<EmbeddedApiServer> {
  const { host = '127.0.0.1', folder, clock = systemClock, serviceRange = SERVICE_RANGE, onError = () => undefined } = options
  const store = new ObjectStore({
    ...(folder === undefined ? {} : { folder }),
    ...(options.history === undefined ? {} : { history: options.history }),
  })
  try {
    const identity = openIdentity({ folder, hosts: [host, ...HOSTS], clock })
    const accounts = new AccountTokens(createTokenKey(identity.serviceAccountKey), store, clock)
    const registry = new KindRegistry(store, options.schemas ?? kindSchemas)
    let streams: PodStreams | undefined
    const env: ApiEnv = { store, registry, clock, serviceRange, accounts, podStreams: () => streams, metricsPage: options.metricsPage }
    ensureNamespaces(env)
    const tokens = new Tokens()
    tokens.add(identity.adminToken, { name: 'admin', groups: ['system:masters', 'system:authenticated'] })
    for (const [token, user] of Object.entries(options.users ?? {})) tokens.add(token, user)
    const front = new TlsFront({
      certificate: identity.server,
      clock,
      onError,
      ...(options.limits === undefined ? {} : { limits: options.limits }),
      handler: (exchange, upgrade) =>
        handleRequest(exchange, { ...env, tokens, upgrade }).catch((error: unknown) => answerError(exchange, error, onError)),
    })
    const port = await listen(front, identity, { host, port: options.port ?? 0 })
    ensureServerService(env, { host, port })
    const stopCompaction = compactRegularly(store, clock)
    const close = async () => {
      stopCompaction()
      await front.close()
      store.close()
    }
    return {
      url: `https://${host}:${port}`,
      caPem: identity.ca.certPem,
      adminToken: identity.adminToken,
      store,
      servePods(next) {
        streams = next
      },
      close,
      [Symbol.asyncDispose]: close,
    }
  } catch (error) {
    store.close()
    throw error
  }
}

const COMPACTION_MS = 5 * 60_000

/** As the real server lets etcd do it: pages of a list are continued for five to ten minutes. Watches are not concerned. */
function compactRegularly(store: ObjectStore, clock: Clock): () => void {
  let revision = store.revision
  let timer: Timer
  const again = () => {
    timer = clock.setTimer(COMPACTION_MS, () => {
      store.expirePages(revision)
      revision = store.revision
      again()
    })
  }
  again()
  return () => timer.cancel()
}

/** On the port that is asked for and no other; when none is, rather on the last one, which clients have in their kubeconfig files. */
async function listen(front: TlsFront, identity: ServerIdentity, { host, port }: { host: string; port: number }): Promise<number> {
  const last = port === 0 ? identity.port : undefined
  const bound = await front.listen(host, last ?? port).catch((error: unknown) => {
    if (last === undefined || !isThvError(error, 'listen_failed')) throw error
    return front.listen(host, 0)
  })
  try {
    identity.keepPort(bound)
  } catch (error) {
    await front.close()
    throw error
  }
  return bound
}

function answerError(exchange: Exchange, error: unknown, onError: (error: unknown) => void): void {
  const status = error instanceof StatusError ? error.init : internalError(error)
  const gone = exchange.aborted && isThvError(error, 'aborted')
  if (!(error instanceof StatusError) && !gone) onError(error)
  if (exchange.begun) exchange.destroy(error)
  else sendBytes(exchange, status.code, encodeAnswer(JSON.stringify(failure(status)), headerOf(exchange, 'accept')))
}

/** Unexpected errors go to `onError` alone, but a writer must know that the disk is full. */
function internalError(error: unknown): StatusInit {
  const why = isThvError(error, 'data_folder_failed') ? `: ${errorMessage(error)}` : ''
  return { code: 500, reason: 'InternalError', message: `Internal error occurred${why}` }
}
