import type { MCPExternalAuthConfig } from '@thv/resources/kinds/mcp-external-auth-config/schema'
import type { MCPRemoteProxy } from '@thv/resources/kinds/mcp-remote-proxy/schema'
import type { MCPServer } from '@thv/resources/kinds/mcp-server/schema'
import type { MCPServerEntry } from '@thv/resources/kinds/mcp-server-entry/schema'
import type { VirtualMCPServer } from '@thv/resources/kinds/virtual-mcp-server/schema'
import { describe, expect, test } from 'vitest'
import { indexValues } from '../caches/reference-indexes.ts'
import {
  referencesOfExternalAuthConfig,
  referencesOfRemoteProxy,
  referencesOfServer,
  referencesOfServerEntry,
  referencesOfVirtualServer,
} from './references.ts'

const metadata = { name: 'x', namespace: 'team' }
const server = (spec: Partial<MCPServer['spec']>): MCPServer => ({ metadata, spec: { image: 'i', ...spec } })

describe('referencesOfServer', () => {
  test('none', () => {
    expect(referencesOfServer(server({}))).toEqual({ groups: [], toolConfigs: [], externalAuthConfigs: [], configMaps: [], secrets: [] })
  })

  test('everything, in any spelling, each once', () => {
    const all = referencesOfServer(
      server({
        groupRef: 'g',
        toolConfigRef: { name: 't' },
        externalAuthConfigRef: { name: 'e' },
        authServerRef: { name: 'login' },
        oidcConfig: {
          type: 'inline',
          inline: {
            issuer: 'https://a',
            clientSecretRef: { name: 's1', key: 'k' },
            caBundleRef: { configMapRef: { name: 'ca' } },
          },
        },
        authzConfig: {
          type: 'configMap',
          configMap: { name: 'policies' },
          candidate: { type: 'configMap', configMap: { name: 'next-policies' } },
        },
        permissionProfile: { type: 'configmap', name: 'profile', key: 'p.json' },
        secrets: [
          { name: 's1', key: 'a' },
          { name: 's2', key: 'b' },
        ],
        sessionStorage: { provider: 'redis', address: 'r:6379', passwordRef: { name: 's3', key: 'p' } },
      }),
    )
    expect(all).toEqual({
      groups: ['g'],
      toolConfigs: ['t'],
      externalAuthConfigs: ['e', 'login'],
      configMaps: ['ca', 'policies', 'next-policies', 'profile'],
      secrets: ['s1', 's2', 's3'],
    })
  })

  test('an OIDC ConfigMap with its CA bundle', () => {
    const oidcConfig = { type: 'configmap' as const, configMap: { name: 'oidc', caBundleRef: { name: 'ca' } } }
    expect(referencesOfServer(server({ oidcConfig })).configMaps).toEqual(['oidc', 'ca'])
  })

  test('oidcConfig of type external is a reference to an auth config', () => {
    expect(referencesOfServer(server({ oidcConfig: { type: 'external', external: { name: 'e' } } })).externalAuthConfigs).toEqual(['e'])
  })
})

test('a remote proxy names its CA bundle and the Secrets of its headers', () => {
  const proxy: MCPRemoteProxy = {
    metadata,
    spec: {
      remoteURL: 'https://a',
      caBundleRef: { configMapRef: { name: 'ca' } },
      headerForward: { addHeadersFromSecrets: [{ headerName: 'X-A', valueSecretRef: { name: 's', key: 'k' } }] },
    },
  }
  expect(referencesOfRemoteProxy(proxy)).toMatchObject({ configMaps: ['ca'], secrets: ['s'] })
})

test('the Secrets that a pod template turns into variables count, for both kinds', () => {
  const podTemplateSpec = { spec: { containers: [{ name: 'toolhive', envFrom: [{ secretRef: { name: 'from-template' } }] }] } }
  const proxy: MCPRemoteProxy = { metadata, spec: { remoteUrl: 'https://a', podTemplateSpec } }
  expect(referencesOfRemoteProxy(proxy).secrets).toEqual(['from-template'])
  expect(referencesOfServer(server({ podTemplateSpec })).secrets).toEqual(['from-template'])
})

test('a server entry', () => {
  const entry: MCPServerEntry = {
    metadata,
    spec: {
      remoteUrl: 'https://a',
      transport: 'sse',
      groupRef: { name: 'g' },
      externalAuthConfigRef: { name: 'e' },
      caBundleRef: { name: 'ca' },
      headerForward: { addHeadersFromSecret: [{ headerName: 'X-A', valueSecretRef: { name: 's', key: 'k' } }] },
    },
  }
  expect(referencesOfServerEntry(entry)).toEqual({
    groups: ['g'],
    toolConfigs: [],
    externalAuthConfigs: ['e'],
    configMaps: ['ca'],
    secrets: ['s'],
  })
})

test('a virtual server names auth configs of its backends, tool configs of its aggregation and the CA bundle of its collector', () => {
  const virtual = {
    metadata,
    spec: {
      groupRef: { name: 'g' },
      incomingAuth: { type: 'anonymous' },
      outgoingAuth: {
        default: { type: 'externalAuthConfigRef', externalAuthConfigRef: { name: 'e1' } },
        backends: { b: { type: 'external_auth_config_ref', externalAuthConfigRef: { name: 'e2' } }, c: { type: 'discovered' } },
      },
      config: {
        aggregation: { tools: [{ workload: 'b', toolConfigRef: { name: 't' } }] },
        telemetry: { endpoint: 'otel:4318', tracingEnabled: true, caBundleRef: { configMapRef: { name: 'otel-ca' } } },
      },
    },
  } as VirtualMCPServer
  expect(referencesOfVirtualServer(virtual)).toMatchObject({
    ...{ groups: ['g'], toolConfigs: ['t'], externalAuthConfigs: ['e1', 'e2'] },
    configMaps: ['otel-ca'],
  })
})

describe('referencesOfExternalAuthConfig', () => {
  const config = (spec: unknown) => ({ metadata, spec }) as MCPExternalAuthConfig

  test.each([
    [
      'token exchange, in both spellings',
      { type: 'tokenExchange', tokenExchange: { token_url: 'https://a', audience: 'b', client_secret_ref: { name: 's', key: 'k' } } },
      ['s'],
    ],
    ['header injection', { type: 'headerInjection', headerInjection: { headerName: 'X', valueSecretRef: { name: 's', key: 'k' } } }, ['s']],
    ['bearer token', { type: 'bearerToken', bearerToken: { tokenSecretRef: { name: 's', key: 'k' } } }, ['s']],
    ['nothing', { type: 'unauthenticated' }, []],
  ])('%s', (_, spec, expected) => {
    expect(referencesOfExternalAuthConfig(config(spec)).secrets).toEqual(expected)
  })

  test('an embedded server, however deep', () => {
    const ref = (name: string) => ({ name, key: 'k' })
    const embeddedAuthServer = {
      issuer: 'https://a',
      signingKeySecretRefs: [ref('key0'), ref('key1')],
      hmacSecretRefs: [ref('hmac')],
      delegateClients: [{ clientId: 'c', clientSecretRef: ref('delegate'), audiences: ['a'], scopes: ['s'] }],
      upstreamProviders: [
        { name: 'a', type: 'oidc', oidcConfig: { issuerUrl: 'https://b', clientId: 'c', clientSecretRef: ref('upstream') } },
        {
          name: 'b',
          type: 'oauth2',
          oauth2Config: {
            authorizationEndpoint: 'https://c',
            tokenEndpoint: 'https://c',
            dcrConfig: { initialAccessTokenRef: ref('dcr') },
          },
        },
      ],
      storage: {
        type: 'redis',
        redis: { addr: 'r:1', aclUserConfig: { passwordSecretRef: ref('redis') }, tls: { caCertSecretRef: ref('ca') } },
      },
    }
    expect(referencesOfExternalAuthConfig(config({ type: 'embeddedAuthServer', embeddedAuthServer })).secrets.toSorted()).toEqual([
      'ca',
      'dcr',
      'delegate',
      'hmac',
      'key0',
      'key1',
      'redis',
      'upstream',
    ])
  })
})

test('index values carry the namespace of the referrer', () => {
  expect(indexValues(referencesOfServer, 'secrets')(server({ secrets: [{ name: 's', key: 'k' }] }))).toEqual(['team/s'])
})
