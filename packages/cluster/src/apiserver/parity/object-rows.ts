import type { Json, JsonObject } from '@thv/kube-schema/kind-schema'
import { del, get, type ParityRow, patch, post, put, row } from './parity-row.ts'

const MAPS = '/api/v1/namespaces/{ns}/configmaps'
const SECRETS = '/api/v1/namespaces/{ns}/secrets'
const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json'

const map = (name: string, more: JsonObject = {}): JsonObject => ({ metadata: { name }, data: { a: '1' }, ...more })
const named = (metadata: JsonObject): JsonObject => ({ metadata })
const versionOf = (body: JsonObject | undefined): string =>
  String((body?.['metadata'] as JsonObject | undefined)?.['resourceVersion'] ?? '')
const uidOf = (body: JsonObject | undefined): string => String((body?.['metadata'] as JsonObject | undefined)?.['uid'] ?? '')
const last = (earlier: readonly JsonObject[]): JsonObject => earlier.at(-1) ?? {}
const meta = (body: JsonObject): JsonObject => (body['metadata'] as JsonObject | undefined) ?? {}
const changed = (earlier: readonly JsonObject[], metadata: JsonObject, more: JsonObject = {}): Json => ({
  ...last(earlier),
  metadata: { ...meta(last(earlier)), ...metadata },
  ...more,
})

/** Verbs and their refusals on a plain built-in kind. */
export const objectRows: readonly ParityRow[] = [
  row('create, get', post(MAPS, map('c1')), get(`${MAPS}/c1`)),
  row('create with kind and version', post(MAPS, { apiVersion: 'v1', kind: 'ConfigMap', ...map('c2') })),
  row('create what exists', post(MAPS, map('c3')), post(MAPS, map('c3'))),
  row('create without a name', post(MAPS, { data: {} })),
  row('create with an invalid name', post(MAPS, map('Not_A_Name'))),
  row('create with a name that is too long', post(MAPS, map('a'.repeat(254)))),
  row('create in another namespace', post(MAPS, named({ name: 'c4', namespace: 'elsewhere' }))),
  row('create in a namespace that is not there', post('/api/v1/namespaces/no-such-namespace/configmaps', map('c5'))),
  row('create with a resource version', post(MAPS, named({ name: 'c6', resourceVersion: '5' }))),
  row('create with invalid labels', post(MAPS, named({ name: 'c7', labels: { 'bad key!': 'x', ok: 'bad value!' } }))),
  row('create with an invalid label prefix', post(MAPS, named({ name: 'c7', labels: { 'Bad_Prefix/x': 'x' } }))),
  row('create with a label that is too long', post(MAPS, named({ name: 'c7', labels: { a: 'x'.repeat(64) } }))),
  row('create with an invalid annotation', post(MAPS, named({ name: 'c7', annotations: { 'bad key!': 'x' } }))),
  row('create with an unqualified finalizer', post(MAPS, named({ name: 'c8', finalizers: ['mine'] }))),
  row(
    'create with an incomplete owner',
    post(MAPS, named({ name: 'c9', ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: '', uid: '' }] })),
  ),
  row('create with an invalid key', post(MAPS, map('c10', { data: { 'a b': '1', '..': '2' } }))),
  row(
    'create with what belongs to the server',
    post(MAPS, named({ name: 'c11', uid: 'mine', generation: 7, deletionTimestamp: '2020-01-01T00:00:00Z' })),
  ),
  row('create of another kind', post(MAPS, { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'c12' } })),
  row('create of another version', post(MAPS, { apiVersion: 'apps/v1', kind: 'ConfigMap', metadata: { name: 'c12' } })),
  row('create as a dry run', post(`${MAPS}?dryRun=All`, map('c13')), get(`${MAPS}/c13`)),
  row('create with a wrong dry run', post(`${MAPS}?dryRun=Some`, map('c13'))),
  row('create with a wrong field validation', post(`${MAPS}?fieldValidation=Maybe`, map('c13'))),
  row('create with a field manager that is too long', post(`${MAPS}?fieldManager=${'m'.repeat(129)}`, map('c13'))),
  row('get what is not there', get(`${MAPS}/missing`)),
  row('a resource that is not there', get('/api/v1/namespaces/{ns}/nothings')),
  row('a group that is not there', get('/apis/nothing.example.com/v1/nothings')),
  row('a method that is not there', post(`${MAPS}/c1`, map('c1'))),
  row('a subresource that is not there', get(`${MAPS}/c1/status`)),
  row(
    'put',
    post(MAPS, map('u1')),
    put(`${MAPS}/u1`, (e) => changed(e, {}, { data: { b: '2' } })),
    get(`${MAPS}/u1`),
  ),
  row('put without a version', post(MAPS, map('u2')), put(`${MAPS}/u2`, map('u2', { data: { b: '2' } }))),
  row(
    'put of the same',
    post(MAPS, map('u3')),
    put(`${MAPS}/u3`, (e) => last(e)),
  ),
  row(
    'put on an old version',
    post(MAPS, map('u4')),
    put(`${MAPS}/u4`, map('u4', { data: { b: '2' } })),
    put(`${MAPS}/u4`, ([first]) => ({ ...first, data: { c: '3' } })),
  ),
  row(
    'put with another uid',
    post(MAPS, map('u5')),
    put(`${MAPS}/u5`, (e) => changed(e, { uid: 'another' })),
  ),
  row('put under another name', post(MAPS, map('u6')), put(`${MAPS}/u6`, map('u7'))),
  row('put without a name', put(`${MAPS}/u6`, { data: {} })),
  row('put of what is not there', put(`${MAPS}/u8`, map('u8'))),
  row('put into another namespace', post(MAPS, map('u9')), put(`${MAPS}/u9`, named({ name: 'u9', namespace: 'elsewhere' }))),
  row('put as a dry run', post(MAPS, map('u10')), put(`${MAPS}/u10?dryRun=All`, map('u10', { data: { b: '2' } })), get(`${MAPS}/u10`)),
  row(
    'put that would change an immutable one',
    post(MAPS, map('u11', { immutable: true })),
    put(`${MAPS}/u11`, map('u11', { data: { b: '2' }, immutable: true })),
    put(`${MAPS}/u11`, map('u11')),
  ),
  row(
    'put of a creation time is ignored',
    post(MAPS, map('u12')),
    put(`${MAPS}/u12`, (e) => changed(e, { creationTimestamp: '2020-01-01T00:00:00Z' })),
  ),
  row('merge patch', post(MAPS, map('p1')), patch(`${MAPS}/p1`, { metadata: { labels: { x: 'y' } }, data: { a: null, b: '2' } })),
  row('merge patch that changes nothing', post(MAPS, map('p2')), patch(`${MAPS}/p2`, { data: { a: '1' } })),
  row(
    'merge patch with an old version',
    post(MAPS, map('p3')),
    patch(`${MAPS}/p3`, { metadata: { resourceVersion: '1' }, data: { a: '2' } }),
  ),
  row('merge patch of the name', post(MAPS, map('p4')), patch(`${MAPS}/p4`, { metadata: { name: 'other' } })),
  row('merge patch of what is not there', patch(`${MAPS}/p5`, { data: { a: '2' } })),
  row('merge patch to something invalid', post(MAPS, map('p6')), patch(`${MAPS}/p6`, { metadata: { labels: { 'bad key!': 'x' } } })),
  row('patch of an unknown type', patch(`${MAPS}/p6`, {}, 'application/unknown')),
  row('delete', post(MAPS, map('d1')), del(`${MAPS}/d1`), get(`${MAPS}/d1`)),
  row('delete what is not there', del(`${MAPS}/d2`)),
  row('delete with another uid', post(MAPS, map('d3')), del(`${MAPS}/d3`, { preconditions: { uid: 'another' } })),
  row('delete with another version', post(MAPS, map('d4')), del(`${MAPS}/d4`, { preconditions: { resourceVersion: '1' } })),
  row(
    'delete with its uid',
    post(MAPS, map('d5')),
    del(`${MAPS}/d5`, (e) => ({ preconditions: { uid: uidOf(last(e)), resourceVersion: versionOf(last(e)) } })),
  ),
  row('delete as a dry run', post(MAPS, map('d6')), del(`${MAPS}/d6?dryRun=All`), get(`${MAPS}/d6`)),
  row('delete with an unknown policy', post(MAPS, map('d7')), del(`${MAPS}/d7`, { propagationPolicy: 'Never' })),
  row(
    'delete with a finalizer',
    post(MAPS, named({ name: 'd8', finalizers: ['example.com/hold'] })),
    del(`${MAPS}/d8`),
    del(`${MAPS}/d8`),
    patch(`${MAPS}/d8`, { metadata: { finalizers: ['example.com/hold', 'example.com/more'] } }),
    patch(`${MAPS}/d8`, { metadata: { finalizers: null } }),
    get(`${MAPS}/d8`),
  ),
  row('delete a namespace that must stay', del('/api/v1/namespaces/default')),
  row('list by label', post(MAPS, named({ name: 'l1', labels: { list: 'one' } })), get(`${MAPS}?labelSelector=list%3Done`)),
  row('list by several labels', get(`${MAPS}?labelSelector=list%20in%20(one%2Ctwo)%2C!other`)),
  row('list by name', post(MAPS, map('l2')), get(`${MAPS}?fieldSelector=metadata.name%3Dl2`)),
  row('list by a field that cannot be selected', get(`${MAPS}?fieldSelector=data.a%3D1`)),
  row('list by no selector at all', get(`${MAPS}?fieldSelector=nonsense`)),
  row('list with a malformed continue', get(`${MAPS}?continue=nonsense`)),
  row('list as a table', post(MAPS, named({ name: 'l3', labels: { list: 'table' } })), get(`${MAPS}?labelSelector=list%3Dtable`, TABLE)),
  row('get as a table', post(MAPS, map('l4')), get(`${MAPS}/l4`, TABLE)),
  row('get as a table with objects', post(MAPS, map('l5')), get(`${MAPS}/l5?includeObject=Object`, TABLE)),
  row('get as a table with an unknown form', get(`${MAPS}/l5?includeObject=Some`, TABLE)),
  row(
    'delete a collection',
    post(MAPS, named({ name: 'dc1', labels: { dc: 'x' } })),
    post(MAPS, named({ name: 'dc2', labels: { dc: 'x' } })),
    del(`${MAPS}?labelSelector=dc%3Dx`),
    get(`${MAPS}?labelSelector=dc%3Dx`),
  ),
  row('secret', post(SECRETS, { metadata: { name: 's1' }, stringData: { a: 'hello' }, data: { b: 'aGk=' } }), get(`${SECRETS}/s1`)),
  row('secret of another type', post(SECRETS, { metadata: { name: 's2' } }), patch(`${SECRETS}/s2`, { type: 'example.com/other' })),
  row('secret as a table', post(SECRETS, { metadata: { name: 's3' }, data: { a: 'aGk=' } }), get(`${SECRETS}/s3`, TABLE)),
  row('a body that is not JSON', post(MAPS, '{"metadata":')),
  row('a body that is a list', post(MAPS, [])),
]
