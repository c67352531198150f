/* Pod templates that the API server takes or refuses, for tests that compare it with our own check. */

type Value = Readonly<Record<string, unknown>>

export interface TemplateCase {
  readonly name: string
  readonly template: Value
}

export interface RefusedTemplate extends TemplateCase {
  /** Of the problem, below the template. */
  readonly path: string
}

const template = (spec: Value): Value => ({
  metadata: { labels: { app: 'demo' } },
  spec: { containers: [{ name: 'a', image: 'a:1' }], ...spec },
})
const container = (more: Value): Value => template({ containers: [{ name: 'a', image: 'a:1', ...more }] })
const volume = (source: Value): Value => template({ volumes: [{ name: 'v', ...source }] })
const affinity = (terms: unknown): Value =>
  template({ affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: terms } } })
const expression = (more: Value): Value => affinity({ nodeSelectorTerms: [{ matchExpressions: [{ key: 'k', ...more }] }] })

const TERM = 'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution'

export const REFUSED_TEMPLATES: readonly RefusedTemplate[] = [
  {
    name: 'a label value with a space',
    template: { ...template({}), metadata: { labels: { app: 'demo', x: 'a b' } } },
    path: '.metadata.labels[x]',
  },
  {
    name: 'a label key with two slashes',
    template: { ...template({}), metadata: { labels: { app: 'demo', 'a/b/c': 'x' } } },
    path: '.metadata.labels[a/b/c]',
  },
  {
    name: 'an annotation key with a space',
    template: { ...template({}), metadata: { labels: { app: 'demo' }, annotations: { 'a b': 'x' } } },
    path: '.metadata.annotations[a b]',
  },
  { name: 'a container without a name', template: template({ containers: [{ image: 'a' }] }), path: '.spec.containers[0].name' },
  {
    name: 'a container name in capitals',
    template: template({ containers: [{ name: 'A', image: 'a' }] }),
    path: '.spec.containers[0].name',
  },
  {
    name: 'two containers of one name',
    template: template({
      containers: [
        { name: 'a', image: 'a' },
        { name: 'a', image: 'b' },
      ],
    }),
    path: '.spec.containers[1]',
  },
  {
    name: 'an init container of the same name',
    template: template({ initContainers: [{ name: 'a', image: 'a' }] }),
    path: '.spec.containers[0].name',
  },
  {
    name: 'a sidecar without an image',
    template: template({ containers: [{ name: 'a', image: 'a' }, { name: 'b' }] }),
    path: '.spec.containers[1].image',
  },
  { name: 'a port of 0', template: container({ ports: [{ containerPort: 0 }] }), path: '.spec.containers[0].ports[0].containerPort' },
  {
    name: 'a port of 70000',
    template: container({ ports: [{ containerPort: 70_000 }] }),
    path: '.spec.containers[0].ports[0].containerPort',
  },
  {
    name: 'a port name that is too long',
    template: container({ ports: [{ containerPort: 1, name: 'a'.repeat(16) }] }),
    path: '.spec.containers[0].ports[0].name',
  },
  {
    name: 'a protocol that does not exist',
    template: container({ ports: [{ containerPort: 1, protocol: 'tcp' }] }),
    path: '.spec.containers[0].ports[0].protocol',
  },
  {
    name: 'two ports of one name',
    template: container({
      ports: [
        { containerPort: 1, name: 'x' },
        { containerPort: 2, name: 'x' },
      ],
    }),
    path: '.spec.containers[0].ports',
  },
  { name: 'a variable without a name', template: container({ env: [{ value: 'x' }] }), path: '.spec.containers[0].env[0].name' },
  {
    name: 'a variable with = in its name',
    template: container({ env: [{ name: 'A=B', value: 'x' }] }),
    path: '.spec.containers[0].env[0].name',
  },
  {
    name: 'a variable with value and valueFrom',
    template: container({ env: [{ name: 'A', value: 'x', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }] }),
    path: '.spec.containers[0].env[0]',
  },
  {
    name: 'valueFrom without a source',
    template: container({ env: [{ name: 'A', valueFrom: {} }] }),
    path: '.spec.containers[0].env[0].valueFrom',
  },
  {
    name: 'valueFrom with two sources',
    template: container({
      env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 's', key: 'k' }, configMapKeyRef: { name: 's', key: 'k' } } }],
    }),
    path: '.spec.containers[0].env[0].valueFrom',
  },
  {
    name: 'a secret reference without a key',
    template: container({ env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 's' } } }] }),
    path: '.spec.containers[0].env[0].valueFrom.secretKeyRef.key',
  },
  { name: 'envFrom without a source', template: container({ envFrom: [{}] }), path: '.spec.containers[0].envFrom[0]' },
  {
    name: 'a quantity that is none',
    template: container({ resources: { limits: { memory: '1 GB' } } }),
    path: '.spec.containers[0].resources.limits[memory]',
  },
  {
    name: 'a negative quantity',
    template: container({ resources: { limits: { memory: '-1Gi' } } }),
    path: '.spec.containers[0].resources.limits[memory]',
  },
  {
    name: 'a request above the limit',
    template: container({ resources: { limits: { cpu: '500m' }, requests: { cpu: 1 } } }),
    path: '.spec.containers[0].resources.requests[cpu]',
  },
  {
    name: 'a resource that does not exist',
    template: container({ resources: { limits: { gpu: 1 } } }),
    path: '.spec.containers[0].resources.limits[gpu]',
  },
  {
    name: 'a probe without a handler',
    template: container({ livenessProbe: { periodSeconds: 5 } }),
    path: '.spec.containers[0].livenessProbe',
  },
  {
    name: 'a probe with two handlers',
    template: container({ readinessProbe: { tcpSocket: { port: 1 }, httpGet: { port: 1 } } }),
    path: '.spec.containers[0].readinessProbe',
  },
  {
    name: 'a probe of port 0',
    template: container({ livenessProbe: { httpGet: { port: 0 } } }),
    path: '.spec.containers[0].livenessProbe.httpGet.port',
  },
  {
    name: 'a negative period',
    template: container({ livenessProbe: { httpGet: { port: 1 }, periodSeconds: -1 } }),
    path: '.spec.containers[0].livenessProbe.periodSeconds',
  },
  {
    name: 'a liveness probe that must succeed twice',
    template: container({ livenessProbe: { httpGet: { port: 1 }, successThreshold: 2 } }),
    path: '.spec.containers[0].livenessProbe.successThreshold',
  },
  { name: 'a hook without a handler', template: container({ lifecycle: { preStop: {} } }), path: '.spec.containers[0].lifecycle.preStop' },
  {
    name: 'a hook without a command',
    template: container({ lifecycle: { preStop: { exec: {} } } }),
    path: '.spec.containers[0].lifecycle.preStop.exec.command',
  },
  {
    name: 'escalation denied to a privileged container',
    template: container({ securityContext: { privileged: true, allowPrivilegeEscalation: false } }),
    path: '.spec.containers[0].securityContext',
  },
  {
    name: 'a negative user',
    template: container({ securityContext: { runAsUser: -1 } }),
    path: '.spec.containers[0].securityContext.runAsUser',
  },
  {
    name: 'a seccomp profile without its file',
    template: template({ securityContext: { seccompProfile: { type: 'Localhost' } } }),
    path: '.spec.securityContext.seccompProfile.localhostProfile',
  },
  {
    name: 'a mount of no volume',
    template: container({ volumeMounts: [{ name: 'v', mountPath: '/v' }] }),
    path: '.spec.containers[0].volumeMounts[0].name',
  },
  {
    name: 'two mounts at one path',
    template: template({
      volumes: [{ name: 'v', emptyDir: {} }],
      containers: [
        {
          name: 'a',
          image: 'a',
          volumeMounts: [
            { name: 'v', mountPath: '/v' },
            { name: 'v', mountPath: '/v' },
          ],
        },
      ],
    }),
    path: '.spec.containers[0].volumeMounts[1]',
  },
  {
    name: 'a sub-path that leads out',
    template: template({
      volumes: [{ name: 'v', emptyDir: {} }],
      containers: [{ name: 'a', image: 'a', volumeMounts: [{ name: 'v', mountPath: '/v', subPath: '../x' }] }],
    }),
    path: '.spec.containers[0].volumeMounts[0].subPath',
  },
  { name: 'a volume with two sources', template: volume({ emptyDir: {}, hostPath: { path: '/x' } }), path: '.spec.volumes[0]' },
  { name: 'a volume name in capitals', template: template({ volumes: [{ name: 'V', emptyDir: {} }] }), path: '.spec.volumes[0].name' },
  { name: 'a host path that leads out', template: volume({ hostPath: { path: '/a/../b' } }), path: '.spec.volumes[0].hostPath.path' },
  {
    name: 'a host path of an unknown type',
    template: volume({ hostPath: { path: '/a', type: 'Folder' } }),
    path: '.spec.volumes[0].hostPath.type',
  },
  {
    name: 'file permissions above 0777',
    template: volume({ secret: { secretName: 's', defaultMode: 0o1777 } }),
    path: '.spec.volumes[0].secret.defaultMode',
  },
  { name: 'a secret volume without a Secret', template: volume({ secret: {} }), path: '.spec.volumes[0].secret.secretName' },
  {
    name: 'a claim without a name',
    template: volume({ persistentVolumeClaim: {} }),
    path: '.spec.volumes[0].persistentVolumeClaim.claimName',
  },
  {
    name: 'a projection with two sources',
    template: volume({ projected: { sources: [{ configMap: { name: 'a' }, secret: { name: 'b' } }] } }),
    path: '.spec.volumes[0].projected.sources[0]',
  },
  { name: 'a restart policy of jobs', template: template({ restartPolicy: 'Never' }), path: '.spec.restartPolicy' },
  { name: 'a deadline', template: template({ activeDeadlineSeconds: 5 }), path: '.spec.activeDeadlineSeconds' },
  { name: 'an unknown DNS policy', template: template({ dnsPolicy: 'Cluster' }), path: '.spec.dnsPolicy' },
  { name: 'DNS policy None without name servers', template: template({ dnsPolicy: 'None' }), path: '.spec.dnsConfig.nameservers' },
  {
    name: 'a host alias without an address',
    template: template({ hostAliases: [{ ip: 'x', hostnames: ['a'] }] }),
    path: '.spec.hostAliases[0].ip',
  },
  {
    name: 'a toleration without key and operator',
    template: template({ tolerations: [{ effect: 'NoSchedule' }] }),
    path: '.spec.tolerations[0].operator',
  },
  {
    name: 'a toleration of an unknown effect',
    template: template({ tolerations: [{ key: 'a', effect: 'Never' }] }),
    path: '.spec.tolerations[0].effect',
  },
  {
    name: 'a toleration with Exists and a value',
    template: template({ tolerations: [{ key: 'a', operator: 'Exists', value: 'x' }] }),
    path: '.spec.tolerations[0].value',
  },
  {
    name: 'toleration seconds of NoSchedule',
    template: template({ tolerations: [{ key: 'a', operator: 'Exists', effect: 'NoSchedule', tolerationSeconds: 5 }] }),
    path: '.spec.tolerations[0].effect',
  },
  { name: 'a node selector value with a space', template: template({ nodeSelector: { disk: 'a b' } }), path: '.spec.nodeSelector[disk]' },
  { name: 'a node affinity without terms', template: affinity({ nodeSelectorTerms: [] }), path: `.${TERM}.nodeSelectorTerms` },
  { name: 'In without values', template: expression({ operator: 'In' }), path: `.${TERM}.nodeSelectorTerms[0].matchExpressions[0].values` },
  {
    name: 'Exists with values',
    template: expression({ operator: 'Exists', values: ['x'] }),
    path: `.${TERM}.nodeSelectorTerms[0].matchExpressions[0].values`,
  },
  {
    name: 'an unknown operator',
    template: expression({ operator: 'Is', values: ['x'] }),
    path: `.${TERM}.nodeSelectorTerms[0].matchExpressions[0].operator`,
  },
  {
    name: 'a weight of 0',
    template: template({
      affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 0, preference: {} }] } },
    }),
    path: '.spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight',
  },
  {
    name: 'a pod affinity without a topology key',
    template: template({ affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ labelSelector: {} }] } } }),
    path: '.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey',
  },
  {
    name: 'a spread with a skew of 0',
    template: template({ topologySpreadConstraints: [{ maxSkew: 0, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule' }] }),
    path: '.spec.topologySpreadConstraints[0].maxSkew',
  },
]

export const GOOD_TEMPLATES: readonly TemplateCase[] = [
  { name: 'the least', template: template({}) },
  {
    name: 'nulls, as Go writes them',
    template: {
      metadata: { labels: { app: 'demo' }, creationTimestamp: null },
      spec: { containers: [{ name: 'a', image: 'a', resources: null, env: null }], volumes: null },
    },
  },
  { name: 'a volume without a source', template: volume({}) },
  {
    name: 'numbers as quantities',
    template: container({ resources: { limits: { cpu: 1.5, memory: 1e9, 'nvidia.com/gpu': 1 }, requests: { cpu: '500m' } } }),
  },
  {
    name: 'the same port number for two protocols',
    template: container({
      ports: [
        { containerPort: 53, protocol: 'TCP' },
        { containerPort: 53, protocol: 'UDP' },
      ],
    }),
  },
  {
    name: 'much of what there is',
    template: template({
      serviceAccountName: 'x',
      automountServiceAccountToken: false,
      nodeSelector: { 'kubernetes.io/os': 'linux', empty: '' },
      tolerations: [{ operator: 'Exists' }, { key: 'a', value: 'b', effect: 'NoExecute', tolerationSeconds: 5 }],
      hostAliases: [{ ip: '192.0.2.1', hostnames: ['a.example'] }],
      imagePullSecrets: [{ name: 'p' }],
      dnsPolicy: 'None',
      dnsConfig: { nameservers: ['192.0.2.1'], options: [{ name: 'ndots', value: '2' }], searches: ['a.example'] },
      priorityClassName: '',
      runtimeClassName: 'gvisor',
      schedulerName: 'other',
      terminationGracePeriodSeconds: 30,
      topologySpreadConstraints: [
        {
          maxSkew: 1,
          topologyKey: 'zone',
          whenUnsatisfiable: 'DoNotSchedule',
          minDomains: 2,
          labelSelector: { matchLabels: { app: 'demo' } },
        },
        { maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'ScheduleAnyway' },
      ],
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [
              {
                matchExpressions: [
                  { key: 'n', operator: 'Gt', values: ['5'] },
                  { key: 'z', operator: 'DoesNotExist' },
                ],
              },
            ],
          },
          preferredDuringSchedulingIgnoredDuringExecution: [
            { weight: 100, preference: { matchExpressions: [{ key: 'a', operator: 'In', values: ['b'] }] } },
          ],
        },
        podAntiAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [
            {
              weight: 1,
              podAffinityTerm: {
                topologyKey: 'kubernetes.io/hostname',
                labelSelector: { matchExpressions: [{ key: 'app', operator: 'NotIn', values: ['x'] }] },
                namespaces: ['x'],
              },
            },
          ],
        },
      },
      securityContext: {
        runAsUser: 0,
        fsGroup: 5,
        supplementalGroups: [1],
        fsGroupChangePolicy: 'OnRootMismatch',
        seccompProfile: { type: 'Localhost', localhostProfile: 'x.json' },
        sysctls: [{ name: 'net.core.somaxconn', value: '1' }],
      },
      volumes: [
        { name: 'a', emptyDir: { medium: 'Memory', sizeLimit: '1Gi' } },
        { name: 'b', configMap: { name: 'c', defaultMode: 0o400, items: [{ key: 'k', path: 'a/b', mode: 256 }] } },
        { name: 'c', secret: { secretName: 's', optional: true } },
        { name: 'd', persistentVolumeClaim: { claimName: 'c', readOnly: true } },
        { name: 'e', hostPath: { path: '/x', type: '' } },
        {
          name: 'f',
          projected: {
            sources: [
              { serviceAccountToken: { path: 't', audience: 'a', expirationSeconds: 600 } },
              { configMap: { name: 'c' } },
              { downwardAPI: { items: [{ path: 'p', fieldRef: { fieldPath: 'metadata.labels' } }] } },
            ],
          },
        },
        { name: 'g', nfs: { server: 's', path: '/p' } },
        { name: 'h', csi: { driver: 'd.example', volumeAttributes: { a: 'b' } } },
      ],
      initContainers: [{ name: 'i', image: 'i', restartPolicy: 'Always', volumeMounts: [{ name: 'a', mountPath: '/a' }] }],
      containers: [
        {
          name: 'a',
          image: 'a@sha256:0000000000000000000000000000000000000000000000000000000000000000',
          imagePullPolicy: 'Never',
          command: ['a'],
          args: ['b'],
          workingDir: '/w',
          envFrom: [{ prefix: 'P_', secretRef: { name: 's' } }, { configMapRef: { name: 'c', optional: true } }],
          env: [
            { name: 'A.b-c', value: '' },
            { name: 'B', valueFrom: { resourceFieldRef: { resource: 'limits.cpu', containerName: 'a', divisor: '1m' } } },
            { name: 'C', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
          ],
          ports: [{ containerPort: 80, name: 'http', hostPort: 8080 }],
          livenessProbe: { exec: { command: ['x'] }, initialDelaySeconds: 0, terminationGracePeriodSeconds: 5 },
          readinessProbe: {
            httpGet: { path: '/x', port: 'http', scheme: 'HTTPS', httpHeaders: [{ name: 'A', value: 'b' }] },
            successThreshold: 2,
          },
          startupProbe: { grpc: { port: 80, service: 'x' } },
          lifecycle: { preStop: { sleep: { seconds: 5 } }, postStart: { tcpSocket: { port: 80 } } },
          securityContext: {
            capabilities: { add: ['NET_ADMIN'], drop: ['ALL'] },
            runAsNonRoot: false,
            procMount: 'Default',
            seLinuxOptions: { level: 's0' },
          },
          volumeMounts: [
            { name: 'a', mountPath: '/a', subPath: 'x/y', mountPropagation: 'None' },
            { name: 'b', mountPath: '/b', readOnly: true, subPathExpr: '$(C)' },
          ],
          terminationMessagePolicy: 'FallbackToLogsOnError',
          resizePolicy: [{ resourceName: 'cpu', restartPolicy: 'NotRequired' }],
        },
      ],
    }),
  },
]
