import { configMaps, type KubeObject, type Namespace, namespaces, pods, type ResourceType, type StatusCondition, secrets } from '@thv/kube'
import type { Json, JsonObject, Scenario, ScenarioSet, Step } from '../scenarios/scenario.ts'

const tenants: ResourceType = { group: 'emptying.example.com', version: 'v1', kind: 'Tenant', plural: 'tenants', namespaced: true }
const HOLD = ['example.com/hold']
const look: Step = { do: 'look' }
const go: Step = { do: 'delete', of: { kind: 'Namespace', name: '{ns}' } }

function create(kind: string, name: string, more: { apiVersion?: string; finalizers?: readonly string[]; spec?: JsonObject } = {}): Step {
  const { apiVersion = 'v1', finalizers, spec } = more
  const metadata = { name, ...(finalizers === undefined ? {} : { finalizers }) }
  return { do: 'create', object: { apiVersion, kind, metadata, ...(spec === undefined ? {} : { spec }) } }
}

function release(kind: string, name: string): Step {
  return { do: 'patch', of: { kind, name }, body: { metadata: { finalizers: null } } }
}

const POD = { nodeName: 'emptying-node', automountServiceAccountToken: false, containers: [{ name: 'main', image: 'example.com/none:1' }] }

const scenarios: readonly Scenario[] = [
  { name: 'goes with what is in it', steps: [create('ConfigMap', 'a'), create('Secret', 'b'), go, look] },
  {
    name: 'waits for content that finalizers hold, and says so',
    steps: [
      create('ConfigMap', 'a', { finalizers: HOLD }),
      create('ConfigMap', 'b', { finalizers: [...HOLD, 'example.com/second'] }),
      create('Secret', 'c', { finalizers: HOLD }),
      create('Secret', 'free'),
      go,
      look,
      release('ConfigMap', 'a'),
      look,
      release('ConfigMap', 'b'),
      release('Secret', 'c'),
      look,
    ],
  },
  {
    name: 'custom objects are content too',
    steps: [
      create('Tenant', 'a', { apiVersion: 'emptying.example.com/v1', finalizers: HOLD }),
      create('Tenant', 'b', { apiVersion: 'emptying.example.com/v1' }),
      go,
      look,
      release('Tenant', 'a'),
      look,
    ],
  },
  {
    name: 'pods go first, the rest waits for them',
    steps: [
      create('ConfigMap', 'a'),
      create('Pod', 'p', { spec: POD }),
      go,
      look,
      { do: 'delete', of: { kind: 'Pod', name: 'p' }, graceSeconds: 0 },
      look,
    ],
  },
  {
    name: 'a finalizer of the namespace itself outlives the content',
    steps: [
      { do: 'patch', of: { kind: 'Namespace', name: '{ns}' }, body: { metadata: { finalizers: HOLD } } },
      create('ConfigMap', 'a'),
      go,
      look,
      release('Namespace', '{ns}'),
      look,
    ],
  },
]

function view(object: KubeObject): Json | undefined {
  const { name, deletionTimestamp, finalizers = [] } = object.metadata
  if (name === 'kube-root-ca.crt') return undefined
  const isBeingDeleted = deletionTimestamp !== undefined
  if (object.kind !== 'Namespace') return { kind: object.kind ?? '', name, isBeingDeleted, finalizers }
  const { status, spec } = object as Namespace & { spec?: { finalizers?: string[] } }
  const conditions = ((status?.['conditions'] ?? []) as StatusCondition[]).map(({ lastTransitionTime: _, ...rest }) => rest)
  return {
    kind: 'Namespace',
    name,
    isBeingDeleted,
    finalizers,
    phase: status?.phase ?? '',
    own: spec?.finalizers ?? [],
    conditions: conditions as unknown as Json,
  }
}

export const namespaceScenarios: ScenarioSet = {
  scenarios,
  types: [namespaces, configMaps, secrets, pods, tenants],
  definitions: [
    {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'tenants.emptying.example.com' },
      spec: {
        group: 'emptying.example.com',
        scope: 'Namespaced',
        names: { kind: 'Tenant', plural: 'tenants' },
        versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
      },
    },
  ],
  // It waits 5 s before the first look and half of a finalizer's 15 s between two.
  restMs: 12_000,
  view,
}
