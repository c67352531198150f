import { createInterface } from 'node:readline'
import { Agent, request } from 'undici'

/* The least that can be done: pages of 500, parsed, their servers written in as many ConfigMaps as the operator makes; then changes. */

interface Page {
  metadata: { continue?: string }
  items: { metadata: { name: string }; data?: Record<string, string> }[]
}

const { THV_SERVER = '', THV_TOKEN = '', THV_CA = '', THV_FROM = '', THV_INTO = '', THV_LABEL = '' } = process.env
const PARTS = 16

const dispatcher = new Agent({ allowH2: false, connect: { ca: THV_CA } })
const headers = { authorization: `Bearer ${THV_TOKEN}`, 'content-type': 'application/json' }
const started = performance.now()
/** Kept, as the operator keeps what it has read. */
const texts = new Map<string, string>()
let next = ''
do {
  const query = `limit=500&labelSelector=${encodeURIComponent(THV_LABEL)}${next && `&continue=${encodeURIComponent(next)}`}`
  const { body } = await request(`${THV_SERVER}/api/v1/namespaces/${THV_FROM}/configmaps?${query}`, { dispatcher, headers })
  const page = JSON.parse(await body.text()) as Page
  for (const { data } of page.items) {
    const { servers } = JSON.parse(data?.['registry.json'] ?? '{}') as { servers: Record<string, unknown> }
    for (const [name, server] of Object.entries(servers)) texts.set(name, JSON.stringify(server))
  }
  next = page.metadata.continue ?? ''
} while (next)

const parts = Array.from({ length: PARTS }, () => new Map<string, string>())
for (const [name, text] of texts) partOf(name).set(name, text)
for (const index of parts.keys()) await write('POST', index)
process.stdout.write(`merged ${texts.size} in ${performance.now() - started} ms\n`)

// Changed ConfigMaps, one after the other: each is read and parsed, and the part that holds the changed server is written.
const asked = createInterface({ input: process.stdin })
for await (const map of asked) {
  const { user, system } = process.cpuUsage()
  const { body } = await request(`${THV_SERVER}/api/v1/namespaces/${THV_FROM}/configmaps/${map}`, { dispatcher, headers })
  const { data } = JSON.parse(await body.text()) as Page['items'][number]
  const { servers } = JSON.parse(data?.['registry.json'] ?? '{}') as { servers: Record<string, unknown> }
  const touched = new Set<number>()
  for (const [name, server] of Object.entries(servers)) {
    const text = JSON.stringify(server)
    if (texts.get(name) === text) continue
    texts.set(name, text)
    partOf(name).set(name, text)
    touched.add(parts.indexOf(partOf(name)))
  }
  for (const index of touched) await write('PUT', index)
  const used = process.cpuUsage({ user, system })
  process.stdout.write(`changed ${map}: ${touched.size} writes, ${used.user + used.system} us\n`)
}

/** As many as the operator needs for the same data. */
function partOf(name: string): Map<string, string> {
  let sum = 0
  for (let at = 0; at < name.length; at++) sum = (sum * 31 + name.charCodeAt(at)) >>> 0
  const part = parts[sum % PARTS]
  if (part === undefined) throw new TypeError('there is no such part')
  return part
}

async function write(method: 'POST' | 'PUT', index: number): Promise<void> {
  const members = [...(parts[index] ?? [])].map(([name, text]) => `${JSON.stringify(name)}:${text}`)
  const data = { 'registry.json': `{"servers":{${members.join()}}}` }
  const name = `merged-${index}`
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data }
  const url = `${THV_SERVER}/api/v1/namespaces/${THV_INTO}/configmaps${method === 'PUT' ? `/${name}` : ''}`
  const { statusCode, body } = await request(url, { method, dispatcher, headers, body: JSON.stringify(object) })
  if (statusCode >= 300) throw new Error(`${statusCode} ${await body.text()}`)
  await body.dump()
}
