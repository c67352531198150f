import type { Json, JsonObject } from '@thv/kube-schema/kind-schema'
import { request } from '@thv/testkit/cluster/http-request'
import type { ParityRow, Step } from '../parity-row.ts'
import { withoutControllers } from './controlled.ts'

export interface ParityTarget {
  readonly url: string
  readonly caPem: string
  readonly adminToken: string
  readonly namespace: string
  /** Where Services get their addresses: `10.0.0.0/16`. */
  readonly serviceRange: string
}

/** Compared values: the status code and the body without what differs from run to run. */
export interface ParityAnswer {
  readonly code: number
  readonly body: Json
}

export async function runRow(target: ParityTarget, { steps, controlled = false }: ParityRow): Promise<ParityAnswer[]> {
  const bodies: JsonObject[] = []
  const answers: ParityAnswer[] = []
  for (const step of steps) {
    const { status, text } = await send(target, step, bodies)
    const body = parse(text)
    bodies.push(typeof body === 'object' && body !== null && !Array.isArray(body) ? (body as JsonObject) : {})
    const own = controlled ? withoutControllers(body) : body
    answers.push({ code: status, body: normalise(withoutAddresses(own, target), target.namespace) })
  }
  return answers
}

function send(target: ParityTarget, step: Step, earlier: readonly JsonObject[]) {
  const body = typeof step.body === 'function' ? step.body(earlier) : step.body
  const filled = body === undefined ? undefined : fill(body, target.namespace)
  const payload = filled === undefined || typeof filled === 'string' ? filled : JSON.stringify(filled)
  const path = typeof step.path === 'function' ? step.path(earlier) : step.path
  return request(`${target.url}${path.replaceAll('{ns}', target.namespace)}`, {
    method: step.method,
    caPem: target.caPem,
    body: payload,
    headers: {
      authorization: `Bearer ${target.adminToken}`,
      'user-agent': 'parity/1',
      // Node leaves it out of a DELETE.
      ...(payload === undefined ? {} : { 'content-length': String(Buffer.byteLength(payload)) }),
      ...(step.type === undefined ? {} : { 'content-type': step.type }),
      ...(step.accept === undefined ? {} : { accept: step.accept }),
    },
  })
}

function fill(body: Json, namespace: string): Json {
  return typeof body === 'string'
    ? body.replaceAll('{ns}', namespace)
    : (JSON.parse(JSON.stringify(body).replaceAll('{ns}', namespace)) as Json)
}

/** The events of a watch stand in a line each. */
function parse(text: string): Json {
  try {
    const lines = text.trimEnd().split('\n')
    if (lines.length > 1) return lines.map((line) => JSON.parse(line) as Json)
    return JSON.parse(text) as Json
  } catch {
    return text
  }
}

/** Each server gives addresses and node ports of its own. */
function withoutAddresses(body: Json, { serviceRange }: ParityTarget): Json {
  const [first = '', bits = ''] = serviceRange.split('/')
  const prefix = first.split('.').slice(0, Math.floor(Number(bits) / 8))
  const address = new RegExp(`\\b${prefix.join('\\.')}(?:\\.\\d+){${4 - prefix.length}}\\b`, 'g')
  const text = JSON.stringify(body)
    .replaceAll(serviceRange, '<service range>')
    .replaceAll(address, '<service address>')
    .replaceAll(/("(?:nodePort|healthCheckNodePort)":)3[0-2]\d{3}\b/g, '$1"<node port>"')
    .replaceAll(/:3[0-2]\d{3}\/(TCP|UDP)/g, ':<node port>/$1')
  return JSON.parse(text) as Json
}

const UID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g
const SIGNED_TOKEN = /^eyJ[\w-]+\.[\w-]+\.[\w-]+$/
const RANDOM_VOLUME = /kube-api-access-[a-z0-9]{5}/g
const TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g
/** Not compared: what differs from run to run, and the descriptions of columns, which are prose. */
const LEFT_OUT = new Set(['creationTimestamp', 'remainingItemCount', 'description', 'storageVersionHash'])
const PLACEHOLDERS: Readonly<Record<string, string>> = { resourceVersion: '<version>', uid: '<uid>', continue: '<token>' }

function normalise(value: Json, namespace: string): Json {
  if (typeof value === 'string')
    return value
      .replaceAll(namespace, '<ns>')
      .replaceAll(UID, '<uid>')
      .replaceAll(TIME, '<time>')
      .replaceAll(RANDOM_VOLUME, 'kube-api-access-<random>')
      .replace(SIGNED_TOKEN, '<token>')
  if (Array.isArray(value)) return value.map((item: Json) => normalise(item, namespace))
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value)
    .filter(([name]) => !LEFT_OUT.has(name))
    .map(([name, member]): [string, Json] => {
      const placeholder = PLACEHOLDERS[name]
      if (placeholder !== undefined && typeof member === 'string' && member !== '') return [name, placeholder]
      if (name === 'message' && typeof member === 'string') return [name, plainMessage(normalise(member, namespace) as string)]
      // In order of time, to the second: a second that ends between two writes changes it.
      if (name === 'managedFields' && Array.isArray(member))
        return [name, inOneOrder(member.map((each: Json) => normalise(each, namespace)))]
      // The real server finds some problems more than once, and in no order.
      if (name === 'causes' && Array.isArray(member)) return [name, distinct(member.map((cause: Json) => normalise(cause, namespace)))]
      if (name === 'cells' && Array.isArray(member))
        return [name, member.map((cell) => (typeof cell === 'string' && /^\d+s$/.test(cell) ? '<age>' : normalise(cell, namespace)))]
      return [name, normalise(member, namespace)]
    })
  return Object.fromEntries(members.sort(([a], [b]) => (a < b ? -1 : 1)))
}

function inOneOrder(values: readonly Json[]): Json[] {
  return values
    .map((value) => ({ value, text: JSON.stringify(value) }))
    .toSorted((a, b) => (a.text < b.text ? -1 : 1))
    .map(({ value }) => value)
}

function distinct(values: readonly Json[]): Json[] {
  const byText = new Map(values.map((value) => [JSON.stringify(value), value]))
  return [...byText.keys()].toSorted().map((text) => byText.get(text) ?? null)
}

const NEXT_PROBLEM = /, (?=[^ ]+: (?:Invalid|Unsupported|Required|Forbidden|Too|Duplicate|Internal|Not found))/

/** Without versions, whole objects, diffs, the words of the CEL compiler, and an order of problems: the real server has none. */
function plainMessage(text: string): string {
  return (
    text
      .replace(/ is invalid: \[(.*)\]$/s, (_all, list: string) => ` is invalid: [${list.split(NEXT_PROBLEM).toSorted().join(', ')}]`)
      .replaceAll(/\((\d+)\)/g, '(<version>)')
      .replace(/current: \d+/, 'current: <version>')
      .replace(/in object meta: \d+/, 'in object meta: <version>')
      // A diff of the server's own structs follows.
      .replace(/(was previously negative\))\n.*/s, '$1 <diff>')
      .replace(/Invalid value: "\{.*\}": (strict|json)/s, 'Invalid value: <object>: $1')
      .replace(/Invalid value: \{.*\}: compilation failed: .*/s, 'Invalid value: <rule>: compilation failed')
  )
}
