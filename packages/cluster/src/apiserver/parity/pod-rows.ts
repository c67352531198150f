import type { Json, JsonObject } from '@thv/kube-schema/kind-schema'
import { del, get, type ParityRow, patch, post, put, row, type Step } from './parity-row.ts'
import { podSecurityRows } from './pod-security-rows.ts'

const PODS = '/api/v1/namespaces/{ns}/pods'
const DRY = `${PODS}?dryRun=All`

const container = (more: JsonObject = {}): JsonObject => ({ name: 'c', image: 'example.com/i:1', ...more })
const pod = (name: string, spec: JsonObject = {}, metadata: JsonObject = {}): JsonObject => ({
  metadata: { name, ...metadata },
  spec: { containers: [container()], ...spec },
})
/** A pod after its creation; nothing is kept, so no controller comes in between. */
const made = (title: string, spec: JsonObject, metadata: JsonObject = {}): ParityRow =>
  row(`pod: ${title}`, post(DRY, pod('p', spec, metadata)))
/** The same for its one container. */
const contained = (title: string, more: JsonObject): ParityRow => made(title, { containers: [container(more)] })
const mounting = (title: string, volumes: Json, volumeMounts: Json): ParityRow =>
  made(title, { volumes, containers: [container({ volumeMounts })] })
const volume = (title: string, source: JsonObject): ParityRow => made(title, { volumes: [{ name: 'v', ...source }] })
const probe = (title: string, livenessProbe: JsonObject): ParityRow => contained(title, { livenessProbe })
const env = (title: string, ...variables: JsonObject[]): ParityRow => contained(title, { env: variables })

/** No scheduler takes it. */
const kept = (name: string, spec: JsonObject = {}, metadata: JsonObject = {}): Step =>
  post(PODS, pod(name, { schedulerName: 'nobody', automountServiceAccountToken: false, ...spec }, metadata))
const last = (earlier: readonly JsonObject[]): JsonObject => earlier.at(-1) ?? {}
const specOf = (body: JsonObject): JsonObject => (body['spec'] as JsonObject | undefined) ?? {}
const respecified =
  (spec: JsonObject) =>
  (earlier: readonly JsonObject[]): Json => ({ ...last(earlier), spec: { ...specOf(last(earlier)), ...spec } })
const applied = (name: string, manager: string, spec: JsonObject, query = ''): Step =>
  patch(`${PODS}/${name}?fieldManager=${manager}${query}`, { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec }, 'apply')
const HTTP = { httpGet: { port: 80 } }

const defaultRows: readonly ParityRow[] = [
  made('the smallest', {}),
  contained('pull policy of latest', { image: 'example.com/i:latest' }),
  contained('pull policy without a tag', { image: 'i' }),
  contained('pull policy of a port and no tag', { image: 'localhost:5000/a/b' }),
  contained('pull policy of a digest', { image: `i@sha256:${'a'.repeat(64)}` }),
  contained('pull policy of what is no image name', { image: 'npx://@scope/package@1.2.3' }),
  contained('pull policy of capital letters', { image: 'Library/Image' }),
  contained('requests from limits', { resources: { limits: { cpu: '1000m', memory: '1024Mi' } } }),
  contained('burstable', { resources: { limits: { cpu: '0.5' }, requests: { cpu: '250m', memory: '1e3' } } }),
  contained('quantities as they are written', {
    resources: {
      requests: { cpu: 1.5, memory: '1500000000', 'ephemeral-storage': '0.1Gi', 'example.com/gpu': '0' },
      limits: { 'example.com/gpu': '0' },
    },
  }),
  contained('quantities that are rounded', { resources: { requests: { cpu: '0.0001', memory: '1.5Ki' } } }),
  made('resources of the whole pod', {
    resources: { limits: { cpu: '1', memory: '1Gi' } },
    containers: [container({ resources: { requests: { cpu: '100m' } } })],
  }),
  contained('probes', {
    livenessProbe: { httpGet: { port: 'http' } },
    readinessProbe: { tcpSocket: { port: 80 }, periodSeconds: 3 },
    startupProbe: { grpc: { port: 80 }, initialDelaySeconds: 0 },
    ports: [{ name: 'http', containerPort: 80 }],
  }),
  contained('hooks', { lifecycle: { preStop: { httpGet: { port: 1, path: 'x' } }, postStart: { exec: { command: ['true'] } } } }),
  contained('empty values', {
    command: [],
    args: [],
    env: [{ name: 'A', value: '' }],
    envFrom: [],
    ports: [],
    stdin: false,
    tty: false,
    workingDir: '',
    securityContext: {},
    resources: { limits: {} },
  }),
  env(
    'environment',
    { name: 'A', value: '1' },
    { name: 'B', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
    { name: 'C', valueFrom: { resourceFieldRef: { resource: 'limits.cpu' } } },
    { name: 'D', valueFrom: { configMapKeyRef: { name: 'm', key: 'k', optional: false } } },
    { name: 'E', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } },
    { name: 'F', valueFrom: { fieldRef: { fieldPath: "metadata.labels['a/b']" } } },
    { name: 'odd name', value: 'x' },
  ),
  made('volumes', {
    volumes: [
      { name: 'nothing' },
      { name: 'map', configMap: { name: 'm', items: [{ key: 'a', path: 'b' }] } },
      { name: 'secret', secret: { secretName: 's', defaultMode: 0 } },
      { name: 'down', downwardAPI: { items: [{ path: 'l', fieldRef: { fieldPath: 'metadata.labels' } }] } },
      { name: 'host', hostPath: { path: '/x' } },
      { name: 'empty', emptyDir: { medium: 'Memory', sizeLimit: '1024Mi' } },
      { name: 'all', projected: { sources: [{ serviceAccountToken: { path: 't' } }, { secret: { name: 's' } }, { downwardAPI: {} }] } },
      { name: 'claim', persistentVolumeClaim: { claimName: 'c', readOnly: false } },
      {
        name: 'own',
        ephemeral: { volumeClaimTemplate: { spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } } } },
      },
    ],
  }),
  made('host network', { hostNetwork: true, containers: [container({ ports: [{ containerPort: 80 }] })] }),
  made('init containers', {
    initContainers: [
      { name: 'i', image: 'i:1' },
      { name: 's', image: 's:1', restartPolicy: 'Always', readinessProbe: HTTP },
    ],
  }),
  made('an account by its old name', { serviceAccount: 'default', automountServiceAccountToken: false }),
  made('no token', { automountServiceAccountToken: false }),
  mounting(
    'a token volume of its own',
    [{ name: 'mine', emptyDir: {} }],
    [{ name: 'mine', mountPath: '/var/run/secrets/kubernetes.io/serviceaccount' }],
  ),
  made('tolerations for everything', { tolerations: [{ operator: 'Exists' }] }),
  made('a toleration of its own', {
    tolerations: [{ key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 5 }],
  }),
  made('a system priority', { priorityClassName: 'system-node-critical' }),
  made('a scheduling gate', { schedulingGates: [{ name: 'example.com/wait' }] }),
  made('fields that are not in use', { hostnameOverride: 'x', containers: [container({ lifecycle: { stopSignal: 'SIGTERM' } })] }),
  row('pod: a status of its own is ignored', post(DRY, { ...pod('p'), status: { phase: 'Running', podIP: '1.2.3.4' } })),
  row(
    'pod: a generated name',
    post(DRY, { metadata: { generateName: 'g' }, spec: { containers: [container()], serviceAccountName: 'missing' } }),
  ),
]

const admissionRows: readonly ParityRow[] = [
  made('an account that is not there', { serviceAccountName: 'missing' }),
  made('an account with an invalid name', { serviceAccountName: 'Not_Valid' }),
  made('a priority of its own', { priority: 5 }),
  made('a priority class that is not there', { priorityClassName: 'missing' }),
  made('another preemption', { preemptionPolicy: 'Never' }),
  made('a runtime class that is not there', { runtimeClassName: 'missing' }),
  row(
    'pod: an account without tokens',
    post('/api/v1/namespaces/{ns}/serviceaccounts', {
      metadata: { name: 'plain' },
      automountServiceAccountToken: false,
      imagePullSecrets: [{ name: 'pull' }],
    }),
    post(DRY, pod('p', { serviceAccountName: 'plain' })),
    post(DRY, pod('p', { serviceAccountName: 'plain', automountServiceAccountToken: true, imagePullSecrets: [{ name: 'own' }] })),
  ),
]

const refusalRows: readonly ParityRow[] = [
  row('pod: nothing at all', post(DRY, {})),
  row('pod: no spec', post(DRY, { metadata: { name: 'p' } })),
  made('no containers', { containers: [] }),
  row('pod: an invalid name', post(DRY, pod('Not_A_Name'))),
  made('containers of one name', { containers: [container(), container()] }),
  made('a container without a name', { containers: [{ image: 'i' }] }),
  made('a container without an image', { containers: [{ name: 'c' }] }),
  contained('an invalid container name', { name: 'Not_A_Name' }),
  contained('a container name with dots', { name: 'a.b' }),
  contained('an image with spaces', { image: ' i ' }),
  contained('an unknown pull policy', { imagePullPolicy: 'Sometimes' }),
  contained('an unknown message policy', { terminationMessagePolicy: 'Never' }),
  contained('a restart policy of a container', { restartPolicy: 'Always' }),
  contained('invalid ports', {
    ports: [{ containerPort: 0 }, { containerPort: 70_000 }, { containerPort: 1, hostPort: -1 }, { containerPort: 2, protocol: 'FTP' }],
  }),
  contained('invalid port names', {
    ports: [
      { containerPort: 1, name: 'much-too-long-name' },
      { containerPort: 2, name: 'UPPER' },
      { containerPort: 3, name: '123' },
      { containerPort: 4, name: 'a--b' },
      { containerPort: 5, name: 'twice' },
      { containerPort: 6, name: 'twice' },
    ],
  }),
  contained('one host port twice', {
    ports: [
      { containerPort: 1, hostPort: 8_080 },
      { containerPort: 2, hostPort: 8_080 },
    ],
  }),
  made('host network and another host port', {
    hostNetwork: true,
    containers: [container({ ports: [{ containerPort: 80, hostPort: 81 }] })],
  }),
  env('variables without good names', { name: '' }, { name: 'a=b' }, { name: 'ü' }),
  env('a variable with two sources', {
    name: 'A',
    valueFrom: { configMapKeyRef: { name: 'm', key: 'k' }, secretKeyRef: { name: 's', key: 'k' } },
  }),
  env('a variable with a value and a source', { name: 'A', value: 'x', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }),
  env('a variable from nothing', { name: 'A', valueFrom: {} }),
  env(
    'variables from invalid keys',
    { name: 'A', valueFrom: { secretKeyRef: { name: '', key: '' } } },
    { name: 'B', valueFrom: { configMapKeyRef: { name: 'Not_Valid', key: 'a b' } } },
    { name: 'C', valueFrom: { configMapKeyRef: { name: 'm', key: '..' } } },
  ),
  env(
    'variables from invalid fields',
    { name: 'A', valueFrom: { fieldRef: { fieldPath: '' } } },
    { name: 'B', valueFrom: { fieldRef: { fieldPath: 'spec.nothing' } } },
    { name: 'C', valueFrom: { fieldRef: { fieldPath: 'metadata.labels' } } },
    { name: 'D', valueFrom: { fieldRef: { fieldPath: "metadata.name['a']" } } },
    { name: 'E', valueFrom: { fieldRef: { fieldPath: "metadata.labels['a b']" } } },
    { name: 'F', valueFrom: { fieldRef: { apiVersion: 'v2', fieldPath: 'metadata.name' } } },
    { name: 'G', valueFrom: { resourceFieldRef: { resource: 'limits.nothing' } } },
    { name: 'H', valueFrom: { resourceFieldRef: { resource: 'limits.cpu', divisor: '2' } } },
    { name: 'I', valueFrom: { resourceFieldRef: { resource: 'requests.memory', divisor: '1m' } } },
  ),
  contained('invalid sources of variables', {
    envFrom: [{}, { prefix: 'a=', configMapRef: { name: '' } }, { configMapRef: { name: 'A' }, secretRef: { name: 's' } }],
  }),
  probe('a probe without a handler', { periodSeconds: 5 }),
  probe('a probe with two handlers', { exec: { command: ['x'] }, ...HTTP }),
  probe('a probe with negative numbers', { ...HTTP, initialDelaySeconds: -1, timeoutSeconds: -1, failureThreshold: -1 }),
  probe('a liveness probe with two successes', { ...HTTP, successThreshold: 2 }),
  probe('a probe with a wrong port', { httpGet: { port: 0, scheme: 'FTP', httpHeaders: [{ name: 'a b', value: '' }] } }),
  probe('a probe with a wrong port name', { tcpSocket: { port: 'Not_A_Port' } }),
  probe('a probe without a port', { grpc: {} }),
  probe('a probe without a command', { exec: {}, terminationGracePeriodSeconds: 0 }),
  contained('a readiness probe with a grace period', { readinessProbe: { ...HTTP, terminationGracePeriodSeconds: 5 } }),
  contained('a hook that sleeps too long', { lifecycle: { preStop: { sleep: { seconds: 100 } }, postStart: {} } }),
  contained('requests over limits', { resources: { limits: { cpu: '1', memory: '1Mi' }, requests: { cpu: '1500m', memory: '2Mi' } } }),
  contained('negative resources', { resources: { limits: { cpu: '-1' } } }),
  contained('unknown resources', {
    resources: { limits: { gpu: '1', pods: '1', 'example.com/gpu': '500m', 'kubernetes.io/x': '1', a_: '1' } },
  }),
  contained('an extended resource without a limit', { resources: { requests: { 'example.com/gpu': '1' } } }),
  contained('huge pages', { resources: { limits: { 'hugepages-2Mi': '3Mi' } } }),
  contained('a quantity that is none', { resources: { limits: { cpu: 'much' } } }),
  contained('a quantity with an unknown suffix', { resources: { limits: { cpu: '1Kk' } } }),
  contained('an invalid user', { securityContext: { runAsUser: -1, runAsGroup: 2 ** 40, procMount: 'Some' } }),
  contained('privileges against each other', {
    securityContext: { allowPrivilegeEscalation: false, privileged: true, capabilities: { add: ['CAP_SYS_ADMIN'] } },
  }),
  contained('invalid profiles', {
    securityContext: { seccompProfile: { type: 'Localhost' }, appArmorProfile: { type: 'Runtime' } },
  }),
  made('an invalid security context', {
    securityContext: {
      fsGroup: -1,
      runAsUser: -1,
      supplementalGroups: [1, -2],
      fsGroupChangePolicy: 'Never',
      sysctls: [
        { name: 'a b', value: '1' },
        { name: 'x.y', value: '1' },
        { name: 'x.y', value: '2' },
      ],
      seccompProfile: { type: 'RuntimeDefault', localhostProfile: 'x' },
    },
  }),
  mounting('a mount of a volume that is not there', [], [{ name: 'v', mountPath: '/x' }]),
  mounting('a mount without a path', [{ name: 'v' }], [{ name: 'v', mountPath: '' }]),
  mounting(
    'two mounts at one path',
    [{ name: 'v' }],
    [
      { name: 'v', mountPath: '/x' },
      { name: 'v', mountPath: '/x' },
    ],
  ),
  mounting('a relative mount path is fine', [{ name: 'v' }], [{ name: 'v', mountPath: 'x/../y' }]),
  mounting(
    'paths that leave the volume',
    [{ name: 'v' }],
    [
      { name: 'v', mountPath: '/1', subPath: '../x' },
      { name: 'v', mountPath: '/2', subPath: '/x' },
      { name: 'v', mountPath: '/3', subPathExpr: 'a/../../b' },
      { name: 'v', mountPath: '/4', subPath: 'a', subPathExpr: 'b' },
    ],
  ),
  mounting(
    'mounts in unknown ways',
    [{ name: 'v' }],
    [
      { name: 'v', mountPath: '/1', mountPropagation: 'Some' },
      { name: 'v', mountPath: '/2', mountPropagation: 'Bidirectional' },
      { name: 'v', mountPath: '/3', recursiveReadOnly: 'Enabled' },
    ],
  ),
  made('a device that is no claim', {
    volumes: [{ name: 'v' }],
    containers: [container({ volumeDevices: [{ name: 'v', devicePath: '' }] })],
  }),
  made('volumes of one name', { volumes: [{ name: 'v' }, { name: 'v' }] }),
  made('volumes with invalid names', { volumes: [{ name: '' }, { name: 'A' }] }),
  volume('a volume with two sources', { emptyDir: {}, configMap: { name: 'm' } }),
  volume('a config map without a name', { configMap: { defaultMode: 512, items: [{ key: '', path: '../x', mode: -1 }] } }),
  volume('a secret without a name', {
    secret: {
      items: [
        { key: 'a', path: '/x' },
        { key: 'a', path: '..x' },
      ],
    },
  }),
  volume('a host path that steps back', { hostPath: { path: '/a/../b', type: 'Thing' } }),
  volume('a host path without a path', { hostPath: { path: '' } }),
  volume('a claim without a name', { persistentVolumeClaim: { claimName: '' } }),
  volume('a negative size', { emptyDir: { sizeLimit: '-1' } }),
  volume('a downward volume that is wrong', {
    downwardAPI: {
      items: [
        { path: '' },
        { path: 'a', fieldRef: { fieldPath: 'status.podIP' }, resourceFieldRef: { resource: 'limits.cpu' } },
        { path: 'b', resourceFieldRef: { resource: 'limits.cpu' } },
      ],
    },
  }),
  volume('projections that are wrong', {
    projected: {
      sources: [
        { secret: { name: '' }, configMap: { name: 'm', items: [{ key: 'a', path: 'same' }] } },
        { secret: { name: 's', items: [{ key: 'a', path: 'same' }] } },
        { serviceAccountToken: { path: '', expirationSeconds: 1 } },
        { serviceAccountToken: { path: '../x' } },
      ],
    },
  }),
  volume('an ephemeral volume that is wrong', { ephemeral: { volumeClaimTemplate: { spec: { accessModes: ['Some'] } } } }),
  made('an unknown restart policy', { restartPolicy: 'Sometimes' }),
  made('an unknown dns policy', { dnsPolicy: 'Sometimes' }),
  made('dns of its own without servers', { dnsPolicy: 'None' }),
  made('dns of its own', {
    dnsPolicy: 'None',
    dnsConfig: { nameservers: ['1.2.3.4', 'x'], searches: ['a_b.c', 'Not Valid'], options: [{ name: '' }, { name: 'ndots', value: '1' }] },
  }),
  made('an invalid node selector', { nodeSelector: { 'bad key!': 'x', ok: 'bad value!' } }),
  made('invalid tolerations', {
    tolerations: [
      { key: 'a b' },
      { value: 'x' },
      { key: 'a', operator: 'Exists', value: 'x' },
      { key: 'a', operator: 'Like' },
      { key: 'a', effect: 'Never' },
      { key: 'a', effect: 'NoSchedule', tolerationSeconds: 5 },
      { key: 'a', value: 'bad value!' },
    ],
  }),
  made('an invalid affinity', {
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] },
        preferredDuringSchedulingIgnoredDuringExecution: [
          { weight: 0, preference: { matchExpressions: [{ key: 'a', operator: 'Gt', values: [] }] } },
        ],
      },
      podAntiAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [
          { topologyKey: '', labelSelector: { matchExpressions: [{ key: 'a', operator: 'In' }] } },
        ],
      },
    },
  }),
  made('invalid spreading', {
    topologySpreadConstraints: [
      { maxSkew: 0, topologyKey: '', whenUnsatisfiable: 'Never' },
      { maxSkew: 1, topologyKey: 'a', whenUnsatisfiable: 'ScheduleAnyway', minDomains: 2 },
      { maxSkew: 1, topologyKey: 'a', whenUnsatisfiable: 'ScheduleAnyway' },
    ],
  }),
  made('a deadline of nothing', { activeDeadlineSeconds: 0 }),
  made('invalid host names', {
    hostname: 'A',
    subdomain: 'a.b',
    nodeName: 'Not_Valid',
    hostAliases: [{ ip: 'x', hostnames: ['Not Valid'] }],
  }),
  made('an unknown system', { os: { name: 'plan9' } }),
  made('invalid gates', { readinessGates: [{ conditionType: 'a b' }], schedulingGates: [{ name: 'x' }, { name: 'x' }] }),
  made('a gate on a pod that has its node', { nodeName: 'n', schedulingGates: [{ name: 'x' }] }),
  made('ephemeral containers', {
    ephemeralContainers: [{ name: 'c', image: ' i', ports: [{ containerPort: 1 }], targetContainerName: 'x' }],
  }),
  made('init containers that are wrong', {
    initContainers: [
      { name: 'c', image: 'i', livenessProbe: HTTP },
      { name: 'i', image: 'i', restartPolicy: 'Never' },
    ],
  }),
  made('host users', { hostUsers: false, hostNetwork: true, hostPID: true, shareProcessNamespace: true }),
  made('a deletion cost that is no number', {}, { annotations: { 'controller.kubernetes.io/pod-deletion-cost': '1.5' } }),
  contained('fields of another type', { ports: [{ containerPort: '80' }] }),
  probe('a port of another type', { httpGet: { port: 1.5 } }),
  probe('a port that is a flag', { tcpSocket: { port: true } }),
  contained('a quantity that is a flag', { resources: { limits: { cpu: true } } }),
  made('a container that is null', { containers: [null] }),
  contained('nulls in lists', { command: [null, 'a'], env: null, resources: { limits: { cpu: null } } }),
  contained('a negative claim on memory', { resources: { requests: { memory: '-1Gi' } } }),
  made('resources of the whole pod that are wrong', { resources: { limits: { cpu: '-1', 'ephemeral-storage': '1Gi' } } }),
  made('pull secrets', { imagePullSecrets: [{ name: 'a' }, { name: 'b' }] }),
  made('annotations that are wrong', {}, { annotations: { 'bad key!': 'x', 'A/b': 'x' }, labels: { '/a': 'x' } }),
  row(
    'pod: unknown fields',
    post(`${DRY}&fieldValidation=Strict`, pod('p', { containers: [container({ imagePolicy: 'x' })], nothing: 1 })),
  ),
]

const updateRows: readonly ParityRow[] = [
  row('pod: create, get', kept('u1'), get(`${PODS}/u1`)),
  row(
    'pod: put of the same',
    kept('u2'),
    put(`${PODS}/u2`, (e) => last(e)),
  ),
  row(
    'pod: put of what was sent',
    kept('u3'),
    put(`${PODS}/u3`, pod('u3', { schedulerName: 'nobody', automountServiceAccountToken: false })),
  ),
  row('pod: another image', kept('u4'), patch(`${PODS}/u4`, { spec: { containers: [{ name: 'c', image: 'i:2' }] } }, 'strategic')),
  row(
    'pod: an image with spaces later',
    kept('u5'),
    patch(`${PODS}/u5`, { spec: { containers: [{ name: 'c', image: 'i:2 ' }] } }, 'strategic'),
  ),
  row('pod: no image later', kept('u5a'), patch(`${PODS}/u5a`, { spec: { containers: [{ name: 'c', image: '' }] } }, 'strategic')),
  row(
    'pod: another variable',
    kept('u6'),
    patch(`${PODS}/u6`, { spec: { containers: [{ name: 'c', env: [{ name: 'A', value: '1' }] }] } }, 'strategic'),
  ),
  row('pod: another container', kept('u7'), patch(`${PODS}/u7`, { spec: { containers: [{ name: 'd', image: 'd:1' }] } }, 'strategic')),
  row('pod: another node', kept('u8'), patch(`${PODS}/u8`, { spec: { nodeName: 'n' } })),
  row('pod: labels', kept('u9'), patch(`${PODS}/u9`, { metadata: { labels: { a: 'b' } } })),
  row('pod: another grace period', kept('u10'), patch(`${PODS}/u10`, { spec: { terminationGracePeriodSeconds: 5 } })),
  row(
    'pod: a deadline',
    kept('u11'),
    patch(`${PODS}/u11`, { spec: { activeDeadlineSeconds: 100 } }),
    patch(`${PODS}/u11`, { spec: { activeDeadlineSeconds: 50 } }),
    patch(`${PODS}/u11`, { spec: { activeDeadlineSeconds: 60 } }),
    patch(`${PODS}/u11`, { spec: { activeDeadlineSeconds: null } }),
    patch(`${PODS}/u11`, { spec: { activeDeadlineSeconds: -1 } }),
  ),
  row(
    'pod: more tolerations',
    kept('u12', { tolerations: [{ key: 'a', operator: 'Exists' }] }),
    put(`${PODS}/u12`, (e) =>
      respecified({ tolerations: [...((specOf(last(e))['tolerations'] as Json[]) ?? []), { key: 'b', operator: 'Exists' }] })(e),
    ),
    put(`${PODS}/u12`, respecified({ tolerations: [{ key: 'b', operator: 'Exists' }] })),
  ),
  row(
    'pod: gates go, and do not come',
    kept('u13', { schedulingGates: [{ name: 'a' }] }),
    put(`${PODS}/u13`, respecified({ schedulingGates: [{ name: 'a' }, { name: 'b' }] })),
    patch(`${PODS}/u13`, { spec: { schedulingGates: null } }),
  ),
  row(
    'pod: status',
    kept('s1'),
    patch(`${PODS}/s1/status`, {
      status: {
        phase: 'Running',
        podIP: '10.1.2.3',
        conditions: [{ type: 'Ready', status: 'True' }],
        containerStatuses: [{ name: 'c', state: { running: {} } }],
      },
    }),
    get(`${PODS}/s1`),
    get(`${PODS}/s1/status`),
  ),
  row(
    'pod: put of the status without its class',
    kept('s2'),
    put(`${PODS}/s2/status`, (e) => ({ ...last(e), status: { phase: 'Running', message: '' } })),
  ),
  row(
    'pod: an invalid status',
    kept('s3'),
    patch(`${PODS}/s3/status`, {
      status: { qosClass: 'Guaranteed', podIP: 'x', nominatedNodeName: 'Not_Valid', conditions: [{ type: 'a b', status: 'True' }] },
    }),
  ),
  row(
    'pod: what has ended does not run again',
    kept('s4', { restartPolicy: 'Never' }),
    patch(`${PODS}/s4/status`, { status: { containerStatuses: [{ name: 'c', state: { terminated: { exitCode: 1, reason: 'Error' } } }] } }),
    patch(`${PODS}/s4/status`, { status: { containerStatuses: [{ name: 'c', state: { running: {} } }] } }),
  ),
  row('pod: spec by its status', kept('s5'), patch(`${PODS}/s5/status`, { spec: { nodeName: 'n' }, status: { phase: 'Failed' } })),
  {
    ...row(
      'pod: apply',
      applied('a1', 'one', { schedulerName: 'nobody', automountServiceAccountToken: false, containers: [{ name: 'c', image: 'i:1' }] }),
      applied('a1', 'two', { containers: [{ name: 'c', image: 'i:2' }] }),
      applied('a1', 'two', { containers: [{ name: 'c', image: 'i:2' }] }, '&force=true'),
      applied('a1', 'three', { containers: [{ name: 'c', env: [{ name: 'A', value: '1' }] }] }),
    ),
    controlled: true,
  },
  {
    ...row(
      'pod: delete with time to end',
      kept('d1', { nodeName: 'no-such-node', terminationGracePeriodSeconds: 20 }),
      del(`${PODS}/d1`),
      del(`${PODS}/d1`, { gracePeriodSeconds: 50 }),
      patch(`${PODS}/d1`, { metadata: { labels: { still: 'here' } } }),
      del(`${PODS}/d1`, { gracePeriodSeconds: 0 }),
      get(`${PODS}/d1`),
    ),
    controlled: true,
  },
  row('pod: delete of one that has no node', kept('d2'), del(`${PODS}/d2`), get(`${PODS}/d2`)),
  row(
    'pod: delete of one that has ended',
    kept('d3', { nodeName: 'no-such-node' }),
    patch(`${PODS}/d3/status`, { status: { phase: 'Failed' } }),
    del(`${PODS}/d3`),
    get(`${PODS}/d3`),
  ),
  row('pod: apply of something invalid', applied('a2', 'one', { containers: [{ name: 'C' }] })),
  row('pod: json patch', kept('j1'), patch(`${PODS}/j1`, [{ op: 'replace', path: '/spec/containers/0/image', value: 'i:2' }], 'json')),
]

export const podRows: readonly ParityRow[] = [...defaultRows, ...admissionRows, ...refusalRows, ...updateRows, ...podSecurityRows]
