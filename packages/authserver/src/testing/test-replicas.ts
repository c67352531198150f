import { generateKeyPairSync } from 'node:crypto'
import { createHttpServer } from '@thv/http/server/server'
import { systemClock } from '@thv/kernel/clock'
import type { AuthStore } from '@thv/store/auth/auth-store'
import { registerAt } from '@thv/testkit/oidc/log-in'
import { startOidcServer } from '@thv/testkit/oidc/oidc-server'
import type { AuthServerOptions } from '../auth-server.ts'
import { ProjectedVolume } from './projected-volume.ts'
import { startTestAuthServer, type TestAuthServer } from './test-auth-server.ts'

/** The requests of a login to its server, in this order. */
export type LoginStep = 'authorize' | 'consent' | 'callback' | 'resume' | 'token'

/** Steps that follow each other go to different replicas, and a login to all three. */
const REPLICA_OF: Readonly<Record<LoginStep, number>> = { authorize: 0, consent: 2, callback: 1, resume: 0, token: 2 }

export interface TestReplicas extends AsyncDisposable {
  /** Of all replicas: the address of what stands in front of them. */
  readonly issuer: string
  readonly replicas: readonly TestAuthServer[]
  /** Which replica answered which step, since this was cleared. */
  readonly served: Map<LoginStep, Set<number>>
  /** From now on the steps of a login go to other replicas. */
  shift(): void
}

export interface TestReplicasOptions {
  /** One for each replica. */
  readonly stores: readonly AuthStore[]
  readonly tokens: AuthServerOptions['tokens']
}

/** Replicas of one server with the same keys behind one address, which sends each step of a login to another one. */
export async function startTestReplicas({ stores, tokens }: TestReplicasOptions): Promise<TestReplicas> {
  await using stack = new AsyncDisposableStack()
  const volume = stack.use(new ProjectedVolume())
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  volume.publish({ 'key.pem': privateKey.export({ type: 'pkcs8', format: 'pem' }), hmac: 'x'.repeat(32) })
  const idp = stack.use(await startOidcServer())
  const replicas: TestAuthServer[] = []
  const served = new Map<LoginStep, Set<number>>()
  let shifted = 0
  const front = createHttpServer({
    async handler(exchange) {
      const step = stepOf(exchange.path)
      const index = (REPLICA_OF[step] + shifted) % replicas.length
      served.set(step, (served.get(step) ?? new Set()).add(index))
      const server = replicas[index]?.server
      if (server?.serves(exchange.path)) await server.handle(exchange)
      else exchange.response.writeHead(404).end()
    },
    clock: systemClock,
    onError: () => {},
  })
  const { url: issuer } = await front.listen({ host: '127.0.0.1', port: 0 })
  stack.defer(async () => void (await front.drain(AbortSignal.timeout(100))))
  const { client_id, client_secret } = await registerAt(idp, issuer)
  const oidc_config = { issuer_url: idp.issuer, client_id, client_secret_env_var: 'OWN', scopes: ['openid'], allow_private_ips: true }
  const config = {
    ...{ issuer, allowed_audiences: [`${issuer}/mcp`], upstreams: [{ name: 'corp', type: 'oidc', oidc_config }] },
    signing_key_config: { key_dir: volume.folder, signing_key_file: 'key.pem' },
    hmac_secret_files: [volume.path('hmac')],
  }
  for (const store of stores)
    replicas.push(stack.use(await startTestAuthServer({ config, idp, store, tokens, env: { OWN: client_secret } })))
  const owned = stack.move()
  return { issuer, replicas, served, shift: () => void shifted++, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

function stepOf(path: string): LoginStep {
  if (path === '/oauth/token') return 'token'
  if (path.startsWith('/oauth/login/')) return 'consent'
  if (path.startsWith('/oauth/callback')) return 'callback'
  return path.startsWith('/oauth/authorize/') ? 'resume' : 'authorize'
}
