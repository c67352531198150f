import { normaliseMcpRemoteProxy } from '@thv/resources/kinds/mcp-remote-proxy/normalise'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { proxyDeployment } from '../../proxy/proxy-deployment.ts'
import { SETTINGS } from '../../proxy/testing/workload-cases.ts'

function attempt(podTemplateSpec: Record<string, unknown> | undefined, platform: 'kubernetes' | 'openshift' = 'kubernetes') {
  const spec = { remoteUrl: 'https://mcp.example.com', ...(podTemplateSpec && { podTemplateSpec }) }
  return proxyDeployment({
    kind: 'MCPRemoteProxy',
    name: 'catalog',
    namespace: 'team-a',
    spec: normaliseMcpRemoteProxy({ spec }).spec,
    settings: { ...SETTINGS, platform },
    runConfigChecksum: 'abc',
    generation: 1,
    contributions: [],
    replicas: undefined,
  })
}

const proxy = (more: Record<string, unknown>) => ({ spec: { containers: [{ name: 'toolhive', ...more }] } })
const pod = (spec: Record<string, unknown>) => ({ spec })
const AT = 'spec.podTemplateSpec'
const PROXY = `${AT}.spec.containers[name=toolhive]`

/** Patches that say a few things each, some of them mischief. */
const directive = fc.constantFrom('replace', 'delete', 'merge')
const some = (fields: Record<string, fc.Arbitrary<unknown>>, needed: string[] = []) =>
  fc.subarray([...Object.keys(fields), '$patch'], { maxLength: 2 }).chain((keys) => {
    const chosen = [...new Set([...needed, ...keys])]
    return fc.record(Object.fromEntries(chosen.map((key) => [key, fields[key] ?? directive])))
  })
const listOf = (item: fc.Arbitrary<unknown>) => fc.oneof(fc.constant(null), fc.array(item, { maxLength: 3 }))
const context = some({
  privileged: fc.boolean(),
  runAsNonRoot: fc.boolean(),
  runAsUser: fc.constantFrom(0, 5, null),
  capabilities: fc.constantFrom({ add: ['X'] }, { drop: ['ALL'] }, null),
})
const ANY_PATCH = some({
  metadata: some({
    labels: fc.dictionary(fc.constantFrom('app', 'more', '$patch'), fc.constantFrom('x', 'replace'), { maxKeys: 1 }),
    annotations: fc.constantFrom(null, { a: 'b' }),
  }),
  spec: some(
    {
      serviceAccountName: fc.constantFrom('catalog-remote-proxy-runner', 'x', null),
      automountServiceAccountToken: fc.constantFrom(true, false, null),
      hostNetwork: fc.boolean(),
      securityContext: context,
      volumes: listOf(
        some(
          { name: fc.constantFrom('runconfig', 'tmp', 'v'), emptyDir: fc.constantFrom({}, null), hostPath: fc.constant({ path: '/' }) },
          ['name'],
        ),
      ),
      containers: listOf(
        some(
          {
            name: fc.constantFrom('toolhive', 'x'),
            image: fc.constantFrom('x:1', 'example.com/proxyrunner:1', null),
            command: fc.constantFrom(['thv-proxyrunner'], ['sh'], null),
            args: fc.constantFrom(['run'], [], null),
            env: listOf(some({ name: fc.constantFrom('TOOLHIVE_RUNTIME', 'HOME', 'X'), value: fc.constantFrom('x', null) }, ['name'])),
            ports: listOf(some({ containerPort: fc.constantFrom(8080, 9090), name: fc.constantFrom('http', 'y') }, ['containerPort'])),
            volumeMounts: listOf(
              some(
                {
                  mountPath: fc.constantFrom('/tmp', '/etc/runconfig', '/etc/runconfig/x', '/y'),
                  name: fc.constantFrom('tmp', 'runconfig'),
                },
                ['mountPath', 'name'],
              ),
            ),
            securityContext: context,
          },
          ['name'],
        ),
      ),
    },
    [],
  ),
})

describe('podTemplateSpec of an MCPRemoteProxy', () => {
  it.each<[string, Record<string, unknown>, string]>([
    ['the image', proxy({ image: 'evil:1' }), `${PROXY}.image`],
    ['the image away', proxy({ image: null }), `${PROXY}.image`],
    ['the command', proxy({ command: ['sh'] }), `${PROXY}.command`],
    ['the arguments', proxy({ args: ['run', '--config', '/x'] }), `${PROXY}.args`],
    ['the port', proxy({ ports: [{ containerPort: 8080, protocol: 'TCP', name: 'web' }] }), `${PROXY}.ports`],
    ['the port away', proxy({ ports: [{ $patch: 'replace' }] }), `${PROXY}.ports`],
    ['the mount of the config', proxy({ volumeMounts: [{ mountPath: '/etc/runconfig', name: 'tmp' }] }), `${PROXY}.volumeMounts`],
    [
      'a file inside the config',
      proxy({ volumeMounts: [{ mountPath: '/etc/runconfig/runconfig.json', name: 'tmp' }] }),
      `${PROXY}.volumeMounts`,
    ],
    ['the volume of the config', pod({ volumes: [{ name: 'runconfig', configMap: { name: 'other' } }] }), `${AT}.spec.volumes`],
    ['all volumes', pod({ volumes: [{ $patch: 'replace' }] }), `${AT}.spec.volumes`],
    [
      'the whole container',
      pod({
        containers: [
          { name: 'toolhive', $patch: 'delete' },
          { name: 'x', image: 'x' },
        ],
      }),
      PROXY,
    ],
    ['the whole pod', { spec: { $patch: 'replace', containers: [{ name: 'x', image: 'x' }] } }, PROXY],
    ['a label of the selector', { metadata: { labels: { 'toolhive-name': 'other' } } }, `${AT}.metadata.labels[toolhive-name]`],
    ['all labels', { metadata: { labels: { $patch: 'replace' } } }, `${AT}.metadata.labels[app]`],
    [
      'the checksum',
      { metadata: { annotations: { 'toolhive.stacklok.dev/runconfig-checksum': null } } },
      `${AT}.metadata.annotations[toolhive.stacklok.dev/runconfig-checksum]`,
    ],
    ['the account', pod({ serviceAccountName: 'admin' }), `${AT}.spec.serviceAccountName`],
    ['the account by its old name', pod({ serviceAccount: 'admin' }), `${AT}.spec.serviceAccount`],
    ['the token', pod({ automountServiceAccountToken: true }), `${AT}.spec.automountServiceAccountToken`],
    ['the network of the node', pod({ hostNetwork: true }), `${AT}.spec.hostNetwork`],
    ['privileges', proxy({ securityContext: { privileged: true } }), `${PROXY}.securityContext.privileged`],
    ['capabilities', proxy({ securityContext: { capabilities: { add: ['NET_ADMIN'] } } }), `${PROXY}.securityContext.capabilities`],
    ['who may be root', pod({ securityContext: { runAsNonRoot: false } }), `${AT}.spec.securityContext.runAsNonRoot`],
    ['root', pod({ securityContext: { runAsUser: 0 } }), `${AT}.spec.securityContext.runAsUser`],
    ['seccomp', pod({ securityContext: { seccompProfile: { type: 'Unconfined' } } }), `${AT}.spec.securityContext.seccompProfile`],
    ['a field that does not exist', proxy({ imagePullpolicy: 'Never' }), `${AT}.spec.containers[0].imagePullpolicy`],
    ['a sidecar without an image', pod({ containers: [{ name: 'x' }] }), `${AT}.spec.containers[0].image`],
    ['two sources of a volume', pod({ volumes: [{ name: 'tmp', hostPath: { path: '/x' } }] }), `${AT}.spec.volumes`],
  ])('may not change %s', (_, patch, path) => {
    const { problems, deployment } = attempt(patch)
    expect(problems.map((problem) => problem.path)).toContain(path)
    // Without the patch, in case somebody applies it all the same.
    expect(deployment.spec?.template).toEqual(attempt(undefined).deployment.spec?.template)
  })

  it('may remove security settings: they come back', () => {
    const { problems, deployment } = attempt({ spec: { securityContext: null, containers: [{ name: 'toolhive', securityContext: null }] } })
    expect(problems).toEqual([])
    expect(deployment.spec?.template).toEqual(attempt(undefined).deployment.spec?.template)
  })

  it('may not touch variables of the operator; they are reported', () => {
    const env = [
      { name: 'TOOLHIVE_RUNTIME', value: 'local' },
      { name: 'THV_RUNCONFIG_CHECKSUM', $patch: 'delete' },
      { name: 'MORE', value: 'x' },
    ]
    const { problems, deployment, shadowedVariables } = attempt(proxy({ env }))
    expect(problems).toEqual([])
    expect(shadowedVariables).toEqual(['TOOLHIVE_RUNTIME'])
    const given = deployment.spec?.template?.spec?.containers[0]?.['env'] as { name: string }[]
    const own = attempt(undefined).deployment.spec?.template?.spec?.containers[0]?.['env'] as { name: string }[]
    expect(given).toEqual([...own, { name: 'MORE', value: 'x' }])
  })

  it('gives sidecars the restricted context unless they have their own', () => {
    const containers = [
      { name: 'own', image: 'x', securityContext: { runAsNonRoot: false, runAsUser: 0 } },
      { name: 'none', image: 'x' },
    ]
    const { problems, deployment } = attempt(pod({ containers }))
    expect(problems).toEqual([])
    const context = (name: string) =>
      deployment.spec?.template?.spec?.containers.find((container) => container.name === name)?.['securityContext']
    expect(context('own')).toMatchObject({ runAsNonRoot: false, runAsUser: 0, allowPrivilegeEscalation: false })
    expect(context('none')).toEqual(context('toolhive'))
    for (const { volumeMounts } of deployment.spec?.template?.spec?.containers ?? []) {
      expect(volumeMounts).toContainEqual({ name: 'tmp', mountPath: '/tmp' })
    }
  })

  it('may say how large /tmp becomes', () => {
    const { problems, deployment } = attempt(pod({ volumes: [{ name: 'tmp', emptyDir: { medium: 'Memory', sizeLimit: '64Mi' } }] }))
    expect(problems).toEqual([])
    expect(deployment.spec?.template?.spec?.['volumes']).toContainEqual({ name: 'tmp', emptyDir: { medium: 'Memory', sizeLimit: '64Mi' } })
  })

  it('is refused, or what makes the pod this proxy is still there, whatever it says', () => {
    const own = attempt(undefined).deployment.spec?.template
    let accepted = 0
    fc.assert(
      fc.property(ANY_PATCH, (patch) => {
        const { problems, deployment } = attempt(patch)
        if (problems.length === 0) accepted++
        const [given, ours] = [deployment.spec?.template, own]
        expect(given?.metadata?.labels).toMatchObject(ours?.metadata?.labels ?? {})
        expect(given?.metadata?.annotations).toMatchObject(ours?.metadata?.annotations ?? {})
        const [proxyNow, proxyThen] = [given, ours].map((template) => template?.spec?.containers.find(({ name }) => name === 'toolhive'))
        for (const field of ['image', 'command', 'args']) expect(proxyNow?.[field]).toEqual(proxyThen?.[field])
        for (const field of ['env', 'ports', 'volumeMounts']) {
          expect(proxyNow?.[field]).toEqual(expect.arrayContaining(proxyThen?.[field] as unknown[]))
        }
        expect(given?.spec?.serviceAccountName).toBe('catalog-remote-proxy-runner')
        expect(given?.spec?.['automountServiceAccountToken']).toBe(false)
        expect(proxyNow?.['securityContext']).toMatchObject({ privileged: false, runAsNonRoot: true, capabilities: { drop: ['ALL'] } })
        expect(JSON.stringify(given)).not.toMatch(/"\$patch"|null/)
        return problems.length === 0 || JSON.stringify(given) === JSON.stringify(ours)
      }),
      { numRuns: 500 },
    )
    // Of those that are refused nothing is learnt.
    expect(accepted).toBeGreaterThan(50)
  })

  it('leaves users to OpenShift', () => {
    const { problems, deployment } = attempt(pod({ securityContext: { runAsUser: 2000 } }), 'openshift')
    expect(problems).toEqual([])
    expect(JSON.stringify(deployment)).not.toContain('runAsUser')
  })

  it('leaves its hash on the Deployment, the same for the same JSON', () => {
    const hash = (patch: Record<string, unknown> | undefined) =>
      attempt(patch).deployment.metadata.annotations?.['toolhive.stacklok.io/podtemplatespec-hash']
    expect(hash(undefined)).toBeUndefined()
    expect(hash({ metadata: {}, spec: {} })).toBe(hash({ spec: {}, metadata: {} }))
    expect(hash({ spec: {} })).not.toBe(hash({ spec: { priorityClassName: 'x' } }))
  })
})
