import type { JsonObject } from '../../kind-schema.ts'

/** One request of a sequence on one object. */
export interface Step {
  readonly verb: 'create' | 'update' | 'apply' | 'merge' | 'strategic' | 'json'
  readonly manager: string
  readonly body: JsonObject | readonly JsonObject[]
  readonly force?: boolean
  readonly subresource?: 'status'
}

export interface Scenario {
  readonly name: string
  readonly apiVersion: string
  readonly kind: string
  readonly plural: string
  readonly steps: readonly Step[]
}

const apply = (manager: string, body: JsonObject, force = false): Step => ({ verb: 'apply', manager, body, force })
const create = (manager: string, body: JsonObject): Step => ({ verb: 'create', manager, body })
const patch = (verb: 'merge' | 'strategic' | 'json', manager: string, body: Step['body']): Step => ({ verb, manager, body })

const configMaps: Omit<Scenario, 'name' | 'steps'> = { apiVersion: 'v1', kind: 'ConfigMap', plural: 'configmaps' }
const deployments: Omit<Scenario, 'name' | 'steps'> = { apiVersion: 'apps/v1', kind: 'Deployment', plural: 'deployments' }
const services: Omit<Scenario, 'name' | 'steps'> = { apiVersion: 'v1', kind: 'Service', plural: 'services' }
const widgets: Omit<Scenario, 'name' | 'steps'> = { apiVersion: 'apply.example.com/v1', kind: 'Widget', plural: 'widgets' }

const container = (name: string, more: JsonObject = {}): JsonObject => ({ name, image: 'example.com/x:1', ...more })
const deployment = (containers: readonly JsonObject[], more: JsonObject = {}): JsonObject => ({
  spec: {
    replicas: 0,
    selector: { matchLabels: { app: 'x' } },
    template: { metadata: { labels: { app: 'x' } }, spec: { containers } },
    ...more,
  },
})

/** The CRD behind `widgets`. */
export const WIDGET_CRD: JsonObject = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.apply.example.com' },
  spec: {
    group: 'apply.example.com',
    scope: 'Namespaced',
    names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                properties: {
                  size: { type: 'integer' },
                  colour: { type: 'string', default: 'red' },
                  ports: {
                    type: 'array',
                    'x-kubernetes-list-type': 'map',
                    'x-kubernetes-list-map-keys': ['port', 'protocol'],
                    items: {
                      type: 'object',
                      required: ['port'],
                      properties: { port: { type: 'integer' }, protocol: { type: 'string', default: 'TCP' }, name: { type: 'string' } },
                    },
                  },
                  tags: { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set' },
                  plain: { type: 'array', items: { type: 'string' } },
                  whole: {
                    type: 'object',
                    'x-kubernetes-map-type': 'atomic',
                    properties: { a: { type: 'string' }, b: { type: 'string' } },
                  },
                  free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
                  labels: { type: 'object', additionalProperties: { type: 'string' } },
                },
              },
              status: { type: 'object', properties: { ready: { type: 'boolean' }, note: { type: 'string' } } },
            },
          },
        },
      },
    ],
  },
}

export const SCENARIOS: readonly Scenario[] = [
  {
    ...configMaps,
    name: 'two appliers of a ConfigMap',
    steps: [
      apply('a', { data: { one: '1', two: '2' }, metadata: { labels: { x: 'y' } } }),
      apply('b', { data: { three: '3' } }),
      apply('b', { data: { three: '3', one: 'other' } }),
      apply('b', { data: { three: '3', one: '1' } }),
      apply('b', { data: { three: '3', one: 'taken', two: 'taken' } }),
      apply('b', { data: { three: '3', one: 'taken' } }, true),
      apply('a', { data: { two: '2' } }),
      apply('a', {}),
      apply('a', {}),
      apply('a', { nonsense: 1 }),
    ],
  },
  {
    ...configMaps,
    name: 'updates between applies',
    steps: [
      create('creator', {
        data: { one: '1', two: '2' },
        metadata: { labels: { app: 'x' }, annotations: { note: 'n' }, finalizers: ['example.com/f'] },
      }),
      patch('merge', 'patcher', { data: { two: 'changed', new: 'n' } }),
      apply('a', { data: { two: 'changed' } }),
      apply('a', { data: { one: 'mine' } }),
      apply('a', { data: { one: 'mine' } }, true),
      patch('json', 'json-patcher', [
        { op: 'test', path: '/data/new', value: 'n' },
        { op: 'remove', path: '/data/new' },
        { op: 'add', path: '/data/added', value: 'z' },
      ]),
      patch('strategic', 'strategist', { data: { added: null }, metadata: { labels: { app: null, tier: 't' } } }),
      apply('a', { metadata: { finalizers: ['example.com/f', 'example.com/g'] } }),
      apply('a', { data: { one: 'mine' } }),
    ],
  },
  {
    ...configMaps,
    name: 'patches that are refused',
    steps: [
      create('creator', { data: { one: '1' } }),
      patch('json', 'p', [{ op: 'test', path: '/data/one', value: '2' }]),
      patch('json', 'p', [{ op: 'remove', path: '/data/nothing' }]),
      patch('json', 'p', [{ op: 'replace', path: '/data/nothing', value: 'x' }]),
      patch('json', 'p', [{ op: 'add', path: '/nothing/here', value: 'x' }]),
      patch('json', 'p', [{ op: 'nonsense', path: '/data' }]),
      patch('strategic', 'p', { data: { $patch: 'nonsense' } }),
      patch('strategic', 'p', { data: { $patch: 'replace', only: 'this' } }),
      patch('json', 'p', [
        { op: 'copy', from: '/data/only', path: '/data/again' },
        { op: 'move', from: '/data/only', path: '/data/moved' },
      ]),
    ],
  },
  {
    ...deployments,
    name: 'containers of a Deployment',
    steps: [
      apply('a', deployment([container('main', { env: [{ name: 'A', value: '1' }], ports: [{ containerPort: 80 }] })])),
      apply('b', deployment([container('side')])),
      apply('b', { spec: { template: { spec: { containers: [{ name: 'main', image: 'example.com/other:2' }] } } } }),
      apply('b', { spec: { template: { spec: { containers: [{ name: 'main', env: [{ name: 'B', value: '2' }] }] } } } }),
      apply('a', deployment([container('main', { ports: [{ containerPort: 80 }, { containerPort: 81, protocol: 'UDP' }] })])),
      apply('a', deployment([container('main', { args: ['x', 'y'] })], { replicas: 0 })),
    ],
  },
  {
    ...deployments,
    name: 'strategic merge of a Deployment',
    steps: [
      create(
        'creator',
        deployment([
          container('one', {
            env: [
              { name: 'A', value: '1' },
              { name: 'B', value: '2' },
            ],
          }),
          container('two'),
        ]),
      ),
      patch('strategic', 's', {
        spec: { template: { spec: { containers: [{ name: 'two', image: 'example.com/x:2' }, container('three')] } } },
      }),
      patch('strategic', 's', { spec: { template: { spec: { containers: [{ name: 'one', env: [{ name: 'A', $patch: 'delete' }] }] } } } }),
      patch('strategic', 's', {
        spec: {
          template: {
            spec: {
              $setElementOrder: [],
              '$setElementOrder/containers': [{ name: 'three' }, { name: 'one' }, { name: 'two' }],
              containers: [{ name: 'three', image: 'example.com/x:3' }],
            },
          },
        },
      }),
      patch('strategic', 's', {
        spec: {
          template: {
            spec: {
              '$setElementOrder/containers': [{ name: 'two' }, { name: 'three' }, { name: 'one' }],
              containers: [{ name: 'two', image: 'example.com/x:9' }],
            },
          },
        },
      }),
      patch('strategic', 's', { spec: { strategy: { $retainKeys: ['type'], type: 'Recreate' } } }),
      patch('strategic', 's', { spec: { template: { spec: { containers: [{ image: 'nameless' }] } } } }),
      patch('strategic', 's', { spec: { template: { spec: { containers: [container('only'), { $patch: 'replace' }] } } } }),
    ],
  },
  {
    ...services,
    name: 'ports of a Service',
    steps: [
      apply('a', { spec: { selector: { app: 'x' }, ports: [{ name: 'http', port: 80 }] } }),
      apply('b', { spec: { ports: [{ name: 'https', port: 443 }] } }),
      apply('b', { spec: { ports: [{ name: 'other', port: 80, protocol: 'TCP' }] } }),
      apply('a', { spec: { selector: { app: 'y' }, ports: [{ name: 'http', port: 80, targetPort: 8080 }] } }),
      patch('strategic', 's', { spec: { ports: [{ port: 443, targetPort: 8443 }] } }),
    ],
  },
  {
    ...widgets,
    name: 'a custom resource',
    steps: [
      apply('a', {
        spec: {
          size: 1,
          ports: [{ port: 80 }, { port: 81, name: 'b' }],
          tags: ['x', 'y'],
          plain: ['p'],
          whole: { a: '1' },
          free: { deep: { er: 1 } },
          labels: { k: 'v' },
        },
      }),
      apply('b', {
        spec: { size: 2, tags: ['z'], ports: [{ port: 80, protocol: 'UDP' }], whole: { b: '2' }, free: { other: [1] }, plain: ['q'] },
      }),
      apply('b', { spec: { tags: ['z', 'x'], ports: [{ port: 80, protocol: 'UDP' }], free: { other: [1] }, labels: { k2: 'v2' } } }),
      apply('b', { spec: { whole: { b: '2' } } }, true),
      apply('a', { spec: { size: 1, ports: [{ port: 81, name: 'c' }], tags: ['y', 'x'], free: { deep: {} } } }),
      patch('merge', 'm', { spec: { ports: [{ port: 90 }], labels: { k: null } } }),
      { verb: 'merge', manager: 'controller', subresource: 'status', body: { status: { ready: true } } },
      { verb: 'apply', manager: 'controller', subresource: 'status', body: { status: { ready: true, note: 'n' } } },
      apply('a', { spec: { size: 1 } }),
    ],
  },
  {
    ...widgets,
    name: 'creates and updates of a custom resource',
    steps: [
      create('creator', { spec: { size: 1, ports: [{ port: 80 }], tags: ['x'], labels: { k: 'v' }, whole: { a: '1' } } }),
      patch('merge', 'creator', { spec: { size: 2 } }),
      patch('merge', 'other', { spec: { ports: [{ port: 80, name: 'n' }, { port: 81 }], tags: ['x', 'y'] } }),
      patch('merge', 'other', { spec: { labels: {}, tags: [] } }),
      apply('creator', { spec: { size: 2 } }),
      apply('third', { spec: { size: 3, tags: ['x', 'x'] } }),
    ],
  },
]
