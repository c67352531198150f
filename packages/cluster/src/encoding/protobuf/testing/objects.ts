import { widgetDefinition } from '../../../apiserver/parity/custom-rows.ts'

/** An object and where it is created; `{ns}` stands for the namespace of the run. */
export interface SentObject {
  readonly path: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly [member: string]: unknown }
  readonly [member: string]: unknown
}

const CORE = '/api/v1/namespaces/{ns}'
const APPS = '/apis/apps/v1/namespaces/{ns}'
const RBAC = '/apis/rbac.authorization.k8s.io/v1'
const meta = (name: string) => ({ name, labels: { 'a.b/c': 'd', empty: '' }, annotations: { note: 'ünïcode ✓' } })
const selector = { matchLabels: { app: 'x' }, matchExpressions: [{ key: 'tier', operator: 'In', values: ['a', 'b'] }] }
const template = {
  metadata: { labels: { app: 'x', tier: 'a' } },
  spec: { containers: [{ name: 'c', image: 'example.com/x:1', ports: [{ containerPort: 80 }] }] },
}

/** A definition of its own, under names of its own. */
const definition = JSON.parse(
  JSON.stringify(widgetDefinition)
    .replaceAll('parity.example.com', '{ns}.example.com')
    .replaceAll('widget', 'gizmo')
    .replaceAll('Widget', 'Gizmo')
    .replaceAll('"wg"', '"gz"')
    .replaceAll('"toys"', '"gimcracks"'),
) as typeof widgetDefinition

/** One of each kind, with what is special about protobuf: zeros that count, texts that are numbers, maps, bytes, times, inline structs. */
export const OBJECTS: readonly SentObject[] = [
  {
    path: `${CORE}/configmaps`,
    kind: 'ConfigMap',
    metadata: { ...meta('pb'), ownerReferences: [{ apiVersion: 'v1', kind: 'Thing', name: 't', uid: 'u', controller: false }] },
    data: { a: '', b: 'text', constructor: 'x' },
    binaryData: { raw: Buffer.from([0, 255, 254, 10]).toString('base64'), none: '' },
    immutable: false,
  },
  { path: `${CORE}/secrets`, kind: 'Secret', metadata: meta('pb'), data: { k: 'AAECAw==' }, stringData: { t: 'ü' }, immutable: true },
  {
    path: `${CORE}/serviceaccounts`,
    kind: 'ServiceAccount',
    metadata: meta('pb'),
    automountServiceAccountToken: false,
    imagePullSecrets: [{ name: 's' }],
  },
  {
    path: `${CORE}/services`,
    kind: 'Service',
    metadata: meta('pb'),
    spec: {
      selector: { app: 'x' },
      sessionAffinity: 'ClientIP',
      sessionAffinityConfig: { clientIP: { timeoutSeconds: 7 } },
      ports: [
        { name: 'number', port: 80, targetPort: 8080 },
        { name: 'text', port: 81, targetPort: 'http', protocol: 'UDP', appProtocol: 'x' },
      ],
    },
  },
  {
    path: `${CORE}/pods`,
    kind: 'Pod',
    metadata: meta('pb'),
    spec: {
      schedulerName: 'nobody',
      terminationGracePeriodSeconds: 0,
      automountServiceAccountToken: true,
      securityContext: { runAsNonRoot: false, runAsUser: 0, supplementalGroups: [1, 2_000_000_000], fsGroup: 7 },
      tolerations: [{ operator: 'Exists', tolerationSeconds: 0, effect: 'NoExecute' }],
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [{ matchExpressions: [{ key: 'k', operator: 'NotIn', values: ['v'] }] }],
          },
        },
        podAntiAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [
            { weight: 1, podAffinityTerm: { topologyKey: 'z', labelSelector: { matchLabels: { a: 'b' } } } },
          ],
        },
      },
      initContainers: [{ name: 'i', image: 'i', restartPolicy: 'Always' }],
      containers: [
        {
          name: 'c',
          image: 'c',
          command: ['a', ''],
          stdin: true,
          env: [
            { name: 'A', value: '' },
            { name: 'B', valueFrom: { configMapKeyRef: { name: 'm', key: 'k', optional: false } } },
            { name: 'C', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } },
            { name: 'D', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
            { name: 'E', valueFrom: { resourceFieldRef: { containerName: 'c', resource: 'limits.cpu', divisor: '1m' } } },
          ],
          envFrom: [{ prefix: 'P_', configMapRef: { name: 'm' } }, { secretRef: { name: 's', optional: true } }],
          ports: [{ containerPort: 80, name: 'http' }],
          resources: { requests: { cpu: '100m', memory: '1Gi' }, limits: { cpu: '1500m', memory: '2Gi' } },
          livenessProbe: { httpGet: { path: '/', port: 'http', httpHeaders: [{ name: 'a', value: 'b' }] }, initialDelaySeconds: 3 },
          readinessProbe: { tcpSocket: { port: 80 } },
          startupProbe: { exec: { command: ['x'] } },
          lifecycle: { preStop: { exec: { command: ['y'] } } },
          volumeMounts: [
            { name: 'm', mountPath: '/m', readOnly: true },
            { name: 'e', mountPath: '/e', subPath: 's' },
          ],
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] }, readOnlyRootFilesystem: true },
        },
      ],
      volumes: [
        { name: 'm', configMap: { name: 'm', defaultMode: 0o400, items: [{ key: 'k', path: 'p' }], optional: true } },
        { name: 's', secret: { secretName: 's' } },
        { name: 'e', emptyDir: {} },
        { name: 'f', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
        { name: 'h', hostPath: { path: '/tmp', type: '' } },
        { name: 'd', downwardAPI: { items: [{ path: 'l', fieldRef: { fieldPath: 'metadata.labels' } }] } },
        {
          name: 'p',
          projected: {
            sources: [
              { serviceAccountToken: { path: 't', audience: 'x' } },
              { configMap: { name: 'm' } },
              { secret: { name: 's', items: [{ key: 'k', path: 'p', mode: 0 }] } },
            ],
          },
        },
        { name: 'v', persistentVolumeClaim: { claimName: 'c' } },
      ],
    },
  },
  {
    path: `${APPS}/deployments`,
    kind: 'Deployment',
    metadata: meta('pb'),
    spec: { replicas: 0, revisionHistoryLimit: 0, selector, template, strategy: { rollingUpdate: { maxSurge: '30%', maxUnavailable: 0 } } },
  },
  {
    path: `${APPS}/replicasets`,
    kind: 'ReplicaSet',
    metadata: meta('pb'),
    spec: { replicas: 0, selector: { matchLabels: { app: 'rs' } }, template: { ...template, metadata: { labels: { app: 'rs' } } } },
  },
  {
    path: `${APPS}/statefulsets`,
    kind: 'StatefulSet',
    metadata: meta('pb'),
    spec: {
      replicas: 0,
      serviceName: '',
      selector,
      template,
      ordinals: { start: 0 },
    },
  },
  {
    path: `${APPS}/controllerrevisions`,
    kind: 'ControllerRevision',
    metadata: meta('pb'),
    revision: 0,
    data: { spec: { template: { a: [1, null, 'x'] } } },
  },
  {
    path: `${RBAC}/namespaces/{ns}/roles`,
    kind: 'Role',
    metadata: meta('pb'),
    rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get'], resourceNames: ['x'] }],
  },
  {
    path: `${RBAC}/namespaces/{ns}/rolebindings`,
    kind: 'RoleBinding',
    metadata: meta('pb'),
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'pb' },
    subjects: [{ kind: 'ServiceAccount', name: 'pb', namespace: 'default' }],
  },
  {
    path: `${RBAC}/clusterroles`,
    kind: 'ClusterRole',
    metadata: meta('{ns}'),
    aggregationRule: { clusterRoleSelectors: [{ matchLabels: { '{ns}': 'none' } }] },
    rules: [],
  },
  {
    path: '/apis/coordination.k8s.io/v1/namespaces/{ns}/leases',
    kind: 'Lease',
    metadata: meta('pb'),
    spec: {
      holderIdentity: '',
      leaseDurationSeconds: 15,
      acquireTime: '2024-02-29T12:34:56.000007Z',
      renewTime: '2024-02-29T12:34:57.000000Z',
      leaseTransitions: 0,
    },
  },
  {
    path: '/apis/networking.k8s.io/v1/namespaces/{ns}/networkpolicies',
    kind: 'NetworkPolicy',
    metadata: meta('pb'),
    spec: {
      podSelector: {},
      policyTypes: ['Ingress'],
      ingress: [
        { ports: [{ port: 'http' }, { port: 80, endPort: 90 }], from: [{ namespaceSelector: {} }] },
        { from: [{ ipBlock: { cidr: '10.0.0.0/8' } }] },
        {},
      ],
    },
  },
  {
    path: '/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices',
    kind: 'EndpointSlice',
    metadata: meta('pb'),
    addressType: 'IPv4',
    ports: [{ name: '', port: 80, protocol: 'TCP' }],
    endpoints: [{ addresses: ['10.1.2.3'], conditions: { ready: false, serving: true }, targetRef: { kind: 'Pod', name: 'p', uid: 'u' } }],
  },
  {
    path: `${CORE}/events`,
    kind: 'Event',
    metadata: meta('pb'),
    involvedObject: { kind: 'Pod', namespace: '{ns}', name: 'p' },
    reason: 'Because',
    message: 'so',
    type: 'Normal',
    source: { component: 'test' },
    count: 3,
    firstTimestamp: '2024-02-29T12:34:56Z',
    lastTimestamp: '2024-02-29T12:34:57Z',
  },
  {
    path: '/apis/events.k8s.io/v1/namespaces/{ns}/events',
    kind: 'Event',
    metadata: meta('pb-new'),
    eventTime: '2024-02-29T12:34:56.700000Z',
    reportingController: 'example.com/c',
    reportingInstance: 'i',
    action: 'Act',
    reason: 'Because',
    note: 'so',
    type: 'Normal',
    regarding: { kind: 'Pod', namespace: '{ns}', name: 'p' },
  },
  {
    path: '/api/v1/nodes',
    kind: 'Node',
    metadata: meta('{ns}'),
    spec: { unschedulable: true, taints: [{ key: 'k', effect: 'NoSchedule' }], podCIDRs: ['10.244.0.0/24'], podCIDR: '10.244.0.0/24' },
    status: { capacity: { cpu: '4', memory: '8Gi' } },
  },
  {
    path: '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
    ...(definition as { kind?: string; spec: unknown }),
    kind: 'CustomResourceDefinition',
    metadata: definition.metadata as SentObject['metadata'],
  },
]
