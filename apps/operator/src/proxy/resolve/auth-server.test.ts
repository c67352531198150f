import { fileURLToPath } from 'node:url'
import { normaliseMcpExternalAuthConfig } from '@thv/resources/kinds/mcp-external-auth-config/normalise'
import type { MCPExternalAuthConfig } from '@thv/resources/kinds/mcp-external-auth-config/schema'
import type { CanonicalEmbeddedAuthServer } from '@thv/resources/shared/auth-server/embedded-auth-server'
import { fixturesOf } from '@thv/resources/testing/fixtures'
import { unsupportedFields } from '@thv/runconfig/middleware-table'
import { describe, expect, it } from 'vitest'
import { authServerContribution } from './auth-server.ts'
import { runnerReads } from './testing/snapshot.ts'

const golden = (name: string) => fileURLToPath(new URL(`./auth-server-${name}.golden.json`, import.meta.url))
const servers = fixturesOf('mcpexternalauthconfigs').flatMap(({ manifest }) => {
  const { spec } = normaliseMcpExternalAuthConfig({ spec: manifest.spec as MCPExternalAuthConfig['spec'] })
  return spec.embeddedAuthServer ? [[manifest.metadata.name, spec.embeddedAuthServer] as const] : []
})
const place = {
  scopes: ['openid', 'mcp:tools'],
  name: 'tickets',
  namespace: 'team',
  resourceUrl: 'https://mcp.example.com/tickets/',
  managedSecret: 'login-authserver',
}
const contribution = (server: CanonicalEmbeddedAuthServer, change: object = {}) => authServerContribution(server, { ...place, ...change })
const named = (name: string) => {
  const found = servers.find(([own]) => own === name)?.[1]
  if (found === undefined) throw new Error(`no fixture ${name}`)
  return found
}

describe('authServerContribution', () => {
  it.each(servers)('%s is as its golden file says, and the runner reads it', async (name, server) => {
    const result = contribution(server)
    runnerReads(result)
    await expect(`${JSON.stringify(result, undefined, 2)}\n`).toMatchFileSnapshot(golden(name))
  })

  it('is a login that the runner can start, when no token of the provider is to be sent [002-092]', () => {
    const server = { ...named('login-minimal'), disableUpstreamTokenInjection: true }
    expect(unsupportedFields(runnerReads(contribution(server)))).toEqual([])
  })

  it('sends the browser back to the resource unless told otherwise', () => {
    const config = contribution(named('login-minimal')).runConfig?.embedded_auth_server_config
    expect(config).toMatchObject({ upstreams: [{ oidc_config: { redirect_uri: 'https://mcp.example.com/tickets/oauth/callback' } }] })
    expect(config).toMatchObject({ allowed_audiences: [place.resourceUrl], scopes_supported: ['openid', 'mcp:tools'] })
  })

  it('finds the sentinels of a Service, by default in its own namespace and cluster domain', () => {
    const server = named('login-full')
    const redis = server.storage.redis
    if (!redis) throw new Error('the fixture has no redis')
    const own = {
      ...server,
      storage: {
        type: 'redis' as const,
        redis: { ...redis, sentinelConfig: { masterName: 'm', sentinelAddrs: [], sentinelService: { name: 's', port: 26379 }, db: 0 } },
      },
    }
    const { runConfig } = contribution(own, { clusterDomain: 'corp.test' })
    expect(runConfig?.embedded_auth_server_config).toMatchObject({
      storage: {
        redis_config: { sentinel_config: { sentinel_addrs: ['s.team.svc.corp.test:26379'] }, key_prefix: 'thv:auth:{team:tickets}:' },
      },
    })
  })

  it.each(servers)(
    '%s: mounts every file that the config names, and no other key of a Secret, in directories that the kubelet refreshes',
    (_, server) => {
      const { runConfig, volumes = [], volumeMounts = [] } = contribution(server)
      expect(volumes.map(({ name }) => name)).toEqual(volumeMounts.map(({ name }) => name))
      expect(volumeMounts.some((mount) => 'subPath' in mount)).toBe(false)
      const mounted = volumes.flatMap(({ projected }, index) =>
        (projected as Projected).sources.flatMap(({ secret }) =>
          secret.items.map(({ path }) => `${volumeMounts[index]?.mountPath}/${path}`),
        ),
      )
      expect(new Set(mounted).size).toBe(mounted.length)
      const text = JSON.stringify(runConfig)
      const login = runConfig?.embedded_auth_server_config
      const { key_dir: keyDir, signing_key_file: first, fallback_key_files: more = [] } = login?.signing_key_config ?? {}
      const named = [...text.matchAll(/"(\/etc\/toolhive\/authserver\/[^"/]*\/[^"]*)"/g)].map(([, path]) => path)
      expect(mounted.toSorted()).toEqual([...named, ...[first, ...more].map((file) => `${keyDir}/${file}`)].toSorted())
      expect(text).not.toContain('_env_var')
    },
  )

  it('takes keys and secrets from the Secret that the operator makes, where the spec names none', () => {
    const { runConfig, volumes = [] } = contribution(named('login-minimal'))
    const login = runConfig?.embedded_auth_server_config
    expect(login?.signing_key_config).toMatchObject({ signing_key_file: 'key-0.pem', fallback_key_files: ['key-1.pem', 'key-2.pem'] })
    expect(login?.hmac_secret_files).toHaveLength(7)
    const secrets = volumes.flatMap(({ projected }) => (projected as Projected).sources.map(({ secret }) => secret.name))
    expect(secrets.slice(0, 2)).toEqual(['login-authserver', 'login-authserver'])
  })

  it.each(servers)('%s: has every secret in a file that is read again, so that a change replaces no pod', (_, server) => {
    const { env, secrets } = contribution(server)
    expect([env, secrets]).toEqual([undefined, undefined])
  })

  it.each(servers)('%s: every field has an effect', (_, server) => {
    const before = JSON.stringify(contribution(server))
    const idle = leaves(server).filter((path) => JSON.stringify(contribution(changed(server, path))) === before)
    // It decides whose claims policies of a VirtualMCPServer see.
    expect(idle.map((path) => path.join('.')).filter((path) => path !== 'primaryUpstreamProvider')).toEqual([])
  })
})

interface Projected {
  readonly sources: readonly { readonly secret: { readonly name: string; readonly items: readonly { readonly path: string }[] } }[]
}

type Path = readonly (string | number)[]

function leaves(value: unknown, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [path]
  return Object.entries(value).flatMap(([key, inner]) => leaves(inner, [...path, Array.isArray(value) ? Number(key) : key]))
}

/** The same with another value at the path. */
function changed(server: CanonicalEmbeddedAuthServer, path: Path): CanonicalEmbeddedAuthServer {
  const copy = structuredClone(server)
  const last = path.at(-1) ?? ''
  const parent = path.slice(0, -1).reduce<Record<string | number, unknown>>((at, key) => at[key] as Record<string, unknown>, copy as never)
  const old = parent[last]
  parent[last] = typeof old === 'boolean' ? !old : typeof old === 'number' ? old + 1 : `${old}x`
  return copy
}
