import { systemClock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import type { KubeObject } from '@thv/kube/objects/types'
import { loadKinds, shownName } from '../cluster/kind-catalog.ts'
import { type ClusterFlags, type OpenCluster, withCluster } from '../cluster/open-cluster.ts'
import { fetchTable, type ServerTable, type TableQuery, versionOf, watchTable } from '../cluster/server-table.ts'
import { parseTargets, type Target } from '../cluster/targets.ts'
import type { ProgramEnv } from '../program.ts'
import { createTablePrinter, type TablePrinter } from './print-table.ts'
import { yamlText } from './yaml-text.ts'

export interface GetOptions extends ClusterFlags {
  readonly allNamespaces?: boolean
  readonly output?: 'wide' | 'yaml' | 'json' | 'name'
  readonly watch?: boolean
  readonly selector?: string
  readonly fieldSelector?: string
  readonly showLabels?: boolean
  readonly headers: boolean
}

interface Getting extends OpenCluster {
  readonly options: GetOptions
  readonly env: ProgramEnv
}

/** thv get KIND[,KIND…] [NAME…] */
export async function runGet(words: readonly string[], options: GetOptions, env: ProgramEnv): Promise<void> {
  await withCluster(options, env, async (cluster) => {
    const targets = parseTargets(words, await loadKinds(cluster.client, env.signal))
    if (options.watch && (targets.length > 1 || (targets[0]?.names?.length ?? 0) > 1))
      throw new ThvError('usage', '--watch supports a single kind or object')
    const getting = { ...cluster, options, env }
    if (options.output === 'yaml' || options.output === 'json') await printObjects(targets, getting)
    else await printTables(targets, getting)
  })
}

async function printTables(targets: readonly Target[], getting: Getting): Promise<void> {
  const { env, options, client } = getting
  let count = 0
  for (const target of targets) {
    const queries = queriesOf(target, getting)
    const printer = printerFor(target, { getting, several: targets.length > 1 })
    for (const query of queries) {
      const table = await fetchTable(client, query)
      if (count > 0 && table.rows.length > 0 && targets.length > 1 && options.output !== 'name') env.out('\n')
      count += table.rows.length
      if (table.rows.length > 0) env.out(printer.print(table))
      if (options.watch) await follow(query, { table, printer, getting })
    }
  }
  if (count === 0) env.err(`${emptyMessage(getting)}\n`)
}

function printerFor({ resource }: Target, { getting, several }: { getting: Getting; several: boolean }): TablePrinter {
  const { options } = getting
  if (options.output === 'name')
    return { print: ({ rows }) => rows.map(({ object }) => `${shownName(resource, object?.metadata.name ?? '')}\n`).join('') }
  return createTablePrinter({
    wide: options.output === 'wide',
    withNamespace: options.allNamespaces === true && resource.type.namespaced,
    withLabels: options.showLabels === true,
    withHeader: options.headers,
    namePrefix: several ? shownName(resource, '') : undefined,
  })
}

/** Between two watches: a server may end each at once. */
const AGAIN_MS = 250

/** Until Ctrl-C: watches again from where the last one ended. */
async function follow(
  query: TableQuery,
  { table, printer, getting }: { table: ServerTable; printer: TablePrinter; getting: Getting },
): Promise<void> {
  const { env, client } = getting
  let resourceVersion = versionOf(table) ?? '0'
  try {
    while (!env.signal?.aborted) {
      for await (const event of watchTable(client, { ...query, resourceVersion })) {
        resourceVersion = versionOf(event.table) ?? resourceVersion
        if (event.type !== 'BOOKMARK') env.out(printer.print(event.table))
      }
      await systemClock.sleep(AGAIN_MS, env.signal)
    }
  } catch (error) {
    if (!env.signal?.aborted) throw error
  }
}

async function printObjects(targets: readonly Target[], getting: Getting): Promise<void> {
  const { client, env, options } = getting
  const objects: KubeObject[] = []
  for (const target of targets) {
    const { type } = target.resource
    for (const query of queriesOf(target, getting)) {
      const { namespace, name, labelSelector, fieldSelector } = query
      if (name !== undefined) objects.push(await client.get(type, namespace === undefined ? { name } : { namespace, name }))
      else objects.push(...(await client.listAll(type, { namespace, labelSelector, fieldSelector })).items)
    }
  }
  const [first] = targets
  const isOne = targets.length === 1 && first?.names?.length === 1
  const shown = objects.map(withoutManagedFields)
  env.out(printed(isOne ? shown[0] : { apiVersion: 'v1', kind: 'List', items: shown }, options.output))
  if (options.watch && first) await followObjects(first, { shown, getting })
}

async function followObjects(target: Target, { shown, getting }: { shown: readonly KubeObject[]; getting: Getting }): Promise<void> {
  const { client, env, options } = getting
  const [query] = queriesOf(target, getting)
  const newest = shown.map((each) => Number(each.metadata.resourceVersion)).filter(Number.isSafeInteger)
  let resourceVersion = newest.length === 0 ? '0' : String(Math.max(...newest))
  const fieldSelector = query?.name === undefined ? query?.fieldSelector : `metadata.name=${query.name}`
  const { namespace, labelSelector } = query ?? {}
  try {
    while (!env.signal?.aborted) {
      const events = client.watch(target.resource.type, { resourceVersion, namespace, labelSelector, fieldSelector, signal: env.signal })
      for await (const { type, object } of events) {
        resourceVersion = object.metadata.resourceVersion ?? resourceVersion
        if (type !== 'BOOKMARK')
          env.out(`${options.output === 'yaml' ? '---\n' : ''}${printed(withoutManagedFields(object), options.output)}`)
      }
      await systemClock.sleep(AGAIN_MS, env.signal)
    }
  } catch (error) {
    if (!env.signal?.aborted) throw error
  }
}

/** One call to the server each. */
function queriesOf({ resource, names }: Target, { namespace, options, env }: Getting): TableQuery[] {
  const everywhere = options.allNamespaces === true
  if (names !== undefined && everywhere) throw new ThvError('usage', 'names cannot be combined with --all-namespaces; use -n')
  if (names !== undefined && options.selector !== undefined) throw new ThvError('usage', 'names cannot be combined with --selector')
  const common = {
    resource,
    namespace: resource.type.namespaced && !everywhere ? namespace : undefined,
    labelSelector: options.selector,
    fieldSelector: options.fieldSelector,
    signal: env.signal,
  }
  return names === undefined ? [common] : names.map((name) => ({ ...common, name }))
}

function emptyMessage({ options, namespace }: Getting): string {
  return options.allNamespaces ? 'No resources found' : `No resources found in ${namespace} namespace.`
}

/** As people read it: what it is comes first. */
function withoutManagedFields({ apiVersion, kind, metadata: { managedFields, ...metadata }, ...rest }: KubeObject): KubeObject {
  return { ...(apiVersion && { apiVersion }), ...(kind && { kind }), metadata, ...rest }
}

function printed(value: unknown, form: GetOptions['output']): string {
  return form === 'json' ? `${JSON.stringify(value, null, 4)}\n` : yamlText(value)
}
