import { fileURLToPath } from 'node:url'
import { jsonEqual } from '@thv/kernel/json'
import type { CanonicalPermissionProfile } from '@thv/resources/kinds/mcp-server/normalise'
import { readRunConfig } from '@thv/runconfig/read-run-config'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { workloadLabels } from '../labels.ts'
import { toCidr } from './address.ts'
import { networkPolicy } from './network-policy.ts'
import { type PermissionProfile, resolvePermissionProfile } from './permission-profile.ts'

const KEY: CanonicalPermissionProfile = { type: 'configmap', name: 'profiles', key: 'p.json' }

function resolve(document: unknown, more: { transport?: string; platform?: 'openshift'; podTemplateSpec?: Record<string, unknown> } = {}) {
  const { transport = 'streamable-http', platform, podTemplateSpec } = more
  const isBuiltin = document === 'none' || document === 'network'
  const text = typeof document === 'string' ? document : JSON.stringify(document)
  const resolved = resolvePermissionProfile({
    profile: isBuiltin ? { type: 'builtin', name: document } : KEY,
    podTemplateSpec,
    lookup: { configMap: () => ({ uid: 'u', resourceVersion: '1', data: { 'p.json': text } }) },
  })
  if (!resolved.ok) return { blockers: resolved.blockers.map(({ condition, reason, message }) => `${condition} ${reason}: ${message}`) }
  const { profile } = resolved
  const spec =
    profile && networkPolicy({ name: 'demo', namespace: 'team-a', transport, mcpPort: 9000, profile, ...(platform && { platform }) }).spec
  return {
    ingress: ingressWords(spec?.ingress),
    egress: spec?.egress ?? 'nowhere',
    conditions: resolved.contribution.conditions?.map(({ type, reason, message }) => `${type} ${reason}: ${message}`),
  }
}

const FROM_PROXY = {
  from: [{ podSelector: { matchLabels: workloadLabels('MCPServer', 'demo') } }],
  ports: [{ protocol: 'TCP', port: 9000 }],
}

/** In one word, so that the table can be read. */
function ingressWords(ingress: readonly unknown[] | undefined): unknown {
  if (ingress === undefined) return 'none'
  return jsonEqual(ingress, [FROM_PROXY]) ? 'its proxy on port 9000' : ingress
}

const outbound = (rules: Record<string, unknown>, more: Record<string, unknown> = {}) => ({ network: { outbound: rules }, ...more })

/** The golden file holds the result of each profile. */
const TABLE: readonly [string, unknown, Parameters<typeof resolve>[1]?][] = [
  ['builtin none', 'none'],
  ['builtin none, stdio', 'none', { transport: 'stdio' }],
  ['builtin network', 'network'],
  ['builtin network, stdio', 'network', { transport: 'stdio' }],
  ['an empty profile allows nothing', {}],
  ['everything', outbound({ insecure_allow_all: true })],
  ['everything wins over hosts and ports', outbound({ insecure_allow_all: true, allow_host: ['a.example'], allow_port: [1] })],
  ['mode none wins over everything', { network: { mode: 'none', outbound: { insecure_allow_all: true, allow_host: ['a.example'] } } }],
  ['mode bridge is the default', { network: { mode: 'bridge', outbound: { allow_port: [443] } } }],
  ['ports', outbound({ allow_port: [443, 8443, 443] })],
  ['ports, on OpenShift', outbound({ allow_port: [443] }), { platform: 'openshift' }],
  ['port 53 is DNS', outbound({ allow_port: [53] })],
  ['names and ports', outbound({ allow_host: ['api.example.com'], allow_port: [443] })],
  ['names without ports', outbound({ allow_host: ['api.example.com'] })],
  ['addresses and ports', outbound({ allow_host: ['192.0.2.7', '2001:db8::/32'], allow_port: [443] })],
  ['addresses without ports', outbound({ allow_host: ['10.0.0.0/8'] })],
  ['names and addresses and ports', outbound({ allow_host: ['10.0.0.0/8', 'api.example.com'], allow_port: [443] })],
  ['names and addresses without ports', outbound({ allow_host: ['10.0.0.0/8', 'api.example.com'] })],
  ['inbound rules', { network: { inbound: { allow_host: ['10.0.0.0/8'] } } }],
  ['folders', { read: ['/etc/hosts'], write: ['/var/cache'] }],
  [
    'names and inbound rules and folders',
    { read: ['/x'], network: { outbound: { allow_host: ['a.example'] }, inbound: { allow_host: ['b.example'] } } },
  ],
  ['privileged', { privileged: true }],
  ['privileged is not set', { privileged: false, name: 'mine' }],
  ['the network of the node', { network: { mode: 'host' } }],
  ['a mode that does not exist', { network: { mode: 'wide' } }],
  ['a misspelt restriction', { network: { outbound: { allow_hosts: ['a.example'] } } }],
  ['an unknown part', { netwrok: {} }],
  ['ports that are none', outbound({ allow_port: ['443', 0, 70_000] })],
  ['hosts that are none', outbound({ allow_host: 'a.example' })],
  ['a flag that is none', outbound({ insecure_allow_all: 'false' })],
  ['a list', []],
  ['no JSON', '{'],
  ['a profile and the network of the node', 'none', { podTemplateSpec: { spec: { hostNetwork: true } } }],
]

describe('permission profiles', () => {
  it('become what the decision table says', async () => {
    const table = Object.fromEntries(TABLE.map(([name, document, more]) => [name, resolve(document, more)]))
    expect(Object.keys(table)).toHaveLength(TABLE.length)
    await expect(`${JSON.stringify(table, undefined, 2)}\n`).toMatchFileSnapshot(
      fileURLToPath(new URL('./permission-profiles.golden.json', import.meta.url)),
    )
  })

  it('ask for no policy when there is none, and are then told to the runner as network', () => {
    const resolved = resolvePermissionProfile({ profile: undefined, lookup: { configMap: () => undefined } })
    expect(resolved).toMatchObject({ ok: true, contribution: { runConfig: { permission_profile: { name: 'network' } } } })
    expect(resolved.profile).toBeUndefined()
  })

  it.each([
    ['ConfigMap profiles does not exist', () => undefined],
    ['ConfigMap profiles has no key p.json', () => ({ uid: 'u', resourceVersion: '1', data: {} })],
  ])('block the workload when %s', (words, configMap) => {
    const resolved = resolvePermissionProfile({ profile: KEY, lookup: { configMap } })
    if (resolved.ok) throw new Error('not blocked')
    expect(resolved.blockers).toMatchObject([{ condition: 'ConfigurationValid', reason: 'PermissionProfileNotFound' }])
    expect(resolved.blockers[0]?.message).toContain(words)
  })

  it('stand in the document in full, and the runner reads it', () => {
    const resolved = resolvePermissionProfile({
      profile: KEY,
      lookup: {
        configMap: () => ({ uid: 'u', resourceVersion: '1', data: { 'p.json': '{"network":{"outbound":{"allow_port":[443]}}}' } }),
      },
    })
    const runConfig = resolved.contribution?.runConfig
    expect(runConfig).toEqual({
      permission_profile: {
        name: 'p.json',
        read: [],
        write: [],
        network: { outbound: { insecure_allow_all: false, allow_host: [], allow_port: [443] }, inbound: { allow_host: [] } },
      },
      permission_profile_name_or_path: 'profiles/p.json',
    })
    expect(readRunConfig({ name: 'demo', transport: 'stdio', image: 'x', ...runConfig })).toMatchObject({ ok: true, warnings: [] })
  })
})

describe('networkPolicy', () => {
  const profile = fc.record({
    name: fc.constant('p'),
    read: fc.constant([]),
    write: fc.constant([]),
    network: fc.record({
      outbound: fc.record({
        insecure_allow_all: fc.constant(false),
        allow_host: fc.subarray(['a.example', '10.0.0.0/8', '192.0.2.7']),
        allow_port: fc.subarray([53, 443, 9000]),
      }),
      inbound: fc.record({ allow_host: fc.subarray(['10.0.0.0/8']) }),
    }),
  })

  it('never opens all of the network unless the profile says so, and never lets anybody in but the proxy', () => {
    fc.assert(
      fc.property(profile, fc.constantFrom('stdio', 'sse'), (given: PermissionProfile, transport) => {
        const { spec } = networkPolicy({ name: 'demo', namespace: 'n', transport, mcpPort: 1, profile: given })
        const { allow_port: ports, allow_host: hosts } = given.network.outbound
        for (const rule of (spec?.egress ?? []) as { to?: unknown[]; ports?: { port: number }[] }[]) {
          expect(rule.to !== undefined || rule.ports !== undefined).toBe(true)
          if (rule.to === undefined) expect(rule.ports?.every(({ port }) => ports.includes(port))).toBe(true)
          if (rule.to !== undefined) expect(rule.to.length).toBeGreaterThan(0)
        }
        if (ports.length + hosts.filter((host) => toCidr(host)).length === 0) expect(spec).not.toHaveProperty('egress')
        expect(spec?.policyTypes).toEqual(['Ingress', 'Egress'])
        expect(spec?.ingress ?? []).toHaveLength(transport === 'stdio' ? 0 : 1)
        expect(JSON.stringify(spec?.ingress ?? [])).not.toContain('10.0.0.0')
      }),
    )
  })
})

describe('toCidr', () => {
  it.each([
    ['192.0.2.7', '192.0.2.7/32'],
    ['10.0.0.0/8', '10.0.0.0/8'],
    ['2001:db8::1', '2001:db8::1/128'],
    ['::/0', '::/0'],
    ['10.0.0.0/33', undefined],
    ['10.0.0.0/', undefined],
    ['10.0.0/8', undefined],
    ['fe80::1%eth0', undefined],
    ['example.com', undefined],
    ['', undefined],
  ])('%s is %s', (host, cidr) => {
    expect(toCidr(host)).toBe(cidr)
  })
})
