import { checkPolicies } from '@thv/authz/policy-syntax'
import type { MCPExternalAuthConfig } from '@thv/resources/kinds/mcp-external-auth-config/schema'
import type { MCPToolConfig } from '@thv/resources/kinds/mcp-tool-config/schema'
import { fixturesOf } from '@thv/resources/testing/fixtures'
import { type OperatorFlags, type OperatorSettings, operatorSettings } from '../operator-settings.ts'
import type { Lookup } from '../references/lookup.ts'

/* A namespace in which whatever the fixtures of the kinds may name is there. */

const policies = (effect: string) =>
  JSON.stringify({ version: '1.0', type: 'cedarv1', cedar: { policies: [`${effect}(principal, action, resource);`] } })
const profile = (port: number) => JSON.stringify({ network: { outbound: { allow_port: [port] } } })

/** Good until 2120. Always the same, as golden files hold what is derived from it. */
export const COMPANY_CA = `-----BEGIN CERTIFICATE-----
MIIBnjCCAUOgAwIBAgIQbl34fgnx0j3xeEBKoUdkszAKBggqhkjOPQQDAjAdMRsw
GQYDVQQDDBJFeGFtcGxlIENvbXBhbnkgQ0EwIBcNMjAwMTAxMDAwMDAwWhgPMjEy
MDAxMDEwMDAwMDBaMB0xGzAZBgNVBAMMEkV4YW1wbGUgQ29tcGFueSBDQTBZMBMG
ByqGSM49AgEGCCqGSM49AwEHA0IABDqoLo68sAkjtstQWFJAiPzCtxZsBQfZEGSG
NAcKk2ds4ygYx9Tt1bf4ywZ8ACL04j9scP7j9ML6qtCB7zUoA1+jYzBhMA8GA1Ud
EwEB/wQFMAMBAf8wDgYDVR0PAQH/BAQDAgKEMB0GA1UdDgQWBBQh8vV2DXU5wJhc
wAAscov5c0fQIzAfBgNVHSMEGDAWgBQh8vV2DXU5wJhcwAAscov5c0fQIzAKBggq
hkjOPQQDAgNJADBGAiEAqNWapsDBrEIs0WdMtumIuzfhkZXVRxAVwLA5FID0SwcC
IQDaHYoQKesH1RG1xXpnqcdVT3GVdy/1P/B620sAyeqaSA==
-----END CERTIFICATE-----
`

/** Names that end in x are others of the same sort, for tests that change a reference. */
const CONFIG_MAPS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'company-ca': { 'root.pem': COMPANY_CA, 'ca.crt': COMPANY_CA },
  'company-cax': { 'root.pem': COMPANY_CA, 'ca.crt': COMPANY_CA },
  'partner-ca': { 'partner-root.pem': COMPANY_CA },
  'internal-ca-bundle': { 'ca.crt': COMPANY_CA },
  'company-oidc': { issuer: 'https://idp.example.com', 'settings.json': '{"audience":"a"}' },
  'company-oidcx': { issuer: 'https://other.example.com', 'settings.json': '{"audience":"a"}' },
  'ticket-policies': { 'policies.json': policies('permit'), 'policies.jsonx': policies('forbid'), 'authz.json': policies('permit') },
  'ticket-policiesx': { 'policies.json': policies('forbid') },
  'github-profile': { 'profile.json': profile(443), 'profile.jsonx': profile(8443) },
  'github-profilex': { 'profile.json': profile(8443) },
}

const authConfigs = fixtureSpecs<MCPExternalAuthConfig>('mcpexternalauthconfigs')
const toolConfigs = fixtureSpecs<MCPToolConfig>('mcptoolconfigs')

/** Names that the fixtures of workloads use. */
const ALIASES: Readonly<Record<string, string>> = {
  'ticket-tokens': 'both-token-exchanges',
  'ticket-tokensx': 'weather-key',
  'company-login': 'login-minimal',
  'company-loginx': 'login-with-sentinels',
  'company-ssox': 'company-sso-minimal',
}

export const fixtureLookup: Lookup = {
  configMap: (name) => own(CONFIG_MAPS, name, (data) => ({ uid: `uid-${name}`, resourceVersion: '7', data })),
  secret: () => ({ uid: 'uid-secret', resourceVersion: '7', keys: { has: () => true } as unknown as ReadonlySet<string> }),
  toolConfig: (name) => own(toolConfigs, name.replace(/x$/, ''), (spec) => ({ metadata: { name }, spec }) as MCPToolConfig),
  externalAuthConfig: (name) => own(authConfigs, ALIASES[name] ?? name, (spec) => ({ metadata: { name }, spec }) as MCPExternalAuthConfig),
  group: (name) => ({ apiVersion: 'toolhive.stacklok.dev/v1beta1', kind: 'MCPGroup', metadata: { name }, status: { phase: 'Ready' } }),
}

/** All that a plan depends on besides the object and its namespace; without anything that runs already. */
export function planFacts(settings: Partial<OperatorSettings> = {}) {
  return {
    settings: {
      ...operatorSettings(FLAGS, {}, { openshift: false }),
      runnerImage: 'example.com/proxyrunner:1',
      registryImage: 'example.com/registry-api:1',
      ...settings,
    },
    live: { runConfig: undefined, deployment: undefined },
    checkPolicies,
    now: Date.parse('2026-03-01T10:00:00Z'),
  }
}

const FLAGS: OperatorFlags = {
  metricsBindAddress: '0',
  healthProbeBindAddress: '0',
  webhookBindAddress: '0',
  leaderElect: false,
  leaseDuration: 15_000,
  denyPrivateRemotes: false,
  allowLoopbackRemotes: false,
}

function fixtureSpecs<T extends { spec?: unknown }>(plural: string): Readonly<Record<string, NonNullable<T['spec']>>> {
  return Object.fromEntries(fixturesOf(plural).map(({ manifest }) => [manifest.metadata.name, manifest.spec as NonNullable<T['spec']>]))
}

function own<V, R>(objects: Readonly<Record<string, V>>, name: string, make: (value: V) => R): R | undefined {
  const value = Object.hasOwn(objects, name) ? objects[name] : undefined
  return value === undefined ? undefined : make(value)
}
