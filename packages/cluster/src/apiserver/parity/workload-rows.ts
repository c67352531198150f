import type { Json, JsonObject } from '@thv/kube-schema/kind-schema'
import { get, type ParityRow, patch, post, put, row, type Step } from './parity-row.ts'

const APPS = '/apis/apps/v1/namespaces/{ns}'
const PLURALS: Readonly<Record<string, string>> = { Deployment: 'deployments', ReplicaSet: 'replicasets', StatefulSet: 'statefulsets' }
const KINDS = Object.keys(PLURALS)
const at = (kind: string, rest = '') => `${APPS}/${PLURALS[kind] ?? ''}${rest}`

const template = (spec: JsonObject = {}, metadata: JsonObject = {}): JsonObject => ({
  metadata: { labels: { app: 'x' }, ...metadata },
  spec: { containers: [{ name: 'c', image: 'i:1' }], ...spec },
})
const workload = (name: string, spec: JsonObject = {}): JsonObject => ({
  metadata: { name },
  spec: { selector: { matchLabels: { app: 'x' } }, template: template(), ...spec },
})
/** Nothing is kept, so no controller comes in between. */
const made = (kind: string, title: string, spec: JsonObject): ParityRow =>
  row(`${kind}: ${title}`, post(at(kind, '?dryRun=All'), workload('w', spec)))
/** Controllers of the real cluster see these. */
const living = (kind: string, title: string, ...steps: Step[]): ParityRow => ({ ...row(`${kind}: ${title}`, ...steps), controlled: true })
const kept = (kind: string, name: string, spec: JsonObject = {}): Step => post(at(kind), workload(name, { replicas: 0, ...spec }))
const last = (earlier: readonly JsonObject[]): JsonObject => earlier.at(-1) ?? {}
const respecified =
  (spec: JsonObject) =>
  (earlier: readonly JsonObject[]): Json => {
    const { status: _status, metadata, ...rest } = last(earlier)
    const { resourceVersion: _version, ...kept } = metadata as JsonObject
    return { ...rest, metadata: kept, spec: { ...((rest['spec'] as JsonObject | undefined) ?? {}), ...spec } }
  }
const applied = (kind: string, name: string, manager: string, spec: JsonObject, query = ''): Step =>
  patch(at(kind, `/${name}?fieldManager=${manager}${query}`), { apiVersion: 'apps/v1', kind, metadata: { name }, spec }, 'apply')
const strategic = (kind: string, name: string, containers: Json): Step =>
  patch(at(kind, `/${name}`), { spec: { template: { spec: { containers } } } }, 'strategic')

const commonRows = KINDS.flatMap((kind): ParityRow[] => [
  made(kind, 'the smallest', {}),
  row(`${kind}: nothing at all`, post(at(kind, '?dryRun=All'), {})),
  row(`${kind}: an invalid name`, post(at(kind, '?dryRun=All'), workload('Not_A_Name'))),
  row(`${kind}: a name with dots`, post(at(kind, '?dryRun=All'), workload('a.b'))),
  made(kind, 'a template that needs defaults', {
    template: template({
      serviceAccountName: 'missing',
      containers: [
        {
          name: 'c',
          image: 'i',
          ports: [{ containerPort: 80 }],
          readinessProbe: { httpGet: { port: 80 } },
          resources: { limits: { cpu: '1000m' } },
          env: [{ name: 'A', value: '' }],
        },
      ],
      volumes: [{ name: 'v', configMap: { name: 'm' } }],
    }),
  }),
  made(kind, 'negative replicas', { replicas: -1, minReadySeconds: -1 }),
  row(`${kind}: no selector`, post(at(kind, '?dryRun=All'), { metadata: { name: 'w' }, spec: { template: template() } })),
  made(kind, 'an empty selector', { selector: {} }),
  made(kind, 'a selector that does not match', { selector: { matchLabels: { app: 'y' } } }),
  made(kind, 'a template without labels', { template: { spec: { containers: [{ name: 'c', image: 'i:1' }] } } }),
  made(kind, 'an invalid selector', {
    selector: {
      matchLabels: { 'bad key!': 'bad value!' },
      matchExpressions: [
        { key: 'a', operator: 'In' },
        { key: 'b', operator: 'Like', values: ['x'] },
      ],
    },
  }),
  made(kind, 'a selector by expressions', { selector: { matchExpressions: [{ key: 'app', operator: 'In', values: ['x', 'y'] }] } }),
  made(kind, 'invalid labels in the template', {
    template: template({}, { labels: { app: 'x', 'bad key!': 'bad value!' }, annotations: { 'bad key!': 'x' } }),
  }),
  made(kind, 'no containers', { template: template({ containers: [] }) }),
  made(kind, 'an invalid template', {
    template: template({
      containers: [{ name: 'c', image: 'i', volumeMounts: [{ name: 'v', mountPath: '/x' }], ports: [{ containerPort: 0 }] }],
      hostNetwork: true,
    }),
  }),
  made(kind, 'pods that end', { template: template({ restartPolicy: 'Never', activeDeadlineSeconds: 5 }) }),
  made(kind, 'ephemeral containers', { template: template({ ephemeralContainers: [{ name: 'e', image: 'i' }] }) }),
  living(kind, 'create, get', kept(kind, 'k1'), get(at(kind, '/k1'))),
  living(kind, 'another selector', kept(kind, 'k2'), patch(at(kind, '/k2'), { spec: { selector: { matchLabels: { app: 'y' } } } })),
  living(
    kind,
    'another selector and template',
    kept(kind, 'k3'),
    put(at(kind, '/k3'), respecified({ selector: { matchLabels: { app: 'y' } }, template: template({}, { labels: { app: 'y' } }) })),
  ),
  living(kind, 'containers by strategic merge', kept(kind, 'k4'), strategic(kind, 'k4', [{ name: 'd', image: 'd:1' }])),
  living(
    kind,
    'variables and ports by strategic merge',
    kept(kind, 'k5', {
      template: template({
        containers: [
          {
            name: 'c',
            image: 'i:1',
            env: [
              { name: 'A', value: '1' },
              { name: 'B', value: '2' },
            ],
            ports: [{ containerPort: 80 }],
          },
        ],
      }),
    }),
    strategic(kind, 'k5', [
      {
        name: 'c',
        env: [
          { name: 'A', value: '3' },
          { name: 'B', $patch: 'delete' },
          { name: 'C', value: '4' },
        ],
        ports: [{ containerPort: 81 }],
      },
    ]),
    strategic(kind, 'k5', [{ name: 'c', $patch: 'delete' }]),
  ),
  living(
    kind,
    'the order of containers',
    kept(kind, 'k10', {
      template: template({
        containers: [
          { name: 'a', image: 'a:1' },
          { name: 'b', image: 'b:1' },
        ],
      }),
    }),
    patch(
      at(kind, '/k10'),
      {
        spec: {
          template: { spec: { '$setElementOrder/containers': [{ name: 'b' }, { name: 'a' }], containers: [{ name: 'b', image: 'b:2' }] } },
        },
      },
      'strategic',
    ),
  ),
  living(
    kind,
    'a volume of another kind',
    kept(kind, 'k11', { template: template({ volumes: [{ name: 'v', configMap: { name: 'm' } }] }) }),
    patch(at(kind, '/k11'), { spec: { template: { spec: { volumes: [{ name: 'v', secret: { secretName: 's' } }] } } } }, 'strategic'),
    patch(
      at(kind, '/k11'),
      { spec: { template: { spec: { volumes: [{ $retainKeys: ['name', 'secret'], name: 'v', secret: { secretName: 's' } }] } } } },
      'strategic',
    ),
  ),
  living(
    kind,
    'a restart',
    kept(kind, 'k12'),
    patch(
      at(kind, '/k12'),
      { spec: { template: { metadata: { annotations: { 'kubectl.kubernetes.io/restartedAt': 'now' } } } } },
      'strategic',
    ),
    patch(at(kind, '/k12'), [{ op: 'add', path: '/spec/template/spec/nodeSelector', value: { a: 'b' } }], 'json'),
    patch(at(kind, '/k12'), [{ op: 'remove', path: '/spec/template/spec/containers' }], 'json'),
  ),
  living(
    kind,
    'apply takes away what it gave',
    applied(kind, 'a3', 'one', {
      replicas: 0,
      selector: { matchLabels: { app: 'x' } },
      template: template({
        nodeSelector: { a: 'b' },
        containers: [
          {
            name: 'c',
            image: 'i:1',
            env: [
              { name: 'A', value: '1' },
              { name: 'B', value: '2' },
            ],
          },
        ],
      }),
    }),
    applied(kind, 'a3', 'one', {
      replicas: 0,
      selector: { matchLabels: { app: 'x' } },
      template: template({ containers: [{ name: 'c', image: 'i:1', env: [{ name: 'B', value: '2' }] }] }),
    }),
    applied(kind, 'a3', 'two', { replicas: 0, selector: { matchLabels: { app: 'y' } } }, '&force=true'),
  ),
  living(
    kind,
    'a patch to something invalid',
    kept(kind, 'k6'),
    patch(at(kind, '/k6'), { spec: { replicas: -5, template: { spec: { dnsPolicy: 'x' } } } }),
  ),
  living(kind, 'a put of the same', kept(kind, 'k7'), put(at(kind, '/k7'), respecified({}))),
  living(
    kind,
    'apply with conflicts',
    applied(kind, 'a1', 'one', { replicas: 0, selector: { matchLabels: { app: 'x' } }, template: template() }),
    applied(kind, 'a1', 'two', { template: { spec: { containers: [{ name: 'c', image: 'i:2' }] } } }),
    applied(kind, 'a1', 'two', { template: { spec: { containers: [{ name: 'c', image: 'i:2' }] } } }, '&force=true'),
    applied(kind, 'a1', 'one', {
      selector: { matchLabels: { app: 'x' } },
      template: template({ containers: [{ name: 'd', image: 'd:1' }] }),
    }),
  ),
  living(
    kind,
    'apply, then scale',
    applied(kind, 'a2', 'one', { replicas: 0, selector: { matchLabels: { app: 'x' } }, template: template() }),
    patch(at(kind, '/a2/scale'), { spec: { replicas: 0 } }),
    put(at(kind, '/a2/scale'), { metadata: { name: 'a2' }, spec: { replicas: -1 } }),
    get(at(kind, '/a2/scale')),
  ),
  row(
    `${kind}: scale as a dry run`,
    post(at(kind), workload('k8', { replicas: 0 })),
    patch(at(kind, '/k8/scale?dryRun=All'), { spec: { replicas: 3 } }),
  ),
  living(
    kind,
    'an invalid status',
    kept(kind, 'k9'),
    patch(at(kind, '/k9/status'), {
      status: { replicas: 1, readyReplicas: 2, availableReplicas: 3, observedGeneration: -1 },
    }),
  ),
])

const deploymentRows: readonly ParityRow[] = [
  made('Deployment', 'recreate', { strategy: { type: 'Recreate' } }),
  made('Deployment', 'recreate with rolling numbers', { strategy: { type: 'Recreate', rollingUpdate: { maxSurge: 1 } } }),
  made('Deployment', 'an unknown strategy', { strategy: { type: 'Sometimes' } }),
  made('Deployment', 'numbers of its own', {
    strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
    revisionHistoryLimit: 0,
    progressDeadlineSeconds: 60,
    minReadySeconds: 5,
    paused: true,
  }),
  made('Deployment', 'no surge and nothing unavailable', { strategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: '0%' } } }),
  made('Deployment', 'shares that are none', { strategy: { rollingUpdate: { maxSurge: 'many', maxUnavailable: '101%' } } }),
  made('Deployment', 'negative shares', { strategy: { rollingUpdate: { maxSurge: -1, maxUnavailable: -2 } } }),
  made('Deployment', 'negative numbers', { revisionHistoryLimit: -1, progressDeadlineSeconds: -1 }),
  made('Deployment', 'a deadline before pods are ready', { progressDeadlineSeconds: 5, minReadySeconds: 5 }),
  living(
    'Deployment',
    'to recreate by a patch',
    kept('Deployment', 'd1'),
    patch(at('Deployment', '/d1'), { spec: { strategy: { type: 'Recreate' } } }),
    patch(at('Deployment', '/d1'), { spec: { strategy: { $retainKeys: ['type'], type: 'Recreate' } } }, 'strategic'),
  ),
]

const claim = (name: string, spec: JsonObject = {}): JsonObject => ({
  metadata: { name },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1024Mi' } }, ...spec },
})

const statefulSetRows: readonly ParityRow[] = [
  made('StatefulSet', 'claims', {
    serviceName: 'x',
    volumeClaimTemplates: [claim('data')],
    template: template({ containers: [{ name: 'c', image: 'i:1', volumeMounts: [{ name: 'data', mountPath: '/d' }] }] }),
  }),
  made('StatefulSet', 'invalid claims', {
    volumeClaimTemplates: [
      claim('a', { accessModes: [] }),
      claim('b', { accessModes: ['Some'], resources: {}, storageClassName: 'Not_Valid' }),
      claim('c', { resources: { requests: { storage: '0' } } }),
    ],
  }),
  made('StatefulSet', 'on delete', { updateStrategy: { type: 'OnDelete' }, podManagementPolicy: 'Parallel' }),
  made('StatefulSet', 'on delete with a partition', { updateStrategy: { type: 'OnDelete', rollingUpdate: { partition: 1 } } }),
  made('StatefulSet', 'an unknown strategy', { updateStrategy: { type: 'Sometimes' }, podManagementPolicy: 'Never' }),
  made('StatefulSet', 'rolling without numbers', { updateStrategy: { type: 'RollingUpdate' } }),
  made('StatefulSet', 'rolling numbers', { updateStrategy: { rollingUpdate: { partition: -1, maxUnavailable: 0 } } }),
  made('StatefulSet', 'retention', { persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Delete' } }),
  made('StatefulSet', 'an unknown retention', { persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Keep', whenScaled: 'Lose' } }),
  made('StatefulSet', 'an invalid service and ordinals', { serviceName: 'Not_Valid', ordinals: { start: -1 } }),
  made('StatefulSet', 'names that the set gives itself', { template: template({ hostname: 'Not_Valid', subdomain: 'Not_Valid' }) }),
  living('StatefulSet', 'another service', kept('StatefulSet', 'n1'), patch(at('StatefulSet', '/n1'), { spec: { serviceName: 'other' } })),
  living(
    'StatefulSet',
    'other claims',
    kept('StatefulSet', 'n2', { volumeClaimTemplates: [claim('data')] }),
    put(at('StatefulSet', '/n2'), respecified({ volumeClaimTemplates: [claim('data', { storageClassName: 'fast' })] })),
  ),
  living(
    'StatefulSet',
    'what may change',
    kept('StatefulSet', 'n3'),
    patch(at('StatefulSet', '/n3'), {
      spec: {
        minReadySeconds: 3,
        revisionHistoryLimit: 2,
        ordinals: { start: 5 },
        updateStrategy: { type: 'OnDelete', rollingUpdate: null },
        persistentVolumeClaimRetentionPolicy: { whenScaled: 'Delete' },
        template: { spec: { dnsPolicy: 'Default' } },
      },
    }),
  ),
]

export const workloadRows: readonly ParityRow[] = [...commonRows, ...deploymentRows, ...statefulSetRows]
