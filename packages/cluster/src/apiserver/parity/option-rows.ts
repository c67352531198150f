import type { Json, JsonObject } from '@thv/kube-schema/kind-schema'
import { textAt } from '../objects/served-kind.ts'
import { del, get, type ParityRow, patch, post, put, row } from './parity-row.ts'

const MAPS = '/api/v1/namespaces/{ns}/configmaps'
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/{ns}/leases'
const ACCOUNTS = '/api/v1/namespaces/{ns}/serviceaccounts'
const PODS = '/api/v1/namespaces/{ns}/pods'
const EVENTS = '/apis/events.k8s.io/v1/namespaces/{ns}/events'
const WIDGETS = '/apis/parity.example.com/v1/namespaces/{ns}/widgets'
const DEPLOYMENTS = '/apis/apps/v1/namespaces/{ns}/deployments'

const map = (name: string, more: JsonObject = {}): JsonObject => ({ metadata: { name }, data: { a: '1' }, ...more })
const applied = (name: string, more: JsonObject = {}): JsonObject => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, ...more })
const widget = (name: string, spec: JsonObject): JsonObject => ({
  apiVersion: 'parity.example.com/v1',
  kind: 'Widget',
  metadata: { name },
  spec,
})
const as = (path: string, more = '') => `${path}?fieldManager=one${more}`
/** Nothing has that label. */
const list = (query: string) => get(`${MAPS}?labelSelector=nothing&${query}`)
const watch = (query: string) => list(`watch=true&timeoutSeconds=1&${query}`)
const partial = (form: string) => `application/json;as=${form};v=v1;g=meta.k8s.io`
const deletion = (name: string, title: string, options: Json) =>
  row(title, post(MAPS, map(name)), del(`${MAPS}/${name}`, options), get(`${MAPS}/${name}`))
const deletionBy = (name: string, query: string) =>
  row(`options: delete ?${query}`, post(MAPS, map(name)), del(`${MAPS}/${name}?${query}`), get(`${MAPS}/${name}`))
const owned = (name: string, owner: JsonObject) => post(`${MAPS}?dryRun=All`, { metadata: { name, ownerReferences: [owner] } })

/** Options beside an object, and members of it that may be absent or null. */
export const optionRows: readonly ParityRow[] = [
  row('options: list by a match without a version', list('resourceVersionMatch=Exact'), list('resourceVersionMatch=NotOlderThan')),
  row('options: list by an unknown match', list('resourceVersionMatch=Any&resourceVersion=0'), list('resourceVersionMatch=Any')),
  row('options: list of exactly any version', list('resourceVersionMatch=Exact&resourceVersion=0')),
  row('options: list by a match, continued', list('resourceVersionMatch=Exact&continue=x')),
  row('options: list with initial events', list('sendInitialEvents=true'), list('sendInitialEvents=false')),
  row('options: list with numbers that are none', ...['limit=x', 'limit=', 'limit=1.5', 'timeoutSeconds=x'].map(list)),
  row('options: list with a number that is too large', list('limit=99999999999999999999')),
  row(
    'options: flags',
    ...['watch=0', 'watch=False', 'watch=FALSE'].map(list),
    ...['watch=f', 'watch='].map((flag) => list(`timeoutSeconds=1&${flag}`)),
  ),
  row('options: watch with a number that is none', list('watch=true&timeoutSeconds=x')),
  row('options: watch by a match', watch('resourceVersionMatch=NotOlderThan'), watch('resourceVersionMatch=Exact&resourceVersion=1')),
  row(
    'options: watch with initial events by no match',
    watch('sendInitialEvents=true'),
    watch('sendInitialEvents=true&resourceVersionMatch=Exact'),
  ),
  row('options: watch, continued', watch('continue=x')),
  row('options: watch with initial events', watch('sendInitialEvents=true&resourceVersionMatch=NotOlderThan')),
  row(
    'options: page of a version',
    post(MAPS, { metadata: { name: 'o-page-1', labels: { page: 'one' } } }),
    post(MAPS, { metadata: { name: 'o-page-2', labels: { page: 'one' } } }),
    {
      method: 'GET',
      path: ([first]) => `${MAPS}?labelSelector=page&limit=5&resourceVersion=${textAt(first, 'metadata', 'resourceVersion')}`,
    },
  ),
  row(
    'options: fields with wrong values',
    ...['a%5Cx', 'a%3Db', 'a%5C', 'a%5C%2Cb'].map((value) => list(`fieldSelector=metadata.name%3D${value}`)),
  ),
  row(
    'options: events of the new group by their fields',
    ...['regarding.name=nobody', 'reportingController=nobody', 'involvedObject.name=x', 'source=x'].map((field) =>
      get(`${EVENTS}?fieldSelector=${encodeURIComponent(field)}`),
    ),
  ),
  row(
    'options: pods by their fields',
    ...['spec.hostNetwork=true', 'status.podIPs=1.2.3.4', 'spec.other=x'].map((field) =>
      get(`${PODS}?labelSelector=nothing&fieldSelector=${encodeURIComponent(field)}`),
    ),
  ),
  row(
    'options: get of a version that is none',
    post(MAPS, map('o-9')),
    get(`${MAPS}/o-9?resourceVersion=x`),
    get(`${MAPS}/o-9?resourceVersion=0`),
  ),
  row('options: an empty dry run', post(`${MAPS}?dryRun=`, map('o-1')), get(`${MAPS}/o-1`)),
  row('options: force of another patch, unclearly', post(MAPS, map('o-2')), patch(`${MAPS}/o-2?force=x`, { data: { a: '2' } })),
  row('options: several wrong ones of an apply', patch(`${MAPS}/o-3?dryRun=all&fieldValidation=strict`, applied('o-3'), 'apply')),
  deletion('o-10', 'options: delete with an unknown dry run', { dryRun: ['Some'] }),
  deletion('o-11', 'options: delete with an empty policy', { propagationPolicy: '' }),
  deletion('o-12', 'options: delete with two policies', { propagationPolicy: 'Orphan', orphanDependents: true }),
  deletion('o-13', 'options: delete with a time that is none', { gracePeriodSeconds: 'x' }),
  deletion('o-14', 'options: delete with preconditions that are none', { preconditions: 'x' }),
  deletion('o-15', 'options: delete with a dry run that is none', { dryRun: 'All' }),
  deletion('o-16', 'options: delete with an empty uid', { preconditions: { uid: '' } }),
  deletion('o-17', 'options: delete with an empty version', { preconditions: { resourceVersion: '' } }),
  deletion('o-18', 'options: delete with something else', { kind: 'Pod', apiVersion: 'v1' }),
  deletion('o-19', 'options: delete with nulls', { dryRun: null, propagationPolicy: null, preconditions: null, gracePeriodSeconds: null }),
  deletionBy('o-20', 'dryRun=Some'),
  deletionBy('o-21', 'resourceVersion=0'),
  deletionBy('o-22', 'uid=another'),
  deletionBy('o-23', 'gracePeriodSeconds=x'),
  deletionBy('o-24', 'propagationPolicy=Never'),
  row('options: delete by body and query', post(MAPS, map('o-25')), del(`${MAPS}/o-25?dryRun=All`, {}), get(`${MAPS}/o-25`)),
  row('options: delete a collection of all namespaces', del('/api/v1/configmaps?labelSelector=nothing')),
  row(
    'options: delete a collection, wrongly',
    ...['resourceVersion=x', 'continue=x', 'dryRun=x', 'limit=x'].map((query) => del(`${MAPS}?labelSelector=nothing&${query}`)),
  ),
  row('options: get as metadata only', post(MAPS, map('o-30')), get(`${MAPS}/o-30`, partial('PartialObjectMetadata'))),
  row(
    'options: list as metadata only',
    post(MAPS, { metadata: { name: 'o-31', labels: { form: 'partial' } } }),
    get(`${MAPS}?labelSelector=form`, partial('PartialObjectMetadataList')),
    get(`${MAPS}?labelSelector=form&watch=true&timeoutSeconds=1`, partial('PartialObjectMetadata')),
  ),
  row(
    'options: custom: metadata only',
    post(WIDGETS, widget('o-32', { size: 3 })),
    get(`${WIDGETS}/o-32`, partial('PartialObjectMetadata')),
  ),
  row(
    'null: in maps',
    post(`${MAPS}?dryRun=All`, { metadata: { name: 'n-1', labels: { a: null }, annotations: { b: null } }, data: { c: null } }),
  ),
  row('null: in lists', post(`${MAPS}?dryRun=All`, { metadata: { name: 'n-2', finalizers: [null], ownerReferences: [null] } })),
  row('null: an unknown field, strictly', post(`${MAPS}?fieldValidation=Strict`, map('n-3', { nothing: null }))),
  row('null: custom: in the metadata', post(WIDGETS, { ...widget('n-4', { size: 3 }), metadata: { name: 'n-4', labels: { a: null } } })),
  row('null: in an account', post(ACCOUNTS, { metadata: { name: 'n-5' }, secrets: [null], imagePullSecrets: [{ name: null }] })),
  row('empty: maps', post(MAPS, { metadata: { name: 'e-1' }, data: {}, binaryData: {} })),
  row('empty: lists of an account', post(ACCOUNTS, { metadata: { name: 'e-2' }, secrets: [], imagePullSecrets: [] })),
  row(
    'empty: names in an account',
    post(ACCOUNTS, { metadata: { name: 'e-3' }, secrets: [{ kind: 'x' }], imagePullSecrets: [{ name: '' }] }),
  ),
  row('metadata: a number that is too large', post(MAPS, '{"metadata":{"name":"m-1","generation":10000000000000000000}}')),
  row('metadata: an empty finalizer', post(MAPS, { metadata: { name: 'm-2', finalizers: [''] } })),
  row('metadata: an event as owner', owned('m-3', { apiVersion: 'v1', kind: 'Event', name: 'a', uid: '1' })),
  row('metadata: an owner of no version', owned('m-4', { apiVersion: 'a/b/c', kind: 'A', name: 'a', uid: '1' })),
  row('metadata: a negative generation', post(`${MAPS}?dryRun=All`, { metadata: { name: 'm-5', generation: -5 } })),
  row('metadata: patch of the uid', post(MAPS, map('m-6')), patch(`${MAPS}/m-6`, { metadata: { uid: 'another' } })),
  row('metadata: patch of generateName', post(MAPS, map('m-7')), patch(`${MAPS}/m-7`, { metadata: { generateName: 'x-' } })),
  row(
    'metadata: versions that are none',
    post(MAPS, map('m-8')),
    patch(`${MAPS}/m-8`, { metadata: { resourceVersion: 'x' } }),
    put(`${MAPS}/m-8`, { metadata: { name: 'm-8', resourceVersion: '-1' } }),
    patch(`${MAPS}/m-8`, { metadata: { resourceVersion: '0' }, data: { a: '2' } }),
  ),
  row(
    'metadata: no version where one must be',
    post(LEASES, { metadata: { name: 'm-9' } }),
    patch(`${LEASES}/m-9`, { metadata: { resourceVersion: '' }, spec: { holderIdentity: 'x' } }),
    patch(`${LEASES}/m-9`, { metadata: { resourceVersion: null }, spec: { holderIdentity: 'x' } }),
    put(`${LEASES}/m-9`, { metadata: { name: 'm-9', resourceVersion: '0' } }),
  ),
  row('apply: no kind', patch(as(`${MAPS}/p-1`), map('p-1'), 'apply'), patch(as(`${MAPS}/p-1`), 'data: {}\n', 'apply')),
  row('apply: another version', patch(as(`${MAPS}/p-1`), { ...applied('p-1'), apiVersion: 'apps/v1' }, 'apply')),
  row('apply: another kind', patch(as(`${MAPS}/p-1`), { ...applied('p-1'), kind: 'Secret' }, 'apply')),
  row('apply: nothing', patch(as(`${MAPS}/p-1`), '', 'apply'), patch(as(`${MAPS}/p-1`), 'null', 'apply')),
  row(
    'apply: an unknown field',
    patch(as(`${MAPS}/p-2`), applied('p-2', { nothing: 1 }), 'apply'),
    patch(as(`${MAPS}/p-2`, '&fieldValidation=Strict'), applied('p-2', { nothing: null }), 'apply'),
  ),
  row(
    'apply: an unknown field of the metadata',
    patch(as(`${MAPS}/p-2`), applied('p-2', { metadata: { name: 'p-2', nothing: 1 } }), 'apply'),
  ),
  row('apply: a number for a text', patch(as(`${MAPS}/p-3`), applied('p-3', { data: { a: 1 } }), 'apply')),
  row('apply: a text for a map', patch(as(`${MAPS}/p-3`), applied('p-3', { data: 'x' }), 'apply')),
  row('apply: a text for a flag', patch(as(`${MAPS}/p-3`), applied('p-3', { immutable: 'x' }), 'apply')),
  row('apply: a text for a list', patch(as(`${MAPS}/p-3`), applied('p-3', { metadata: { name: 'p-3', finalizers: 'x' } }), 'apply')),
  row(
    'apply: a finalizer twice',
    patch(as(`${MAPS}/p-4`), applied('p-4', { metadata: { name: 'p-4', finalizers: ['a.b/c', 'a.b/c'] } }), 'apply'),
  ),
  row(
    'apply: an owner without a uid',
    patch(as(`${MAPS}/p-4`), applied('p-4', { metadata: { name: 'p-4', ownerReferences: [{ name: 'x' }] } }), 'apply'),
  ),
  row(
    'apply: a text for a number, deep inside',
    patch(
      as(`${DEPLOYMENTS}/p-5`),
      {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'p-5' },
        spec: { template: { spec: { containers: [{ name: 'c', ports: [{ containerPort: 'x' }] }] } } },
      },
      'apply',
    ),
  ),
  row('apply: no managed fields', patch(as(`${MAPS}/p-6`), applied('p-6', { metadata: { name: 'p-6', managedFields: null } }), 'apply')),
  row(
    'apply: without a name',
    patch(as(`${MAPS}/p-7`), { apiVersion: 'v1', kind: 'ConfigMap', data: { a: '1' } }, 'apply'),
    patch(as(`${MAPS}/p-7`), { apiVersion: 'v1', kind: 'ConfigMap', data: { a: '2' } }, 'apply'),
  ),
  row(
    'apply: into another namespace',
    patch(as(`${MAPS}/p-8`), applied('p-8', { metadata: { name: 'p-8', namespace: 'other' } }), 'apply'),
  ),
  row('apply: custom: an unknown field', patch(as(`${WIDGETS}/p-9`), widget('p-9', { size: 3, nothing: 1 }), 'apply')),
  row('apply: custom: a number for a text', patch(as(`${WIDGETS}/p-9`), widget('p-9', { size: 3, colour: 1 }), 'apply')),
  row('apply: custom: a text for a number', patch(as(`${WIDGETS}/p-9`), widget('p-9', { size: 'x' }), 'apply')),
  row('apply: custom: null for the spec', patch(as(`${WIDGETS}/p-10`), { ...widget('p-10', {}), spec: null }, 'apply')),
  row(
    'custom: replicas that are no number',
    post(WIDGETS, widget('r-1', { size: 3, replicas: 'x' })),
    post(WIDGETS, widget('r-1', { size: 3, replicas: 1.5 })),
    post(WIDGETS, { ...widget('r-1', {}), spec: 'x' }),
  ),
  row(
    'strategic: an order that does not fit',
    post(DEPLOYMENTS, deployment('s-1')),
    patch(`${DEPLOYMENTS}/s-1`, containers([{ name: 'd' }, { name: 'c' }], [{ name: 'c' }, { name: 'x' }]), 'strategic'),
    patch(`${DEPLOYMENTS}/s-1`, containers([{ name: 'd', $patch: 'other', args: ['a', 'b'] }], [{ name: 'd' }]), 'strategic'),
  ),
  row(
    'strategic: an item without a key',
    post(DEPLOYMENTS, deployment('s-2')),
    patch(`${DEPLOYMENTS}/s-2?dryRun=All`, { metadata: { ownerReferences: [{}] } }, 'strategic'),
  ),
]

function deployment(name: string): JsonObject {
  return {
    metadata: { name },
    spec: {
      replicas: 0,
      paused: true,
      selector: { matchLabels: { a: 'b' } },
      template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'x' }] } },
    },
  }
}

function containers(list: readonly JsonObject[], order: readonly JsonObject[]): JsonObject {
  return { spec: { template: { spec: { containers: list, '$setElementOrder/containers': order } } } }
}
