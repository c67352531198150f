import type { KubeClient } from '@thv/kube'
import { KINDS } from '@thv/resources/kinds/kinds'
import { API_GROUP } from '@thv/resources/schema/kind-definition'
import { adminClient, installCrds } from '@thv/resources/testing/install-crds'
import { describeCluster, sharedCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { afterAll, beforeAll, expect, it } from 'vitest'

/* Manifests that must pass or fail by the design documents, sent to the real API server. */

interface Admission {
  ids: string
  says: string
  kind: string
  accepts?: readonly object[]
  refuses?: readonly (readonly [spec: object, message: string])[]
  annotations?: Record<string, string>
  /** Expected members after the server filled in defaults: path → value. */
  stores?: Record<string, unknown>
}

const image = 'registry.example.com/mcp/server:v1'
const git = { repository: 'https://git.example.com/r.git', branch: 'main' }
const entry = (source: object) => ({ registries: [{ name: 'one', ...source }] })
const selector = { configMapSelector: { matchLabels: { team: 'a' } } }
const ONE_SOURCE = 'exactly one source type must be specified (configMapRef, configMapSelector, git, or api)'
const remote = { remoteURL: 'https://mcp.example.com/mcp', transport: 'streamable-http', groupRef: 'engineering' }
const valueSecretRef = { name: 'credentials', key: 'token' }

const ROWS: readonly Admission[] = [
  {
    ids: '[000-040]',
    says: 'image, transport sse and port 8080 are kept as written',
    kind: 'MCPServer',
    accepts: [{ image, transport: 'sse', port: 8080 }],
    stores: { image, transport: 'sse', port: 8080 },
  },
  {
    ids: '[001-001]',
    says: 'export.mode is server, operator or none',
    kind: 'MCPRegistry',
    accepts: ['server', 'operator', 'none'].map((mode) => ({ ...entry({ git }), export: { mode } })),
    refuses: [[{ ...entry({ git }), export: { mode: 'all' } }, 'spec.export.mode']],
  },
  {
    ids: '[002-035]',
    says: 'tokenExchange and headerInjection each demand their own block',
    kind: 'MCPExternalAuthConfig',
    accepts: [
      { type: 'tokenExchange', tokenExchange: { tokenUrl: 'https://idp.example.com/token', audience: 'a' } },
      { type: 'headerInjection', headerInjection: { headerName: 'X-Key', valueSecretRef } },
    ],
    refuses: [
      [{ type: 'tokenExchange' }, 'tokenExchange'],
      [{ type: 'headerInjection' }, 'headerInjection'],
    ],
  },
  {
    ids: '',
    says: 'a workflow without a name or steps, or with an unknown step type, is refused',
    kind: 'VirtualMCPCompositeToolDefinition',
    refuses: [
      [{ description: 'd', steps: [{ id: 'a', tool: 'w.t' }] }, 'spec.name'],
      [{ name: 'n', description: 'd' }, 'spec.steps'],
      [{ name: 'n', description: 'd', steps: [{ id: 'a', type: 'loop', tool: 'w.t' }] }, 'spec.steps[0].type'],
    ],
  },
  {
    ids: '[002-063]',
    says: 'oidcConfig is a union selected by type',
    kind: 'MCPServer',
    accepts: [
      { image, oidcConfig: { type: 'inline', inline: { issuer: 'https://idp.example.com', audience: 'a' } } },
      { image, oidcConfig: { type: 'configMap', configMap: { name: 'c' } } },
      { image, oidcConfig: { type: 'kubernetes' } },
    ],
    refuses: [
      [{ image, oidcConfig: { type: 'inline' } }, 'spec.oidcConfig'],
      [{ image, oidcConfig: { type: 'configMap' } }, 'spec.oidcConfig'],
    ],
  },
  {
    ids: '[002-065]',
    says: 'authzConfig is a union selected by type',
    kind: 'MCPServer',
    accepts: [
      { image, authzConfig: { type: 'configMap', configMap: { name: 'c' } } },
      { image, authzConfig: { type: 'inline', inline: { policies: ['permit(principal, action, resource);'] } } },
    ],
    refuses: [[{ image, authzConfig: { type: 'inline', configMap: { name: 'c' } } }, 'spec.authzConfig']],
  },
  {
    ids: '[002-077]',
    says: 'source is git or a ConfigMap, selected by type',
    kind: 'MCPRegistry',
    accepts: [{ source: { type: 'git', git } }, { source: { type: 'configmap', configmap: { name: 'c' } } }],
    refuses: [[{ source: { type: 'git', configmap: { name: 'c' } } }, 'spec.source']],
  },
  {
    ids: '[002-091]',
    says: 'an embedded auth server needs an issuer and an upstream',
    kind: 'MCPExternalAuthConfig',
    accepts: [authServer({})],
    refuses: [
      [authServer({ issuer: undefined }), 'issuer'],
      [authServer({ upstreamProviders: [] }), 'upstreamProviders'],
    ],
  },
  {
    ids: '[002-093]',
    says: 'its storage can be Redis with Sentinel',
    kind: 'MCPExternalAuthConfig',
    accepts: [
      authServer({
        storage: {
          type: 'redis',
          redis: { sentinelConfig: { masterName: 'm', sentinelAddrs: ['s:26379'] }, aclUserConfig: { passwordSecretRef: valueSecretRef } },
        },
      }),
    ],
  },
  {
    ids: '[002-097]',
    says: 'oidcConfig can name an external config',
    kind: 'MCPServer',
    accepts: [
      { image, oidcConfig: { type: 'external', external: { name: 'shared' } } },
      { image, oidcConfig: { type: 'external', external: { name: 'a' }, resourceUrl: 'https://x' }, externalAuthConfigRef: { name: 'b' } },
    ],
  },
  {
    ids: '[002-104]',
    says: 'a remote proxy needs an http or https address in one spelling',
    kind: 'MCPRemoteProxy',
    accepts: [{ remoteURL: 'https://r.example.com' }, { remoteUrl: 'http://r.example.com' }],
    refuses: [
      [{}, 'remoteUrl'],
      [{ remoteUrl: 'ftp://r' }, 'spec.remoteUrl'],
      [{ remoteUrl: 'https://a', remoteURL: 'https://b' }, 'two spellings'],
    ],
  },
  {
    ids: '[002-135]',
    says: 'incoming auth is anonymous, or oidc with its settings',
    kind: 'VirtualMCPServer',
    accepts: [
      { groupRef: 'g', incomingAuth: { type: 'anonymous' } },
      {
        groupRef: 'g',
        incomingAuth: { type: 'oidc', oidcConfig: { type: 'inline', inline: { issuer: 'https://idp.example.com', audience: 'a' } } },
      },
    ],
    refuses: [
      [{ groupRef: 'g', incomingAuth: { type: 'oidc' } }, 'oidcConfig'],
      [{ groupRef: 'g', incomingAuth: { type: 'basic' } }, 'spec.incomingAuth.type'],
    ],
  },
  {
    ids: '[002-234]',
    says: 'bad values of typed fields are refused',
    kind: 'MCPServer',
    refuses: [
      [{ image, transport: 'tcp' }, 'spec.transport'],
      [{ image, proxyPort: 70000 }, 'spec.proxyPort'],
    ],
  },
  {
    ids: '[002-239]',
    says: 'nothing inside podTemplateSpec is pruned',
    kind: 'MCPServer',
    accepts: [{ image, podTemplateSpec: { spec: { anyNewField: { of: ['the', 'future'] } } } }],
    stores: { podTemplateSpec: { spec: { anyNewField: { of: ['the', 'future'] } } } },
  },
  {
    ids: '[003-003]',
    says: 'configMapRef is kept as written',
    kind: 'MCPRegistry',
    accepts: [entry({ configMapRef: { name: 'c', key: 'k.json' } })],
    stores: { 'registries.0.configMapRef': { name: 'c', key: 'k.json' } },
  },
  { ids: '[003-007]', says: 'matchLabels alone is a complete selector', kind: 'MCPRegistry', accepts: [entry(selector)] },
  {
    ids: '[003-021]',
    says: 'a selector without a positive condition is rejected',
    kind: 'MCPRegistry',
    accepts: [
      entry({ configMapSelector: { matchExpressions: [{ key: 'team', operator: 'Exists' }] } }),
      entry({
        configMapSelector: {
          matchExpressions: [
            { key: 'team', operator: 'DoesNotExist' },
            { key: 'a', operator: 'In', values: ['b'] },
          ],
        },
      }),
      entry({ configMapSelector: { matchLabels: { team: 'a' }, matchExpressions: [{ key: 'old', operator: 'DoesNotExist' }] } }),
    ],
    refuses: [
      [entry({ configMapSelector: {} }), 'at least one of matchLabels and matchExpressions'],
      [entry({ configMapSelector: { matchExpressions: [{ key: 'team', operator: 'DoesNotExist' }] } }), 'must be In or Exists'],
      [entry({ configMapSelector: { matchExpressions: [{ key: 'team', operator: 'NotIn', values: ['a'] }] } }), 'must be In or Exists'],
    ],
  },
  {
    ids: '[003-022]',
    says: 'empty matchLabels are refused',
    kind: 'MCPRegistry',
    refuses: [[entry({ configMapSelector: { matchLabels: {} } }), 'matchLabels']],
  },
  {
    ids: '[003-023]',
    says: 'labels are strings',
    kind: 'MCPRegistry',
    refuses: [[entry({ configMapSelector: { matchLabels: { a: 1 } } }), 'must be of type string']],
  },
  {
    ids: '[003-025]',
    says: 'the key is registry.json unless given',
    kind: 'MCPRegistry',
    accepts: [entry(selector)],
    stores: { 'registries.0.configMapSelector.key': 'registry.json' },
  },
  {
    ids: '[003-050]',
    says: 'a selector beside configMapRef is refused',
    kind: 'MCPRegistry',
    refuses: [[entry({ ...selector, configMapRef: { name: 'c' } }), ONE_SOURCE]],
  },
  { ids: '[003-051]', says: 'a selector beside git is refused', kind: 'MCPRegistry', refuses: [[entry({ ...selector, git }), ONE_SOURCE]] },
  {
    ids: '[003-052]',
    says: 'a selector beside api is refused',
    kind: 'MCPRegistry',
    refuses: [[entry({ ...selector, api: { endpoint: 'https://r' } }), ONE_SOURCE]],
  },
  {
    ids: '[003-070]',
    says: 'conflictStrategy is prefix, priority or error',
    kind: 'MCPRegistry',
    accepts: ['prefix', 'priority', 'error'].map((conflictStrategy) =>
      entry({ configMapSelector: { ...selector.configMapSelector, conflictStrategy } }),
    ),
    refuses: [[entry({ configMapSelector: { ...selector.configMapSelector, conflictStrategy: 'newest' } }), 'conflictStrategy']],
  },
  {
    ids: '[003-096] [003-098]',
    says: 'an entry without a source is refused in the words of the document',
    kind: 'MCPRegistry',
    refuses: [[entry({}), ONE_SOURCE]],
  },
  {
    ids: '[003-097]',
    says: 'so is any other pair',
    kind: 'MCPRegistry',
    refuses: [
      [entry({ git, api: { endpoint: 'https://r' } }), ONE_SOURCE],
      [entry({ git, configMapRef: { name: 'c' } }), ONE_SOURCE],
      [entry({ api: { endpoint: 'https://r' }, configMapRef: { name: 'c' } }), ONE_SOURCE],
    ],
  },
  {
    ids: '[003-099]',
    says: 'each source alone is accepted',
    kind: 'MCPRegistry',
    accepts: [entry({ git }), entry(selector), entry({ configMapRef: { name: 'c' } }), entry({ api: { endpoint: 'https://r' } })],
  },
  {
    ids: '[004-004]',
    says: 'an entry needs an address in one spelling',
    kind: 'MCPServerEntry',
    accepts: [remote, { ...remote, remoteURL: undefined, remoteUrl: remote.remoteURL }],
    refuses: [
      [{ ...remote, remoteURL: undefined }, 'remoteUrl'],
      [{ ...remote, remoteUrl: 'https://other.example.com' }, 'two spellings'],
    ],
  },
  {
    ids: '[004-061]',
    says: 'the plural of the draft is accepted and must not contradict',
    kind: 'MCPServerEntry',
    accepts: [{ ...remote, headerForward: { addHeadersFromSecrets: [{ headerName: 'X-Key', valueSecretRef }] } }],
    refuses: [
      [
        {
          ...remote,
          headerForward: {
            addHeadersFromSecret: [{ headerName: 'X-A', valueSecretRef }],
            addHeadersFromSecrets: [{ headerName: 'X-B', valueSecretRef }],
          },
        },
        'two spellings',
      ],
    ],
  },
  {
    ids: '[004-062]',
    says: 'the flat CA bundle of the draft is accepted and must not contradict',
    kind: 'MCPServerEntry',
    accepts: [{ ...remote, caBundleRef: { name: 'ca', key: 'ca.crt' } }],
    refuses: [[{ ...remote, caBundleRef: { name: 'ca', configMapRef: { name: 'other', key: 'ca.crt' } } }, 'caBundleRef']],
  },
  {
    ids: '[004-089]',
    says: 'http needs insecureAllowHTTP',
    kind: 'MCPServerEntry',
    accepts: [{ ...remote, remoteURL: 'http://mcp.example.com', insecureAllowHTTP: true }],
    refuses: [
      [{ ...remote, remoteURL: 'http://mcp.example.com' }, 'insecureAllowHTTP'],
      [{ ...remote, remoteURL: 'HTTP://mcp.example.com' }, 'insecureAllowHTTP'],
    ],
  },
  {
    ids: '[004-090]',
    says: 'the annotation of the draft opens nothing',
    kind: 'MCPServerEntry',
    annotations: { 'toolhive.stacklok.dev/allow-insecure': 'true' },
    refuses: [[{ ...remote, remoteURL: 'http://mcp.example.com' }, 'insecureAllowHTTP']],
  },
  {
    ids: '[004-091]',
    says: 'a misspelt true is refused',
    kind: 'MCPServerEntry',
    refuses: [[{ ...remote, insecureAllowHTTP: 'tru' }, 'spec.insecureAllowHTTP']],
  },
  {
    ids: '[004-097]',
    says: 'Authorization cannot be forwarded beside externalAuthConfigRef',
    kind: 'MCPServerEntry',
    accepts: [{ ...remote, headerForward: { addHeadersFromSecret: [{ headerName: 'Authorization', valueSecretRef }] } }],
    refuses: [
      [
        {
          ...remote,
          externalAuthConfigRef: { name: 'a' },
          headerForward: { addHeadersFromSecret: [{ headerName: 'authorization', valueSecretRef }] },
        },
        'Authorization',
      ],
      [
        { ...remote, externalAuthConfigRef: { name: 'a' }, headerForward: { addPlaintextHeaders: { AUTHORIZATION: 'x' } } },
        'Authorization',
      ],
    ],
  },
]

function authServer(change: object) {
  const upstream = { name: 'corporate', type: 'oidc', oidcConfig: { issuerUrl: 'https://login.example.com', clientId: 'c' } }
  return {
    type: 'embeddedAuthServer',
    embeddedAuthServer: { issuer: 'https://auth.example.com', upstreamProviders: [upstream], ...change },
  }
}

describeCluster('admission as the design documents ask for it', () => {
  let client: KubeClient
  let namespace: string

  beforeAll(async () => {
    client = adminClient(sharedCluster())
    await installCrds(client)
    namespace = await testNamespace('design')
  })
  afterAll(() => client.close())

  function create(row: Admission, spec: object) {
    const plural = KINDS.find((definition) => definition.kind === row.kind)?.plural ?? ''
    const type = { group: API_GROUP, version: 'v1alpha1', kind: row.kind, plural, namespaced: true }
    const manifest = {
      apiVersion: `${API_GROUP}/v1alpha1`,
      kind: row.kind,
      metadata: { name: 'x', namespace, annotations: row.annotations ?? {} },
      spec,
    }
    return client.create(type, manifest, { dryRun: true, fieldValidation: 'Strict' }) as Promise<unknown> as Promise<{ spec: object }>
  }

  it.each(ROWS.map((row) => [row.kind, row.says, row.ids, row] as const))('%s: %s %s', async (_kind, _says, _ids, row) => {
    expect((row.accepts?.length ?? 0) + (row.refuses?.length ?? 0)).toBeGreaterThan(0)
    for (const spec of row.accepts ?? []) {
      const stored = await create(row, spec)
      for (const [path, value] of Object.entries(row.stores ?? {})) expect(at(stored.spec, path)).toEqual(value)
    }
    for (const [spec, message] of row.refuses ?? []) await expect(create(row, spec)).rejects.toThrow(message)
  })
})

function at(object: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], object)
}
