import { ThvError } from '@thv/kernel/errors'
import type { KubeClient } from '@thv/kube/client/client'
import type { StatusCondition } from '@thv/kube/objects/builtin-kinds'
import type { KubeObject, ResourceType } from '@thv/kube/objects/types'
import type { VirtualMCPCompositeToolDefinition } from '@thv/resources/kinds/virtual-mcp-composite-tool-definition/schema'
import { type KindCatalog, loadKinds } from '../cluster/kind-catalog.ts'
import { type ClusterFlags, withCluster } from '../cluster/open-cluster.ts'
import { SERVER_KINDS } from '../cluster/server-kinds.ts'
import { parseTargets } from '../cluster/targets.ts'
import type { ProgramEnv } from '../program.ts'
import { plainText } from '../text/plain-text.ts'
import { ageText } from './age-text.ts'
import { alignedRows } from './print-table.ts'
import { yamlText } from './yaml-text.ts'

/** thv describe KIND NAME…, or the name of a server alone: all that matters about an object, for people: what is wanted, how it is, and what happened. */
export async function runDescribe(words: readonly string[], options: ClusterFlags, env: ProgramEnv): Promise<void> {
  await withCluster(options, env, async ({ client, namespace }) => {
    const kinds = await loadKinds(client, env.signal)
    const server = await serverNamed(words, { kinds, client, namespace })
    const targets = server === undefined ? parseTargets(words, kinds) : []
    let printed = 0
    const print = async (object: KubeObject) => {
      if (printed++ > 0) env.out('\n\n')
      const [events, steps] = [await eventsOf(client, object), await stepLines(object)]
      env.out(describeObject(object, { events, steps }, Date.now()))
    }
    for (const object of server ?? []) await print(object)
    for (const { resource, names } of targets) {
      const { type } = resource
      const place = type.namespaced ? { namespace } : {}
      const objects =
        names === undefined
          ? (await client.listAll(type, place)).items
          : await Promise.all(names.map((name) => client.get(type, { ...place, name }, { signal: env.signal })))
      for (const object of objects) await print(object)
    }
    if (printed === 0) throw new ThvError('usage', `no objects to describe in namespace ${namespace}`)
  })
}

/** The servers of that name, for a single word that is not a kind, as `thv logs` and `thv tools` take it. */
async function serverNamed(
  words: readonly string[],
  { kinds, client, namespace }: { readonly kinds: KindCatalog; readonly client: KubeClient; readonly namespace: string },
): Promise<KubeObject[] | undefined> {
  const [name = ''] = words
  if (words.length !== 1 || /[/,]/.test(name) || kinds.has(name)) return undefined
  const found = await Promise.all(SERVER_KINDS.map((kind) => client.tryGet(kind as ResourceType, { namespace, name })))
  const servers = found.filter((object) => object !== undefined)
  return servers.length > 0 ? servers : undefined
}

/** `v1` Events: they name the object in one way for all writers. */
interface CoreEvent extends KubeObject {
  readonly type?: string
  readonly reason?: string
  readonly message?: string
  readonly count?: number
  readonly series?: { readonly count?: number; readonly lastObservedTime?: string }
  readonly eventTime?: string
  readonly firstTimestamp?: string
  readonly lastTimestamp?: string
  readonly source?: { readonly component?: string }
  readonly reportingComponent?: string
}

const coreEvents: ResourceType<CoreEvent> = { group: '', version: 'v1', kind: 'Event', plural: 'events', namespaced: true }

async function eventsOf(client: KubeClient, { metadata }: KubeObject): Promise<CoreEvent[]> {
  const fieldSelector = `involvedObject.uid=${metadata.uid}`
  const { items } = await client.listAll(coreEvents, { namespace: metadata.namespace ?? 'default', fieldSelector })
  return items.sort((a, b) => (lastTime(a) < lastTime(b) ? -1 : 1))
}

/** The steps of a composite tool in the order in which they run; none if its definition is not valid, which its status says. */
async function stepLines({ kind, ...rest }: KubeObject): Promise<string[]> {
  if (kind !== 'VirtualMCPCompositeToolDefinition') return []
  // Few commands need the check of composite tools.
  const { checkWorkflow } = await import('@thv/workflow/check-workflow')
  const { workflowOutline } = await import('@thv/workflow/dry-run')
  const { workflow } = checkWorkflow((rest as unknown as VirtualMCPCompositeToolDefinition).spec)
  return workflow ? workflowOutline(workflow).trimEnd().split('\n').map(indentedText) : []
}

function indentedText(line: string): string {
  return `${/^ */.exec(line)?.[0] ?? ''}${plainText(line)}`
}

interface Described {
  readonly events: readonly CoreEvent[]
  readonly steps: readonly string[]
}

function describeObject(object: KubeObject, { events, steps }: Described, now: number): string {
  const { apiVersion, kind, metadata, ...rest } = object as KubeObject & Record<string, unknown>
  const { status, ...content } = shownContent(kind, rest)
  const { conditions, ...state } = (typeof status === 'object' && status !== null ? status : {}) as Record<string, unknown>
  return [
    ...headLines(object, now),
    ...section('Conditions', conditionLines(conditions, now)),
    ...(Object.keys(state).length > 0 ? section('Status', yamlLines(state)) : []),
    ...section('Steps', steps),
    ...Object.entries(content).flatMap(([name, value]) => section(`${name[0]?.toUpperCase()}${name.slice(1)}`, yamlLines(value))),
    ...(events.length === 0 ? ['', 'Events: none'] : section('Events', eventLines(events, now))),
    '',
  ].join('\n')
}

function headLines({ apiVersion, kind, metadata }: KubeObject, now: number): string[] {
  const created = metadata.creationTimestamp
  const rows: (readonly [string, string | undefined])[] = [
    ['Name:', metadata.name],
    ['Namespace:', metadata.namespace],
    ['Kind:', `${kind} (${apiVersion})`],
    ['Created:', created && `${created} (${ageText(now - Date.parse(created))} ago)`],
    [
      'Deleted:',
      metadata.deletionTimestamp && `since ${metadata.deletionTimestamp}, waits for ${metadata.finalizers?.join(', ') || 'its end'}`,
    ],
    ['Owned by:', metadata.ownerReferences?.map((owner) => `${owner.kind} ${owner.name}`).join(', ')],
    ...pairs('Labels:', metadata.labels),
    ...pairs('Annotations:', metadata.annotations),
  ]
  return alignedRows(rows.filter(([, value]) => value !== undefined && value !== '').map(([name, value = '']) => [name, plainText(value)]))
}

function pairs(title: string, values: Record<string, string> = {}): [string, string][] {
  return Object.entries(values)
    .filter(([key]) => key !== 'kubectl.kubernetes.io/last-applied-configuration')
    .map(([key, value], index) => [index === 0 ? title : '', `${key}=${value}`])
}

/** Values of a Secret are never shown. */
function shownContent(kind: string | undefined, content: Record<string, unknown>): Record<string, unknown> {
  if (kind !== 'Secret' || typeof content['data'] !== 'object' || content['data'] === null) return content
  const sizes = Object.entries(content['data']).map(([key, value]) => [key, `${Buffer.byteLength(String(value), 'base64')} bytes`])
  return { ...content, data: Object.fromEntries(sizes) }
}

function conditionLines(conditions: unknown, now: number): string[] {
  if (!Array.isArray(conditions) || conditions.length === 0) return []
  const rows = (conditions as StatusCondition[]).map(({ type, status, reason = '', message = '', lastTransitionTime }) => [
    plainText(type),
    plainText(status),
    lastTransitionTime ? ageText(now - Date.parse(lastTransitionTime)) : '',
    plainText(reason),
    plainText(message),
  ])
  return alignedRows([['TYPE', 'STATUS', 'FOR', 'REASON', 'MESSAGE'], ...rows])
}

function eventLines(events: readonly CoreEvent[], now: number): string[] {
  const rows = events.map((event) => {
    const count = event.series?.count ?? event.count ?? 1
    const last = `${ageText(now - Date.parse(lastTime(event)))}${count > 1 ? ` (×${count})` : ''}`
    const from = event.reportingComponent || event.source?.component || ''
    return [event.type ?? '', last, event.reason ?? '', from, event.message ?? ''].map(plainText)
  })
  return alignedRows([['TYPE', 'AGE', 'REASON', 'FROM', 'MESSAGE'], ...rows])
}

function lastTime(event: CoreEvent): string {
  return (
    event.series?.lastObservedTime ||
    event.lastTimestamp ||
    event.eventTime ||
    event.firstTimestamp ||
    event.metadata.creationTimestamp ||
    ''
  )
}

function section(title: string, lines: readonly string[]): string[] {
  return lines.length === 0 ? [] : ['', `${title}:`, ...lines.map((line) => `  ${line}`.trimEnd())]
}

function yamlLines(value: unknown): string[] {
  return yamlText(value).trimEnd().split('\n')
}
