import { ThvError } from '@thv/kernel/errors'
import type { KubeClient } from '@thv/kube/client/client'
import { splitLines } from '@thv/kube/client/line-splitter'
import { collectionPath, objectPath } from '@thv/kube/client/paths'
import type { KubeObject, KubeStatus } from '@thv/kube/objects/types'
import type { ServedResource } from './kind-catalog.ts'

/** `meta.k8s.io/v1` Table: the server knows the columns of each kind. */
export interface ServerTable {
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string }
  readonly columnDefinitions: readonly TableColumn[]
  readonly rows: readonly TableRow[]
}

export interface TableColumn {
  readonly name: string
  /** Above 0: only when more is wanted. */
  readonly priority: number
}

export interface TableRow {
  readonly cells: readonly unknown[]
  readonly object?: KubeObject
}

export interface TableQuery {
  readonly resource: ServedResource
  /** Undefined: all namespaces, or a kind that has none. */
  readonly namespace: string | undefined
  readonly name?: string | undefined
  readonly labelSelector?: string | undefined
  readonly fieldSelector?: string | undefined
  readonly signal?: AbortSignal | undefined
}

const ACCEPT = 'application/json;as=Table;v=v1;g=meta.k8s.io'
const PAGE = 500
const MAX_EVENT_BYTES = 16 << 20

export async function fetchTable(client: KubeClient, query: TableQuery): Promise<ServerTable> {
  const { resource, namespace, name, labelSelector, fieldSelector, signal } = query
  const accept = `${ACCEPT},application/json`
  if (name !== undefined) {
    const path = objectPath(resource.type, namespace === undefined ? { name } : { namespace, name })
    return asTable((await client.raw('GET', path, { accept, signal })).json())
  }
  const path = collectionPath(resource.type, namespace)
  const rows: TableRow[] = []
  let table: ServerTable | undefined
  do {
    const page = { limit: PAGE, continue: table?.metadata?.continue, labelSelector, fieldSelector }
    const next = asTable((await client.raw('GET', path, { accept, signal, query: page })).json())
    rows.push(...next.rows)
    table = { ...next, columnDefinitions: table?.columnDefinitions ?? next.columnDefinitions }
  } while (table.metadata?.continue)
  return { ...table, rows }
}

export interface TableEvent {
  readonly type: string
  readonly table: ServerTable
}

/** Rows of later changes. Columns come with the first event only. Ends when the server ends it. */
export async function* watchTable(
  client: KubeClient,
  query: TableQuery & { readonly resourceVersion: string },
): AsyncGenerator<TableEvent> {
  const { resource, namespace, name, labelSelector, signal, resourceVersion } = query
  const fieldSelector = name === undefined ? query.fieldSelector : `metadata.name=${name}`
  const stream = client.stream(collectionPath(resource.type, namespace), {
    accept: ACCEPT,
    signal,
    query: { watch: true, resourceVersion, labelSelector, fieldSelector, allowWatchBookmarks: true },
  })
  const call = { verb: 'watch', target: resource.type.plural }
  for await (const line of splitLines(stream, { limit: MAX_EVENT_BYTES, call })) {
    if (line.length === 0) continue
    const { type, object } = JSON.parse(line.toString('utf8')) as { type: string; object: unknown }
    if (type === 'ERROR') throw watchError(object as KubeStatus)
    yield { type, table: asTable(object) }
  }
}

/** The newest version that an answer tells of. */
export function versionOf(table: ServerTable): string | undefined {
  return table.metadata?.resourceVersion || table.rows.at(-1)?.object?.metadata.resourceVersion
}

function watchError({ code, message = 'no message' }: KubeStatus): ThvError {
  return new ThvError(code === 410 ? 'kube_watch_expired' : 'kube_status', `the server ended the watch: ${message}`)
}

function asTable(value: unknown): ServerTable {
  const { kind, rows, columnDefinitions, metadata } = value as Partial<ServerTable> & { kind?: string }
  if (kind !== 'Table') throw new ThvError('kube_response_malformed', 'the server did not return a table')
  return { metadata: metadata ?? {}, columnDefinitions: columnDefinitions ?? [], rows: rows ?? [] }
}
