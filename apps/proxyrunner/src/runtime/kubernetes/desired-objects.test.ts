import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Container, PodSpec } from '@thv/kube'
import { describe, expect, it } from 'vitest'
import { isRuntimeError } from '../runtime-errors.ts'
import { configOf } from '../testing/runtime-fixtures.ts'
import { type DesiredOptions, desiredObjects, workloadNames } from './desired-objects.ts'

const OWNER = { api_version: 'toolhive.stacklok.dev/v1beta1', kind: 'MCPServer', name: 'demo', uid: '0b5d1a52-7a67-4d7b-9a1e-2f0c1d3e4f50' }

/** A patch that touches everything the runner lays its own parts over. */
const FULL_PATCH = {
  metadata: {
    creationTimestamp: null,
    labels: { team: 'a', app: 'not-this' },
    annotations: { note: 'kept' },
  },
  spec: {
    serviceAccountName: 'demo-sa',
    nodeSelector: { disk: 'ssd' },
    securityContext: { runAsUser: 2000, fsGroup: null },
    volumes: [{ name: 'cache', emptyDir: { sizeLimit: '1Gi' } }],
    initContainers: [{ name: 'prepare', image: 'busybox:1', volumeMounts: [{ name: 'cache', mountPath: '/tmp' }] }],
    containers: [
      {
        name: 'sidecar',
        image: 'sidecar:1',
        securityContext: { readOnlyRootFilesystem: false, capabilities: { add: ['NET_BIND_SERVICE'] } },
      },
      {
        name: 'mcp',
        image: 'not-this:1',
        command: ['/server'],
        args: ['not', 'these'],
        env: [
          { name: 'TOKEN', valueFrom: { secretKeyRef: { name: 's', key: 'token' } } },
          { name: 'LOG_LEVEL', value: 'not-this' },
          { name: 'MCP_PORT', value: 'not-this' },
          { name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
        ],
        ports: [{ name: 'web', containerPort: 9000 }],
        volumeMounts: [{ name: 'cache', mountPath: '/data' }],
        resources: { limits: { memory: '1Gi' } },
      },
      { name: 'privileged', image: 'p:1', securityContext: { privileged: true, runAsNonRoot: false, runAsUser: 0 } },
    ],
  },
}

const golden = (name: string) => fileURLToPath(new URL(`./${name}.golden.json`, import.meta.url))

const desired = (document: Record<string, unknown>, options: Partial<DesiredOptions> = {}) =>
  desiredObjects(configOf(document), { namespace: 'team-a', ...options })

describe('desiredObjects', () => {
  it.each<[string, Record<string, unknown>, Partial<DesiredOptions>]>([
    ['stdio-minimal', {}, {}],
    [
      'streamable-http',
      { transport: 'streamable-http', target_port: 9000, cmd_args: ['--verbose'], owner: OWNER, mcpserver_generation: 7 },
      {},
    ],
    [
      'sse-replicas',
      { transport: 'sse', target_port: 8080, scaling_config: { backend_replicas: 3 }, env_vars: { Z: '1', A: '2', MCP_HOST: 'x' } },
      {},
    ],
    [
      'pod-patch',
      {
        transport: 'streamable-http',
        target_port: 9000,
        cmd_args: ['--verbose'],
        env_vars: { LOG_LEVEL: 'debug', TOKEN: 'not-this' },
        volumes: ['/srv/models:/models:ro', '/srv/other:/data'],
        publish: ['30123:9100'],
        k8s_pod_template_patch: JSON.stringify(FULL_PATCH),
      },
      {},
    ],
    ['openshift', { k8s_pod_template_patch: FULL_PATCH }, { platform: 'openshift' }],
  ])('%s is as its golden file says', async (name, document, options) => {
    await expect(`${JSON.stringify(desired(document, options), undefined, 2)}\n`).toMatchFileSnapshot(golden(`desired-${name}`))
  })

  it('is the same for the same config in whatever order it was written', () => {
    const vars = { B: '1', A: '2', C: '3' }
    const a = desired({ env_vars: vars, container_labels: { x: '1', y: '2' } })
    const b = desired({ container_labels: { y: '2', x: '1' }, env_vars: Object.fromEntries(Object.entries(vars).reverse()) })
    expect(a).toEqual(b)
    expect(JSON.stringify(a.statefulSet.spec?.template?.spec)).toBe(JSON.stringify(b.statefulSet.spec?.template?.spec))
  })

  it('never lets the document change what selectors look at', () => {
    const labels = { app: 'x', 'toolhive-basename': 'x', toolhive: 'false', 'toolhive-name': 'given' }
    const { statefulSet, services } = desired({ container_labels: labels })
    const selector = { app: 'demo', 'toolhive-basename': 'demo' }
    expect(statefulSet.spec?.selector).toEqual({ matchLabels: selector })
    expect(statefulSet.spec?.template?.metadata?.labels).toMatchObject({ ...selector, toolhive: 'true', 'toolhive-name': 'given' })
    for (const service of services) expect(service.spec?.selector).toEqual(selector)
  })

  it('names the headless Service that exists, for every transport', () => {
    for (const transport of ['stdio', 'sse', 'streamable-http']) {
      const { statefulSet, services } = desired({ transport, target_port: 8080 })
      expect(services[0]?.metadata.name).toBe('mcp-demo-headless')
      expect(statefulSet.spec?.serviceName).toBe('mcp-demo-headless')
      expect(services).toHaveLength(transport === 'stdio' ? 1 : 2)
    }
    expect(workloadNames(configOf({}))).toMatchObject({ statefulSet: 'demo', service: 'mcp-demo' })
  })

  it('does not touch the number of pods unless told one', () => {
    expect(desired({}).statefulSet.spec).not.toHaveProperty('replicas')
    expect(desired({ scaling_config: { backend_replicas: 0 } }).statefulSet.spec?.replicas).toBe(0)
  })

  it('makes no NodePort because of the port that the server listens on', () => {
    const { services } = desired({ transport: 'sse', target_port: 31_000 })
    expect(services[1]?.spec?.type).toBe('ClusterIP')
  })

  it('keeps what the user has set in a security context, and fills in the rest', () => {
    const spec = podSpecOf({ k8s_pod_template_patch: FULL_PATCH })
    expect(spec['securityContext']).toMatchObject({ runAsUser: 2000, runAsGroup: 1000, fsGroup: 1000, runAsNonRoot: true })
    expect(containerOf(spec, 'mcp')['securityContext']).toEqual({
      privileged: false,
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
      runAsNonRoot: true,
      runAsUser: 2000,
      runAsGroup: 1000,
      seccompProfile: { type: 'RuntimeDefault' },
      capabilities: { drop: ['ALL'] },
    })
    expect(containerOf(spec, 'sidecar')['securityContext']).toMatchObject({
      readOnlyRootFilesystem: false,
      capabilities: { drop: ['ALL'], add: ['NET_BIND_SERVICE'] },
    })
    // The API server would refuse both together.
    expect(containerOf(spec, 'privileged')['securityContext']).not.toHaveProperty('allowPrivilegeEscalation')
    expect(spec.initContainers?.[0]?.['securityContext']).toMatchObject({ allowPrivilegeEscalation: false, runAsNonRoot: true })
  })

  it('leaves users and groups to OpenShift, whatever the patch says', () => {
    const spec = podSpecOf({ k8s_pod_template_patch: FULL_PATCH }, { platform: 'openshift' })
    expect(JSON.stringify(spec)).not.toMatch(/runAsUser|runAsGroup|fsGroup/)
    expect(spec['securityContext']).toEqual({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } })
  })

  it('takes the arguments of the patch when the config has none', () => {
    expect(containerOf(podSpecOf({ k8s_pod_template_patch: FULL_PATCH }), 'mcp')['args']).toEqual(['not', 'these'])
    expect(containerOf(podSpecOf({}), 'mcp')).not.toHaveProperty('args')
  })

  it.each<[string, Record<string, unknown>, string]>([
    ['a name that is too long', { name: 'a'.repeat(47) }, 'container_name'],
    ['a name that begins with a digit', { name: '1a' }, 'container_name'],
    ['no port', { transport: 'sse' }, 'target_port'],
    ['secrets by value', { secrets: ['a,target=B'] }, 'secrets'],
  ])('refuses %s', (_, document, field) => {
    const error = attempt(() => desired(document))
    expect(isRuntimeError(error, 'runtime_unsuitable')).toBe(true)
    expect(String(error)).toContain(`${field}:`)
  })

  it('can run the example of the documentation', () => {
    const file = new URL('../../../../../deploy/examples/runconfig/kubernetes-streamable-http.json', import.meta.url)
    expect(desired(JSON.parse(readFileSync(file, 'utf8'))).services).toHaveLength(2)
  })
})

function podSpecOf(document: Record<string, unknown>, options: Partial<DesiredOptions> = {}): PodSpec {
  const spec = desired(document, options).statefulSet.spec?.template?.spec
  if (spec === undefined) throw new Error('no pod spec')
  return spec
}

function containerOf(spec: PodSpec, name: string): Container {
  const found = spec.containers.find((container) => container.name === name)
  if (found === undefined) throw new Error(`no container ${name}`)
  return found
}

function attempt(fn: () => unknown): unknown {
  try {
    return fn()
  } catch (error) {
    return error
  }
}
