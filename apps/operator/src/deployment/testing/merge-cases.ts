/* A pod template and patches to it, for tests that compare our strategic merge with the one of the API server. */

type Value = Readonly<Record<string, unknown>>

export const MERGE_BASE: Value = {
  metadata: { labels: { app: 'demo', team: 'a' }, annotations: { note: 'x' } },
  spec: {
    serviceAccountName: 'x',
    nodeSelector: { disk: 'ssd', zone: 'a' },
    tolerations: [{ key: 'a', operator: 'Exists' }],
    imagePullSecrets: [{ name: 'p1' }, { name: 'p2' }],
    hostAliases: [{ ip: '192.0.2.1', hostnames: ['a'] }],
    volumes: [
      { name: 'config', configMap: { name: 'c' } },
      { name: 'tmp', emptyDir: {} },
    ],
    securityContext: { runAsUser: 1000, runAsNonRoot: true },
    containers: [
      {
        name: 'toolhive',
        image: 'runner:1',
        command: ['run'],
        args: ['a', 'b'],
        env: [
          { name: 'A', value: '1' },
          { name: 'B', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
          { name: 'C', value: '3' },
        ],
        ports: [{ name: 'http', containerPort: 8080, protocol: 'TCP' }],
        resources: { limits: { cpu: '1', memory: '1Gi' }, requests: { cpu: '500m' } },
        volumeMounts: [
          { name: 'config', mountPath: '/etc/config', readOnly: true },
          { name: 'tmp', mountPath: '/tmp' },
        ],
      },
      { name: 'second', image: 'second:1' },
    ],
  },
}

const spec = (patch: Value): Value => ({ spec: patch })
const proxy = (patch: Value): Value => spec({ containers: [{ name: 'toolhive', ...patch }] })

export const MERGE_CASES: readonly { readonly name: string; readonly patch: Value }[] = [
  { name: 'nothing', patch: {} },
  { name: 'labels and annotations', patch: { metadata: { labels: { team: 'b', more: 'c' }, annotations: { note: null } } } },
  { name: 'a map replaced', patch: spec({ nodeSelector: { $patch: 'replace', only: 'this' } }) },
  { name: 'a map deleted', patch: spec({ nodeSelector: { $patch: 'delete' } }) },
  { name: 'a map set to null', patch: spec({ nodeSelector: null }) },
  { name: 'a member set to null', patch: spec({ nodeSelector: { disk: null }, securityContext: { runAsUser: null, fsGroup: 7 } }) },
  { name: 'null for what is not there', patch: spec({ affinity: null, dnsConfig: { options: null } }) },
  { name: 'tolerations are one value', patch: spec({ tolerations: [{ key: 'b', operator: 'Exists' }] }) },
  { name: 'a container changed', patch: proxy({ image: 'runner:2', resources: { limits: { cpu: '2' } } }) },
  { name: 'a container added', patch: spec({ containers: [{ name: 'third', image: 'third:1' }] }) },
  {
    name: 'containers added and changed, in their order',
    patch: spec({
      containers: [
        { name: 'new1', image: 'n' },
        { name: 'second', image: 'second:2' },
        { name: 'new2', image: 'n' },
      ],
    }),
  },
  { name: 'a container deleted', patch: spec({ containers: [{ name: 'second', $patch: 'delete' }] }) },
  { name: 'one deleted that is not there', patch: spec({ containers: [{ name: 'other', $patch: 'delete' }] }) },
  { name: 'all containers replaced', patch: spec({ containers: [{ $patch: 'replace' }, { name: 'only', image: 'only:1' }] }) },
  { name: 'init containers where there were none', patch: spec({ initContainers: [{ name: 'i', image: 'i:1' }] }) },
  { name: 'args are one value', patch: proxy({ args: ['c'] }) },
  {
    name: 'variables by name',
    patch: proxy({
      env: [
        { name: 'D', value: '4' },
        { name: 'C', value: 'x' },
        { name: 'A', $patch: 'delete' },
      ],
    }),
  },
  { name: 'a value instead of a reference', patch: proxy({ env: [{ name: 'B', value: 'x', valueFrom: null }] }) },
  { name: 'all variables deleted', patch: proxy({ env: null }) },
  {
    name: 'ports by number',
    patch: proxy({
      ports: [
        { containerPort: 8080, protocol: 'TCP', name: 'web' },
        { containerPort: 9090, name: 'more' },
      ],
    }),
  },
  {
    name: 'mounts by path',
    patch: proxy({
      volumeMounts: [
        { mountPath: '/tmp', name: 'tmp', readOnly: true },
        { mountPath: '/more', name: 'tmp' },
      ],
    }),
  },
  {
    name: 'a volume with another source',
    patch: spec({ volumes: [{ name: 'tmp', $retainKeys: ['name', 'hostPath'], hostPath: { path: '/x' } }] }),
  },
  {
    name: 'a volume with another source, the other deleted by null',
    patch: spec({ volumes: [{ name: 'tmp', emptyDir: null, hostPath: { path: '/x' } }] }),
  },
  {
    name: 'a member of a volume',
    patch: spec({
      volumes: [
        { name: 'config', configMap: { optional: true } },
        { name: 'v', emptyDir: {} },
      ],
    }),
  },
  { name: 'pull secrets by name', patch: spec({ imagePullSecrets: [{ name: 'p3' }, { name: 'p1', $patch: 'delete' }] }) },
  {
    name: 'host aliases by address',
    patch: spec({
      hostAliases: [
        { ip: '192.0.2.1', hostnames: ['b'] },
        { ip: '192.0.2.2', hostnames: ['c'] },
      ],
    }),
  },
  {
    name: 'an order of its own',
    patch: spec({
      '$setElementOrder/containers': [{ name: 'second' }, { name: 'new' }, { name: 'toolhive' }],
      containers: [{ name: 'new', image: 'n' }],
    }),
  },
  { name: 'an order and nothing else', patch: spec({ '$setElementOrder/containers': [{ name: 'second' }, { name: 'toolhive' }] }) },
  {
    name: 'an order of variables inside a container',
    patch: proxy({ '$setElementOrder/env': [{ name: 'C' }, { name: 'Z' }, { name: 'A' }], env: [{ name: 'Z', value: 'z' }] }),
  },
]
