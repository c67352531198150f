import { type EndpointSlice, endpointSlices, type KubeObject, pods, services } from '@thv/kube'
import type { Json, JsonObject, Scenario, ScenarioSet, Step } from '../scenarios/scenario.ts'

const look: Step = { do: 'look' }
const NODE = 'slices-node'

function service(spec: JsonObject, metadata: JsonObject = {}): Step {
  const ports = [{ port: 80, targetPort: 8080 }]
  return { do: 'create', object: { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web', ...metadata }, spec: { ports, ...spec } } }
}

const SELECTOR = { selector: { app: 'web' } }

function pod(name: string, more: { labels?: JsonObject; spec?: JsonObject; ports?: Json } = {}): Step {
  const container = { name: 'main', image: 'example.com/none:1', ...(more.ports === undefined ? {} : { ports: more.ports }) }
  const spec = { nodeName: NODE, automountServiceAccountToken: false, containers: [container], ...more.spec }
  return { do: 'create', object: { apiVersion: 'v1', kind: 'Pod', metadata: { name, labels: more.labels ?? { app: 'web' } }, spec } }
}

/** Status as a node would write it. */
function runs(name: string, ip: string, more: { ready?: boolean; phase?: string } = {}): Step {
  const conditions = [{ type: 'Ready', status: more.ready === false ? 'False' : 'True' }]
  const status = { phase: more.phase ?? 'Running', podIP: ip, podIPs: [{ ip }], hostIP: '127.0.0.1', conditions }
  return { do: 'patch', of: { kind: 'Pod', name }, body: { status }, subresource: 'status' }
}

function patchService(body: JsonObject): Step {
  return { do: 'patch', of: { kind: 'Service', name: 'web' }, body }
}

function remove(name: string, graceSeconds = 0): Step {
  return { do: 'delete', of: { kind: 'Pod', name }, graceSeconds }
}

const scenarios: readonly Scenario[] = [
  { name: 'a Service without pods has an empty slice', steps: [service(SELECTOR), look] },
  {
    name: 'a pod that is ready, and then not, and then again',
    steps: [
      service(SELECTOR),
      pod('a'),
      look,
      runs('a', '10.9.0.1'),
      look,
      runs('a', '10.9.0.1', { ready: false }),
      look,
      runs('a', '10.9.0.1'),
      look,
    ],
  },
  {
    name: 'pods that are there before their Service',
    steps: [pod('a'), runs('a', '10.9.0.1'), pod('b'), runs('b', '10.9.0.2', { ready: false }), service(SELECTOR), look],
  },
  {
    name: 'addresses that are published before they are ready',
    steps: [
      service({ ...SELECTOR, publishNotReadyAddresses: true }),
      pod('a'),
      runs('a', '10.9.0.1', { ready: false }),
      look,
      remove('a', 60),
      look,
    ],
  },
  {
    name: 'a pod that ends serves until it is gone',
    steps: [service(SELECTOR), pod('a'), runs('a', '10.9.0.1'), look, remove('a', 60), look, remove('a'), look],
  },
  {
    name: 'a pod that has failed or succeeded is no endpoint',
    steps: [
      service(SELECTOR),
      pod('a'),
      pod('b'),
      pod('c'),
      runs('a', '10.9.0.1', { phase: 'Failed', ready: false }),
      runs('b', '10.9.0.2', { phase: 'Succeeded', ready: false }),
      runs('c', '10.9.0.3'),
      look,
    ],
  },
  {
    name: 'headless',
    steps: [service({ ...SELECTOR, clusterIP: 'None' }), pod('a'), runs('a', '10.9.0.1'), look],
  },
  {
    name: 'headless without ports',
    steps: [service({ ...SELECTOR, clusterIP: 'None', ports: null }), pod('a'), runs('a', '10.9.0.1'), look],
  },
  {
    name: 'a named port that pods give different numbers',
    steps: [
      service({ ...SELECTOR, ports: [{ name: 'web', port: 80, targetPort: 'http' }] }),
      pod('a', { ports: [{ name: 'http', containerPort: 8080 }] }),
      pod('b', { ports: [{ name: 'http', containerPort: 9090 }] }),
      pod('c', { ports: [{ name: 'http', containerPort: 9090 }] }),
      pod('d', { ports: [{ name: 'other', containerPort: 9090 }] }),
      runs('a', '10.9.0.1'),
      runs('b', '10.9.0.2'),
      runs('c', '10.9.0.3'),
      runs('d', '10.9.0.4'),
      look,
      remove('a'),
      look,
    ],
  },
  {
    name: 'several ports, protocols and application protocols',
    steps: [
      service({
        ...SELECTOR,
        ports: [
          { name: 'web', port: 80, targetPort: 'http', appProtocol: 'kubernetes.io/h2c' },
          { name: 'dns', port: 53, protocol: 'UDP', targetPort: 'http' },
          { name: 'plain', port: 81 },
        ],
      }),
      pod('a', {
        ports: [
          { name: 'http', containerPort: 8080 },
          { name: 'dns', containerPort: 5353, protocol: 'UDP' },
        ],
      }),
      runs('a', '10.9.0.1'),
      look,
      patchService({ spec: { ports: [{ name: 'web', port: 80, targetPort: 8081 }] } }),
      look,
    ],
  },
  {
    name: 'labels of the Service are those of its slices',
    steps: [
      service(SELECTOR, { labels: { team: 'a', 'endpointslice.kubernetes.io/managed-by': 'me' } }),
      pod('a'),
      runs('a', '10.9.0.1'),
      look,
      patchService({ metadata: { labels: { team: null, tier: 'front' } } }),
      look,
    ],
  },
  {
    name: 'another selector, and other labels of a pod',
    steps: [
      service(SELECTOR),
      pod('a'),
      pod('b', { labels: { app: 'other' } }),
      runs('a', '10.9.0.1'),
      runs('b', '10.9.0.2'),
      look,
      patchService({ spec: { selector: { app: 'other' } } }),
      look,
      { do: 'patch', of: { kind: 'Pod', name: 'a' }, body: { metadata: { labels: { app: 'other' } } } },
      look,
    ],
  },
  {
    name: 'no selector, no slices',
    steps: [service({}), pod('a'), runs('a', '10.9.0.1'), look],
  },
  {
    name: 'an external name has no slices',
    steps: [service({ ...SELECTOR, type: 'ExternalName', externalName: 'example.com' }), pod('a'), runs('a', '10.9.0.1'), look],
  },
  {
    name: 'slices that others delete or change are put right',
    steps: [
      service(SELECTOR),
      pod('a'),
      runs('a', '10.9.0.1'),
      look,
      { do: 'deleteAll', kind: 'EndpointSlice' },
      look,
      { do: 'patchAll', kind: 'EndpointSlice', body: { endpoints: [], metadata: { labels: { strange: 'yes' } } } },
      look,
    ],
  },
  {
    name: 'slices go with their Service',
    steps: [service(SELECTOR), pod('a'), runs('a', '10.9.0.1'), look, { do: 'delete', of: { kind: 'Service', name: 'web' } }, look],
  },
  {
    name: 'a pod of a node that is not there is no endpoint, unless it is published anyhow',
    steps: [
      service(SELECTOR),
      service({ ...SELECTOR, publishNotReadyAddresses: true }, { name: 'all' }),
      pod('a', { spec: { nodeName: 'slices-no-such-node' } }),
      pod('b'),
      runs('a', '10.9.0.1'),
      runs('b', '10.9.0.2'),
      look,
    ],
  },
  {
    name: 'a host name in the domain of the Service',
    steps: [
      service({ ...SELECTOR, clusterIP: 'None' }),
      pod('a', { spec: { hostname: 'first', subdomain: 'web' } }),
      pod('b', { spec: { hostname: 'second', subdomain: 'elsewhere' } }),
      runs('a', '10.9.0.1'),
      runs('b', '10.9.0.2'),
      look,
    ],
  },
]

function view(object: KubeObject): Json | undefined {
  if (object.kind !== 'EndpointSlice') return undefined
  const { metadata, addressType, endpoints = [], ports = [] } = object as EndpointSlice
  const { labels = {}, generateName = '', ownerReferences = [] } = metadata
  const byName = (a: Json, b: Json) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)
  return {
    generateName,
    labels,
    owners: ownerReferences as unknown as Json,
    addressType,
    // The server writes null for none.
    endpoints: [...((endpoints ?? []) as unknown as Json[])].sort(byName),
    ports: [...((ports ?? []) as unknown as Json[])].sort(byName),
  }
}

export const sliceScenarios: ScenarioSet = { scenarios, types: [pods, services, endpointSlices], nodes: [NODE], view }
