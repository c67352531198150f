import { request } from '@thv/testkit/cluster/http-request'
import type { Json, JsonObject } from '../kind-schema.ts'
import type { ParityRow, Step } from './parity-row.ts'

export interface ParityTarget {
  readonly url: string
  readonly caPem: string
  readonly adminToken: string
  readonly namespace: string
}

/** What is compared: the status code and the body without what differs from run to run. */
export interface ParityAnswer {
  readonly code: number
  readonly body: Json
}

export async function runRow(target: ParityTarget, { steps }: ParityRow): Promise<ParityAnswer[]> {
  const bodies: JsonObject[] = []
  const answers: ParityAnswer[] = []
  for (const step of steps) {
    const { status, text } = await send(target, step, bodies)
    const body = parse(text)
    bodies.push(typeof body === 'object' && body !== null && !Array.isArray(body) ? (body as JsonObject) : {})
    answers.push({ code: status, body: normalise(body, target.namespace) })
  }
  return answers
}

function send(target: ParityTarget, step: Step, earlier: readonly JsonObject[]) {
  const body = typeof step.body === 'function' ? step.body(earlier) : step.body
  const filled = body === undefined ? undefined : fill(body, target.namespace)
  const payload = filled === undefined || typeof filled === 'string' ? filled : JSON.stringify(filled)
  return request(`${target.url}${step.path.replaceAll('{ns}', target.namespace)}`, {
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

function parse(text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch {
    return text
  }
}

const UID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g
const TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g
/** Not compared: who manages which field has a table of its own, and the descriptions of columns are prose. */
const LEFT_OUT = new Set(['managedFields', 'creationTimestamp', 'remainingItemCount', 'description', 'storageVersionHash'])
const PLACEHOLDERS: Readonly<Record<string, string>> = { resourceVersion: '<version>', uid: '<uid>', continue: '<token>' }

function normalise(value: Json, namespace: string): Json {
  if (typeof value === 'string') return value.replaceAll(namespace, '<ns>').replaceAll(UID, '<uid>').replaceAll(TIME, '<time>')
  if (Array.isArray(value)) return value.map((item: Json) => normalise(item, namespace))
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value)
    .filter(([name]) => !LEFT_OUT.has(name))
    .map(([name, member]): [string, Json] => {
      const placeholder = PLACEHOLDERS[name]
      if (placeholder !== undefined && typeof member === 'string' && member !== '') return [name, placeholder]
      if (name === 'message' && typeof member === 'string')
        return [name, (normalise(member, namespace) as string).replaceAll(/\((\d+)\)/g, '(<version>)')]
      // The real server finds some problems more than once.
      if (name === 'causes' && Array.isArray(member)) return [name, distinct(member.map((cause: Json) => normalise(cause, namespace)))]
      if (name === 'cells' && Array.isArray(member))
        return [name, member.map((cell) => (typeof cell === 'string' && /^\d+s$/.test(cell) ? '<age>' : normalise(cell, namespace)))]
      return [name, normalise(member, namespace)]
    })
  return Object.fromEntries(members.sort(([a], [b]) => (a < b ? -1 : 1)))
}

function distinct(values: readonly Json[]): Json[] {
  return [...new Map(values.map((value) => [JSON.stringify(value), value])).values()]
}
