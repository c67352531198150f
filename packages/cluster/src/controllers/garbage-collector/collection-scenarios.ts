import { configMaps, customResourceDefinitions, events, type KubeEvent, type KubeObject, type ResourceType, secrets } from '@thv/kube'
import type { Json, JsonObject, Scenario, ScenarioSet, Step } from '../scenarios/scenario.ts'

const GROUP = 'collection.example.com'
const gadgets: ResourceType = { group: GROUP, version: 'v1', kind: 'Gadget', plural: 'gadgets', namespaced: true }
const platforms: ResourceType = { group: GROUP, version: 'v1', kind: 'Platform', plural: 'platforms', namespaced: false }
/** Its definition is deleted by a scenario. */
const fleetings: ResourceType = { group: GROUP, version: 'v1', kind: 'Fleeting', plural: 'fleetings', namespaced: true }

const VERSIONS: Readonly<Record<string, string>> = {
  ConfigMap: 'v1',
  Secret: 'v1',
  Gadget: `${GROUP}/v1`,
  Platform: `${GROUP}/v1`,
  Fleeting: `${GROUP}/v1`,
}
const HOLD = 'example.com/hold'

interface OwnerInput {
  readonly block?: boolean
  readonly uid?: string
  readonly name?: string
  readonly kind?: string
  readonly apiVersion?: string
}

/** `ConfigMap/a`; further members replace what follows from it. */
function owner(of: string, { block, ...given }: OwnerInput = {}): JsonObject {
  const [kind = '', name = ''] = of.replace(/#.*/, '').split('/')
  const reference = { apiVersion: VERSIONS[kind] ?? 'v1', kind, name, uid: `{uid:${of}}` }
  return { ...reference, ...given, ...(block === undefined ? {} : { blockOwnerDeletion: block }) }
}

function create(of: string, more: { owners?: Json; hold?: boolean; namespace?: string } = {}): Step {
  const [kind = '', name = ''] = of.split('/')
  const metadata = {
    name,
    ...(more.owners === undefined ? {} : { ownerReferences: more.owners }),
    ...(more.hold ? { finalizers: [HOLD] } : {}),
    ...(more.namespace === undefined ? {} : { namespace: more.namespace }),
  }
  return { do: 'create', object: { apiVersion: VERSIONS[kind] ?? 'v1', kind, metadata } }
}

function remove(of: string, policy: 'Foreground' | 'Background' | 'Orphan' = 'Background', namespace = '{ns}'): Step {
  const [kind = '', name = ''] = of.split('/')
  return { do: 'delete', of: { kind, name, namespace }, policy }
}

function change(of: string, metadata: JsonObject): Step {
  const [kind = '', name = ''] = of.split('/')
  return { do: 'patch', of: { kind, name }, body: { metadata } }
}

function release(of: string): Step {
  return change(of, { finalizers: null })
}

const look: Step = { do: 'look' }

function definition(type: ResourceType): JsonObject {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${type.plural}.${type.group}` },
    spec: {
      group: type.group,
      scope: type.namespaced ? 'Namespaced' : 'Cluster',
      names: { kind: type.kind, plural: type.plural },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
    },
  }
}

const scenarios: readonly Scenario[] = [
  {
    name: 'a dependent goes with its owner, others stay',
    steps: [
      create('ConfigMap/a'),
      create('ConfigMap/other'),
      create('Secret/b', { owners: [owner('ConfigMap/a')] }),
      create('Secret/c', { owners: [owner('ConfigMap/other')] }),
      look,
      remove('ConfigMap/a'),
      look,
    ],
  },
  {
    name: 'a chain of three goes link by link',
    steps: [
      create('ConfigMap/a'),
      create('Secret/b', { owners: [owner('ConfigMap/a')] }),
      create('ConfigMap/c', { owners: [owner('Secret/b')] }),
      remove('ConfigMap/a'),
      look,
    ],
  },
  {
    name: 'two owners, one gone: the reference to it goes',
    steps: [
      create('ConfigMap/a'),
      create('ConfigMap/b'),
      create('Secret/c', { owners: [owner('ConfigMap/a'), owner('ConfigMap/b', { block: true })] }),
      remove('ConfigMap/a'),
      look,
      remove('ConfigMap/b'),
      look,
    ],
  },
  {
    name: 'foreground: the owner waits for a dependent that a finalizer holds',
    steps: [
      create('ConfigMap/a'),
      create('Secret/b', { owners: [owner('ConfigMap/a', { block: true })], hold: true }),
      look,
      remove('ConfigMap/a', 'Foreground'),
      look,
      release('Secret/b'),
      look,
    ],
  },
  {
    name: 'foreground: the owner does not wait for one that does not block',
    steps: [
      create('ConfigMap/a'),
      create('Secret/b', { owners: [owner('ConfigMap/a', { block: false })], hold: true }),
      look,
      remove('ConfigMap/a', 'Foreground'),
      look,
    ],
  },
  {
    name: 'foreground goes down: a dependent with dependents waits for them too',
    steps: [
      create('ConfigMap/a'),
      create('Secret/b', { owners: [owner('ConfigMap/a', { block: true })] }),
      create('ConfigMap/c', { owners: [owner('Secret/b', { block: true })], hold: true }),
      look,
      remove('ConfigMap/a', 'Foreground'),
      look,
      release('ConfigMap/c'),
      look,
    ],
  },
  {
    name: 'foreground: a dependent that lets go of its owner unblocks it',
    steps: [
      create('ConfigMap/a'),
      create('Secret/b', { owners: [owner('ConfigMap/a', { block: true })], hold: true }),
      look,
      remove('ConfigMap/a', 'Foreground'),
      look,
      change('Secret/b', { ownerReferences: null }),
      look,
    ],
  },
  {
    name: 'foreground: a dependent with another owner stays, without the one that goes',
    steps: [
      create('ConfigMap/a'),
      create('ConfigMap/b'),
      create('Secret/c', { owners: [owner('ConfigMap/a', { block: true }), owner('ConfigMap/b')] }),
      look,
      remove('ConfigMap/a', 'Foreground'),
      look,
    ],
  },
  {
    name: 'orphan: dependents stay, without the owner',
    steps: [
      create('ConfigMap/a'),
      create('ConfigMap/z'),
      create('Secret/b', { owners: [owner('ConfigMap/a', { block: true })] }),
      create('Secret/c', { owners: [owner('ConfigMap/a'), owner('ConfigMap/z')] }),
      create('ConfigMap/d', { owners: [owner('Secret/b')] }),
      look,
      remove('ConfigMap/a', 'Orphan'),
      look,
    ],
  },
  {
    name: 'a circle of two goes',
    steps: [
      create('ConfigMap/a'),
      create('ConfigMap/b', { owners: [owner('ConfigMap/a')] }),
      change('ConfigMap/a', { ownerReferences: [owner('ConfigMap/b')] }),
      look,
      remove('ConfigMap/a'),
      look,
    ],
  },
  {
    name: 'a circle of three that blocks goes in the foreground',
    steps: [
      create('ConfigMap/a'),
      create('ConfigMap/b', { owners: [owner('ConfigMap/a', { block: true })] }),
      create('ConfigMap/c', { owners: [owner('ConfigMap/b', { block: true })] }),
      change('ConfigMap/a', { ownerReferences: [owner('ConfigMap/c', { block: true })] }),
      look,
      remove('ConfigMap/a', 'Foreground'),
      look,
    ],
  },
  {
    name: 'an object that owns itself stays until it is deleted',
    steps: [
      create('ConfigMap/a'),
      change('ConfigMap/a', { ownerReferences: [owner('ConfigMap/a', { block: true })] }),
      look,
      remove('ConfigMap/a', 'Foreground'),
      look,
    ],
  },
  {
    name: 'an owner that never was',
    steps: [
      create('Secret/b', { owners: [owner('ConfigMap/a', { uid: '11111111-2222-3333-4444-555555555555' })] }),
      create('Secret/c', { owners: [owner('ConfigMap/a', { uid: 'no/uid at all' })] }),
      create('Secret/d', { owners: [owner('Platform/a', { uid: 'two places' })] }),
      create('Secret/e', { owners: [owner('Platform/a', { uid: 'two places' })], namespace: '{ns2}' }),
      look,
    ],
  },
  {
    name: 'an owner that was made again under its name is another one',
    steps: [
      create('ConfigMap/a', { hold: true }),
      create('Secret/old', { owners: [owner('ConfigMap/a')] }),
      remove('ConfigMap/a'),
      look,
      release('ConfigMap/a'),
      create('ConfigMap/a'),
      create('Secret/new', { owners: [owner('ConfigMap/a#2')] }),
      look,
    ],
  },
  {
    name: 'an owner that is named wrongly is none',
    steps: [
      create('ConfigMap/a'),
      create('Secret/name', { owners: [owner('ConfigMap/a', { name: 'b' })] }),
      create('Secret/kind', { owners: [owner('ConfigMap/a', { kind: 'Secret' })] }),
      create('Secret/right', { owners: [owner('ConfigMap/a')] }),
      look,
    ],
  },
  {
    name: 'an owner in another namespace is none, and an Event says so',
    steps: [
      create('ConfigMap/a', { namespace: '{ns2}' }),
      look,
      create('Secret/b', { owners: [owner('ConfigMap/a')] }),
      create('Secret/c', { owners: [owner('ConfigMap/a')], namespace: '{ns2}' }),
      look,
    ],
  },
  {
    name: 'an owner of a kind that nobody serves keeps its dependent',
    steps: [
      create('Secret/b', {
        owners: [{ apiVersion: 'nobody.example.com/v1', kind: 'Nothing', name: 'a', uid: '11111111-2222-3333-4444-666666666666' }],
      }),
      look,
    ],
  },
  {
    name: 'custom kinds own and are owned',
    steps: [
      create('Gadget/a'),
      create('Gadget/b', { owners: [owner('Gadget/a', { block: true })], hold: true }),
      create('Secret/c', { owners: [owner('Gadget/b')] }),
      look,
      remove('Gadget/a', 'Foreground'),
      look,
      release('Gadget/b'),
      look,
    ],
  },
  {
    name: 'an owner without a namespace owns in every namespace',
    steps: [
      create('Platform/{ns}-a'),
      create('Secret/b', { owners: [owner('Platform/{ns}-a')] }),
      create('Secret/c', { owners: [owner('Platform/{ns}-a')], namespace: '{ns2}' }),
      look,
      remove('Platform/{ns}-a'),
      look,
    ],
  },
  {
    name: 'an object without a namespace cannot have an owner with one, and stays',
    steps: [
      create('ConfigMap/a'),
      create('Platform/{ns}-b', { owners: [owner('ConfigMap/a')] }),
      look,
      remove('ConfigMap/a'),
      look,
      release('Platform/{ns}-b'),
      remove('Platform/{ns}-b'),
    ],
  },
  {
    name: 'dependents of objects whose definition is deleted',
    steps: [
      create('Fleeting/a'),
      create('Secret/b', { owners: [owner('Fleeting/a')] }),
      look,
      { do: 'delete', of: { kind: 'CustomResourceDefinition', name: `${fleetings.plural}.${GROUP}` } },
      look,
    ],
  },
  {
    name: 'a dependent that a finalizer holds waits alone',
    steps: [
      create('ConfigMap/a'),
      create('Secret/b', { owners: [owner('ConfigMap/a', { block: true })], hold: true }),
      remove('ConfigMap/a'),
      look,
      release('Secret/b'),
      look,
    ],
  },
  {
    name: 'an owner that a finalizer holds keeps its dependents until it is gone',
    steps: [
      create('ConfigMap/a', { hold: true }),
      create('Secret/b', { owners: [owner('ConfigMap/a')] }),
      remove('ConfigMap/a'),
      look,
      release('ConfigMap/a'),
      look,
    ],
  },
  {
    name: 'an object that gets an owner later, when that owner is gone already',
    steps: [
      create('ConfigMap/a'),
      create('Secret/b'),
      remove('ConfigMap/a'),
      look,
      change('Secret/b', { ownerReferences: [owner('ConfigMap/a')] }),
      look,
    ],
  },
]

function view(object: KubeObject): Json | undefined {
  const { name, namespace = '', ownerReferences = [], finalizers = [], deletionTimestamp } = object.metadata
  if (name === 'kube-root-ca.crt') return undefined
  if (object.kind === 'Event') {
    const { reason = '', note = '', type = '', regarding } = object as KubeEvent
    if (reason !== 'OwnerRefInvalidNamespace') return undefined
    return { event: reason, type, note, about: `${regarding?.kind}/${regarding?.name}` }
  }
  return {
    kind: object.kind ?? '',
    name,
    namespace,
    owners: ownerReferences.map(({ uid, blockOwnerDeletion = false }) => `${uid}${blockOwnerDeletion ? ' blocks' : ''}`),
    finalizers,
    isBeingDeleted: deletionTimestamp !== undefined,
  }
}

export const collectionScenarios: ScenarioSet = {
  scenarios,
  types: [configMaps, secrets, gadgets, platforms, fleetings, customResourceDefinitions, events],
  definitions: [definition(gadgets), definition(platforms), definition(fleetings)],
  view,
}
