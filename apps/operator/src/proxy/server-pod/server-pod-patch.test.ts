import { normaliseMcpServer } from '@thv/resources/kinds/mcp-server/normalise'
import type { MCPServer } from '@thv/resources/kinds/mcp-server/schema'
import { readRunConfig } from '@thv/runconfig/read-run-config'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Lookup } from '../../references/lookup.ts'
import { secretLookup } from '../testing/workload-cases.ts'
import { type McpPodInput, resolveMcpPod } from './server-pod-patch.ts'

type Spec = Partial<MCPServer['spec']>

const SECRETS = { s: ['token', 'A', 'B', 'C'], t: ['token', 'A'] }

interface Options {
  readonly lookup?: Pick<Lookup, 'secret'>
  readonly restartedAt?: string
  readonly defaultImagePullSecrets?: readonly string[]
  readonly packageImages?: McpPodInput['settings']['packageImages']
  readonly podSecurity?: McpPodInput['settings']['podSecurity']
  readonly namespace?: string
}

const IMAGES = { npx: 'node:24', uvx: 'uv:1' }

function resolve(spec: Spec, options: Options = {}) {
  const { lookup = secretLookup(SECRETS), restartedAt, defaultImagePullSecrets = [], packageImages = IMAGES } = options
  const canonical = normaliseMcpServer({ spec: { image: 'demo:1', ...spec } }).spec
  const { podSecurity = 'privileged', namespace = 'team' } = options
  const own = { platform: 'kubernetes', podNamespace: 'toolhive-system', operatorAccount: 'toolhive-operator' } as const
  const settings = { defaultImagePullSecrets, packageImages, podSecurity, ...own }
  return resolveMcpPod({ name: 'demo', namespace, spec: canonical, settings, lookup, restartedAt })
}

interface Patch {
  readonly metadata?: { labels?: Record<string, string>; annotations?: Record<string, string> }
  readonly spec: { containers: { name: string; env?: { name: string; value?: string; valueFrom?: unknown }[] }[]; [field: string]: unknown }
}

function resolved(spec: Spec, options: Options = {}) {
  const result = resolve(spec, options)
  if (!result.ok) throw new Error(JSON.stringify(result.blockers))
  const { runConfig = {} } = result.contribution
  const patch = runConfig.k8s_pod_template_patch as unknown as Patch
  const told = result.contribution.conditions?.find(({ type }) => type === 'EnvironmentShadowed')?.message
  const shadowedVariables = /is used: (.*?)\. /.exec(told ?? '')?.[1]?.split(', ') ?? []
  return { ...result, runConfig, patch, shadowedVariables, mcp: patch.spec.containers.find(({ name }) => name === 'mcp') }
}

function blockersOf(spec: Spec, options: Options = {}) {
  const result = resolve(spec, options)
  if (result.ok) throw new Error('nothing is blocked')
  return result.blockers
}

const pod = (spec: Record<string, unknown>): Spec => ({ podTemplateSpec: { spec } })
const mcp = (more: Record<string, unknown>): Spec => pod({ containers: [{ name: 'mcp', ...more }] })

describe('pod security', () => {
  const asks: Spec = {
    ...pod({ hostNetwork: true, containers: [{ name: 'side', image: 'i', securityContext: { runAsUser: 0 } }] }),
    volumes: [{ name: 'data', hostPath: '/srv', mountPath: '/data' }],
  }

  it('runs everything at the default, and names what exceeds baseline', () => {
    const { contribution } = resolved(asks)
    expect(contribution.conditions).toContainEqual({
      type: 'PodSecurity',
      status: 'False',
      reason: 'ExceedsBaseline',
      message: expect.stringContaining('baseline: spec.podTemplateSpec.spec.hostNetwork, spec.volumes[0].hostPath. The pods run'),
    })
  })

  it.each(['privileged', 'baseline', 'restricted'] as const)('has nothing against pods that ask for nothing: %s', (podSecurity) => {
    expect(resolved({}, { podSecurity }).contribution.conditions).toEqual([])
  })

  it('refuses what exceeds the level, with the field named', () => {
    const said = (podSecurity: 'baseline' | 'restricted') => blockersOf(asks, { podSecurity }).map(({ message }) => message)
    expect(said('baseline')).toEqual([
      expect.stringMatching(/^spec.podTemplateSpec.spec.hostNetwork exceeds the pod security level baseline/),
      expect.stringMatching(/^spec.volumes\[0\].hostPath exceeds the pod security level baseline/),
    ])
    expect(said('restricted')[0]).toContain('spec.podTemplateSpec.spec.containers[side].securityContext.runAsUser exceeds')
  })

  it.each([
    ['x-proxy-runner', 'team', true],
    ['x-remote-proxy-runner', 'team', true],
    ['toolhive-operator', 'toolhive-system', true],
    ['toolhive-operator', 'team', false],
    ['mine', 'toolhive-system', false],
  ])('the account %s in %s is refused: %s', (serviceAccount, namespace, isRefused) => {
    const result = resolve({ serviceAccount }, { namespace })
    expect(result.ok).toBe(!isRefused)
    if (!result.ok)
      expect(result.blockers).toMatchObject(
        [{ condition: 'ConfigurationValid', message: /^spec.serviceAccount is the account/ }].map((each) => ({
          ...each,
          message: expect.stringMatching(each.message),
        })),
      )
  })
})

describe('resolveMcpPod', () => {
  it('gives the pods an account without rights and without a token', () => {
    expect(resolved({}).patch).toEqual({
      spec: { serviceAccountName: 'demo-sa', automountServiceAccountToken: false, containers: [{ name: 'mcp' }] },
    })
  })

  it('leaves the token to the account that the user names, and to the template', () => {
    expect(resolved({ serviceAccount: 'mine' }).patch.spec).toEqual({ serviceAccountName: 'mine', containers: [{ name: 'mcp' }] })
    expect(resolved(pod({ automountServiceAccountToken: true })).patch.spec['automountServiceAccountToken']).toBe(true)
  })

  it('takes secrets by (name, key), named by the key or as the user likes', () => {
    const { mcp: container, shadowedVariables } = resolved({
      secrets: [
        { name: 's', key: 'A' },
        { name: 's', key: 'token', targetEnvName: 'T' },
      ],
    })
    expect(container?.env).toEqual([
      { name: 'A', valueFrom: { secretKeyRef: { name: 's', key: 'A' } } },
      { name: 'T', valueFrom: { secretKeyRef: { name: 's', key: 'token' } } },
    ])
    expect(shadowedVariables).toEqual([])
  })

  it('uses the last of two secrets for one variable, as Kubernetes would', () => {
    const { mcp: container, shadowedVariables } = resolved({
      secrets: [
        { name: 's', key: 'A' },
        { name: 't', key: 'A' },
      ],
    })
    expect(container?.env).toEqual([{ name: 'A', valueFrom: { secretKeyRef: { name: 't', key: 'A' } } }])
    expect(shadowedVariables).toEqual(['A'])
  })

  it('each variable comes from the strongest source only: transport, secrets, env, template', () => {
    const names = fc.uniqueArray(fc.constantFrom('A', 'B', 'C', 'MCP_TRANSPORT', 'MCP_HOST'), { maxLength: 5 })
    fc.assert(
      fc.property(names, names, names, fc.constantFrom('stdio' as const, 'sse' as const), (secrets, env, template, transport) => {
        const {
          mcp: container,
          runConfig,
          shadowedVariables,
        } = resolved({
          transport,
          secrets: secrets.map((name) => ({ name: 's', key: 'token', targetEnvName: name })),
          env: env.map((name) => ({ name, value: 'env' })),
          // A reference, which the runner could not tell from a secret of the spec.
          ...mcp({ env: template.map((name) => ({ name, valueFrom: { secretKeyRef: { name: 'x', key: 'x' } } })) }),
        })
        const forced = transport === 'stdio' ? ['MCP_TRANSPORT'] : ['MCP_TRANSPORT', 'MCP_HOST']
        const left = (list: readonly string[], ...stronger: (readonly string[])[]) =>
          list.filter((name) => !stronger.flat().includes(name)).sort()
        const patch = container?.env ?? []
        const from = (secret: string) =>
          patch
            .filter(({ valueFrom }) => JSON.stringify(valueFrom).includes(`"name":"${secret}"`))
            .map(({ name }) => name)
            .sort()
        expect(from('s')).toEqual(left(secrets, forced))
        expect(Object.keys(runConfig.env_vars ?? {}).sort()).toEqual(left(env, forced, secrets))
        expect(from('x')).toEqual(left(template, forced, secrets, env))
        const all = [...forced, ...secrets, ...env, ...template]
        expect(shadowedVariables).toEqual([...new Set(all.filter((name, index) => all.indexOf(name) !== index))].sort())
      }),
    )
  })

  it('does not speak of a value that is the same anyway', () => {
    expect(resolved({ transport: 'sse', env: [{ name: 'MCP_PORT', value: '8080' }] }).shadowedVariables).toEqual([])
  })

  it('replaces pods when a Secret changes that they see as a variable', () => {
    const at = (resourceVersion: string): Pick<Lookup, 'secret'> => ({
      secret: (name) => ({ uid: name, resourceVersion: name === 'other' ? resourceVersion : '1', keys: new Set(['A']) }),
    })
    const hash = (spec: Spec, lookup: Pick<Lookup, 'secret'>) =>
      resolved(spec, { lookup }).patch.metadata?.annotations?.['toolhive.stacklok.dev/secrets-hash']
    const uses = (spec: Spec) => hash(spec, at('1')) !== hash(spec, at('2'))
    expect(hash({}, at('1'))).toBeUndefined()
    expect(uses({ secrets: [{ name: 'other', key: 'A' }] })).toBe(true)
    expect(uses({ secrets: [{ name: 's', key: 'A' }] })).toBe(false)
    expect(uses(pod({ containers: [{ name: 'x', image: 'x', envFrom: [{ secretRef: { name: 'other' } }] }] }))).toBe(true)
    expect(uses(mcp({ env: [{ name: 'X', valueFrom: { secretKeyRef: { name: 'other', key: 'k' } } }] }))).toBe(true)
    expect(uses(pod({ volumes: [{ name: 'v', secret: { secretName: 'other' } }] }))).toBe(false)
  })

  it('copies the wish for a restart as it is', () => {
    const { patch } = resolved({}, { restartedAt: '2026-01-01T00:00:00Z' })
    expect(patch.metadata).toEqual({ annotations: { 'mcpserver.toolhive.stacklok.dev/restarted-at': '2026-01-01T00:00:00Z' } })
  })

  it('pulls with all the secrets there are, each once', () => {
    const overrides = { proxyDeployment: { imagePullSecrets: [{ name: 'a' }, { name: 'b' }] } }
    const { patch } = resolved(
      { resourceOverrides: overrides, ...pod({ imagePullSecrets: [{ name: 'b' }, { name: 'c' }] }) },
      { defaultImagePullSecrets: ['a', 'd'] },
    )
    expect(patch.spec['imagePullSecrets']).toEqual([{ name: 'a' }, { name: 'b' }, { name: 'c' }, { name: 'd' }])
  })

  it('makes a document that the runner reads', () => {
    const { runConfig } = resolved({
      env: [{ name: 'A.b-c', value: 'multi\nline' }],
      secrets: [{ name: 's', key: 'token' }],
      volumes: [
        { name: 'v', hostPath: '/srv/x', mountPath: '/x', readOnly: true },
        { name: 'w', hostPath: '/srv/y', mountPath: '/y' },
      ],
      podTemplateSpec: { metadata: null, spec: { containers: null, tolerations: [{ operator: 'Exists', key: null }] } },
    })
    expect(JSON.stringify(runConfig)).not.toContain('null')
    expect(readRunConfig({ name: 'demo', transport: 'stdio', image: 'demo:1', ...runConfig })).toMatchObject({ ok: true, warnings: [] })
  })

  it('mounts folders of the node under the names that they have, beside what the template mounts', () => {
    const { patch } = resolved({
      volumes: [
        { name: 'models', hostPath: '/srv/models', mountPath: '/models', readOnly: true },
        { name: 'cache', hostPath: '/srv/cache', mountPath: '/cache' },
      ],
      ...pod({
        volumes: [{ name: 'index', emptyDir: {} }],
        containers: [
          { name: 'mcp', volumeMounts: [{ name: 'index', mountPath: '/index' }] },
          { name: 'updater', image: 'updater:1', volumeMounts: [{ name: 'models', mountPath: '/in' }] },
        ],
      }),
    })
    expect(patch.spec['volumes']).toEqual([
      { name: 'index', emptyDir: {} },
      { name: 'models', hostPath: { path: '/srv/models' } },
      { name: 'cache', hostPath: { path: '/srv/cache' } },
    ])
    expect(patch.spec['containers']).toMatchObject([
      {
        name: 'mcp',
        volumeMounts: [
          { name: 'index', mountPath: '/index' },
          { name: 'models', mountPath: '/models', readOnly: true },
          { name: 'cache', mountPath: '/cache' },
        ],
      },
      { name: 'updater', volumeMounts: [{ name: 'models', mountPath: '/in' }] },
    ])
  })

  it('says that the template is used, if there is one', () => {
    expect(resolved({}).contribution.conditions).toEqual([])
    expect(resolved(pod({})).contribution.conditions).toMatchObject([
      { type: 'PodTemplateValid', status: 'True', reason: 'ValidPodTemplateSpec' },
    ])
  })

  const AT = 'spec.podTemplateSpec'

  it.each<[string, Spec, string]>([
    ['an image of mcp', mcp({ image: 'x' }), `${AT}.spec.containers[0].image cannot be set here: use spec.image`],
    ['an account', pod({ serviceAccountName: 'x' }), `${AT}.spec.serviceAccountName cannot be set here: use spec.serviceAccount`],
    ['an account by its old name', pod({ serviceAccount: 'x' }), `${AT}.spec.serviceAccount cannot be set here: use spec.serviceAccount`],
    ['arguments in two places', { args: ['a'], ...mcp({ args: ['b'] }) }, `${AT}.spec.containers[0].args`],
    ['a terminal', mcp({ tty: true }), `${AT}.spec.containers[0].tty`],
    ['no stdin', mcp({ stdin: false }), `${AT}.spec.containers[0].stdin`],
    ['a label of the operator', { podTemplateSpec: { metadata: { labels: { app: 'x' } } } }, `${AT}.metadata.labels[app]`],
    [
      'an annotation of the operator',
      { podTemplateSpec: { metadata: { annotations: { 'toolhive.stacklok.dev/mcpserver-generation': '9' } } } },
      `${AT}.metadata.annotations[toolhive.stacklok.dev/mcpserver-generation]`,
    ],
    ['a volume of the runner', pod({ volumes: [{ name: 'thv-tmp', emptyDir: {} }] }), `${AT}.spec.volumes[0].name`],
    ['an init container mcp', pod({ initContainers: [{ name: 'mcp', image: 'x' }] }), `${AT}.spec.containers[0].name`],
    ['a sidecar without an image', pod({ containers: [{ name: 'x' }] }), `${AT}.spec.containers[0].image must be set`],
    ['containers that are no list', pod({ containers: 5 }), `${AT}.spec.containers expects a list`],
    ['a spec that is no object', { podTemplateSpec: { spec: [] } }, `${AT}.spec expects an object`],
    ['a directive', pod({ $patch: 'replace' }), `${AT}.spec.$patch`],
  ])('refuses %s in the template', (_, spec, text) => {
    const [blocker, ...more] = blockersOf(spec)
    expect(blocker).toMatchObject({ condition: 'PodTemplateValid', reason: 'InvalidPodTemplateSpec' })
    expect(blocker?.message).toContain(text)
    expect(more).toEqual([])
  })

  it.each<[string, Spec, string]>([
    ['a variable beginning with a digit', { env: [{ name: '1A', value: '' }] }, 'spec.env[0].name'],
    ['a key that cannot be a variable', { secrets: [{ name: 's', key: '1' }] }, 'spec.secrets[0].key'],
    ['a relative folder', { volumes: [{ name: 'v', hostPath: 'x', mountPath: '/x' }] }, 'spec.volumes[0].hostPath'],
    ['a folder with a colon', { volumes: [{ name: 'v', hostPath: '/a:b', mountPath: '/x' }] }, 'spec.volumes[0].hostPath'],
    ['a folder that leads out', { volumes: [{ name: 'v', hostPath: '/a/../..', mountPath: '/x' }] }, 'spec.volumes[0].hostPath'],
    [
      'two volumes at one place',
      {
        volumes: [
          { name: 'v', hostPath: '/a', mountPath: '/x' },
          { name: 'w', hostPath: '/b', mountPath: '/x/' },
        ],
      },
      'spec.volumes[1].mountPath',
    ],
    ['a volume with a name of the runner', { volumes: [{ name: 'thv-tmp', hostPath: '/a', mountPath: '/x' }] }, 'spec.volumes[0].name'],
    ['a package without a version', { image: 'npx://@modelcontextprotocol/server-everything' }, 'spec.image'],
    ['a package that is a path', { image: 'uvx://../x@1.0' }, 'spec.image'],
    [
      'a volume with the name of one of the template',
      { volumes: [{ name: 'y', hostPath: '/a', mountPath: '/x' }], ...pod({ volumes: [{ name: 'y', emptyDir: {} }] }) },
      'spec.volumes[0].name',
    ],
    [
      'a volume where the template mounts one',
      {
        volumes: [{ name: 'v', hostPath: '/a', mountPath: '/x' }],
        ...pod({ volumes: [{ name: 'y', emptyDir: {} }], containers: [{ name: 'mcp', volumeMounts: [{ name: 'y', mountPath: '/x' }] }] }),
      },
      'spec.volumes[0].mountPath',
    ],
  ])('refuses %s', (_, spec, path) => {
    const lookup = secretLookup({ s: ['1'] })
    const [blocker] = blockersOf(spec, { lookup })
    expect(blocker).toMatchObject({ condition: 'ConfigurationValid', reason: 'InvalidSpec' })
    expect(blocker?.message).toContain(path)
  })

  it('waits for Secrets that are missing, and names them', () => {
    const [blocker] = blockersOf({
      secrets: [
        { name: 'gone', key: 'a' },
        { name: 's', key: 'gone' },
      ],
    })
    expect(blocker).toMatchObject({ condition: 'ConfigurationValid', reason: 'SecretNotFound' })
    expect(blocker?.message).toContain('Secret gone does not exist; Secret s has no key gone')
  })

  describe('a package of a registry', () => {
    const image = 'npx://@modelcontextprotocol/server-everything@2026.8.31'

    it.each([
      [image, 'node:24', ['npx', '--yes', '@modelcontextprotocol/server-everything@2026.8.31']],
      ['uvx://mcp-server-time@2026.10.19', 'uv:1', ['uvx', 'mcp-server-time@2026.10.19']],
    ])('%s is fetched and run by an image', (wanted, runner, command) => {
      const { runConfig, mcp } = resolved({ image: wanted })
      expect(runConfig.image).toBe(runner)
      expect(mcp).toMatchObject({ command })
      expect(mcp?.env).toContainEqual({ name: 'HOME', value: '/tmp' })
    })

    it('gives way to what the user writes', () => {
      const { mcp, runConfig } = resolved({
        image,
        env: [{ name: 'HOME', value: '/home/me' }],
        ...pod({ containers: [{ name: 'mcp', command: ['my-npx'] }] }),
      })
      expect(mcp).toMatchObject({ command: ['my-npx'] })
      expect(mcp?.env?.find(({ name }) => name === 'HOME')).toBeUndefined()
      expect(runConfig.env_vars).toEqual({ HOME: '/home/me' })
    })

    it('stays as it is where nodes run packages, and so does every other image', () => {
      const { runConfig, mcp } = resolved({ image }, { packageImages: 'native' })
      expect(runConfig.image).toBe(image)
      expect(mcp).not.toHaveProperty('command')
      expect(resolved({ image: 'ghcr.io/x/y:1' }).runConfig.image).toBe('ghcr.io/x/y:1')
    })
  })
})
