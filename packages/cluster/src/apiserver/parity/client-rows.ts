import type { JsonObject } from '@thv/kube-schema/kind-schema'
import { del, get, type ParityRow, patch, post, put, row } from './parity-row.ts'

const CORE = '/api/v1/namespaces/{ns}'
const MAPS = `${CORE}/configmaps`
const TEMPLATES = `${CORE}/podtemplates`
const CONTROLLERS = `${CORE}/replicationcontrollers`
const DEPLOYMENTS = '/apis/apps/v1/namespaces/{ns}/deployments'
const SETS = '/apis/apps/v1/namespaces/{ns}/replicasets'
const STATEFUL = '/apis/apps/v1/namespaces/{ns}/statefulsets'
const WIDGETS = '/apis/parity.example.com/v1/namespaces/{ns}/widgets'
const OWNER = { apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: '11111111-2222-3333-4444-555555555555' }
const STRICT = '?fieldValidation=Strict'
const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io'

const labels = { app: 'x' }
const template = (spec: JsonObject = {}): JsonObject => ({
  metadata: { labels },
  spec: { containers: [{ name: 'c', image: 'i:1' }], ...spec },
})
const controller = (name: string, spec: JsonObject = {}): JsonObject => ({
  metadata: { name },
  spec: { replicas: 0, selector: labels, template: template(), ...spec },
})
const madeController = (title: string, spec: JsonObject) =>
  row(`replication controller: ${title}`, post(`${CONTROLLERS}?dryRun=All`, controller('r', spec)))
const madeTemplate = (title: string, body: JsonObject) =>
  row(`pod template: ${title}`, post(`${TEMPLATES}?dryRun=All`, { metadata: { name: 't' }, ...body }))
const workload = (name: string): JsonObject => ({
  metadata: { name },
  spec: { replicas: 0, selector: { matchLabels: labels }, template: template() },
})
const deleted = (name: string, options: JsonObject) =>
  row(`delete options: ${name}`, post(MAPS, { metadata: { name: 'client-d' } }), del(`${MAPS}/client-d`, options))
/** All that a client might try to change by way of a status. */
const metadata = { labels: { l: '1' }, annotations: { a: '1' }, finalizers: ['example.com/f'] }
const byStatus = (title: string, path: string, body: JsonObject, status: JsonObject): ParityRow => ({
  ...row(
    `status: metadata of ${title}`,
    post(path, body),
    patch(`${path}/client-s/status`, { metadata, status }),
    patch(`${path}/client-s`, { metadata: { finalizers: null } }),
  ),
  controlled: true,
})
const twice = (name: string, spec: string) =>
  `{"apiVersion":"parity.example.com/v1","kind":"Widget","metadata":{"name":"${name}"},"spec":${spec}}`

/** Requests of Go clients that kubectl does not make. */
export const clientRows: readonly ParityRow[] = [
  deleted('of the core', { kind: 'DeleteOptions', apiVersion: 'v1' }),
  deleted('of another group', { kind: 'DeleteOptions', apiVersion: 'apiextensions.k8s.io/v1' }),
  deleted('of the group of metadata', { kind: 'DeleteOptions', apiVersion: 'meta.k8s.io/v1' }),
  row(
    'duplicates: strictly',
    post(`${MAPS}${STRICT}`, '{"metadata":{"name":"client-1","name":"client-1"},"data":{"a":"1","b":"2","a":"3"},"data":{"c":"1"}}'),
  ),
  row(
    'duplicates: with unknown fields',
    post(
      `${MAPS}${STRICT}`,
      '{"metadata":{"name":"client-1","x":{"y":1,"y":2}},"more":1,"immutable":true,"more":2,"immutable":false,"x":1}',
    ),
  ),
  row(
    'duplicates: the last one counts',
    post(`${MAPS}?fieldValidation=Ignore`, '{"metadata":{"name":"client-2"},"immutable":true,"immutable":false}'),
  ),
  row(
    'duplicates: in a list',
    post(
      `${DEPLOYMENTS}${STRICT}`,
      '{"metadata":{"name":"client-3"},"spec":{"replicas":1,"replicas":2,"selector":{"matchLabels":{"app":"x"}},"template":{"metadata":{"labels":{"app":"x"}},"spec":{"containers":[{"name":"c","image":"i","image":"i"}]}}}}',
    ),
  ),
  row('duplicates: custom, strictly', post(`${WIDGETS}${STRICT}`, twice('client-4', '{"size":1,"unknown":1,"size":2,"unknown":2}'))),
  row(
    'duplicates: in a merge patch',
    post(MAPS, { metadata: { name: 'client-5' } }),
    patch(`${MAPS}/client-5${STRICT}`, '{"more":1,"data":{"a":"1","a":"2"}}'),
  ),
  row(
    'duplicates: in a JSON patch',
    post(MAPS, { metadata: { name: 'client-6' } }),
    patch(`${MAPS}/client-6${STRICT}`, '[{"op":"add","op":"add","path":"/data","value":{"a":"1"}}]', 'json'),
  ),
  row(
    'duplicates: applied',
    patch(
      `${MAPS}/client-7${STRICT}&fieldManager=me`,
      'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: client-7\ndata:\n  a: "1"\n  a: "2"\n  b: "1"\n  b: "1"\n',
      'apply',
    ),
  ),
  row(
    'status: metadata of a namespace',
    post('/api/v1/namespaces', { metadata: { name: '{ns}-s' } }),
    patch('/api/v1/namespaces/{ns}-s/status', { metadata: { labels: { l: '1' }, annotations: { a: '1' } }, status: {} }),
    put('/api/v1/namespaces/{ns}-s/status', { metadata: { name: '{ns}-s', annotations: { a: '2' } }, status: { phase: 'Active' } }),
  ),
  byStatus('a service', `${CORE}/services`, { metadata: { name: 'client-s' }, spec: { ports: [{ port: 80 }] } }, {}),
  byStatus(
    'a pod',
    `${CORE}/pods`,
    {
      metadata: { name: 'client-s' },
      spec: { schedulerName: 'nobody', automountServiceAccountToken: false, containers: [{ name: 'c', image: 'i' }] },
    },
    {},
  ),
  byStatus('a deployment', DEPLOYMENTS, { ...workload('client-s'), metadata: { name: 'client-s', annotations: { z: '1' } } }, {}),
  byStatus('a replica set', SETS, workload('client-s'), {}),
  byStatus('a stateful set', STATEFUL, workload('client-s'), {}),
  byStatus('a replication controller', CONTROLLERS, controller('client-s'), {}),
  byStatus(
    'a custom object',
    WIDGETS,
    { apiVersion: 'parity.example.com/v1', kind: 'Widget', metadata: { name: 'client-s' }, spec: { size: 1 } },
    {},
  ),
  row('pod template', post(TEMPLATES, { metadata: { name: 't1' }, template: template() }), get(`${TEMPLATES}/t1`), del(`${TEMPLATES}/t1`)),
  row(
    'pod template: changes',
    post(TEMPLATES, { metadata: { name: 't2' }, template: template() }),
    patch(`${TEMPLATES}/t2`, { template: { spec: { containers: [{ name: 'c', image: 'i:2' }] } } }),
    patch(`${TEMPLATES}/t2`, { metadata: { labels: { a: 'b' } } }),
    get(`${TEMPLATES}?labelSelector=a%3Db`, TABLE),
  ),
  madeTemplate('empty', {}),
  madeTemplate('without containers', { template: { spec: {} } }),
  madeTemplate('of pods that end', { template: template({ restartPolicy: 'Never', activeDeadlineSeconds: 5 }) }),
  madeTemplate('with a bad image', { template: template({ containers: [{ name: 'C', image: '' }] }) }),
  row('pod template: a bad name', post(TEMPLATES, { metadata: { name: 'A_b' }, template: template() })),
  {
    ...row(
      'replication controller',
      post(CONTROLLERS, controller('r1')),
      patch(`${CONTROLLERS}/r1`, { spec: { minReadySeconds: 5 } }),
      get(`${CONTROLLERS}/r1/scale`),
      patch(`${CONTROLLERS}/r1/status`, { status: { replicas: 0, readyReplicas: -1 } }),
      put(`${CONTROLLERS}/r1/scale`, { metadata: { name: 'r1', namespace: '{ns}' }, spec: { replicas: 0 } }),
    ),
    controlled: true,
  },
  { ...row('replication controller: delete orphans', post(CONTROLLERS, controller('r2')), del(`${CONTROLLERS}/r2`)), controlled: true },
  {
    ...row(
      'replication controller: delete in the background',
      post(CONTROLLERS, controller('r3')),
      del(`${CONTROLLERS}/r3`, { propagationPolicy: 'Background' }),
    ),
    controlled: true,
  },
  madeController('of defaults', { replicas: 2 }),
  row(
    'replication controller: labels of the template',
    post(`${CONTROLLERS}?dryRun=All`, { metadata: { name: 'r' }, spec: { template: template() } }),
  ),
  madeController('without anything', { selector: {}, template: { spec: {} } }),
  row(
    'replication controller: without a template',
    post(`${CONTROLLERS}?dryRun=All`, { metadata: { name: 'r' }, spec: { selector: labels } }),
  ),
  madeController('of other pods', { selector: { app: 'y' } }),
  madeController('of pods that end', { template: template({ restartPolicy: 'Never', activeDeadlineSeconds: 5 }) }),
  madeController('with bad numbers', { replicas: -1, minReadySeconds: -1 }),
  row(
    'managed fields: an empty list',
    post(MAPS, { metadata: { name: 'client-m1' }, data: { a: '1' } }),
    patch(`${MAPS}/client-m1`, { metadata: { managedFields: [] } }),
    patch(`${MAPS}/client-m1`, [{ op: 'replace', path: '/metadata/managedFields', value: [] }], 'json'),
  ),
  row(
    'managed fields: an empty entry',
    post(MAPS, { metadata: { name: 'client-m2' }, data: { a: '1' } }),
    patch(`${MAPS}/client-m2`, { metadata: { managedFields: [{}] } }),
    patch(`${MAPS}/client-m2`, { data: { b: '2' } }),
  ),
  row(
    'managed fields: put with an empty list',
    post(MAPS, { metadata: { name: 'client-m3' }, data: { a: '1' } }),
    put(`${MAPS}/client-m3`, { metadata: { name: 'client-m3', managedFields: [] }, data: { b: '1' } }),
    put(`${MAPS}/client-m3`, { metadata: { name: 'client-m3', managedFields: [{}] }, data: { c: '1' } }),
  ),
  row('owners: the same one twice', post(MAPS, { metadata: { name: 'client-o1', ownerReferences: [OWNER, OWNER] } })),
  row(
    'owners: the same one, told differently',
    post(MAPS, { metadata: { name: 'client-o2', ownerReferences: [OWNER, { ...OWNER, controller: true }, { ...OWNER, name: 'other' }] } }),
  ),
  row(
    'owners: twice in a put',
    post(MAPS, { metadata: { name: 'client-o3' } }),
    put(`${MAPS}/client-o3`, { metadata: { name: 'client-o3', ownerReferences: [OWNER, OWNER] } }),
  ),
  row(
    'owners: twice in a patch',
    post(MAPS, { metadata: { name: 'client-o4' } }),
    patch(`${MAPS}/client-o4`, { metadata: { ownerReferences: [OWNER, OWNER] } }),
  ),
  row(
    'owners: twice in a custom object',
    post(WIDGETS, {
      apiVersion: 'parity.example.com/v1',
      kind: 'Widget',
      metadata: { name: 'client-o5', ownerReferences: [OWNER, OWNER] },
      spec: { size: 1 },
    }),
  ),
  row(
    'numbers: custom',
    post(`${WIDGETS}?dryRun=All`, twice('client-n3', '{"size":1.0}')),
    post(`${WIDGETS}?dryRun=All`, twice('client-n4', '{"size":1e0}')),
    post(`${WIDGETS}?dryRun=All`, twice('client-n5', '{"size":1.5}')),
  ),
  row(
    'watch by path',
    post(MAPS, { metadata: { name: 'client-w1', labels: { watched: '{ns}' } } }),
    get('/api/v1/watch/namespaces/{ns}/configmaps?timeoutSeconds=1&labelSelector=watched%3D{ns}'),
    get('/api/v1/watch/namespaces/{ns}/configmaps/client-w1?timeoutSeconds=1'),
    get('/api/v1/watch/configmaps?timeoutSeconds=1&labelSelector=watched%3D{ns}'),
  ),
  row(
    'watch by path: other methods',
    post('/api/v1/watch/namespaces/{ns}/configmaps', { metadata: { name: 'x' } }),
    del('/api/v1/watch/namespaces/{ns}/configmaps/x'),
  ),
  row(
    'watch by path: custom',
    get('/apis/parity.example.com/v1/watch/namespaces/{ns}/widgets?timeoutSeconds=1&labelSelector=watched%3D{ns}'),
  ),
]
