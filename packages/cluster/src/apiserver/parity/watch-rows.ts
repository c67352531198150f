import type { JsonObject } from '@thv/kube-schema/kind-schema'
import { del, get, type ParityRow, patch, post, row } from './parity-row.ts'

const MAPS = '/api/v1/namespaces/{ns}/configmaps'
const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json'

const map = (name: string, labels: JsonObject) => ({ metadata: { name, labels }, data: { a: '1' } })
const watch = (selector: string, more = '') => `${MAPS}?watch=true&timeoutSeconds=1&labelSelector=${encodeURIComponent(selector)}${more}`

/** Watches that end by themselves; their events are compared one by one. */
export const watchRows: readonly ParityRow[] = [
  row('watch: what is there', post(MAPS, map('v1', { v: 'one' })), post(MAPS, map('v2', { v: 'one' })), get(watch('v=one'))),
  row('watch: as tables', post(MAPS, map('v3', { v: 'two' })), post(MAPS, map('v4', { v: 'two' })), get(watch('v=two'), TABLE)),
  row(
    'watch: from a version, through a selector',
    post(MAPS, map('v5', { v: 'three', on: 'no' })),
    patch(`${MAPS}/v5`, { metadata: { labels: { on: 'yes' } } }),
    patch(`${MAPS}/v5`, { data: { a: '2' } }),
    patch(`${MAPS}/v5`, { metadata: { labels: { on: 'no' } } }),
    patch(`${MAPS}/v5`, { metadata: { labels: { on: 'yes' } } }),
    del(`${MAPS}/v5`),
    { method: 'GET', path: (earlier) => watch('v=three,on=yes', `&resourceVersion=${versionOf(earlier[0])}`) },
  ),
  row('watch: by name', post(MAPS, map('v6', {})), get(`${MAPS}?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Dv6`)),
  row('list: from no version at all', get(`${MAPS}?resourceVersion=x`)),
  row('list: from the future', get(`${MAPS}?resourceVersion=999999999`)),
  row('watch: from no version at all', get(`${MAPS}?watch=true&timeoutSeconds=1&resourceVersion=x`)),
]

function versionOf(object: JsonObject | undefined): string {
  return String((object?.['metadata'] as JsonObject | undefined)?.['resourceVersion'] ?? '')
}
