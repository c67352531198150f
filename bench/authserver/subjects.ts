import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { freePort } from '@thv/testkit/cluster/process/start-on-port'
import { registerAt } from '@thv/testkit/oidc/log-in'
import type { OidcServer } from '@thv/testkit/oidc/oidc-server'
import { bundleParts, ensureBundle } from '../../scripts/bundle.mjs'
import { startMeasured } from '../proxy/measured-process.ts'
import { httpConfig, type Subject, startRunner } from '../proxy/subjects.ts'
import { type LoginTarget, REDIRECT_URI } from './visitor.ts'

/** A process and how to log in there. */
export interface LoginSubject extends AsyncDisposable {
  readonly subject: Subject
  readonly target: LoginTarget
}

export interface LoginRunnerOptions {
  readonly backend: Subject
  readonly idp: OidcServer
  readonly redis?: { readonly host: string; readonly port: number } | undefined
  /** The backend gets the token of the provider. */
  readonly injects?: boolean
}

const SCOPE = 'openid mcp'

/** The library alone. Refresh tokens come with `offline_access`. `idp`: its users log in there. */
export async function startBareProvider(idp?: OidcServer): Promise<LoginSubject> {
  const startedAt = performance.now()
  const process = await startMeasured({ script: 'bench/authserver/bare.ts', env: idp === undefined ? {} : await bareSettings(idp) })
  const [, url = ''] = await process.line(/^listening (http\S+)/)
  const dispose = async () => void (await process.stop())
  const subject = { url, process, startMs: performance.now() - startedAt, [Symbol.asyncDispose]: dispose }
  const endpoints = { authorizationEndpoint: `${url}/auth`, tokenEndpoint: `${url}/token` }
  return {
    subject,
    target: { ...endpoints, clientId: 'bench', scope: 'openid offline_access', resource: undefined },
    [Symbol.asyncDispose]: dispose,
  }
}

async function bareSettings(idp: OidcServer): Promise<Record<string, string>> {
  const port = await freePort()
  const { client_id: clientId, client_secret: clientSecret } = await registerAt(idp, `http://127.0.0.1:${port}`)
  return { PORT: String(port), UPSTREAM: JSON.stringify({ issuer: idp.issuer, clientId, clientSecret }) }
}

/** A runner with the server on. Limits count for the address that a request names, as behind a load balancer. */
export async function startLoginRunner({ backend, idp, redis, injects = false }: LoginRunnerOptions): Promise<LoginSubject> {
  const folder = await mkdtemp(join(tmpdir(), 'thv-bench-login-'))
  const hmac = join(folder, 'hmac')
  await writeFile(hmac, 'only-for-benchmarks'.repeat(3))
  const port = await freePort()
  const issuer = `http://127.0.0.1:${port}`
  const resource = `${issuer}/mcp`
  const { client_id, client_secret } = await registerAt(idp, issuer)
  const oidc_config = {
    issuer_url: idp.issuer,
    client_id,
    client_secret_env_var: 'BENCH_SECRET',
    scopes: ['openid'],
    allow_private_ips: true,
  }
  const storage = redis && { type: 'redis', redis_config: { addr: `${redis.host}:${redis.port}`, key_prefix: 'thv:auth:{bench}:' } }
  const config = {
    ...{ ...httpConfig(backend.url), port, trust_proxy_headers: true },
    oidc_config: { issuer, audience: resource, resource_url: resource, scopes: SCOPE.split(' ') },
    embedded_auth_server_config: {
      ...{ issuer, allowed_audiences: [resource], scopes_supported: SCOPE.split(' '), hmac_secret_files: [hmac] },
      ...{ upstreams: [{ name: 'corp', type: 'oidc', oidc_config }], disable_upstream_token_injection: !injects },
      ...(storage !== undefined && { storage }),
    },
  }
  const subject = await startRunner(config, { env: { BENCH_SECRET: client_secret } })
  const registered = await fetch(`${issuer}/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ client_name: 'bench', redirect_uris: [REDIRECT_URI] }),
  })
  const { client_id: clientId } = (await registered.json()) as { client_id: string }
  const endpoints = { authorizationEndpoint: `${issuer}/oauth/authorize`, tokenEndpoint: `${issuer}/oauth/token` }
  return {
    subject,
    target: { ...endpoints, clientId, scope: SCOPE, resource },
    async [Symbol.asyncDispose]() {
      await subject[Symbol.asyncDispose]()
      await rm(folder, { recursive: true })
    },
  }
}

/** The bundle of the runner without the parts that hold the server and its library: where they are not asked for, nothing is missed. */
export async function bundleWithoutServer(): Promise<{ readonly bundle: string; readonly left: number } & AsyncDisposable> {
  const bundle = await ensureBundle('apps/proxyrunner/src/main.ts')
  const folder = await mkdtemp(join(tmpdir(), 'thv-bench-bundle-'))
  let left = 0
  for (const file of [bundle, ...(bundleParts(bundle) ?? [])]) {
    const isServer = file !== bundle && /OIDCProviderError|thv-authserver /.test(await readFile(file, 'utf8'))
    if (isServer) left++
    else await copyFile(file, join(folder, basename(file)))
  }
  return { bundle: join(folder, basename(bundle)), left, [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) }
}
