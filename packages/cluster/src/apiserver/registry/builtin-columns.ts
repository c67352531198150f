import type { Json, JsonObject } from '@thv/kube-schema/kind-schema'
import { at, type Column, isObject, textAt } from '../objects/served-kind.ts'
import { ageSince, humanDuration } from './human-duration.ts'

/** The columns of the built-in kinds, as the real server has them; the descriptions stay out. */
export function builtinColumns(kind: string): readonly Column[] {
  return COLUMNS[kind] ?? [name, age]
}

function column(title: string, cell: Column['cell'], more: Partial<Column> = {}): Column {
  return { name: title, type: 'string', format: '', description: '', priority: 0, cell, ...more }
}
const wide = (title: string, cell: Column['cell']): Column => column(title, cell, { priority: 1 })
const whole = (title: string, cell: Column['cell'], more: Partial<Column> = {}): Column => column(title, cell, { type: 'integer', ...more })

export const name = column('Name', (o) => textAt(o, 'metadata', 'name'), { format: 'name' })
export const age = column('Age', (o, now) => ageSince(textAt(o, 'metadata', 'creationTimestamp'), now))
const createdAt = column('Created At', (o) => textAt(o, 'metadata', 'creationTimestamp'), { type: 'date' })

const list = (value: Json | undefined): JsonObject[] => (Array.isArray(value) ? (value as Json[]).filter(isObject) : [])
const number = (o: JsonObject, ...path: string[]): number => {
  const value = at(o, ...path)
  return typeof value === 'number' ? value : 0
}
const size = (o: JsonObject, ...members: string[]): number =>
  members.reduce((sum, member) => sum + Object.keys((o[member] as JsonObject | undefined) ?? {}).length, 0)
const templateContainers = (o: JsonObject): JsonObject[] => list(at(o, 'spec', 'template', 'spec', 'containers'))
const containerNames = wide('Containers', (o) =>
  templateContainers(o)
    .map((c) => textAt(c, 'name'))
    .join(','),
)
const images = wide('Images', (o) =>
  templateContainers(o)
    .map((c) => textAt(c, 'image'))
    .join(','),
)
const selector = wide('Selector', (o) => selectorText(at(o, 'spec', 'selector')))

const COLUMNS: Readonly<Record<string, readonly Column[]>> = {
  Namespace: [name, column('Status', (o) => textAt(o, 'status', 'phase')), age],
  ConfigMap: [name, column('Data', (o) => size(o, 'data', 'binaryData')), age],
  Secret: [name, column('Type', (o) => textAt(o, 'type')), column('Data', (o) => size(o, 'data')), age],
  ServiceAccount: [name, column('Secrets', (o) => list(o['secrets']).length), age],
  Pod: [
    name,
    column('Ready', (o) => {
      const statuses = list(at(o, 'status', 'containerStatuses'))
      return `${statuses.filter((s) => s['ready'] === true).length}/${list(at(o, 'spec', 'containers')).length}`
    }),
    column('Status', podReason),
    column('Restarts', podRestarts),
    age,
    wide('IP', (o) => textAt(o, 'status', 'podIP') || '<none>'),
    wide('Node', (o) => textAt(o, 'spec', 'nodeName') || '<none>'),
    wide('Nominated Node', (o) => textAt(o, 'status', 'nominatedNodeName') || '<none>'),
    wide('Readiness Gates', () => '<none>'),
  ],
  Service: [
    name,
    column('Type', (o) => textAt(o, 'spec', 'type')),
    column('Cluster-IP', (o) => textAt(o, 'spec', 'clusterIP') || '<none>'),
    column('External-IP', externalAddresses),
    column('Port(s)', servicePorts),
    age,
    wide('Selector', (o) => pairs(at(o, 'spec', 'selector'))),
  ],
  Deployment: [
    name,
    column('Ready', (o) => `${number(o, 'status', 'readyReplicas')}/${number(o, 'spec', 'replicas')}`),
    column('Up-to-date', (o) => number(o, 'status', 'updatedReplicas')),
    column('Available', (o) => number(o, 'status', 'availableReplicas')),
    age,
    containerNames,
    images,
    selector,
  ],
  ReplicaSet: [
    name,
    whole('Desired', (o) => number(o, 'spec', 'replicas')),
    whole('Current', (o) => number(o, 'status', 'replicas')),
    whole('Ready', (o) => number(o, 'status', 'readyReplicas')),
    age,
    containerNames,
    images,
    selector,
  ],
  ReplicationController: [
    name,
    whole('Desired', (o) => number(o, 'spec', 'replicas')),
    whole('Current', (o) => number(o, 'status', 'replicas')),
    whole('Ready', (o) => number(o, 'status', 'readyReplicas')),
    age,
    containerNames,
    images,
    wide('Selector', (o) => pairs(at(o, 'spec', 'selector'))),
  ],
  PodTemplate: [
    name,
    column('Containers', (o) =>
      templateContainers({ spec: o })
        .map((c) => textAt(c, 'name'))
        .join(','),
    ),
    column('Images', (o) =>
      templateContainers({ spec: o })
        .map((c) => textAt(c, 'image'))
        .join(','),
    ),
    column('Pod Labels', (o) => pairs(at(o, 'template', 'metadata', 'labels'))),
  ],
  StatefulSet: [
    name,
    column('Ready', (o) => `${number(o, 'status', 'readyReplicas')}/${number(o, 'spec', 'replicas')}`),
    age,
    containerNames,
    images,
  ],
  ControllerRevision: [name, column('Controller', controllerName), column('Revision', (o) => number(o, 'revision')), age],
  Event: [
    column('Last Seen', lastSeen),
    column('Type', (o) => textAt(o, 'type')),
    column('Reason', (o) => textAt(o, 'reason')),
    column('Object', (o) => {
      const kind = textAt(o, 'involvedObject', 'kind').toLowerCase()
      const target = textAt(o, 'involvedObject', 'name')
      return target === '' ? kind : `${kind}/${target}`
    }),
    wide('Subobject', (o) => textAt(o, 'involvedObject', 'fieldPath')),
    wide('Source', (o) =>
      [textAt(o, 'source', 'component') || textAt(o, 'reportingComponent'), textAt(o, 'source', 'host') || textAt(o, 'reportingInstance')]
        .filter((text, index) => index === 0 || text !== '')
        .join(', '),
    ),
    column('Message', (o) => textAt(o, 'message').trim()),
    wide('First Seen', (o, now) => ageSince(textAt(o, 'firstTimestamp') || textAt(o, 'eventTime'), now)),
    column('Count', (o) => number(o, 'series', 'count') || number(o, 'count') || 1, { priority: 1 }),
    { ...name, priority: 1 },
  ],
  Role: [name, createdAt],
  ClusterRole: [name, createdAt],
  RoleBinding: bindingColumns(),
  ClusterRoleBinding: bindingColumns(),
  Lease: [name, column('Holder', (o) => textAt(o, 'spec', 'holderIdentity')), age],
  NetworkPolicy: [name, column('Pod-Selector', (o) => selectorText(at(o, 'spec', 'podSelector'))), age],
  CustomResourceDefinition: [name, createdAt],
  EndpointSlice: [
    name,
    column('AddressType', (o) => textAt(o, 'addressType')),
    column('Ports', (o) => few(list(o['ports']).map((p) => String(p['port'] ?? p['name'] ?? '*')))),
    column('Endpoints', (o) => few(list(o['endpoints']).flatMap((e) => (Array.isArray(e['addresses']) ? e['addresses'].map(String) : [])))),
    age,
  ],
  Node: [
    name,
    column('Status', (o) => {
      const ready = list(at(o, 'status', 'conditions')).find((c) => c['type'] === 'Ready')
      const state = ready === undefined ? 'Unknown' : ready['status'] === 'True' ? 'Ready' : 'NotReady'
      return at(o, 'spec', 'unschedulable') === true ? `${state},SchedulingDisabled` : state
    }),
    column('Roles', nodeRoles),
    age,
    column('Version', (o) => textAt(o, 'status', 'nodeInfo', 'kubeletVersion')),
    wide('Internal-IP', (o) => nodeAddress(o, 'InternalIP')),
    wide('External-IP', (o) => nodeAddress(o, 'ExternalIP')),
    wide('OS-Image', (o) => textAt(o, 'status', 'nodeInfo', 'osImage') || '<unknown>'),
    wide('Kernel-Version', (o) => textAt(o, 'status', 'nodeInfo', 'kernelVersion') || '<unknown>'),
    wide('Container-Runtime', (o) => textAt(o, 'status', 'nodeInfo', 'containerRuntimeVersion') || '<unknown>'),
  ],
}

function controllerName(o: JsonObject): string {
  const owner = list(at(o, 'metadata', 'ownerReferences')).find((reference) => reference['controller'] === true)
  if (owner === undefined) return '<none>'
  const group = textAt(owner, 'apiVersion').split('/').slice(0, -1).join('')
  const kind = textAt(owner, 'kind').toLowerCase()
  return `${group === '' ? kind : `${kind}.${group}`}/${textAt(owner, 'name')}`
}

function bindingColumns(): Column[] {
  const subjects = (o: JsonObject, kind: string) => list(o['subjects']).filter((subject) => subject['kind'] === kind)
  return [
    name,
    column('Role', (o) => `${textAt(o, 'roleRef', 'kind')}/${textAt(o, 'roleRef', 'name')}`),
    age,
    wide('Users', (o) =>
      subjects(o, 'User')
        .map((s) => textAt(s, 'name'))
        .join(', '),
    ),
    wide('Groups', (o) =>
      subjects(o, 'Group')
        .map((s) => textAt(s, 'name'))
        .join(', '),
    ),
    wide('ServiceAccounts', (o) =>
      subjects(o, 'ServiceAccount')
        .map((s) => `${textAt(s, 'namespace')}/${textAt(s, 'name')}`)
        .join(', '),
    ),
  ]
}

/** The reason that tells most: that of a container which waits or has ended, over the phase. */
function podReason(pod: JsonObject): string {
  let reason = textAt(pod, 'status', 'reason') || textAt(pod, 'status', 'phase')
  for (const status of list(at(pod, 'status', 'containerStatuses')).reverse()) {
    const waiting = textAt(status, 'state', 'waiting', 'reason')
    const terminated = at(status, 'state', 'terminated')
    if (waiting !== '') reason = waiting
    else if (isObject(terminated)) {
      const signal = number(terminated, 'signal')
      reason = textAt(terminated, 'reason') || (signal !== 0 ? `Signal:${signal}` : `ExitCode:${number(terminated, 'exitCode')}`)
    }
  }
  return at(pod, 'metadata', 'deletionTimestamp') === undefined ? reason : 'Terminating'
}

function podRestarts(pod: JsonObject, now: number): string {
  const statuses = list(at(pod, 'status', 'containerStatuses'))
  const restarts = statuses.reduce((sum, status) => sum + number(status, 'restartCount'), 0)
  const ended = statuses
    .map((status) => Date.parse(textAt(status, 'lastState', 'terminated', 'finishedAt')))
    .filter((time) => !Number.isNaN(time))
  return restarts > 0 && ended.length > 0 ? `${restarts} (${humanDuration(now - Math.max(...ended))} ago)` : String(restarts)
}

function externalAddresses(service: JsonObject): string {
  const type = textAt(service, 'spec', 'type')
  if (type === 'ExternalName') return textAt(service, 'spec', 'externalName')
  const external = at(service, 'spec', 'externalIPs')
  const own = Array.isArray(external) ? external.map(String) : []
  if (type !== 'LoadBalancer') return some(own)
  const ingress = list(at(service, 'status', 'loadBalancer', 'ingress')).map((i) => textAt(i, 'ip') || textAt(i, 'hostname'))
  return [...ingress, ...own].join(',') || '<pending>'
}

function servicePorts(service: JsonObject): string {
  return some(
    list(at(service, 'spec', 'ports')).map((port) => {
      const node = number(port, 'nodePort')
      return `${number(port, 'port')}${node > 0 ? `:${node}` : ''}/${textAt(port, 'protocol') || 'TCP'}`
    }),
  )
}

function nodeRoles(node: JsonObject): string {
  const prefix = 'node-role.kubernetes.io/'
  const labels = Object.keys((at(node, 'metadata', 'labels') as JsonObject | undefined) ?? {})
  return some(labels.filter((label) => label.startsWith(prefix)).map((label) => label.slice(prefix.length)))
}

function nodeAddress(node: JsonObject, type: string): string {
  return (
    textAt(
      list(at(node, 'status', 'addresses')).find((address) => address['type'] === type),
      'address',
    ) || '<none>'
  )
}

function selectorText(value: Json | undefined): string {
  const labels = pairs(at(value, 'matchLabels'), '')
  const expressions = list(at(value, 'matchExpressions')).map((expression) => {
    const values = Array.isArray(expression['values']) ? expression['values'].join(',') : ''
    switch (expression['operator']) {
      case 'In':
        return `${textAt(expression, 'key')} in (${values})`
      case 'NotIn':
        return `${textAt(expression, 'key')} notin (${values})`
      case 'Exists':
        return textAt(expression, 'key')
      default:
        return `!${textAt(expression, 'key')}`
    }
  })
  return some([...(labels === '' ? [] : [labels]), ...expressions])
}

function pairs(value: Json | undefined, empty = '<none>'): string {
  const entries = isObject(value) ? Object.entries(value).map(([key, text]) => `${key}=${String(text)}`) : []
  return entries.length === 0 ? empty : entries.sort().join(',')
}

/** A series of events tells when it was last seen; without one, the first time will do. */
function lastSeen(event: JsonObject, now: number): string {
  if (isObject(event['series'])) return ageSince(textAt(event, 'series', 'lastObservedTime'), now)
  return ageSince(textAt(event, 'lastTimestamp') || textAt(event, 'firstTimestamp') || textAt(event, 'eventTime'), now)
}

const FEW = 3

function few(texts: readonly string[]): string {
  if (texts.length === 0) return '<unset>'
  const shown = texts.slice(0, FEW).join(',')
  return texts.length > FEW ? `${shown} + ${texts.length - FEW} more...` : shown
}

function some(texts: readonly string[]): string {
  return texts.length === 0 ? '<none>' : texts.join(',')
}
