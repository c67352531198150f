import { randomUUID } from 'node:crypto'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createAuthServer } from '@thv/authserver/auth-server'
import { UpstreamVault } from '@thv/authserver/vault/upstream-vault'
import { createOutbound } from '@thv/http/outbound/outbound'
import { createHttpServer } from '@thv/http/server/server'
import { systemClock } from '@thv/kernel/clock'
import { readRunConfig } from '@thv/runconfig/read-run-config'
import type { AuthRecordKind, AuthStore } from '@thv/store/auth/auth-store'
import { createMemoryAuthStore } from '@thv/store/auth/memory-auth-store'
import { registerAt } from '@thv/testkit/oidc/log-in'
import { startOidcServer } from '@thv/testkit/oidc/oidc-server'
import { logIn, REDIRECT_URI, refresh } from './visitor.ts'

/*
 * How much memory a live session takes: one real login and one refresh show the records that stay, and as many sessions of the same records
 * are put into another store. Prints one line of JSON.
 */

export interface SessionsReport {
  readonly sessions: number
  readonly records: number
  readonly heapPerSession: number
  readonly rssPerSession: number
  /** Tokens of the test provider are about as long as those of others. */
  readonly heapPerVaultRow: number
}

/** Of the user at the provider, once for all sessions of both. */
const VAULT: AuthRecordKind = 'upstream'

interface Kept {
  readonly kind: AuthRecordKind
  readonly id: string
  readonly value: Parameters<AuthStore['put']>[2]['value']
  readonly ttlMs: number
  readonly family: string | undefined
}

// The library behind the provider gives advice there, and the report must stand alone.
console.info = () => {}
const sessions = Number(process.env['THV_SESSIONS'] ?? '100000')
const records = await recordsOfALogin()
const store = createMemoryAuthStore()
const before = used()
await fill(records.filter(({ kind }) => kind !== VAULT))
const withSessions = used()
await fill(records.filter(({ kind }) => kind === VAULT))
const withVault = used()
const each = (bytes: number) => bytes / sessions
const report: SessionsReport = {
  ...{ sessions, records: records.length },
  ...{ heapPerSession: each(withSessions.heap - before.heap), rssPerSession: each(withSessions.rss - before.rss) },
  heapPerVaultRow: each(withVault.heap - withSessions.heap),
}
console.log(JSON.stringify(report))
process.exit(0)

async function fill(kept: readonly Kept[]): Promise<void> {
  for (let i = 0; i < sessions; i++) {
    const name = randomUUID()
    for (const { kind, id, value, ttlMs, family: hadFamily } of kept) {
      const family = flat(name.padEnd(43, '-')) // as long as those of the library
      const ownId = kind === 'grant' || kind === 'login' ? flat(family) : flat(`${randomUUID()}${id.slice(36)}`)
      await store.put(kind, ownId, { value, ttlMs, ...(hadFamily !== undefined && { family }) })
    }
  }
}

/** A text without parts that lie elsewhere. */
function flat(text: string): string {
  return Buffer.from(text).toString('latin1')
}

async function recordsOfALogin(): Promise<readonly Kept[]> {
  const idp = await startOidcServer()
  const held: { server?: Awaited<ReturnType<typeof createAuthServer>> } = {}
  const http = createHttpServer({
    handler: async (exchange) => await held.server?.handle(exchange),
    busy: (exchange) => void exchange.response.writeHead(503).end(),
    clock: systemClock,
    onError: (error) => console.error(error),
  })
  const { url: issuer } = await http.listen({ host: '127.0.0.1', port: 0 })
  const { client_id, client_secret } = await registerAt(idp, issuer)
  const resource = `${issuer}/mcp`
  const oidc_config = { issuer_url: idp.issuer, client_id, client_secret_env_var: 'SECRET', scopes: ['openid'], allow_private_ips: true }
  const read = readRunConfig({
    ...{ name: 'bench', remote_url: 'https://example.com/mcp', transport: 'streamable-http', oidc_config: { issuer, audience: resource } },
    embedded_auth_server_config: {
      ...{ issuer, allowed_audiences: [resource], scopes_supported: ['openid', 'mcp'] },
      upstreams: [{ name: 'corp', type: 'oidc', oidc_config }],
    },
  })
  if (!read.ok || read.config.embedded_auth_server_config === undefined) throw new TypeError(JSON.stringify(read))
  const kept = new Map<string, Kept>()
  held.server = await createAuthServer({
    config: read.config.embedded_auth_server_config,
    env: { SECRET: client_secret },
    store: () => recording(createMemoryAuthStore(), kept),
    tokens: (refreshers, sealed) => new UpstreamVault({ ...sealed, cipher: () => sealed.cipher, refreshers }),
    ...{ outbound: createOutbound(), clock: systemClock, log: { debug() {}, info() {}, warn() {}, error() {} } },
  })
  const registered = await fetch(`${issuer}/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ client_name: 'bench', redirect_uris: [REDIRECT_URI] }),
  })
  const { client_id: clientId } = (await registered.json()) as { client_id: string }
  const endpoints = { authorizationEndpoint: `${issuer}/oauth/authorize`, tokenEndpoint: `${issuer}/oauth/token` }
  const target = { ...endpoints, clientId, scope: 'openid mcp', resource }
  await refresh(target, await logIn(target, 'ada'))
  return [...kept.values()]
}

/** Keeps what lives on after a login: codes, interactions and consumed tokens end within seconds. */
function recording(inner: AuthStore, kept: Map<string, Kept>): AuthStore {
  const stays: ReadonlySet<AuthRecordKind> = new Set(['refresh', 'grant', 'login', 'upstream'])
  const put = inner.put.bind(inner)
  const replace = inner.replace.bind(inner)
  inner.put = async (kind, id, record) => {
    if (stays.has(kind)) kept.set(`${kind} ${id}`, { kind, id, value: record.value, ttlMs: record.ttlMs, family: record.family })
    await put(kind, id, record)
  }
  inner.replace = async (replacement) => {
    const { from, to } = replacement
    kept.delete(`${from.kind} ${from.id}`)
    kept.set(`${to.kind} ${to.id}`, { ...to })
    return await replace(replacement)
  }
  return inner
}

function used(): { heap: number; rss: number } {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  for (let round = 0; round < 4; round++) gc()
  const { heapUsed, external, rss } = process.memoryUsage()
  return { heap: heapUsed + external, rss }
}
