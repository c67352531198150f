import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createCertificate } from '@thv/http/tls/certificate'
import type { MCPExternalAuthConfig } from '@thv/resources/kinds/mcp-external-auth-config/schema'
import type { MCPServer } from '@thv/resources/kinds/mcp-server/schema'
import type { MCPServerEntry } from '@thv/resources/kinds/mcp-server-entry/schema'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { resolveMembers } from '@thv/vmcpconfig/discovery/resolve-member'
import { readVmcpDocument } from '@thv/vmcpconfig/read-vmcp-config'
import { afterAll, describe, expect, it } from 'vitest'
import { discoveredBackends } from './discovered-backends.ts'
import { staticBackends } from './static-backends.ts'

const folder = mkdtempSync(join(tmpdir(), 'vmcp-modes-'))
afterAll(() => rmSync(folder, { recursive: true }))
const pem = createCertificate({ commonName: 'ca', ca: true }).certPem
writeFileSync(join(folder, 'ca.crt'), pem)

const secretKey = { name: 's', key: 'k' }
const AUTHS: Record<string, object> = {
  header: { type: 'headerInjection', headerInjection: { headerName: 'X-Key', valueSecretRef: secretKey } },
  exchange: {
    type: 'tokenExchange',
    tokenExchange: { tokenUrl: 'https://i.example.com/t', audience: 'a', clientId: 'c', clientSecretRef: secretKey },
  },
}
const entry = (name: string, spec: object) =>
  ({
    metadata: { name },
    spec: { remoteUrl: 'https://r.example.com/mcp', transport: 'streamable-http', groupRef: { name: 'team' }, ...spec },
    status: { phase: 'Ready' },
  }) as unknown as MCPServerEntry

const members = resolveMembers(
  {
    MCPServer: [
      { metadata: { name: 'local' }, spec: { image: 'i:1', groupRef: 'team' }, status: { url: 'http://x' } } as unknown as MCPServer,
    ],
    MCPRemoteProxy: [],
    MCPServerEntry: [
      entry('plain', { allowPrivateEndpoint: true }),
      entry('guarded', {
        externalAuthConfigRef: { name: 'header' },
        caBundleRef: { configMapRef: { name: 'ca' } },
        headerForward: { addPlaintextHeaders: { 'X-A': 'a' }, addHeadersFromSecret: [{ headerName: 'X-B', valueSecretRef: secretKey }] },
      }),
      entry('exchanged', { externalAuthConfigRef: { name: 'exchange' } }),
    ],
  },
  {
    ...{ group: 'team', namespace: 'ns', clusterDomain: 'cluster.local', incoming: {} },
    externalAuthConfig: (name) => ({ spec: AUTHS[name] }) as Pick<MCPExternalAuthConfig, 'spec'>,
  },
)

function configOf(more: object) {
  const read = readVmcpDocument({
    ...{ name: 'v', groupRef: 'team', incomingAuth: { type: 'anonymous' }, aggregation: { conflictResolution: 'prefix' } },
    ...{ remotePolicy: { denyPrivate: true }, operational: { timeouts: { perWorkload: { guarded: '5s' } } } },
    ...more,
  })
  if (!read.ok) throw new TypeError(JSON.stringify(read.problems))
  return read.config
}

const VALUES = { secret: () => 'v4lue', configMap: () => pem }
const ENV = { VMCP_NAMESPACE: 'ns' }

describe('members of a group', () => {
  it('[004-017] are resolved to the same backends by static and by dynamic mode', async () => {
    const found = members.flatMap((each) => (each.ok ? [each.member] : []))
    const inline = configOf({
      outgoingAuth: {
        source: 'inline',
        backends: Object.fromEntries(found.flatMap(({ backend, auth }) => (auth ? [[backend.name, auth]] : []))),
      },
      backends: found.map(({ backend, caBundle }) => ({ ...backend, ...(caBundle && { caBundlePath: join(folder, 'ca.crt') }) })),
    })
    const env: Record<string, string> = { ...ENV }
    for (const { secrets, headers } of found) {
      for (const { name } of secrets) env[name] = 'v4lue'
      if (headers !== undefined) env[headers.variable] = headers.manifest
    }
    const fromFile = await staticBackends(inline, env, new CollectingLog())
    const dynamic = discoveredBackends(members, { config: configOf({ outgoingAuth: { source: 'discovered' } }), env: ENV, values: VALUES })
    expect(dynamic.leftOut).toEqual([])
    expect(dynamic.backends.map(({ authConfigRef: _, ...backend }) => backend)).toEqual(
      fromFile.map(({ authConfigRef: _, ...backend }) => backend),
    )
    expect(dynamic.backends.map(({ name }) => name)).toEqual(['exchanged', 'guarded', 'local', 'plain'])
    expect([...dynamic.ready]).toEqual(['exchanged', 'guarded', 'plain'])
    expect(dynamic.backends.find(({ name }) => name === 'guarded')?.headers).toEqual({ 'x-a': 'a', 'x-b': 'v4lue', 'x-key': 'v4lue' })
  })

  it.each([
    ['a Secret without the key', { ...VALUES, secret: () => undefined }, ['exchanged AuthUnavailable', 'guarded AuthUnavailable']],
    ['a Secret that was not read yet', { ...VALUES, secret: () => 'unknown' as const }, ['exchanged NotReady', 'guarded NotReady']],
    ['a missing CA bundle', { ...VALUES, configMap: () => undefined }, ['guarded Invalid']],
    ['a CA bundle that is none', { ...VALUES, configMap: () => 'x' }, ['guarded Invalid']],
  ])('are left out with %s, and never called with less', (_, values, expected) => {
    const { backends, leftOut } = discoveredBackends(members, {
      config: configOf({ outgoingAuth: { source: 'discovered' } }),
      env: ENV,
      values,
    })
    expect(leftOut.map(({ name, reason }) => `${name} ${reason}`)).toEqual(expected)
    expect(backends).toHaveLength(4 - expected.length)
    expect(JSON.stringify(leftOut)).not.toContain('v4lue')
  })

  it('never get the token of a caller where they are entries, whatever the file says', () => {
    const oidc = { issuer: 'https://i.example.com', audience: 'mcp' }
    const callerToken = { type: 'caller_token' }
    const config = configOf({
      incomingAuth: { type: 'oidc', oidc },
      outgoingAuth: { source: 'discovered', backends: { plain: callerToken, local: callerToken } },
    })
    const { backends, leftOut } = discoveredBackends(members, { config, env: ENV, values: VALUES })
    expect(leftOut.map(({ name, message }) => `${name}: ${message}`)).toEqual([
      'plain: outgoingAuth.backends.plain.type: caller_token is not for entries',
    ])
    expect(backends.filter(({ authType }) => authType === 'caller_token').map(({ name }) => name)).toEqual(['local'])
  })

  it('keep their own headers over those of clients, with a warning for each', () => {
    const config = configOf({ outgoingAuth: { source: 'discovered' }, passthroughHeaders: ['X-B', 'x-tenant', 'X-A'] })
    const { warnings } = discoveredBackends(members, { config, env: ENV, values: VALUES })
    expect(warnings).toEqual([
      {
        ...{ kind: 'MCPServerEntry', name: 'guarded', reason: 'HeaderNotPassed' },
        message: 'its own headers win over passthroughHeaders: x-a, x-b',
      },
    ])
  })

  it('use the authentication of the file over their own', () => {
    const headerInjection = { headerName: 'X-File', headerValue: 'f' }
    const config = configOf({
      outgoingAuth: { source: 'discovered', backends: { guarded: { type: 'header_injection', headerInjection } } },
    })
    const { backends } = discoveredBackends(members, { config, env: ENV, values: VALUES })
    expect(backends.find(({ name }) => name === 'guarded')?.headers).toMatchObject({ 'x-file': 'f' })
    expect(backends.find(({ name }) => name === 'guarded')?.headers).not.toHaveProperty('x-key')
  })
})
