import type { JsonObject } from '@thv/kube-schema/kind-schema'
import { del, get, type ParityRow, post, row, type Step } from './parity-row.ts'

const PODS = '/api/v1/namespaces/{ns}/pods'
const BINDINGS = '/api/v1/namespaces/{ns}/bindings'

/** One that no scheduler looks at. */
const pod = (name: string, metadata: JsonObject = {}): JsonObject => ({
  metadata: { name, ...metadata },
  spec: {
    schedulerName: 'nobody',
    automountServiceAccountToken: false,
    containers: [{ name: 'c', image: 'example.com/i:v1' }],
  },
})
const binding = (name: string, target: JsonObject = { kind: 'Node', name: 'no-such-node' }, metadata: JsonObject = {}): JsonObject => ({
  metadata: { name, ...metadata },
  target,
})
const bind = (name: string, body: JsonObject, query = ''): Step => post(`${PODS}/${name}/binding${query}`, body)
/** It runs on no node, so no node would ever report its end. */
const gone = (name: string): Step => del(`${PODS}/${name}`, { gracePeriodSeconds: 0 })

/** A pod is given to a node once. */
export const bindingRows: readonly ParityRow[] = [
  row('binding', post(PODS, pod('b1')), bind('b1', binding('b1')), get(`${PODS}/b1`), bind('b1', binding('b1')), gone('b1')),
  row(
    'binding: by its own path',
    post(PODS, pod('b2')),
    post(BINDINGS, { apiVersion: 'v1', kind: 'Binding', ...binding('b2', { name: 'no-such-node' }) }),
    get(`${PODS}/b2`),
    post(BINDINGS, binding('b2')),
    gone('b2'),
  ),
  row(
    'binding: with annotations and labels',
    post(PODS, pod('b3', { annotations: { a: 'b' }, labels: { a: 'b' } })),
    bind('b3', binding('b3', { name: 'no-such-node' }, { annotations: { a: 'c', d: 'e' }, labels: { l: 'm' } })),
    get(`${PODS}/b3`),
    gone('b3'),
  ),
  row('binding: of no pod', bind('missing', binding('missing')), post(BINDINGS, binding('missing'))),
  row('binding: of another pod', post(PODS, pod('b4')), bind('b4', binding('b5')), bind('b4', binding('')), gone('b4')),
  row(
    'binding: to nothing',
    post(PODS, pod('b6')),
    bind('b6', { metadata: { name: 'b6' } }),
    bind('b6', binding('b6', { kind: 'Node' })),
    gone('b6'),
  ),
  row('binding: to something else', post(PODS, pod('b7')), bind('b7', binding('b7', { kind: 'Pod', name: 'x' })), gone('b7')),
  row(
    'binding: of a pod of another uid or version',
    post(PODS, pod('b8')),
    bind('b8', binding('b8', { name: 'n' }, { uid: 'another' })),
    bind('b8', binding('b8', { name: 'n' }, { resourceVersion: '1' })),
    gone('b8'),
  ),
  row('binding: as a dry run', post(PODS, pod('b9')), bind('b9', binding('b9'), '?dryRun=All'), get(`${PODS}/b9`), gone('b9')),
  row(
    'binding: of a pod that is on its way out',
    post(PODS, pod('b10', { finalizers: ['example.com/hold'] })),
    gone('b10'),
    bind('b10', binding('b10')),
    { method: 'PATCH', path: `${PODS}/b10`, body: { metadata: { finalizers: null } }, type: 'application/merge-patch+json' },
  ),
  row(
    'binding: in a namespace of another name',
    post(PODS, pod('b11')),
    bind('b11', binding('b11', { name: 'n' }, { namespace: 'elsewhere' })),
    gone('b11'),
  ),
  row('binding: read', get(`${PODS}/b12/binding`), get(BINDINGS), post('/api/v1/bindings', binding('b12'))),
]
